"""Vendors' replies as typed values.

Law: a reply that cannot be read raises `ReplyError` and nothing else.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from lamina.core.codec import mend_text
from lamina.errors import ReplyError

T = TypeVar("T")


def read_reply(reply: object, shape: type[T], what: str) -> T:
    """A reply object of a vendor's SDK, or a response body as a dict, in the shape a decoder reads.

    Raises:
        ReplyError: it has another shape; for a vendor's error, with the vendor's message.
    """
    try:
        # By attribute: `model_dump` warns of values that the SDK let through.
        return msgspec.convert(reply, shape, from_attributes=True)
    except msgspec.ValidationError as error:
        raise unreadable_reply(reply, what, str(error)) from error


def unreadable_reply(reply: object, what: str, problem: str) -> ReplyError:
    """The error for a reply that is not `what`."""
    error = reply.get("error") if isinstance(reply, Mapping) else getattr(reply, "error", None)
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("type")
    if error:
        problem = f"the provider reports an error: {error}"
    elif isinstance(reply, str | bytes):
        problem = f"it begins with {reply[:60]!r}"
    return ReplyError(
        mend_text(
            f"a reply of type {type(reply).__name__} is not {what}: {problem}; pass the SDK's "
            f"response object or the response body as a dict"
        )
    )

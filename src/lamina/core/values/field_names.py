"""Names of fields as the original documents write them.

Law: a field has one name of ours, and other documents may call it otherwise: in camelCase, or by a
word of their own. This is the one place that knows; both names at once must say the same.
"""

import re
from collections.abc import Collection, Mapping
from typing import Any

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
# Words of the documents for ours. They count only where ours is a field.
_OTHER_WORDS = {
    "invalidate_cache_reason": "reason",
    "part_name": "name",
    "tool_names": "names",
    "content": "text",
    "first_kept_index": "first_kept",
    "first_kept_message_index": "first_kept",
    "transformer_name": "transformer",
    "patch": "ops",
    "input_schema": "parameters",
    "tool_call_id": "call_id",
    "tool_name": "name",
    "display": "shown",
}


def snake_case(name: str) -> str:
    """A name in camelCase as ours are written."""
    return _HUMP.sub(lambda match: f"_{match[1].lower()}", name)


def our_name(name: str, known: Collection[str]) -> str:
    """Which of the `known` fields a name means; the name itself if it means none."""
    if name in known:
        return name
    snake = snake_case(name)
    word = _OTHER_WORDS.get(snake, snake)
    return next((ours for ours in (snake, word) if ours in known), name)


def with_our_names(fields: Mapping[Any, Any], known: Collection[str]) -> dict[Any, Any]:
    """The fields by our names, as far as they have one.

    Raises:
        ValueError: two names of one field differ in what they say.
    """
    named: dict[Any, Any] = {}
    origins: dict[Any, Any] = {}
    for name, value in fields.items():
        ours = our_name(name, known) if isinstance(name, str) else name
        if ours in named and named[ours] != value:
            both = f"{origins[ours]!r} and {name!r}"
            raise ValueError(f"{both} are two names of one field, and differ")
        named[ours], origins[ours] = value, name
    return named

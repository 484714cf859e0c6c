"""Lists a session's stored tool results, and all blobs it refers to.

Law: a result that was cut or shortened before it was first sent is stored whole, as a blob. The
other blobs are pictures.
"""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from lamina.core.assembly.shortened_results import digits_of
from lamina.core.audit.verification import pictures_of
from lamina.core.codec import digest_bytes
from lamina.core.values.entry import (
    PLANNED,
    CustomEntry,
    Entry,
    MessageEntry,
    OpeningEntry,
    ResultEntry,
    SessionEntry,
)
from lamina.core.values.message import ToolResult
from lamina.errors import UsageError


class KeptResult(Struct, frozen=True, kw_only=True):
    """A call's result. `digest` is that of the whole result, if `text` is only a part of it."""

    call_id: str
    name: str
    text: str = ""
    is_error: bool = False
    digest: str = ""


def list_results(entries: Iterable[Entry]) -> Iterator[KeptResult]:
    """Yield every result, in writing order."""
    for entry in entries:
        match entry:
            case ResultEntry(result=result, whole=digest):
                yield _describe(result, digest)
            case MessageEntry(message=message, whole_results=wholes):
                for block in message.blocks:
                    if isinstance(block, ToolResult):
                        yield _describe(block, wholes.get(block.call_id, ""))
            case CustomEntry(kind=kind, data={"calls": [*calls]}) if kind == PLANNED:
                yield from _planned_results(calls)
            case _:
                pass


def _planned_results(calls: Iterable[object]) -> Iterator[KeptResult]:
    """Yield the results of planned calls that were cut; the text of the others is only in the
    request."""
    for call in calls:
        match call:
            case {"id": str(call_id), "name": str(name), "outcome": outcome, "whole": str(digest)}:
                failed = outcome != "ran"
                yield KeptResult(call_id=call_id, name=name, is_error=failed, digest=digest)
            case _:
                pass


def _describe(result: ToolResult, digest: str) -> KeptResult:
    return KeptResult(
        call_id=result.call_id,
        name=result.name,
        text=result.text,
        is_error=result.is_error,
        digest=digest,
    )


def find_result(entries: Iterable[Entry], what: str) -> KeptResult:
    """Return the latest result of a call, by the call's id, or by the handle or digest of the whole
    result.

    Raises:
        UsageError: there is none.
    """
    results = list(list_results(entries))
    of_call = [result for result in results if result.call_id == what]
    digits = digits_of(what)
    of_digest = [r for r in results if digits and r.digest.startswith(digits)]
    found = of_call or of_digest
    if not found and digits:
        # A result sent in full and shortened later has a handle, too.
        found = [r for r in results if digest_bytes(r.text.encode()).startswith(digits)]
    if not found:
        ids = dict.fromkeys(result.call_id for result in results if result.digest)
        shortened = ", ".join(ids) or "none"
        raise UsageError(
            f"there is no result {what!r} here; those that were shortened: {shortened}"
        )
    return next((result for result in reversed(found) if result.digest), found[-1])


def whole_results(entries: Iterable[Entry]) -> Mapping[str, str]:
    """Return the digests of all results stored whole, each with its tool and call."""
    return {
        result.digest: f"{result.name} ({result.call_id})"
        for result in list_results(entries)
        if result.digest
    }


def blobs_of(entries: Iterable[Entry]) -> frozenset[str]:
    """Return the digests of all blobs that entries refer to."""
    all_entries = tuple(entries)
    included = (
        item
        for entry in all_entries
        if isinstance(entry, SessionEntry | OpeningEntry)
        for item in entry.included or ()
    )
    pictures = {picture.digest for item in included for picture in item.pictures}
    return frozenset(pictures | pictures_of(all_entries) | set(whole_results(all_entries)))

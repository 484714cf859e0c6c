"""One result of a tool, whole, as text or as data."""

from typing import Any

from msgspec.structs import asdict, replace

from lamina.apps.views.stored_session import StoredSession
from lamina.core.audit.kept_results import KeptResult, find_result


async def read_result(stored: StoredSession, what: str) -> KeptResult:
    """The result of a call, by the call's id or a digest, with all of its text.

    Raises:
        UsageError: there is none.
        JournalError: what was cut off it is not there any more.
    """
    journal = await stored.read()
    result = find_result(journal.entries.values(), what)
    if not result.digest:
        return result
    whole = await stored.store.get_blob(result.digest)
    return replace(result, text=whole.decode())


def describe_result(result: KeptResult) -> dict[str, Any]:
    return asdict(result) | {"characters": len(result.text)}

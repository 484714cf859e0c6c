"""Rebuilding a request from the journal: replay the path to it and assemble."""

from collections.abc import Sequence

from lamina.core.journal import replay_repaired
from lamina.core.layers import Assembler
from lamina.core.values.entry import Entry, RequestEntry
from lamina.core.values.prompt import Prompt
from lamina.errors import JournalError


def rebuild_prompt(path: Sequence[Entry], assembler: Assembler) -> Prompt:
    """The prompt of the request that `path` ends with, byte for byte as it was sent.

    Raises:
        JournalError: the path does not end with a request.
    """
    if not path or not isinstance(path[-1], RequestEntry):
        raise JournalError("the path to a request ends with its entry")
    state, _ = replay_repaired(path)
    return assembler.assemble(state.envelope, state.library.items, state.turn.start or 0)


def request_digests(request: RequestEntry, requests: dict[str, RequestEntry]) -> tuple[str, ...]:
    """The digest of every segment of a request in wire order, from the deltas in the journal."""
    chain = [request]
    while (base := chain[-1].base) is not None:
        if base not in requests:
            raise JournalError(f"request {base!r} is missing; those behind it build on its digests")
        chain.append(requests[base])
    digests: tuple[str, ...] = ()
    for entry in reversed(chain):
        digests = digests[: entry.kept] + entry.digests
    return digests

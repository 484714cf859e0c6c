"""Short ways to import and to look at what came of it, and the laws of every import."""

from typing import TypeVar

from lamina.adapters.formats.call_pairs import results_of, waiting_calls
from lamina.adapters.formats.detection import import_session
from lamina.adapters.formats.imported_session import ImportedSession
from lamina.core.codec import canonical_bytes, decode_entry, digest_bytes
from lamina.core.journal import State, path_to, replay
from lamina.core.values.entry import Entry, MessageEntry
from lamina.core.values.message import Image, Message

E = TypeVar("E")


def take(data: bytes) -> ImportedSession:
    return import_session(data, name="a.jsonl", session="s")


def active(session: ImportedSession) -> tuple[Entry, ...]:
    """The path that the session goes on from."""
    return path_to(session.entries[-1].id, {entry.id: entry for entry in session.entries})


def state_of(session: ImportedSession) -> State:
    return replay(active(session))


def conversation(session: ImportedSession) -> list[tuple[str, str]]:
    """Role and text of every message on the active path."""
    return [(message.role, plain(message)) for message in state_of(session).envelope.cached]


def plain(message: Message) -> str:
    results = [result.text for result in results_of(message)]
    calls = [f"{call.name}{call.arguments}" for call in message.calls]
    return " ".join(filter(None, [message.text, *calls, *results]))


def whats(session: ImportedSession) -> list[str]:
    return [problem.what for problem in session.problems]


def find(session: ImportedSession, kind: type[E]) -> list[E]:
    return [entry for entry in session.entries if isinstance(entry, kind)]


def is_paired(messages: list[Message]) -> bool:
    """Whether every vendor would take the calls and results of these messages."""
    for index, message in enumerate(messages):
        waiting = waiting_calls(messages[:index])
        ids = [result.call_id for result in results_of(message)]
        answered_ids = set(ids)
        if message.role == "tool":
            # A second result of one call is one too many.
            if not answered_ids or not answered_ids <= set(waiting) or len(ids) > len(answered_ids):
                return False
        elif waiting or answered_ids:
            return False
    return not waiting_calls(messages)


def check_laws(session: ImportedSession, data: bytes | None = None) -> None:
    """What holds for every import, whatever the file was."""
    entries = session.entries
    assert [entry.id for entry in entries] == [f"{n:06x}" for n in range(len(entries))]
    known_ids: set[str | None] = {None}
    blobs = {digest_bytes(blob) for blob in session.blobs}
    for entry in entries:
        assert entry.parent in known_ids
        known_ids.add(entry.id)
        assert decode_entry(canonical_bytes(entry)) == entry
        if isinstance(entry, MessageEntry):
            assert entry.message.id == entry.id
            pictures = [b.picture for b in entry.message.blocks if isinstance(b, Image)]
            assert {picture.digest for picture in pictures} <= blobs
    assert session.leaf in known_ids
    assert entries[-1].id == session.leaf or entries[-1].parent == session.leaf
    assert state_of(session).turn.start is None
    envelope = state_of(session).envelope
    assert is_paired(list(envelope.cached))
    assert not envelope.uncached
    if data is not None:
        mapped_lines = {line for line, _ in session.lines} | {p.line for p in session.problems}
        full = {n for n, raw in enumerate(data.split(b"\n"), 1) if raw.strip(b" \t\r")}
        assert full <= mapped_lines, f"lines {sorted(full - mapped_lines)} went nowhere"

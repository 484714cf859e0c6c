"""Short ways to import and to look at what came of it, and the laws of every import."""

from typing import TypeVar

from lamina.codec import canonical_bytes, decode_entry, digest_bytes
from lamina.formats import ImportedSession, import_session
from lamina.formats.call_pairs import results_of, waiting_calls
from lamina.journal import State, path_to, replay
from lamina.values.entry import Entry, MessageEntry
from lamina.values.message import Image, Message

E = TypeVar("E")


def take(data: bytes) -> ImportedSession:
    return import_session(data, name="a.jsonl", session="s")


def active(imported: ImportedSession) -> tuple[Entry, ...]:
    """The path that the session goes on from."""
    return path_to(imported.entries[-1].id, {entry.id: entry for entry in imported.entries})


def state_of(imported: ImportedSession) -> State:
    return replay(active(imported))


def said(imported: ImportedSession) -> list[tuple[str, str]]:
    """Role and text of every message on the active path."""
    return [(message.role, plain(message)) for message in state_of(imported).envelope.cached]


def plain(message: Message) -> str:
    results = [result.text for result in results_of(message)]
    calls = [f"{call.name}{call.arguments}" for call in message.calls]
    return " ".join(filter(None, [message.text, *calls, *results]))


def whats(imported: ImportedSession) -> list[str]:
    return [problem.what for problem in imported.problems]


def find(imported: ImportedSession, kind: type[E]) -> list[E]:
    return [entry for entry in imported.entries if isinstance(entry, kind)]


def is_paired(messages: list[Message]) -> bool:
    """Whether every vendor would take the calls and results of these messages."""
    for index, message in enumerate(messages):
        waiting = waiting_calls(messages[:index])
        ids = [result.call_id for result in results_of(message)]
        answered = set(ids)
        if message.role == "tool":
            # A second result of one call is one too many.
            if not answered or not answered <= set(waiting) or len(ids) > len(answered):
                return False
        elif waiting or answered:
            return False
    return not waiting_calls(messages)


def check_laws(imported: ImportedSession, data: bytes | None = None) -> None:
    """What holds for every import, whatever the file was."""
    entries = imported.entries
    assert [entry.id for entry in entries] == [f"{n:06x}" for n in range(len(entries))]
    seen: set[str | None] = {None}
    blobs = {digest_bytes(blob) for blob in imported.blobs}
    for entry in entries:
        assert entry.parent in seen
        seen.add(entry.id)
        assert decode_entry(canonical_bytes(entry)) == entry
        if isinstance(entry, MessageEntry):
            assert entry.message.id == entry.id
            pictures = [b.picture for b in entry.message.blocks if isinstance(b, Image)]
            assert {picture.digest for picture in pictures} <= blobs
    assert imported.leaf in seen
    assert entries[-1].id == imported.leaf or entries[-1].parent == imported.leaf
    assert state_of(imported).turn_start is None
    envelope = state_of(imported).envelope
    assert is_paired(list(envelope.cached))
    assert not envelope.uncached
    if data is not None:
        told = {line for line, _ in imported.lines} | {p.line for p in imported.problems}
        full = {n for n, raw in enumerate(data.split(b"\n"), 1) if raw.strip(b" \t\r")}
        assert full <= told, f"lines {sorted(full - told)} went nowhere"

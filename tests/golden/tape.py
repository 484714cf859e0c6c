"""What leaves a session: requests on their wire, errors by their code, and its journal.

Law: bytes and nothing but bytes. Texts that only a person reads (messages of errors, warnings on a
screen) and names of classes are no part of it, so that they may change.
"""

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from json import dumps
from typing import Any

from lamina.core.codec import encode_entry
from lamina.core.ports import JournalStore
from lamina.errors import LaminaError


class Tape:
    """Takes everything in the order in which it happened. `lines` is the same for people to read,
    where somebody wants to know what differs."""

    def __init__(self) -> None:
        self._hash = sha256()
        self.lines: list[str] = []

    def request(self, body: Mapping[str, Any]) -> None:
        """A request as it goes over the wire: the keys stay in their order."""
        self._take(dumps(body, ensure_ascii=False, separators=(",", ":"), default=_base64))

    def error(self, error: LaminaError) -> None:
        self._take(f"error {error.code}")

    def outcome(self, *facts: object) -> None:
        """How a step ended, where that is not in the journal."""
        self._take(f"outcome {facts!r}")

    def _take(self, line: str) -> None:
        data = line.encode("utf-8", "surrogatepass")
        self._hash.update(len(data).to_bytes(8, "big") + data)
        self.lines.append(line)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


def _base64(value: object) -> str:
    assert isinstance(value, bytes), value
    return b64encode(value).decode()


async def journal_lines(store: JournalStore) -> list[bytes]:
    """The entries of all sessions of a store, those of each in order of writing."""
    lines: list[bytes] = []
    for session in sorted(await store.sessions()):
        journal = await store.read(session)
        lines += [encode_entry(entry) for entry in journal.entries.values()]
    return lines

"""What the engine needs of the world, as Protocols. Adapters implement them; nothing here does."""

from collections.abc import Sequence
from typing import Any, Protocol

from lamina.values.entry import Entry
from lamina.values.item import Reading, Shape
from lamina.values.request import LeftOut
from lamina.values.settings import Target
from lamina.values.wire import Reply, WireRequest


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...


class TokenCounter(Protocol):
    """Counts tokens as one family of models does. `name` keeps counts of different ones apart."""

    @property
    def name(self) -> str: ...

    @property
    def exact(self) -> bool: ...

    def count(self, text: str) -> int: ...


class Wire(Protocol):
    """One vendor's wire form: pure, no network."""

    def encode(self, request: WireRequest) -> dict[str, Any]: ...

    def decode(self, reply: object) -> Reply: ...


class TargetBook(Protocol):
    """What is known of providers and models."""

    def find(self, name: str) -> Target: ...

    def counter(self, target: Target) -> TokenCounter: ...

    def wire(self, target: Target) -> Wire: ...


class JournalStore(Protocol):
    """Keeps a session's entries. `append` is one write: all of `entries` are kept, or none. It
    raises `SessionMoved` where an id is taken: somebody else wrote to the session meanwhile."""

    async def append(self, session: str, entries: Sequence[Entry]) -> None: ...

    async def load(self, session: str) -> Sequence[Entry]: ...

    async def has(self, session: str) -> bool: ...

    async def put_blob(self, data: bytes) -> str:
        """Keeps bytes under their sha256, which it returns."""
        ...

    async def get_blob(self, digest: str) -> bytes: ...


class WorkspaceSource(Protocol):
    """Reads what a person attaches, and only from inside its own root."""

    @property
    def name(self) -> str: ...

    async def read(self, reference: str, shape: Shape) -> Reading | LeftOut:
        """The item that `reference` names, or why it cannot be had."""
        ...

"""Defines a request observed in any program's session, as far as its record shows it.

Laws: whatever a record omits is empty or None, never zero. `usage.input` includes what was read
and written. Bytes are kept in parts, in wire order, only while they are compared.
"""

from hashlib import blake2b
from typing import Literal

from msgspec import Struct

from lamina.core.audit.break_causes import CauseName, RecordDepth
from lamina.core.values.usage import Usage

PartLayer = Literal["tools", "system", "messages"]
# The trigger of a request: a person's message, tool results, or something unknown.
StepKind = Literal["turn", "loop", ""]


class PromptPart(Struct, frozen=True, kw_only=True):
    """A piece of a request: a tool, a block of text, a call. `place` is its path in the body, and
    `data` contains the bytes at that path."""

    layer: PartLayer
    place: str
    kind: str
    role: str = ""
    # The message that contains it; -1 before the first.
    message: int = -1
    data: bytes = b""
    marked: bool = False

    @property
    def digest(self) -> bytes:
        seal = blake2b(self.data, digest_size=12)
        seal.update(f"\x1f{self.layer}\x1f{self.role}\x1f{self.kind}".encode())
        return seal.digest()


class RecordedPrompt(Struct, frozen=True, kw_only=True):
    """The bytes of a request: its parts in wire order, and the parameters that affect caching."""

    parts: tuple[PromptPart, ...]
    parameters: tuple[tuple[str, str], ...] = ()
    # Whether the cache is written only at markers.
    has_markers: bool = False


class PromptChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first difference between a request and the previous one; `cause` is None if the earlier
    request is a prefix of the later one."""

    cause: CauseName | None = None
    layer: PartLayer | None = None
    place: str = ""
    offset: int | None = None
    before: bytes = b""
    after: bytes = b""
    detail: str = ""
    # Whether the bytes rule out any other explanation.
    is_sure: bool = True
    # The number of bytes of the earlier request that agree, and its size.
    shared: int = 0
    size: int = 0


# The source name of Lamina's own sessions.
OWN = "lamina"


class ObservedRequest(Struct, frozen=True, kw_only=True):
    """One request with its usage. `at` is the time of sending, as precisely as it is recorded."""

    source: str
    session: str
    id: str
    usage: Usage
    depth: RecordDepth
    at: float | None = None
    ended: float | None = None
    provider: str = ""
    model: str = ""
    # The agent in the session that sent it; empty for the session itself.
    agent: str = ""
    # The request whose prompt this one continues, if recorded.
    parent: str = ""
    # Whether the record shows that it continues no other request.
    is_root: bool = False
    step: StepKind = ""
    # Blocks appended since the previous request.
    blocks: int | None = None
    # Whether the previous answer contains thinking.
    thought: bool = False
    parameters: tuple[tuple[str, str], ...] = ()
    # Events since the previous request: compaction, skill, interruption, image and so on.
    events: tuple[str, ...] = ()
    version: str = ""
    # The vendor's own explanation of a miss.
    vendor_reason: str = ""
    # The change since the previous request, if the bytes were compared.
    change: PromptChange | None = None
    file: str = ""
    line: int = 0
    # Whether the user wrote the program that sent it.
    is_own: bool = False

"""A request of any program's session, as far as its record shows it.

Laws: what a record does not say is empty or None, never zero. `usage.input` includes what was read
and written. Bytes are kept in parts, in wire order, only while they are compared.
"""

from hashlib import blake2b
from typing import Literal

from msgspec import Struct

from lamina.core.audit.break_causes import CauseName, RecordDepth
from lamina.core.values.usage import Usage

PartLayer = Literal["tools", "system", "messages"]
# What a request follows: a person's message, tool results, or something unknown.
StepKind = Literal["turn", "loop", ""]


class PromptPart(Struct, frozen=True, kw_only=True):
    """A piece of a request: a tool, a block of text, a call. `place` is its path in the body, and
    `data` the bytes at that path."""

    layer: PartLayer
    place: str
    kind: str
    role: str = ""
    # The message that it belongs to; -1 before the first.
    message: int = -1
    data: bytes = b""
    marked: bool = False

    @property
    def digest(self) -> bytes:
        seal = blake2b(self.data, digest_size=12)
        seal.update(f"\x1f{self.layer}\x1f{self.role}\x1f{self.kind}".encode())
        return seal.digest()


class RecordedPrompt(Struct, frozen=True, kw_only=True):
    """The bytes of a request: its parts in wire order, and the parameters a cache depends on."""

    parts: tuple[PromptPart, ...]
    parameters: tuple[tuple[str, str], ...] = ()
    # Whether the cache is written at markers only.
    has_markers: bool = False


class PromptChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first place where a request differs from the one before it; `cause` is None if the
    earlier request is a prefix of the later one."""

    cause: CauseName | None = None
    layer: PartLayer | None = None
    place: str = ""
    offset: int | None = None
    before: bytes = b""
    after: bytes = b""
    detail: str = ""
    # Whether the bytes allow no other explanation.
    is_sure: bool = True
    # How many bytes of the earlier request agree, and its size.
    shared: int = 0
    size: int = 0


# The source of Lamina's own sessions.
OWN = "lamina"


class ObservedRequest(Struct, frozen=True, kw_only=True):
    """One request with its usage. `at` is when it was sent, as closely as the record shows."""

    source: str
    session: str
    id: str
    usage: Usage
    depth: RecordDepth
    at: float | None = None
    ended: float | None = None
    provider: str = ""
    model: str = ""
    # The session's agent that sent it; empty for the session itself.
    agent: str = ""
    # The request whose prompt this one continues, if the record says so.
    parent: str = ""
    # Whether the record shows that it continues none.
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
    # The change since the previous request, where the bytes were compared.
    change: PromptChange | None = None
    file: str = ""
    line: int = 0
    # Whether the program that sent it is the user's own.
    is_own: bool = False

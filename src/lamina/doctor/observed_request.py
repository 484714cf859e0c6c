"""A request of anybody's session, as much as its record tells.

Laws: what a record does not say is empty or None, never zero. `usage.input` includes what was read
and written. Bytes are kept in parts, in wire order, only while they are compared.
"""

from hashlib import blake2b
from typing import Literal

from msgspec import Struct

from lamina.core.audit.break_causes import CauseName, RecordDepth
from lamina.core.values.usage import Usage

PartLayer = Literal["tools", "system", "messages"]
# What a request follows: a person's message, results of tools, or nobody knows what.
StepKind = Literal["turn", "loop", ""]


class PromptPart(Struct, frozen=True, kw_only=True):
    """A piece of a request that goes over the wire as a whole: a tool, a block of text, a call.
    `place` is its path in the body, and `data` the bytes at that path."""

    layer: PartLayer
    place: str
    kind: str
    role: str = ""
    # Which message it is of; -1 in front of them.
    message: int = -1
    data: bytes = b""
    marked: bool = False

    @property
    def digest(self) -> bytes:
        seal = blake2b(self.data, digest_size=12)
        seal.update(f"\x1f{self.layer}\x1f{self.role}\x1f{self.kind}".encode())
        return seal.digest()


class RecordedPrompt(Struct, frozen=True, kw_only=True):
    """The bytes of a request: its parts in wire order, and the parameters that key a cache."""

    parts: tuple[PromptPart, ...]
    parameters: tuple[tuple[str, str], ...] = ()
    # Whether the wire writes its cache at markers only.
    has_markers: bool = False


class PromptChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first place at which a request differs from the one before it; `cause` is empty where
    the earlier one is whole within the later."""

    cause: CauseName | None = None
    layer: PartLayer | None = None
    place: str = ""
    offset: int | None = None
    before: bytes = b""
    after: bytes = b""
    detail: str = ""
    # Whether the bytes leave no other explanation.
    is_sure: bool = True
    # How many bytes of the earlier request agree, and how many it has.
    shared: int = 0
    size: int = 0


# The source of sessions that Lamina keeps.
OWN = "lamina"


class ObservedRequest(Struct, frozen=True, kw_only=True):
    """One request with its usage. `at` is when it was sent, as near as the record tells."""

    source: str
    session: str
    id: str
    usage: Usage
    depth: RecordDepth
    at: float | None = None
    ended: float | None = None
    provider: str = ""
    model: str = ""
    # Which of several agents of the session; empty for the session itself.
    agent: str = ""
    # The request whose prompt this one goes on from, if the record says so.
    parent: str = ""
    # Whether the record shows that it goes on from none.
    is_root: bool = False
    step: StepKind = ""
    # Blocks that were appended since the one before.
    blocks: int | None = None
    # Whether the answer before it holds thinking.
    thought: bool = False
    parameters: tuple[tuple[str, str], ...] = ()
    # What happened since the one before: compaction, skill, interruption, image and the like.
    events: tuple[str, ...] = ()
    version: str = ""
    # What the vendor itself said of a miss.
    vendor_reason: str = ""
    # What is known of it besides, of records that already judged it.
    change: PromptChange | None = None
    file: str = ""
    line: int = 0
    # Whether the program that sent it is the user's own.
    is_own: bool = False

"""Defines encoder input, and provider output: the pieces of an answer as they arrive, and the
whole. The last piece is the whole `Reply`."""

from collections.abc import Mapping

from msgspec import Struct

from lamina.core.values.envelope import Options
from lamina.core.values.message import Block, Image, Text
from lamina.core.values.prompt import Content, Prompt
from lamina.core.values.settings import CacheTtl, Target
from lamina.core.values.usage import InputTransformation, Usage

MISSING_PICTURE = "[A picture belongs here, but its file is missing.]"


class Reply(Struct, frozen=True, kw_only=True):
    """A provider's answer as our values. `stop` is the vendor's own word, `id` its id for the
    answer, `missed` its explanation if less was read from its cache than possible, and
    `transformations` what it removed from the request before the model saw it."""

    blocks: tuple[Block, ...]
    usage: Usage
    stop: str
    model: str = ""
    complete: bool = True
    id: str = ""
    missed: str = ""
    transformations: tuple[InputTransformation, ...] = ()


class WireRequest(Struct, frozen=True, kw_only=True):
    """Everything an encoder needs; `blobs` contains the bytes of the images in the prompt, if
    available, and `missing_pictures` the digests of the others. `previous` is the provider's id of
    the previous answer, so that it can explain cache misses: empty if there is none, None to
    request no explanation."""

    prompt: Prompt
    target: Target
    options: Options = Options()
    blobs: Mapping[str, bytes] = {}
    missing_pictures: tuple[str, ...] = ()
    cache_key: str = ""
    # The key it is routed by, if different.
    routing_key: str = ""
    cache_ttl: CacheTtl = "5m"
    previous: str | None = None
    # The number of leading segments that the last request left in the cache.
    held: int = 0
    # Whether the client may create explicit caches, if the vendor has them.
    explicit_cache: bool = False
    # The tools of the prompt that may be called now, if the target can restrict them without moving
    # its prefix. None: all of them.
    allowed_tools: tuple[str, ...] | None = None
    # The numbers of the sources that the answer has to cite.
    citations: tuple[int, ...] = ()

    def shown(self, content: Content) -> Content:
        """Return the content as sent: a picture whose bytes are gone is replaced by a notice."""
        if isinstance(content, Image) and content.picture.digest not in self.blobs:
            return Text(MISSING_PICTURE)
        return content

    @property
    def effort(self) -> str | None:
        """The reasoning effort, if the target supports it."""
        return self.target.taken_effort(self.options.effort)

    @property
    def enforced_citations(self) -> tuple[int, ...]:
        """Those of `citations` that the target enforces: an answer has at most one format, and that
        of a call or a schema takes precedence."""
        is_free = self.options.schema is None and not self.prompt.offers_tools
        return self.citations if is_free and self.target.takes_citations else ()


class TextPiece(Struct, frozen=True, tag="text"):
    """Text of the answer, as it arrives."""

    text: str


class ThinkingPiece(Struct, frozen=True, tag="thinking"):
    """Thinking of the model, as it arrives."""

    text: str


class CallPiece(Struct, frozen=True, tag="call", kw_only=True):
    """Part of a tool call; `index` distinguishes calls, `name` comes with the first piece."""

    index: int
    name: str = ""
    arguments: str = ""


class ProgressPiece(Struct, frozen=True, tag="reading", kw_only=True):
    """The part of the prompt that the model has read so far; `cached` is the part it did not have
    to read."""

    done: int
    total: int
    cached: int = 0


class ResentPiece(Struct, frozen=True, tag="resent"):
    """A notice that the request is sent again while the outcome of the previous attempt is unknown:
    that one may be charged anyway. `problem` is what went wrong."""

    problem: str


Piece = TextPiece | ThinkingPiece | CallPiece | ProgressPiece | ResentPiece | Reply

"""What goes to an encoder, and what comes back: piece by piece while a provider answers, and as a
whole. The last piece is the whole `Reply`.
"""

from collections.abc import Mapping

from msgspec import Struct

from lamina.core.values.envelope import Options
from lamina.core.values.message import Block, Image, Text
from lamina.core.values.prompt import Content, Prompt
from lamina.core.values.settings import CacheTtl, Target
from lamina.core.values.usage import InputTransformation, Usage

MISSING_PICTURE = "[A picture belongs here, but its file is missing.]"


class Reply(Struct, frozen=True, kw_only=True):
    """A provider's answer in our values. `stop` is the vendor's own word, `id` what it calls the
    answer, `missed` why it says that less was read from its cache than might have been, and
    `transformations` what it left out of the request before the model saw it."""

    blocks: tuple[Block, ...]
    usage: Usage
    stop: str
    model: str = ""
    complete: bool = True
    id: str = ""
    missed: str = ""
    transformations: tuple[InputTransformation, ...] = ()


class WireRequest(Struct, frozen=True, kw_only=True):
    """All that an encoder needs; `blobs` holds the bytes of the images in the prompt, as far as
    they are there, and `missing_pictures` the digests of the others. `previous` is the provider's
    id of the answer before, for it to say what came between them and its cache: empty if there is
    none, None if it is not to be asked."""

    prompt: Prompt
    target: Target
    options: Options = Options()
    blobs: Mapping[str, bytes] = {}
    missing_pictures: tuple[str, ...] = ()
    cache_key: str = ""
    # What it is routed by, where that is another name.
    routing_key: str = ""
    cache_ttl: CacheTtl = "5m"
    previous: str | None = None
    # How many of the leading segments the last request left in the cache.
    held: int = 0
    # Whether the client may make caches by hand, where a vendor has them.
    explicit_cache: bool = False
    # Of the tools in the prompt those that may be called now, where a target can tell them apart
    # without moving its prefix. None: all of them.
    allowed_tools: tuple[str, ...] | None = None
    # The numbers of the sources that the answer has to cite from.
    citations: tuple[int, ...] = ()

    def shown(self, content: Content) -> Content:
        """What of a message is sent: in place of a picture whose bytes are gone, that they are."""
        if isinstance(content, Image) and content.picture.digest not in self.blobs:
            return Text(MISSING_PICTURE)
        return content

    @property
    def effort(self) -> str | None:
        """How much the model is to think, where the target has that word."""
        return self.target.taken_effort(self.options.effort)

    @property
    def enforced_citations(self) -> tuple[int, ...]:
        """Those of `citations` that the target is held to: an answer has one form at most, and that
        of a call, or of a schema, goes first."""
        is_free = self.options.schema is None and not self.prompt.offers_tools
        return self.citations if is_free and self.target.takes_citations else ()


class TextPiece(Struct, frozen=True, tag="text"):
    """Text of the answer, as it comes."""

    text: str


class ThinkingPiece(Struct, frozen=True, tag="thinking"):
    """Thinking of the model, as it comes."""

    text: str


class CallPiece(Struct, frozen=True, tag="call", kw_only=True):
    """A part of a tool call; `index` tells calls apart, `name` comes with its first piece."""

    index: int
    name: str = ""
    arguments: str = ""


class ProgressPiece(Struct, frozen=True, tag="reading", kw_only=True):
    """How much of the prompt the model has read so far; `cached` it did not have to read."""

    done: int
    total: int
    cached: int = 0


class ResentPiece(Struct, frozen=True, tag="resent"):
    """The request is sent once more, and nobody knows what became of it before: it may be charged
    for all the same. `problem` is what went wrong."""

    problem: str


Piece = TextPiece | ThinkingPiece | CallPiece | ProgressPiece | ResentPiece | Reply

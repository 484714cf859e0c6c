"""What goes to an encoder, and what comes back: piece by piece while a provider answers, and as a
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
    """A provider's answer in our values. `stop` is the vendor's own word, `id` its id for the
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
    """Everything an encoder needs; `blobs` contains the bytes of the images in the prompt, where
    available, and `missing_pictures` the digests of the others. `previous` is the provider's id of
    the previous answer, so that it can explain cache misses: empty if there is none, None if it
    should not be asked."""

    prompt: Prompt
    target: Target
    options: Options = Options()
    blobs: Mapping[str, bytes] = {}
    missing_pictures: tuple[str, ...] = ()
    cache_key: str = ""
    # The key it is routed by, if that is another name.
    routing_key: str = ""
    cache_ttl: CacheTtl = "5m"
    previous: str | None = None
    # How many leading segments the last request left in the cache.
    held: int = 0
    # Whether the client may create explicit caches, where a vendor has them.
    explicit_cache: bool = False
    # The tools of the prompt that may be called now, where a target can restrict them without
    # moving its prefix. None: all of them.
    allowed_tools: tuple[str, ...] | None = None
    # The numbers of the sources that the answer has to cite.
    citations: tuple[int, ...] = ()

    def shown(self, content: Content) -> Content:
        """Return what is sent of a message: a picture whose bytes are gone is replaced by a note
        saying so."""
        if isinstance(content, Image) and content.picture.digest not in self.blobs:
            return Text(MISSING_PICTURE)
        return content

    @property
    def effort(self) -> str | None:
        """The reasoning effort, where the target knows the word."""
        return self.target.taken_effort(self.options.effort)

    @property
    def enforced_citations(self) -> tuple[int, ...]:
        """Those of `citations` that the target enforces: an answer has at most one form, and that
        of a call, or of a schema, takes precedence."""
        is_free = self.options.schema is None and not self.prompt.offers_tools
        return self.citations if is_free and self.target.takes_citations else ()


class TextPiece(Struct, frozen=True, tag="text"):
    """Text of the answer, as it arrives."""

    text: str


class ThinkingPiece(Struct, frozen=True, tag="thinking"):
    """Thinking of the model, as it arrives."""

    text: str


class CallPiece(Struct, frozen=True, tag="call", kw_only=True):
    """A part of a tool call; `index` tells calls apart, `name` comes with the first piece."""

    index: int
    name: str = ""
    arguments: str = ""


class ProgressPiece(Struct, frozen=True, tag="reading", kw_only=True):
    """How much of the prompt the model has read so far; `cached` is what it did not have to
    read."""

    done: int
    total: int
    cached: int = 0


class ResentPiece(Struct, frozen=True, tag="resent"):
    """The request is sent again while the outcome of the previous attempt is unknown: it may be
    charged anyway. `problem` is what went wrong."""

    problem: str


Piece = TextPiece | ThinkingPiece | CallPiece | ProgressPiece | ResentPiece | Reply

"""What a provider says while it answers, piece by piece; the last piece is the whole `Reply`."""

from msgspec import Struct

from lamina.core.values.wire import Reply


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

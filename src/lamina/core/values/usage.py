"""Defines what a provider reported about a request: its usage, in one format, and what it removed
from the request."""

from msgspec import Struct


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A provider's token counts. `input` includes cached tokens."""

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    # The part of `written` that is kept for longer, at a higher price.
    written_long: int = 0
    # Some servers report no cache figure at all, which differs from zero.
    cache_reported: bool = True
    # The part of the input contained in an explicitly created cache; 0 if the request named none.
    explicit: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """Return the combined usage of two requests."""
        return Usage(
            input=self.input + other.input,
            cached=self.cached + other.cached,
            written=self.written + other.written,
            output=self.output + other.output,
            written_long=self.written_long + other.written_long,
            cache_reported=self.cache_reported and other.cache_reported,
            explicit=self.explicit + other.explicit,
        )


class InputTransformation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A provider's change to a block of a request before the model saw it, in its own words: `kind`
    is `thinking_dropped` or `thinking_mismatch_allowed` so far, `path` the block's location in the
    sent body, and `reason` the check that failed."""

    kind: str
    path: str = ""
    reason: str = ""

    @property
    def is_surprise(self) -> bool:
        """Whether the block should not have been in the request, because the content before it
        changed. A block of another model or account is expected after a hand-over."""
        return self.reason == "prefix_binding_mismatch"

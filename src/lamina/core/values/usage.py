"""What a provider said of a request: what it cost, in one form, and what it left out of it."""

from msgspec import Struct


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a provider counted, in tokens. `input` includes what was cached."""

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    # What of `written` is kept for longer, at a higher price.
    written_long: int = 0
    # Some servers report no cache figure at all, which is not the same as zero.
    cache_reported: bool = True
    # What a cache that was made by hand holds of the input; 0 if the request named none.
    explicit: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """What two requests took together."""
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
    """What a provider did with a block of a request before the model saw it, in its own words:
    `kind` is `thinking_dropped` or `thinking_mismatch_allowed` so far, `path` the block's place in
    the body that was sent, and `reason` which of its checks failed."""

    kind: str
    path: str = ""
    reason: str = ""

    @property
    def is_surprise(self) -> bool:
        """Whether a request should not have had the block: what stood in front of it changed. A
        block of another model or account is expected after a hand-over."""
        return self.reason == "prefix_binding_mismatch"

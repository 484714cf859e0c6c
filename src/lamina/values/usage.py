"""What a provider said a request cost it, in one form: `input` includes what was cached."""

from msgspec import Struct


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a provider counted, in tokens."""

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

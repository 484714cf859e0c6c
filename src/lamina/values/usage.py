"""What a provider said a request cost it, in one form: `input` includes what was cached."""

from msgspec import Struct


class Usage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    # Some servers report no cache figure at all, which is not the same as zero.
    cache_reported: bool = True

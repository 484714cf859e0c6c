"""Text of others on a terminal: it is shown, and moves nothing."""

import re

# What a terminal acts upon: control characters but for tab and line break, and those that turn the
# direction of the text around.
_ACTS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """`text` with everything that a terminal would act upon spelled out."""
    return _ACTS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)

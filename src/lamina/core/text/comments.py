"""Where the comments of a note stand: `%% so %%` and `<!-- so -->`, on one line or over several.

Law: time grows with the length of the note. A comment that is never closed is none.
"""

import re

from lamina.core.text.characters import splice

_OPENING = re.compile(r"%%|<!--")
_CLOSING = {"%%": "%%", "<!--": "-->"}
_NOT_NEWLINE = re.compile(r"[^\n]")


def mask_comments(text: str) -> str:
    """`text` with NUL for every character of its comments; newlines stay, so does the length. Code
    should be masked before, as what stands in it is no comment."""
    edits: list[tuple[int, int, str]] = []
    # Searched for once to the end, and then no more.
    unclosed: set[str] = set()
    position = 0
    while opening := _OPENING.search(text, position):
        mark = opening[0]
        end = -1 if mark in unclosed else text.find(_CLOSING[mark], opening.end())
        if end < 0:
            unclosed.add(mark)
            position = opening.end()
            continue
        position = end + len(_CLOSING[mark])
        comment = text[opening.start() : position]
        edits.append((opening.start(), position, _NOT_NEWLINE.sub("\0", comment)))
    return splice(text, edits) if edits else text

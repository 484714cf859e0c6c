"""Text as a lenient eye reads it.

Law: whoever looks for a marker in folded text finds every spelling of it that a model might take
for the marker: other widths and fonts of the same letters, other case, and characters between them
that nobody sees. What is found can be pointed at in the text itself.
"""

import re
import unicodedata

# Everything but plain ASCII: what may be read as something else, or not be seen.
_ODD = re.compile(r"[^\t-\r\x1c-~]++")
# Letters of their own by category, and yet nothing to be seen.
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
# Not assigned, and never shown; and one that shows as a blank.
_UNASSIGNED = frozenset("\u2065\ufff0\ufff1\ufff2\ufff3\ufff4\ufff5\ufff6\ufff7\ufff8")
_BRAILLE_BLANK = "\u2800"
# Format, control, and marks that sit on the character before; unassigned tags are dropped by place.
_UNSEEN_CATEGORIES = frozenset(("Cf", "Cc", "Mn", "Me"))
_TAG_PLANE = range(0xE0000, 0xE1000)
_MOST_REMEMBERED = 50_000


class _Foldings(dict[int, str]):
    """What each character is read as, worked out when it is met."""

    def __missing__(self, code: int) -> str:
        folded = _fold_character(chr(code))
        # Text that holds every character there is does not stay in memory for good.
        if len(self) < _MOST_REMEMBERED:
            self[code] = folded
        return folded


def _fold_character(character: str) -> str:
    if character == _BRAILLE_BLANK:
        return " "
    if character.isspace():
        # What breaks a line stays one; every other blank is a blank.
        return character if unicodedata.category(character) != "Zs" else " "
    plain = unicodedata.normalize("NFKC", character).casefold()
    return "".join(each for each in unicodedata.normalize("NFKD", plain) if is_visible(each))


def is_visible(character: str) -> bool:
    """Whether a character shows by itself; white space counts as shown."""
    if character in _FILLERS or character in _UNASSIGNED or ord(character) in _TAG_PLANE:
        return False
    return character.isspace() or unicodedata.category(character) not in _UNSEEN_CATEGORIES


_FOLDINGS = _Foldings()


def fold_text(text: str) -> str:
    """`text` in plain letters, without what nobody sees. Plain ASCII keeps its case: to look for
    markers, ignore case."""
    return _ODD.sub(lambda odd: odd[0].translate(_FOLDINGS), text)


def source_positions(text: str, folded: str) -> list[int] | range:
    """For every character of `folded`, which is `fold(text)`, where it came from."""
    if folded == text:
        return range(len(text))
    places: list[int] = []
    done = 0
    for odd in _ODD.finditer(text):
        places += range(done, odd.start())
        for index in range(*odd.span()):
            places += [index] * len(_FOLDINGS[ord(text[index])])
        done = odd.end()
    return places + list(range(done, len(text)))

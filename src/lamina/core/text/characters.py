"""Detects invisible characters, and folds characters that look like others.

Laws: a search for a marker in folded text finds every spelling of it that a model might take for
the marker: other widths and fonts of the same letters, other case, and invisible characters between
them; every match can be located in the text itself. Looking for hidden characters changes nothing,
and takes time proportional to the length of the text. Legitimate uses are not flagged: joiners in
emoji and in scripts that need them, direction marks among right-to-left letters, flags.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain

from msgspec import Struct

_MAX_SAMPLES = 4
_MESSAGE_LENGTH = 80
# kind -> singular and plural
_WORDS = {
    "direction": ("a direction control", "direction controls"),
    "zero_width": ("a zero-width character", "zero-width characters"),
    "tags": ("a hidden tag character", "hidden tag characters"),
    "selectors": ("a hidden variation selector", "hidden variation selectors"),
    "operators": ("an invisible operator", "invisible operators"),
    "fillers": ("an invisible letter", "invisible letters"),
    "soft_hyphens": ("a soft hyphen", "soft hyphens"),
    "private_use": ("a private-use character", "private-use characters"),
    "escapes": ("a terminal escape", "terminal escapes"),
    "controls": ("a control character", "control characters"),
}
# One alternative per kind; each a run of its own characters, so that a search is linear. Single
# variation selectors choose a glyph; icon fonts use private characters, but few in a row.
_SUSPECT = re.compile(
    r"(?P<direction>[\u202a-\u202e\u2066-\u2069]+|[\u200e\u200f\u061c]+)"
    r"|(?P<zero_width>[\u200b-\u200d\u2060\ufeff]+)"
    r"|(?P<tags>[\U000e0000-\U000e007f]+)"
    r"|(?P<selectors>[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,})"
    r"|(?P<operators>[\u2061-\u2065\u206a-\u206f\ufff9-\ufffb]+)"
    r"|(?P<fillers>[\u115f\u1160\u3164\uffa0]+)"
    r"|(?P<soft_hyphens>\u00ad+)"
    r"|(?P<private_use>[\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd]{16,})"
    r"|(?P<escapes>[\x1b\x9b]+)"
    r"|(?P<controls>[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x84\x86-\x9a\x9c-\x9f]+)"
)
# All of those characters: one class is found ten times as fast as ten alternatives.
_ANY = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u115f\u1160\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
    r"\U000e0000-\U000e007f\U000e0100-\U000e01ef\U000f0000-\U0010fffd]+"
)
# The start of a flag, then letters and digits of a region as tags, then its end.
_BLACK_FLAG = "\U0001f3f4"
_REGION = re.compile(r"[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff]")
# Scripts that are written with joiners, or break lines without a space.
_JOINED = (
    (0x0600, 0x109F), (0x1700, 0x1CFF), (0xA800, 0xABFF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFC),
    (0x10A00, 0x11FFF),
)  # fmt: skip


# Control characters except line break and tab; marks that change the direction of what follows;
# lone surrogates, which cannot be sent to a terminal or stored in a file.
_STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class HiddenFinding(Struct, frozen=True, kw_only=True):
    """Hidden characters of one kind: their number, the line of the first, some of their code points
    (`U+202E`), and the text they spell, if any."""

    kind: str
    count: int
    line: int
    samples: tuple[str, ...]
    says: str = ""


def find_hidden(text: str) -> tuple[HiddenFinding, ...]:
    """Return the hidden characters in `text`, one finding per kind, in order of first
    appearance."""
    # Nearly all texts are plain, which is detected ten times as fast without a pattern.
    if text.isascii() and text.replace("\n", "").isprintable():
        return ()
    runs: dict[str, list[tuple[int, str]]] = {}
    for kind, start, run in _suspects(text):
        runs.setdefault(kind, []).append((start, run))
    if "soft_hyphens" in runs and not _are_in_bulk(runs["soft_hyphens"], text):
        del runs["soft_hyphens"]
    return tuple(_finding(kind, kind_runs, text) for kind, kind_runs in runs.items())


def describe_hidden(findings: tuple[HiddenFinding, ...]) -> str:
    """Return one line for a person; nothing in it is hidden itself."""
    return "hidden characters: " + "; ".join(map(_say, findings)) if findings else ""


def _say(finding: HiddenFinding) -> str:
    one, several = _WORDS[finding.kind]
    what = one if finding.count == 1 else f"{finding.count:,} {several}"
    meaning = f" that say {finding.says!a}" if finding.says else ""
    # Untrusted words are shown in ASCII: they may contain terminal control characters.
    return f"{what}{meaning} ({', '.join(finding.samples)}; first on line {finding.line})"


def _suspects(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield kind, place and characters of every suspicious run."""
    has_right_to_left: bool | None = None
    stretches = (match.span() for match in _ANY.finditer(text))
    for match in chain.from_iterable(_SUSPECT.finditer(text, *span) for span in stretches):
        kind, start, run = str(match.lastgroup), match.start(), match[0]
        match kind:
            case "direction" if run[0] in "\u200e\u200f\u061c":
                if has_right_to_left is None:
                    has_right_to_left = bool(_RIGHT_TO_LEFT.search(text))
                if has_right_to_left:
                    continue
            case "zero_width":
                if start == 0 and run[0] == "\ufeff":
                    start, run = 1, run[1:]
                if not run or _joins(text, start, run):
                    continue
            case "tags" if start and text[start - 1] == _BLACK_FLAG:
                region = _REGION.match(run)
                length = region.end() if region else 0
                start, run = start + length, run[length:]
                if not run:
                    continue
            case "fillers" if _is_jamo(text, start - 1) or _is_jamo(text, match.end()):
                continue
        yield kind, start, run


def _joins(text: str, start: int, run: str) -> bool:
    """Return whether a joiner is legitimate: between emoji, or in a script written with it."""
    if len(run) > 1 or run in "\u2060\ufeff":
        return False
    around = text[max(0, start - 1) : start] + text[start + 1 : start + 2]
    if any(low <= ord(letter) <= high for low, high in _JOINED for letter in around):
        return True
    return run == "\u200d" and len(around) == 2 and all(map(_is_emoji, around))


def _is_emoji(character: str) -> bool:
    # Emoji newer than this Unicode version are among the others. Skin tones are modifiers.
    if "\U0001f000" <= character <= "\U0001fbff":
        return True
    return unicodedata.category(character) in ("So", "Sk") or character in "\ufe0f\u2194\u2195"


def _is_jamo(text: str, index: int) -> bool:
    """Return whether a character is part of an old Hangul syllable, which fillers complete."""
    return 0 <= index < len(text) and (
        "\u1100" <= text[index] <= "\u11ff" or "\ua960" <= text[index] <= "\ua97f"
        or "\ud7b0" <= text[index] <= "\ud7ff"
    )  # fmt: skip


def _are_in_bulk(runs: list[tuple[int, str]], text: str) -> bool:
    """Return whether there are more soft hyphens than any word needs."""
    count = sum(len(run) for _, run in runs)
    in_pairs = sum(len(run) for _, run in runs if len(run) > 1)
    return in_pairs >= 4 or (count >= 16 and count * 3 > len(text))


def _finding(kind: str, runs: list[tuple[int, str]], text: str) -> HiddenFinding:
    first = runs[0][0]
    characters: dict[str, None] = {}
    for _, run in runs:
        characters.update(dict.fromkeys(run[:_MAX_SAMPLES]))
        if len(characters) >= _MAX_SAMPLES:
            break
    return HiddenFinding(
        kind=kind,
        count=sum(len(run) for _, run in runs),
        line=text.count("\n", 0, first) + 1,
        samples=tuple(f"U+{ord(letter):04X}" for letter in list(characters)[:_MAX_SAMPLES]),
        says=_decode(kind, runs),
    )


def _decode(kind: str, runs: list[tuple[int, str]]) -> str:
    """Return the text that hidden characters spell: tags are ASCII moved up, variation selectors
    are bytes."""
    if kind == "tags":
        message = "".join(_from_tags(run) for _, run in runs)
    elif kind == "selectors":
        message = b"".join(_from_selectors(run) for _, run in runs).decode("utf-8", "replace")
        if sum(map(str.isprintable, message)) * 2 < len(message) or "\ufffd" in message:
            return ""
    else:
        return ""
    message = " ".join(message.split())
    return message if len(message) <= _MESSAGE_LENGTH else f"{message[:_MESSAGE_LENGTH]}..."


def _from_tags(run: str) -> str:
    return "".join(filter(str.isprintable, (chr(ord(letter) - 0xE0000) for letter in run)))


def _from_selectors(run: str) -> bytes:
    codes = map(ord, run)
    return bytes(code - 0xFE00 if code <= 0xFE0F else code - 0xE0100 + 16 for code in codes)


# Everything but plain ASCII: characters that may be read as others, or be invisible.
_ODD = re.compile(r"[^\t-\r\x1c-~]++")
# Letters by category, but invisible.
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
# Unassigned and never shown; and one that shows as a blank.
_UNASSIGNED = frozenset("\u2065\ufff0\ufff1\ufff2\ufff3\ufff4\ufff5\ufff6\ufff7\ufff8")
_BRAILLE_BLANK = "\u2800"
# Format, control, and marks that combine with the previous character; unassigned tags are dropped
# by place.
_UNSEEN_CATEGORIES = frozenset(("Cf", "Cc", "Mn", "Me"))
_TAG_PLANE = range(0xE0000, 0xE1000)
_MAX_REMEMBERED = 50_000


class _Foldings(dict[int, str]):
    """The folded reading of each character, computed on first use."""

    def __missing__(self, code: int) -> str:
        folding = _fold_character(chr(code))
        # Text with every possible character must not stay in memory for good.
        if len(self) < _MAX_REMEMBERED:
            self[code] = folding
        return folding


def _fold_character(character: str) -> str:
    if character == _BRAILLE_BLANK:
        return " "
    if character.isspace():
        # Line-breaking characters stay line breaks; every other blank becomes a space.
        return character if unicodedata.category(character) != "Zs" else " "
    plain = unicodedata.normalize("NFKC", character).casefold()
    return "".join(filter(is_visible, unicodedata.normalize("NFKD", plain)))


def is_visible(character: str) -> bool:
    """Return whether a character is visible; white space counts as visible."""
    if character in _FILLERS or character in _UNASSIGNED or ord(character) in _TAG_PLANE:
        return False
    return character.isspace() or unicodedata.category(character) not in _UNSEEN_CATEGORIES


_FOLDINGS = _Foldings()


def fold_text(text: str) -> str:
    """Return `text` in plain letters, without invisible characters. Plain ASCII keeps its case: to
    look for markers, ignore case."""
    return _ODD.sub(lambda odd: odd[0].translate(_FOLDINGS), text)


def source_positions(text: str, folded: str) -> list[int] | range:
    """Return the source position of every character of `folded`, which is `fold_text(text)`."""
    if folded == text:
        return range(len(text))
    places: list[int] = []
    end = 0
    for odd in _ODD.finditer(text):
        places += range(end, odd.start())
        for index in range(*odd.span()):
            places += [index] * len(_FOLDINGS[ord(text[index])])
        end = odd.end()
    return places + list(range(end, len(text)))


def splice(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """Return `text` with each edit's range replaced; edits are in order and do not overlap."""
    pieces, end = [], 0
    for start, next_end, replacement in edits:
        pieces += [text[end:start], replacement]
        end = next_end
    return "".join(pieces) + text[end:]


def visible(text: str) -> str:
    """Return `text` with all characters escaped that control a terminal or change text
    direction."""
    return _STEERS.sub(_escape, text.replace("\r\n", "\n"))


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"

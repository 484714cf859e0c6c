"""Reads long tool results page by page, as numbered lines, by range or by search.

Laws: a page contains lines exactly as they are; it never exceeds its limit, and states the total
length and how to continue. A line of the text cannot pass for one of ours: it has a number in
front. Joined again, the lines are the text; a line that is too long is broken, never inside a
character. A search takes time proportional to the length of the text, whatever the query: strings
are matched literally, ignoring case, and there are no regular expressions.
"""

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import pairwise

import msgspec
from msgspec import Struct

from lamina.errors import UsageError

# Lines are broken after this many characters.
WIDTH = 400
_RANGE = re.compile(r"\s*(\d{0,9})\s*(?:(-|:|\.\.)\s*(\d{0,9})\s*)?", re.ASCII)
_JOINER = "\u200d"
# How far back a break may move to keep characters together.
_BACK = 16


class NumberedLine(Struct, frozen=True, gc=False):
    """A line, or a part of a long one: all parts but the first continue it."""

    text: str
    continues: bool = False


class LineRange(Struct, frozen=True):
    """Lines from `first` to `last`, counted from 1, both included."""

    first: int
    last: int


def number_lines(text: str) -> list[NumberedLine]:
    """Return the lines of a text, in order. There is always at least one."""
    lines: list[NumberedLine] = []
    for line in text.split("\n"):
        start = 0
        while len(line) - start > WIDTH:
            end = _break_point(line, start + WIDTH)
            lines.append(NumberedLine(line[start:end], start > 0))
            start = end
        lines.append(NumberedLine(line[start:], start > 0))
    return lines


def _break_point(line: str, latest: int) -> int:
    """Return where to break a line without separating an accent from its letter or the parts of an
    emoji."""
    for at in range(latest, latest - _BACK, -1):
        is_joined = _JOINER in line[at - 1 : at + 1]
        if not is_joined and not unicodedata.category(line[at]).startswith("M"):
            return at
    return latest


def line_number(text: str, at: int) -> int:
    """Return the number of the line with the character at this place."""
    return len(number_lines(text[: at + 1]))


def join_lines(lines: list[NumberedLine]) -> str:
    """Return the text of the lines."""
    return "".join(
        line.text if line.continues or not number else f"\n{line.text}"
        for number, line in enumerate(lines)
    )


def read_range(words: str, total: int) -> LineRange:
    """Return the lines that `words` name: `120-180`, `120`, `120-`, or `-50` for the last 50; all
    of them, if it is blank.

    Raises:
        UsageError: it names none that there are.
    """
    if not words.strip():
        return LineRange(1, total)
    match = _RANGE.fullmatch(words)
    first, dash, last = match.groups("") if match else ("", "", "")
    if not (first or last) or (last and not int(last)):
        known = '"120-180", "120-" or "-50" for the last 50'
        raise UsageError(f"lines must be {known}, not {words[:40]!r}")
    if not first:
        return LineRange(max(1, total - int(last) + 1), total)
    begin = max(1, int(first))
    end = int(last) if last else total if dash else begin
    if begin > total or end < begin:
        raise UsageError(f"there are no lines {words.strip()[:40]}: they are numbered 1 to {total}")
    return LineRange(begin, min(end, total))


LONGEST = 400
# Signs that a text may be a regular expression.
_PATTERN = re.compile(r"[\\^$+?\[\](){}]|\.\*")


class LineMatches(Struct, frozen=True):
    """The numbers of the matching lines, from 1; with `loose`, they contain all the words, but not
    in a row."""

    numbers: tuple[int, ...] = ()
    loose: bool = False


def find_lines(lines: Sequence[NumberedLine], text: str) -> LineMatches:
    """Return the lines that contain `text` literally. If none does: those that contain one of its
    alternatives separated by `|`, with `*` matching anything; failing that, those with all of its
    words.

    Raises:
        UsageError: it is blank, too long, or more than one line.
    """
    if not text.strip():
        raise UsageError("find is blank: say what to look for, or leave it out")
    if "\n" in text or len(text) > LONGEST:
        raise UsageError(f"find must be one line of at most {LONGEST} characters")
    sought = text.lower()
    numbers = tuple(_having(lines, [[sought]]))
    numbers = numbers or tuple(_having(lines, [*filter(None, map(_pieces, sought.split("|")))]))
    if numbers or len(words := sought.split()) < 2:
        return LineMatches(numbers)
    numbers = tuple(_having(lines, [words], in_order=False))
    return LineMatches(numbers, loose=bool(numbers))


def _pieces(part: str) -> list[str]:
    """Return the pieces between the `*` of a text; if it contains nothing else, a piece that
    every line contains."""
    if not part.replace("*", "").strip():
        return [""] if "*" in part else []
    return [piece for piece in part.split("*") if piece]


def looks_like_pattern(text: str) -> bool:
    """Return whether a text may have been meant as a regular expression."""
    return _PATTERN.search(text) is not None


def _having(
    lines: Sequence[NumberedLine], choices: Sequence[Sequence[str]], *, in_order: bool = True
) -> Iterator[int]:
    """Return the numbers of the lines that contain all pieces of one of the choices. A long line is
    searched as a whole; of its parts, those in which the first piece begins are returned."""
    start = 0
    while start < len(lines):
        end = start + 1
        while end < len(lines) and lines[end].continues:
            end += 1
        whole = "".join(line.text for line in lines[start:end]).lower()
        pieces = next((c for c in choices if _has(whole, c, in_order=in_order)), None)
        if pieces is not None:
            yield from _parts_with(lines, range(start, end), pieces[0])
        start = end


def _has(line: str, pieces: Sequence[str], *, in_order: bool) -> bool:
    if not in_order:
        return all(piece in line for piece in pieces)
    at = 0
    for piece in pieces:
        if (found := line.find(piece, at)) < 0:
            return False
        at = found + len(piece)
    return True


def _parts_with(lines: Sequence[NumberedLine], parts: range, piece: str) -> list[int]:
    if len(parts) == 1:
        return [parts.start + 1]
    texts = ((at, _with_overlap(lines, at, parts.stop, len(piece) - 1)) for at in parts)
    return [at + 1 for at, text in texts if piece in text] or [parts.start + 1]


def _with_overlap(lines: Sequence[NumberedLine], at: int, stop: int, more: int) -> str:
    """Return a part, with as much of the following text as a piece that begins in it can reach."""
    after = ""
    for line in lines[at + 1 : stop]:
        if len(after) >= more:
            break
        after += line.text
    return (lines[at].text + after[:more]).lower()


CONTEXT, MAX_CONTEXT = 2, 20
NO_PATTERN = "; find does not support regular expressions, only * for anything and a|b for either"
# The maximum length of the query when it is repeated in an answer.
_SHOWN = 80
_PLAIN = frozenset("\t\n\v\f\r\x1b")
# More than one unreadable character in this many marks data as binary.
_ODD = 10


class PageLimit(Struct, frozen=True, kw_only=True):
    """The maximum tokens of a page, and the function that counts them."""

    tokens: int
    count: Callable[[str], int]


def is_readable(text: str) -> bool:
    """Return whether it is text with lines, rather than binary data taken for text."""
    odd = sum(1 for c in text if (c < " " and c not in _PLAIN) or c in "\x7f\ufffd")
    return odd * _ODD <= len(text)


class ResultPages:
    """The pages of one text, requested by `handle` and described by `title`."""

    def __init__(self, text: str, *, handle: str, title: str, limit: PageLimit) -> None:
        self._lines = number_lines(text)
        self._handle = handle
        self._limit = limit
        broken = any(line.continues for line in self._lines)
        note = f", broken after {WIDTH} characters (+ continues the line above)" if broken else ""
        self._about = f"{handle}, {title}: {len(text):,} characters, {len(self._lines)} lines{note}"

    def read(self, lines: str = "") -> str:
        """Return as many of these lines as fit on a page, from the first one on.

        Raises:
            UsageError: there are no such lines, or the first is larger than a page.
        """
        wanted = read_range(lines, len(self._lines))
        numbers = range(wanted.first, wanted.last + 1)

        def render(count: int) -> str:
            last = numbers[count - 1]
            rows = [self._row(number) for number in numbers[:count]]
            span = f"line {last}" if count == 1 else f"lines {wanted.first}-{last}"
            return "\n".join([f"[{self._about}; {span}]", *rows, self._after(last, wanted.last)])

        return self._fill([(number,) for number in numbers], render)

    def find(self, text: str, lines: str = "", context: int = CONTEXT) -> str:
        """Return as many of the lines that contain `text` as fit on a page, with `context` lines
        around each.

        Raises:
            UsageError: there is nothing to look for, no such lines, or one is larger than a page.
        """
        total = len(self._lines)
        wanted = read_range(lines, total)
        matches = find_lines(self._lines, text)
        numbers = [n for n in matches.numbers if wanted.first <= n <= wanted.last]
        sought = repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
        is_part = wanted.last - wanted.first + 1 < total
        where = f" of {wanted.first}-{wanted.last}" if is_part else ""
        if not numbers:
            hint = NO_PATTERN if looks_like_pattern(text) else ""
            return f"[{self._about}; no line{where} has {sought}{hint}]"
        has = "line{} has" if len(numbers) == 1 else "lines{} have"
        what = f"all words of {sought}" if matches.loose else sought
        head = f"[{self._about}; {len(numbers)} {has.format(where)} {what}, marked with a colon]"
        around = max(0, min(context, MAX_CONTEXT))
        marked = set(numbers)

        def render(count: int) -> str:
            near = sorted({row for rows in groups[:count] for row in rows})
            rows = [self._row(near[0], marked)]
            for before, number in pairwise(near):
                rows += ["--"] * (number > before + 1) + [self._row(number, marked)]
            rest = numbers[count:]
            foot = "[no more]"
            if rest:
                lines = f"{rest[0]}-{wanted.last}"
                call = self._call(find=text, lines=lines, context=around)
                foot = f"[{len(rest)} more; go on with {call}]"
            return "\n".join([head, *rows, foot])

        for width in dict.fromkeys((around, 0)):
            groups = [tuple(range(max(1, n - width), min(total, n + width) + 1)) for n in numbers]
            if page := self._fill(groups, render, required=not width):
                return page
        raise AssertionError("unreachable: a page that is required is given or refused")

    def _fill(
        self,
        groups: Sequence[Sequence[int]],
        render: Callable[[int], str],
        *,
        required: bool = True,
    ) -> str:
        """Return the page with as many groups of lines as fit, from the first one on.

        Raises:
            UsageError: it holds not even the first, and that is required.
        """
        limit, count = self._limit.tokens, self._limit.count
        tokens = fitting = last = 0
        for rows in groups:
            new = [row for row in rows if row > last]
            tokens += sum(count(self._row(row)) + 1 for row in new)
            if tokens > limit:
                break
            fitting, last = fitting + 1, rows[-1]
        while fitting and count(page := render(fitting)) > limit:
            # Headers and footers are small: a few lines at most have to be removed.
            fitting -= 1
        if fitting:
            return page
        if required:
            problem = f"exceeds the {limit:,} tokens that one call can return here"
            raise UsageError(f"line {groups[0][0]} alone {problem}")
        return ""

    def _row(self, number: int, matches: Collection[int] = ()) -> str:
        line = self._lines[number - 1]
        marks = "+" * line.continues + ":" * (number in matches)
        return f"{number}{marks}\t{line.text}"

    def _after(self, last: int, wanted: int) -> str:
        total = len(self._lines)
        if last == total:
            return "[no more]"
        lines = f"{last + 1}-{wanted}" if last < wanted < total else f"{last + 1}-"
        return f"[{total - last} more; go on with {self._call(lines=lines)}]"

    def _call(self, **arguments: str | int) -> str:
        return msgspec.json.encode({"handle": self._handle} | arguments).decode()

"""A long text in pages: numbered lines of it, by range or by what stands in them.

Laws: a page holds lines exactly as they are; it is never over its limit, and says how much there is
and how to go on. A line of the text cannot pass for one of ours: it has its number in front.
"""

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

import msgspec
from msgspec import Struct

from lamina.core.text.line_search import find_lines, looks_like_pattern
from lamina.core.text.numbered_lines import WIDTH, number_lines, read_range
from lamina.errors import UsageError

CONTEXT, MOST_CONTEXT = 2, 20
NO_PATTERN = "; find takes no regular expression, only * for anything and a|b for either"
# How much of what was looked for is said again.
_SHOWN = 80
_PLAIN = frozenset("\t\n\v\f\r\x1b")
# In data that is no text, more than one character in so many means nothing.
_ODD = 10


class PageLimit(Struct, frozen=True, kw_only=True):
    """How many tokens a page may have, and what counts them."""

    tokens: int
    count: Callable[[str], int]


def is_readable(text: str) -> bool:
    """Whether it is a text that has lines, and not data that was taken for one."""
    odd = sum(1 for c in text if (c < " " and c not in _PLAIN) or c in "\x7f\ufffd")
    return odd * _ODD <= len(text)


class ResultPages:
    """The pages of one text. `handle` is what it is asked for by, `title` what it is."""

    def __init__(self, text: str, *, handle: str, title: str, limit: PageLimit) -> None:
        self._lines = number_lines(text)
        self._handle = handle
        self._limit = limit
        broken = any(line.continues for line in self._lines)
        note = f", broken after {WIDTH} characters (+ continues the line above)" if broken else ""
        self._about = f"{handle}, {title}: {len(text):,} characters, {len(self._lines)} lines{note}"

    def read(self, lines: str = "") -> str:
        """As many of these lines as a page holds, from the first one on.

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
        """As many of the lines that have `text` as a page holds, with `context` lines around each.

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
        around = max(0, min(context, MOST_CONTEXT))
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
        """The page with as many of the groups of lines, from the first one on, as it can hold.

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
            # Heads and feet are small: a few lines at most have to go.
            fitting -= 1
        if fitting:
            return page
        if required:
            problem = f"is more than the {limit:,} tokens that a call gives here"
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

"""Reads a file of comma- or tab-separated values as an item.

Laws: the item's text is the file's, except for rows cut from the middle of a large table, which a
notice tells the model; the header is never cut. A file that is not a table is read as plain text,
with a warning.
"""

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.text.secrets import cut_excerpt, find_secrets
from lamina.core.values.item import Excerpt, Item, LoadedItem, item_id

# Up to this many characters, a table is shown in full: some 40,000 tokens.
MAX_CHARACTERS = 100_000
# For a larger table, the share of these for the last rows; the first rows get the rest.
TAIL_SHARE = 0.2
# How much of a file is read to detect its separator.
SAMPLE_CHARACTERS = 64_000
SEPARATORS = (",", ";", "\t", "|")
# The minimum share of a table's rows that must be as long as its header.
EVEN_ENOUGH = 0.5
NO_FIT = (0.0, 0)


class TableLayout(Struct, frozen=True, kw_only=True):
    """A table's layout: where its rows begin, by characters and by lines from 0, followed by where
    it ends; its number of columns, and of rows that have more or fewer."""

    starts: tuple[tuple[int, int], ...]
    columns: int
    uneven: int

    @property
    def rows(self) -> int:
        """The number of rows without the header."""
        return len(self.starts) - 2


def read_table(path: str, plain: LoadedItem) -> LoadedItem:
    """Return the table at `path`, whose text was already read; the text itself if it is not a
    table."""
    text = plain.item.content
    layout = find_layout(text, "\t" if path.lower().endswith(".tsv") else "")
    if layout is None:
        problem = f"{path} is not a table, in spite of its name; it is read as a plain text"
        return replace(plain, warnings=(*plain.warnings, problem))
    rows, columns = layout.rows, layout.columns
    title = f"{PurePosixPath(path).stem}: {_count(rows, 'row')} below the header, "
    title += _count(columns, "column")
    if layout.uneven:
        title += f"; {_count(layout.uneven, 'row')} with more or fewer values"
    reading = replace(plain, item=Item(id=item_id("table", path), title=title, content=text))
    gap = _find_gap(layout, len(text))
    if not gap:
        return reading
    lines = f"{layout.starts[gap.start][1] + 1}-{layout.starts[gap.stop][1]}"
    notice = f"[... {len(gap):,} of {rows:,} rows are left out here: lines {lines} of the file ...]"
    excerpt = _without(text, layout, gap, notice)
    advice = f"attach {path}#L{lines.replace('-', '-L')} for some of them, or file:{path} for all"
    warning = f"{path} is large: {len(gap):,} of its {rows:,} rows are left out; {advice}"
    return replace(
        reading,
        item=replace(reading.item, content=excerpt.text, version=""),
        excerpt=excerpt,
        warnings=(*plain.warnings, warning),
    )


def find_layout(text: str, separator: str = "") -> TableLayout | None:
    """Return a table's layout, using the separator that fits best; None if it is not a table or has
    only one column."""
    sample = text[:SAMPLE_CHARACTERS]
    signs = (separator,) if separator else SEPARATORS
    fits = {sign: _fit(_lay_out(sample, sign, torn=len(sample) < len(text))) for sign in signs}
    best = max(fits, key=lambda sign: fits[sign])
    layout = _lay_out(text, best) if fits[best] > NO_FIT else None
    if _fit(layout) > NO_FIT:
        return layout
    # The file name may be wrong about tabs.
    return find_layout(text) if separator else None


def _fit(layout: TableLayout | None) -> tuple[float, int]:
    """Rate a separator: the share of rows as long as the header, then their length."""
    if layout is None or layout.columns < 2:
        return NO_FIT
    share = 1 - layout.uneven / max(1, layout.rows)
    return (share, layout.columns) if share >= EVEN_ENOUGH else NO_FIT


def _lay_out(text: str, separator: str, *, torn: bool = False) -> TableLayout | None:
    """Return the layout of the rows in a text, without the last row if the text is `torn`; None if
    it is not a table."""
    lines = list(StringIO(text.removeprefix("\ufeff"), newline=""))
    starts, sizes = [(0, 0)], list[int]()
    reader = csv.reader(lines, delimiter=separator, strict=True)
    place, line = len(text) - sum(map(len, lines)), 0
    try:
        for values in reader:
            place += sum(map(len, lines[line : reader.line_num]))
            line = reader.line_num
            if values:
                sizes.append(len(values))
                starts.append((place, line))
            else:
                # Blank lines belong to the preceding row.
                starts[-1] = (place, line)
    except csv.Error:
        if not torn or reader.line_num < len(lines):
            return None
    if torn:
        del sizes[-1:]
    if not sizes:
        return None
    uneven = sum(size != sizes[0] for size in sizes)
    return TableLayout(starts=tuple(starts), columns=sizes[0], uneven=uneven)


def _find_gap(layout: TableLayout, size: int) -> range:
    """Return the rows to leave out of a large table, by their positions in the layout."""
    if size <= MAX_CHARACTERS:
        return range(0)
    tail = int(MAX_CHARACTERS * TAIL_SHARE)
    places = [start for start, _ in layout.starts]
    first = max((at for at, place in enumerate(places) if place <= MAX_CHARACTERS - tail))
    last = min(at for at, place in enumerate(places) if place >= size - tail)
    # The header is kept, however long it is.
    return range(max(1, first), min(last, len(places) - 1))


def _without(text: str, layout: TableLayout, gap: range, notice: str) -> Excerpt:
    """Replace some rows with a notice; secrets are found in the full text."""
    findings = find_secrets(text)
    before = cut_excerpt(text, findings, 0, layout.starts[gap.start][0])
    after = cut_excerpt(text, findings, layout.starts[gap.stop][0], len(text))
    parts: Sequence[Excerpt] = (before, Excerpt(text=f"{notice}\n"), after)
    secrets = before.secrets + after.secrets
    return Excerpt(
        text="".join(part.text for part in parts),
        safe="".join(part.safe or part.text for part in parts) if secrets else "",
        secrets=secrets,
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"

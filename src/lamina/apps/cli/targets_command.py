"""`lamina targets`: the providers and models Lamina knows, and their prices."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lamina.adapters.providers.model_book import OWN_FILE, ModelBook, load_book
from lamina.apps.cli.flags import (
    AsJson,
)
from lamina.apps.views.known_targets import TargetRow, list_targets
from lamina.apps.views.plain_text import format_json, write_dollars_per_million
from lamina.core.values.prices import NO_CHARGE, Prices, PriceTier

app = typer.Typer()

# The columns after the name and their widths: together they leave enough of 80 columns for the
# name.
COLUMNS = {"in": 6, "out": 6, "read": 7, "write": 6, "window": 6, "kept": 7, "source": 7}
LEAST_NAME, MAX_NAME = 20, 40
UNKNOWN = "?"
SHORT = {OWN_FILE: "yours", NO_CHARGE: "free"}
# Every other model of a provider.
OTHERS = "*"


def show_targets(words: Sequence[str], as_json: bool, book: ModelBook | None = None) -> None:
    console = Console()
    rows = list_targets(words, book or load_book())
    if as_json:
        console.out(format_json(rows))
    elif len(rows) == 1:
        _show_one(console, rows[0])
    else:
        _show_all(console, rows)


def _show_all(console: Console, rows: Sequence[TargetRow]) -> None:
    console.print("Dollars per million tokens; window in tokens; kept: cache lifetime.")
    for provider, group in groupby(rows, key=lambda row: row.target.partition(":")[0]):
        table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False)
        room = max(console.width - sum(COLUMNS.values()) - len(COLUMNS), LEAST_NAME)
        table.add_column(provider, width=min(room, MAX_NAME), overflow="fold")
        for heading, width in COLUMNS.items():
            justify: Literal["left", "right"] = "left" if heading == "source" else "right"
            table.add_column(heading, justify=justify, width=width, no_wrap=True)
        for row in group:
            for cells in _cells(row):
                table.add_row(*map(Text, cells))
        console.print()
        console.print(table)
    console.print()
    for note in _notes(rows):
        console.print(note, highlight=False, markup=False)


def _cells(row: TargetRow) -> Iterator[tuple[str, ...]]:
    model = row.target.partition(":")[2]
    name = "any other model" if model == OTHERS else model
    window = write_tokens(row.window) if row.limits_source else f"~{write_tokens(row.window)}"
    life = _lifetime(row)
    if row.prices is None:
        yield (name, *[UNKNOWN] * 4, window, life, "")
        return
    first, *longer = row.prices.tiers
    yield (name, *_prices(first), window, life, _source(row.prices))
    for tier in longer:
        yield (f"  above {write_tokens(tier.above)}", *_prices(tier), "", "", "")


def _prices(tier: PriceTier) -> tuple[str, ...]:
    figures = (tier.input, tier.output, tier.read, tier.write)
    return tuple(write_dollars_per_million(figure) for figure in figures)


def _source(prices: Prices) -> str:
    """A short name of the prices' source; its meaning and date are below the table."""
    names = [_short(source) for source in prices.source.split(", ")]
    return names[0] if len(names) == 1 else "both"


def _short(source: str) -> str:
    return SHORT.get(source) or source.split()[0].partition("-")[0]


def _notes(rows: Sequence[TargetRow]) -> Iterator[str]:
    sources: dict[str, str] = {}
    for row in rows:
        for source in row.prices.source.split(", ") if row.prices else ():
            sources.setdefault(source, row.prices.date if row.prices else "")
    for source, date in sources.items():
        if source not in SHORT:
            yield f"{_short(source)}: {source}, as of {date}"
    if any(row.prices is None for row in rows):
        yield "?: unknown price; set it in the file that LAMINA_MODELS names"
    if any(not row.limits_source for row in rows):
        yield "~: assumed, as the model's limit is not published"
    if any(len(row.prices.tiers) > 1 for row in rows if row.prices):
        yield "above: the price of all tokens if the prompt is longer"


def _show_one(console: Console, row: TargetRow) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _describe(row):
        table.add_row(Text(name), Text(text))
    console.print(Text(row.target, style="bold"))
    console.print(table)


def _describe(row: TargetRow) -> Iterator[tuple[str, str]]:
    if row.prices is None:
        yield "price", "unknown; set it in the file that LAMINA_MODELS names"
    elif row.prices.is_free:
        yield "price", "free"
    else:
        for tier in row.prices.tiers:
            yield _length(tier), _tier(tier, row)
        if row.prices.storage:
            yield "storage", f"${row.prices.storage:g} per million tokens and hour"
        as_of = f", as of {row.prices.date}" if row.prices.date else ""
        yield "price from", f"{row.prices.source}{as_of}"
    for period in row.later:
        for tier in period.tiers:
            yield f"from {period.since}", _tier(tier, row)
    longest = f", prompts up to {row.max_input:,}" if row.max_input else ""
    yield "window", f"{row.window:,} tokens{longest}, answers up to {row.max_output:,}"
    yield "limits from", row.limits_source or "assumed, to be on the safe side"
    markers = ", at markers" if row.explicit else ""
    yield "cached", f"from {row.minimum:,} tokens, in steps of {row.step:,}{markers}"
    yield "kept", _lifetime(row)
    yield "counts", "exact" if row.exact_tokens else "estimated"


def _length(tier: PriceTier) -> str:
    return f"above {write_tokens(tier.above)}" if tier.above else "price"


def _tier(tier: PriceTier, row: TargetRow) -> str:
    text = f"${tier.input:g} in, ${tier.output:g} out, ${tier.read:g} read, ${tier.write:g} written"
    if row.long_lifetime_s is not None:
        text += f", ${tier.write_long:g} for {_span(row.long_lifetime_s)}"
    return text


def _lifetime(row: TargetRow) -> str:
    if row.lifetime_s is None:
        return "process"
    longer = f"/{_span(row.long_lifetime_s)}" if row.long_lifetime_s is not None else ""
    return f"{_span(row.lifetime_s)}{longer}"


def _span(seconds: float) -> str:
    """A duration such as `30s`, `5m` or `1h`."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds / length:g}{unit}"
    return f"{seconds:g}s"


def write_tokens(count: int) -> str:
    """A count such as `8,192`, `128k` or `1.05M`."""
    if count >= 1_000_000:
        return f"{count / 1_000_000:.3g}M"
    return f"{count / 1_000:.3g}k" if count >= 10_000 else f"{count:,}"


@app.command()
def targets(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...", help="Show only targets with these words in their names."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the providers and models Lamina knows: prices, windows, cache lifetimes, and sources.

    Prices are in US dollars per million tokens. If the words match a single target, or are its
    whole name, all its details are shown. Put your own prices and limits into the file that
    LAMINA_MODELS names.
    """
    show_targets(words or [], as_json)

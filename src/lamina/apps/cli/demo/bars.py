"""How a request is drawn: one bar, a colour per layer; light stays where it was, solid is read
again."""

from collections.abc import Sequence

from rich.text import Text as Styled

from lamina.core.values.request import ContextItem

# With its name and three figures behind it, a line of 79 characters.
BAR = 34
STYLES = {
    "tools": "magenta",
    "L1": "blue",
    "L2": "cyan",
    "L3": "green",
    "L4": "yellow",
    "L5": "red",
}
LAYER_NAMES = {"L1": "system", "L2": "library", "L3": "this turn", "L4": "history", "L5": "message"}


EXPLANATION = (
    "lazy:  an item stays where it was first sent; later turns only name it\n"
    "eager: an item moves into the system prompt on the turn after it came\n"
    "naive: every attached note is sent again with every question\n"
)


def draw_legend() -> Styled:
    legend = Styled("  ")
    for layer, name in LAYER_NAMES.items():
        legend.append(f"{layer} {name}  ", style=STYLES[layer])
    return legend


def label_items(items: Sequence[ContextItem], *aside: str) -> list[str]:
    """Which items are new in a request, and which are only named, but for placements `aside`."""
    labels = {
        "new": [item.label for item in items if item.placement == "message"],
        "named": [item.label for item in items if item.placement not in ("message", *aside)],
    }
    return [f"{word}: {', '.join(names)}" for word, names in labels.items() if names]


def draw_bar(name: str, layers: Sequence[tuple[str, int]], kept: int, scale: float) -> Styled:
    """The bar of a request, padded to one width; `scale` is tokens a cell."""
    total = sum(tokens for _, tokens in layers)
    # One scale for all bars, unless one would run over its line.
    scale = max(scale, total / BAR)
    bar = Styled(f"  {name:<6}")
    before = 0
    for layer, tokens in layers:
        stays = max(0, min(tokens, kept - before))
        bar.append("░" * _width(stays, scale), style=STYLES[layer])
        bar.append("█" * _width(tokens - stays, scale), style=STYLES[layer])
        before += tokens
    bar.append(" " * max(1, BAR + 12 - len(bar)))
    return bar


def _width(tokens: int, scale: float) -> int:
    return max(1, round(tokens / scale)) if tokens else 0

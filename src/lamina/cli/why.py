"""`lamina why` and `/why`: what a question was answered with, and why each of it was there.

Law: what is shown is what the request was built from, as the journal has it. What was missing or
left out is shown as that, and never among what was used.
"""

from collections.abc import Sequence
from typing import Any

from rich.console import Console, ConsoleRenderable, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lamina.cli.render import BADGES
from lamina.cli.screen import Screen, make_table
from lamina.cli.terminal_text import one_line, visible
from lamina.faces.journal_log import describe_inclusion, describe_priority, dict_rows
from lamina.faces.plain_text import format_json
from lamina.faces.recorder import PLACEMENT_NAMES
from lamina.faces.stored_session import StoredSession
from lamina.faces.why import ASTRAY, Explanation, Reason, describe_why, explain_question
from lamina.providers.model_book import load_book
from lamina.values.item import ItemId, kind_of
from lamina.values.request import ContextItem, LeftOut

# From this width on the three columns stand side by side.
WIDE = 100
# The longest description that is shown, in columns.
ABOUT = 120
NO_LEVEL = "---"
# What is said of a row stands behind its priority.
INDENT = (0, 0, 0, 4)


async def show_why(found: StoredSession, number: int | None, *, as_json: bool) -> str:
    """The JSON of the command; or drawn, and nothing to print.

    Raises:
        UnknownSession: there is no such question, or nothing was sent for it.
    """
    why = explain_question(await found.read(), number, load_book())
    if as_json:
        return format_json(describe_why(why))
    screen = Screen(Console(highlight=False, markup=False, emoji=False), live=False)
    screen.show(draw_why(why, screen.width))
    return ""


# -- finding out --------------------------------------------------------------------------------


# -- showing ------------------------------------------------------------------------------------


def draw_why(why: Explanation, width: int) -> ConsoleRenderable:
    """Rules, references and tools side by side where there is room; below, all the rest."""
    head = (
        f"question {why.number} of {why.questions}: {one_line(why.question, max(20, width - 24))}"
    )
    parts: list[ConsoleRenderable] = [
        Text(head, style="bold"),
        Text(f"request {why.request} to {one_line(why.target)}", style="dim"),
        *(Text(f"! {visible(problem)}", style="yellow") for problem in why.problems),
        Text(),
    ]
    columns = [
        _column("Rules", why.rules),
        _column("References", why.references),
        _column("Tools", why.tools),
    ]
    if width >= WIDE:
        side = Table.grid(padding=(0, 2, 0, 0), expand=True)
        for _ in columns:
            side.add_column(ratio=1, overflow="fold")
        side.add_row(*columns)
        parts.append(side)
    else:
        parts += [columns[0], Text(), columns[1], Text(), columns[2]]
    parts += draw_found(why.found)
    parts += draw_planned(why.planned)
    parts += _others(why.items)
    parts += _out(why.left_out)
    parts += [Text(f"! {visible(warning)}", style="yellow") for warning in why.warnings]
    return Group(*parts)


def _column(title: str, rows: Sequence[Reason]) -> ConsoleRenderable:
    counted = f"{title} ({len(rows)})" if rows else title
    parts: list[ConsoleRenderable] = [Text(counted, style="bold underline")]
    for row in rows:
        parts += [_name(row), *(Padding(Text(line, "dim"), INDENT) for line in _about(row))]
    return Group(*(parts if rows else [*parts, Text("none", style="dim")]))


def _name(row: Reason) -> Text:
    """`010 name [agent 0.73]`; of a tool, its server instead of a priority."""
    score = f" {row.score:.2f}" if row.score is not None else ""
    place = f"{NO_LEVEL if row.level is None else f'{row.level:03d}'} "
    if not row.item or kind_of(ItemId(row.item)) == "tool":
        place = f"{one_line(row.server)} · " if row.server else ""
    badge = (f"[{row.include}{score}]", BADGES[row.include])
    return Text.assemble((place, "dim"), one_line(row.name), " ", badge)


def _about(row: Reason) -> list[str]:
    found = f"{row.origin}{f' from {one_line(row.source)}' if row.source else ''}"
    said = (one_line(row.about, ABOUT), found if row.origin else "", *row.notes)
    return [line for line in said if line]


def _others(items: Sequence[ContextItem]) -> list[ConsoleRenderable]:
    if not items:
        return []
    columns = ("item", "stands in", "tokens", "priority", "included", "why")
    made = make_table(*columns, right=("tokens",))
    for item in items:
        made.add_row(
            Text(one_line(item.label)), PLACEMENT_NAMES[item.placement], f"{item.tokens:,}",
            describe_priority(item), Text(one_line(describe_inclusion(item))),
            Text(one_line(item.reason)),
        )  # fmt: skip
    return [Text(), made]


def _out(left_out: Sequence[LeftOut]) -> list[ConsoleRenderable]:
    if not left_out:
        return []
    made = make_table("left out", "reason", "detail")
    for omission in left_out:
        reason = Text(omission.reason.replace("_", " "), style="red" * (omission.reason in ASTRAY))
        made.add_row(Text(one_line(omission.what)), reason, Text(one_line(omission.detail)))
    return [Text(), made]


def draw_found(record: dict[str, Any] | None) -> list[ConsoleRenderable]:
    """The passages that went along with a question, each with the number it is cited by."""
    if record is None:
        return []
    hits = dict_rows(record.get("hits"))
    searched = record.get("searched", 0)
    lines = [Text(), Text(f"Found in {searched:,} notes ({len(hits)})", style="bold underline")]
    for hit in hits:
        score = hit.get("score")
        fit = f"{score:.2f}" if isinstance(score, int | float) else "words"
        place = f"{hit.get('path', '?')}#L{hit.get('start', '?')}-L{hit.get('end', '?')}"
        lines.append(Text(f"{fit:>5} [^{hit.get('source', '?')}] {one_line(place)}"))
    if left := len(dict_rows(record.get("without_room"))):
        lines.append(Text(f"{left} more had no room", style="dim"))
    return list(lines)


def draw_planned(record: dict[str, Any] | None) -> list[ConsoleRenderable]:
    """The calls of a plan, and what came of them."""
    if record is None:
        return []
    calls = dict_rows(record.get("calls"))
    lines = [Text(), Text(f"Planned calls ({len(calls)})", style="bold underline")]
    for call in calls:
        said = f"{call.get('name', '?')} {call.get('arguments', '')}"
        lines.append(Text(f"{call.get('outcome', '?')!s:>8} {one_line(said, 160)}"))
    return list(lines)

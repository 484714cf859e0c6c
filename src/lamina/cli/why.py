"""`lamina why` and `/why`: what a question was answered with, and why each of it was there.

Law: what is shown is what the request was built from, as the journal has it. What was missing or
left out is shown as that, and never among what was used.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace
from rich.console import Console, ConsoleRenderable, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lamina.assembly.tools import USE_TOOL
from lamina.audit.recorder import RebuiltRequest, list_requests, rebuild_request
from lamina.cli.log import describe_inclusion, describe_priority
from lamina.cli.recorder import PLACEMENT_NAMES
from lamina.cli.screen import Screen
from lamina.cli.terminal_text import one_line, visible
from lamina.cli.why_records import draw_found, draw_planned, find_plan_record, find_search_record
from lamina.errors import UnknownSession
from lamina.faces.stored_session import StoredSession
from lamina.journal import Journal, State, path_to
from lamina.ports import TargetBook
from lamina.providers.model_book import load_book
from lamina.values.entry import MessageEntry, RequestEntry
from lamina.values.item import Include, ItemId, key_of, kind_of
from lamina.values.request import ContextItem, ContextTool, LeftOut, RequestContext

# From this width on the three columns stand side by side.
WIDE = 100
# The longest description that is shown, in columns.
ABOUT = 120
BADGES = {"always": "green", "manual": "cyan", "agent": "magenta"}
NO_LEVEL = "---"
# What was asked for and not had, for a person to put right.
ASTRAY = ("missing", "ambiguous")
# What is said of a row stands behind its priority.
INDENT = (0, 0, 0, 4)


class Reason(Struct, frozen=True, kw_only=True):
    """A rule, a reference or a tool of a request. Without an `item` it is a tool that was given
    by name alone. `placement` is where it stands; of the list of tools it is `list`."""

    item: str
    name: str
    include: Include
    placement: str
    tokens: int = 0
    level: int | None = None
    server: str = ""
    about: str = ""
    score: float | None = None
    origin: str = ""
    source: str = ""
    # What else is to be said of it, as that it was kept from an earlier question.
    notes: tuple[str, ...] = ()


class Explanation(Struct, frozen=True, kw_only=True):
    """The context of a question's first request, told apart by kind."""

    session: str
    # The number of the question on its path, and how many there are.
    number: int
    questions: int
    question: str
    request: str
    target: str
    at: float
    rules: tuple[Reason, ...] = ()
    references: tuple[Reason, ...] = ()
    tools: tuple[Reason, ...] = ()
    items: tuple[ContextItem, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()
    # Why this may not be all that was sent.
    problems: tuple[str, ...] = ()
    # What was searched for in notes, and which planned calls were run.
    found: dict[str, Any] | None = None
    planned: dict[str, Any] | None = None


async def show_why(found: StoredSession, number: int | None, *, as_json: bool) -> str:
    """The JSON of the command; or drawn, and nothing to print.

    Raises:
        UnknownSession: there is no such question, or nothing was sent for it.
    """
    why = explain_question(await found.read(), number, load_book())
    if as_json:
        return msgspec.json.format(msgspec.json.encode(describe_why(why)), indent=2).decode()
    screen = Screen(Console(highlight=False, markup=False, emoji=False), live=False)
    screen.show(draw_why(why, screen.width))
    return ""


# -- finding out --------------------------------------------------------------------------------


def explain_question(journal: Journal, number: int | None, book: TargetBook) -> Explanation:
    """Why a question of the active path was answered with what it was; the last one by default.

    Raises:
        UnknownSession: there is no such question, or nothing was sent for it.
    """
    asked = _questions(journal)
    if not asked:
        raise UnknownSession("nothing was asked yet on this path: there is no context to explain")
    place = len(asked) if number is None else number
    if not 1 <= place <= len(asked):
        has = f"{len(asked):,} question{'s' * (len(asked) > 1)}"
        raise UnknownSession(f"no question {place}: the path has {has}, and 1 is the first")
    message, request = asked[place - 1]
    requests = list_requests(journal)
    listed = requests.by_id(request.id) if request else None
    if listed is None:
        raise UnknownSession(
            f"nothing was sent for question {place} by Lamina: it was imported, or its request is "
            f"lost. `lamina log SESSION --requests` lists what was sent"
        )
    recorded = rebuild_request(journal, requests, listed, book)
    why = _explain(recorded, message, place, len(asked))
    return replace(
        why,
        found=find_search_record(journal, why.request),
        planned=find_plan_record(journal, why.request),
    )


def _questions(journal: Journal) -> list[tuple[MessageEntry, RequestEntry | None]]:
    """The questions of the active path, each with the first request that was made for it."""
    found: list[tuple[MessageEntry, RequestEntry | None]] = []
    for entry in path_to(journal.leaf, journal.entries):
        if isinstance(entry, MessageEntry) and entry.message.role == "user":
            found.append((entry, None))
        elif isinstance(entry, RequestEntry) and found and found[-1][1] is None:
            found[-1] = (found[-1][0], entry)
    return found


def _explain(recorded: RebuiltRequest, message: MessageEntry, number: int, of: int) -> Explanation:
    request = recorded.listed.request
    context, state = request.context, recorded.state
    assert state is not None
    used = [item for item in context.items if item.placement != "left_out"]
    kinds = ("rule", "reference", "tool")
    guides = [_guide(item, state) for item in used if kind_of(item.item) in kinds[:2]]
    tools = [_described(item, state) for item in used if kind_of(item.item) == "tool"]
    return Explanation(
        session=recorded.session.session,
        number=number,
        questions=of,
        question=message.message.text,
        request=request.id,
        target=context.target,
        at=request.at,
        rules=_by_level(guide for guide in guides if kind_of(ItemId(guide.item)) == "rule"),
        references=_by_level(
            guide for guide in guides if kind_of(ItemId(guide.item)) == "reference"
        ),
        tools=tuple(
            sorted([*_listed(context, state), *tools], key=lambda tool: (tool.server, tool.name))
        ),
        items=tuple(item for item in used if kind_of(item.item) not in kinds),
        left_out=_left_out(context),
        warnings=context.warnings,
        problems=(*recorded.problems, *map(str, recorded.damage)),
    )


def _left_out(context: RequestContext) -> tuple[LeftOut, ...]:
    """What is not in the request, once each; what was not to be found first."""
    known = {omission.what for omission in context.left_out}
    more = [
        LeftOut(what=item.item, reason="window", detail=item.reason, tokens=item.tokens)
        for item in context.items
        if item.placement == "left_out" and item.item not in known
    ]
    return tuple(
        sorted((*context.left_out, *more), key=lambda omission: omission.reason not in ASTRAY)
    )


def _by_level(guides: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple(sorted(guides, key=lambda guide: (_order(guide), guide.name)))


def _order(each: Reason) -> float:
    return each.level if each.level is not None else float("inf")


def _guide(item: ContextItem, state: State) -> Reason:
    return Reason(
        item=item.item,
        name=key_of(item.item),
        include=item.include,
        placement=item.placement,
        tokens=item.tokens,
        level=item.level,
        about=_first_line(_purpose(item, state)),
        score=item.score,
        origin=item.origin,
        source=item.source,
        notes=("pinned",) if item.pinned else (),
    )


def _described(item: ContextItem, state: State) -> Reason:
    """A tool that stands in the conversation, not in the list."""
    server, name = _server_and_name(item.item)
    return Reason(
        item=item.item,
        name=name,
        include=item.include,
        placement=item.placement,
        tokens=item.tokens,
        server=server,
        about=_first_line(_content(item, state)),
        score=item.score,
        origin=item.origin,
        source=item.source,
        notes=(f"described in the conversation, called through {USE_TOOL.name}",),
    )


def _listed(context: RequestContext, state: State) -> list[Reason]:
    """The tools of the list, in its own words as they were then."""
    known = {tool.name: tool for tool in context.tools}
    allowed = context.allowed_tools
    found = []
    for definition in state.envelope.tools:
        tool = known.get(definition.name)
        notes = []
        if tool and tool.kept:
            notes.append("kept from an earlier question")
        if tool is None and known and definition.name != USE_TOOL.name:
            notes.append("still in the list, and not there to be called")
        if allowed is not None and definition.name not in allowed:
            notes.append("in the list, and not to be called now")
        found.append(_tool(tool, definition.name, definition.description, tuple(notes)))
    return found


def _tool(tool: ContextTool | None, name: str, about: str, notes: tuple[str, ...]) -> Reason:
    if tool is None:
        return Reason(
            item="", name=name, include="always", placement="list", about=_first_line(about),
            notes=notes,
        )  # fmt: skip
    server, own = _server_and_name(tool.item)
    return Reason(
        item=tool.item,
        name=own,
        include=tool.include,
        placement="list",
        tokens=tool.tokens,
        server=server,
        about=_first_line(about),
        score=tool.score,
        origin=tool.origin,
        source=tool.source,
        notes=notes,
    )


def _server_and_name(item: ItemId) -> tuple[str, str]:
    server, slash, name = key_of(item).partition("/")
    if not slash:
        return "", server
    return server.replace("%2F", "/").replace("%25", "%"), name


def _purpose(item: ContextItem, state: State) -> str:
    """What a rule or reference is for, or how its text begins."""
    kept = state.items.get((item.item, item.version))
    return (kept.title or kept.content) if kept else ""


def _content(item: ContextItem, state: State) -> str:
    """The text as it was sent; nothing if the journal lost it."""
    try:
        return state.items[item.item, item.version].content
    except KeyError:
        return ""


def _first_line(text: str) -> str:
    lines = (line.strip().lstrip("#").strip() for line in text.splitlines())
    return next((line for line in lines if line), "")


# -- showing ------------------------------------------------------------------------------------


def describe_why(why: Explanation) -> dict[str, Any]:
    """For machines: every field of every row, also where it says nothing."""
    return asdict(why) | {
        "items": [asdict(item) for item in why.items],
        "left_out": [asdict(omission) for omission in why.left_out],
    }


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
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("item", "stands in", "tokens", "priority", "included", "why"):
        made.add_column(
            name, justify="right" if name == "tokens" else "left", overflow="fold",
            no_wrap=name == "tokens",
        )  # fmt: skip
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
    made = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("left out", "reason", "detail"):
        made.add_column(name, overflow="fold")
    for omission in left_out:
        reason = Text(omission.reason.replace("_", " "), style="red" * (omission.reason in ASTRAY))
        made.add_row(Text(one_line(omission.what)), reason, Text(one_line(omission.detail)))
    return [Text(), made]

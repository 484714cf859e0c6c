"""What the commands show: requests, the tree, settings and tools, as tables for a terminal."""

from collections.abc import Iterable, Sequence

from rich.console import ConsoleRenderable, Group
from rich.text import Text

from lamina.apps.cli.chat.command_table import COMMANDS
from lamina.apps.cli.report_text import describe_history_price
from lamina.apps.cli.screen import make_table, table_below
from lamina.apps.cli.session_tree import QuestionRow, list_questions
from lamina.apps.cli.terminal_text import one_line, visible, visible_name
from lamina.apps.views.answer_json import describe_layers, leading_cached, write_options
from lamina.apps.views.journal_log import describe_entry, describe_inclusion, describe_listing
from lamina.apps.views.sent_requests import LAYER_NAMES, PLACEMENT_NAMES
from lamina.apps.views.session_items import AgentItem, ItemOverview
from lamina.apps.views.settings_by_name import list_settings
from lamina.core.audit.rebuilt_request import RebuiltRequest
from lamina.core.values.item import key_of
from lamina.core.values.prompt import Segment
from lamina.core.values.request import RequestContext
from lamina.core.values.tool import Toolset
from lamina.engine.session.session import Session

# How an item joined a session, and when an item outside it is sent.
WHY_IN = {"always": "always in", "manual": "added by hand", "agent": "chosen"}
# The maximum lengths of a description and of a list of patterns, in columns.
ABOUT = 60
GLOBS = 24
WHY_OUT = {"manual": "not sent", "agent": "found by search"}


def show_help() -> ConsoleRenderable:
    table = make_table("command", "what it does", show_header=False)
    for command in COMMANDS.values():
        table.add_row(f"/{command.name} {command.usage}".rstrip(), command.about)
    table.add_row("@path", 'attach a file to one message; or @"a b.md"')
    table.add_row("@rule:name @ref:name", "add a rule or a reference to the session")
    table.add_row("//text", "a message that begins with a slash")
    table.add_row("Esc Enter", "a new line; Ctrl-C stops an answer, Ctrl-D leaves")
    return table


# -- the last request ---------------------------------------------------------------------------


def show_request(recorded: RebuiltRequest, *, full: bool) -> ConsoleRenderable:
    """The contents of a request."""
    listed, prompt = recorded.listed, recorded.prompt
    context = listed.request.context
    fit = context.fit
    parts: list[ConsoleRenderable] = [
        Text(
            f"request {listed.number} to {context.target}: {listed.request.tokens:,} of "
            f"{fit.available:,} tokens ({fit.reserve:,} more are reserved for the answer)"
        )
    ]
    if options := write_options(recorded.options, recorded.citations):
        parts.append(Text(f"options: {options}"))
    parts += [Text(f"! {problem}", style="yellow") for problem in recorded.problems]
    if prompt is not None:
        usage = listed.reply.usage if listed.reply else None
        layers = make_table("layer", "tokens", "cached", right=("tokens", "cached"))
        cached = leading_cached(prompt.tokens, context.agreement, usage)
        for row in describe_layers(prompt, cached, context.agreement.tokens):
            layers.add_row(LAYER_NAMES[row["id"]], f"{row['tokens']:,}", f"{row['cached']:,}")
        parts += [Text(), layers]
    parts += _agreement(context)
    parts += _items(context)
    parts += [Text(f"! {visible(warning)}", style="yellow") for warning in context.warnings]
    if full and prompt is not None:
        parts += _segments(prompt)
    elif prompt is not None:
        parts += [Text(), Text("/context --full shows every segment as it was sent", style="dim")]
    return Group(*parts)


def _agreement(context: RequestContext) -> list[ConsoleRenderable]:
    lines = [f"boundary: {boundary.reason}" for boundary in context.boundaries]
    lines += describe_history_price(context.history_price)
    agreement = context.agreement
    if not agreement.first:
        lines.append(
            f"{agreement.tokens:,} tokens match the previous request, "
            f"{agreement.reprocessed:,} are new"
        )
    if broke := agreement.broke:
        reason = broke.reason or "no reason was recorded"
        lines.append(f"the prefix moved at {broke.source} ({broke.layer}): {reason}")
    return [Text(), *(Text(visible(line)) for line in lines)] if lines else []


def _items(context: RequestContext) -> list[ConsoleRenderable]:
    items = [
        (
            visible_name(item.label), f"{item.tokens:,}", PLACEMENT_NAMES[item.placement],
            visible(describe_inclusion(item)),
            visible(", ".join(filter(None, ("essential" * item.essential, item.reason)))),
        )
        for item in context.items
    ]  # fmt: skip
    tools = [
        (
            visible(key_of(tool.item).removeprefix("/")),
            f"{tool.tokens:,}",
            visible(describe_listing(tool, context)),
        )
        for tool in context.tools
    ]
    omissions = [(visible(o.what), o.reason, visible(o.detail)) for o in context.left_out]
    return [
        *table_below(("item", "tokens", "placed in", "included", "why"), items, right=("tokens",)),
        *table_below(("tool", "tokens", "included"), tools, right=("tokens",)),
        *table_below(("left out", "reason", "detail"), omissions),
    ]


def _segments(prompt: Iterable[Segment]) -> list[ConsoleRenderable]:
    parts: list[ConsoleRenderable] = []
    for segment in prompt:
        head = f"{segment.layer} · {segment.role} · {segment.source} · {segment.tokens:,} tokens"
        head += "" if segment.cached else ", this request only"
        text = (segment.text or repr(segment.content)).strip("\n")
        parts += [Text(), Text(visible(head), style="bold"), Text(visible(text))]
    return parts


# -- the tree -----------------------------------------------------------------------------------


def show_tree(session: Session, width: int) -> ConsoleRenderable:
    """Questions with their follow-ups; branches are indented, the continuation is not."""
    lines = [_question(row, width) for row in list_questions(session)]
    if not lines:
        return Text("no questions yet", style="dim")
    return Group(
        *lines, Text("* is the active branch; /branch ENTRY goes back to a question", style="dim")
    )


def _question(row: QuestionRow, width: int) -> Text:
    label = f"  «{one_line(row.label)}»" if row.label else ""
    head = f"{'* ' if row.active else '  '}{'   ' * row.depth}{row.id}  "
    text = one_line(row.text, max(20, width - len(head) - len(label)))
    return Text(f"{head}{text}{label}", style="" if row.active else "dim")


# -- the rest -----------------------------------------------------------------------------------


def show_settings(session: Session) -> ConsoleRenderable:
    table = make_table("setting", "value", "default")
    for name, value, usual in list_settings(session.settings, session.state.options):
        row = (name, visible(value), "") if value == usual else (name, visible(value), usual)
        table.add_row(*row, style="bold" * (value != usual))
    return table


def show_tools(toolset: Toolset, allowed: Sequence[str], width: int) -> ConsoleRenderable:
    parts: list[ConsoleRenderable] = []
    if toolset.tools:
        table = make_table("tool", "before it runs", "what it does")
        for tool in toolset.tools:
            question = "you are asked" if tool.permission == "required" else "runs without asking"
            if tool.id in allowed:
                question = "allowed for this session"
            about = one_line(tool.definition.description, width)
            table.add_row(one_line(tool.label or tool.definition.name), question, about)
        parts.append(table)
    else:
        parts.append(Text("no tools; --mcp FILE adds those of MCP servers", style="dim"))
    for omission in toolset.withheld:
        line = f"{one_line(omission.what)} ({omission.reason}): {one_line(omission.detail)}"
        parts.append(Text(f"! withheld: {line}", style="yellow"))
    return Group(*parts)


def show_items(members: ItemOverview) -> ConsoleRenderable:
    """The items that apply to every message, and those that could."""
    parts: list[ConsoleRenderable] = []
    about = {item.item: one_line(item.about, ABOUT) for item in members.known}
    if members.inside:
        table = make_table("in this session", "why", "what it is")
        for item in members.inside:
            why = Text("missing", style="red") if item.missing else Text(WHY_IN[item.include])
            table.add_row(Text(one_line(item.item)), why, Text(about.get(item.item, "")))
        parts.append(table)
    else:
        parts.append(Text("no rules, references or tools apply to every message", style="dim"))
    rows = [
        (Text(one_line(other.item)), Text(_until(other)), Text(about[other.item]))
        for other in members.outside
    ]
    parts += table_below(("can be added", "until then", "what it is"), rows)
    parts += [Text(f"! {one_line(problem)}", style="yellow") for problem in members.list_problems()]
    parts += [Text(f"! {one_line(change.detail)}", style="yellow") for change in members.changes]
    if members.changes:
        parts.append(Text("/items adopt applies changes in the agent's files", "dim"))
    parts.append(
        Text("/add NAME and /remove NAME change this; /why shows what was used", style="dim")
    )
    return Group(*parts)


def _until(other: AgentItem) -> str:
    """When an item is sent if it is not added."""
    if other.removed:
        return "removed"
    if other.globs and other.include == "manual":
        return f"joins with {one_line(', '.join(other.globs), GLOBS)}"
    return WHY_OUT.get(other.include, other.include)


def show_log(session: Session, count: int, width: int) -> ConsoleRenderable:
    """The last entries of the path, one per line."""
    path = session.path
    lines: list[Text] = []
    if len(path) > count:
        note = f"{len(path) - count:,} earlier entries; `lamina log {session.id}` shows all"
        lines.append(Text(note, style="dim"))
    for entry in path[-count:]:
        kind, text = describe_entry(entry)
        head = f"{entry.id}  {kind:<10} "
        lines.append(Text(head + one_line(text, max(20, width - len(head)))))
    return Group(*lines)

"""`lamina context`: a question as `lamina ask` would send it, prepared but not sent; and a context
as Markdown.

Laws: it opens and refuses what `ask` opens and refuses; only a model is not needed. Nothing is
kept: additions to the session are forgotten, and searches use a copy of the index. The current
context is laid out from the state, as a request is, so changes show at once, even before the first
request. No text can close the fence around it.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec.structs import replace
from rich.console import Console

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.ask import read_question
from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.flags import (
    AsJson,
    PersonFlags,
    SessionFlags,
    expand_flags,
)
from lamina.apps.cli.interrupts import run_async
from lamina.apps.cli.outcome import print_report, refuse_if
from lamina.apps.cli.report_text import ITEM_COLUMNS, describe_history_price, item_cells
from lamina.apps.cli.screen import can_ask
from lamina.apps.cli.script import (
    EditedWorkspace,
    Script,
    ScriptClock,
    ScriptTurn,
    read_script,
    scripted_reply,
)
from lamina.apps.cli.stdio import is_piped
from lamina.apps.cli.terminal_text import visible
from lamina.apps.views.answer_json import (
    ONLY_PLAN,
    describe_plan_preview,
    describe_preview,
    why_refused,
    write_options,
)
from lamina.apps.views.journal_log import describe_listing, display_data
from lamina.apps.views.plain_text import format_json
from lamina.apps.views.session_opener import (
    Rehearsal,
    open_runner,
    require_extras,
    require_fetchable,
    require_readable,
)
from lamina.apps.views.session_options import PromptOptions, SessionOptions, SettingChanges
from lamina.apps.views.spending_report import describe_rewrite, find_refusal
from lamina.apps.wiring.index import LazyIndex
from lamina.core.assembly.budget import assemble_standing, assemble_turn
from lamina.core.audit.break_causes import count_of
from lamina.core.audit.hook_displays import find_displays
from lamina.core.layers import measure_layers
from lamina.core.ledger import CostRange
from lamina.core.ledger.cost import CacheRewrite
from lamina.core.ports import WorkspaceSource
from lamina.core.text.money import dollar_range
from lamina.core.values.entry import EphemeralEntry, TransformEntry
from lamina.core.values.item import key_of
from lamina.core.values.message import ToolDefinition
from lamina.core.values.note import NoteSearchResult
from lamina.core.values.patch import Display
from lamina.core.values.prompt import Prompt, Segment
from lamina.core.values.request import LeftOut
from lamina.core.values.settings import Promotion
from lamina.engine.runners.answer import PlanPreview, Preview
from lamina.engine.runners.citations import list_sources
from lamina.engine.runners.runner import ChatRunner
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.turn import Turn
from lamina.errors import UsageError

app = typer.Typer()
_limit_option = partial(typer.Option, rich_help_panel="Layout and limits")

SHOWN = 600


def context_markdown(session: Session) -> str:
    """The context of a session, with the current question, if there is one."""
    state, target = session.state, session.target()
    assembler = core_of(session).layouts.assembler_for(target, state.settings.promotion)
    assemble = assemble_standing if state.requests.open is None else assemble_turn
    prompt = assemble(state, assembler)
    lines = [f"# Context for {target.name}", "", f"{prompt.tokens:,} tokens", ""]
    lines += layer_table(prompt)
    if options := write_options(session.envelope.options, ()):
        lines += [f"Options: {options}.", ""]
    if state.inbox:
        waiting = [line for message in state.inbox.values() for line in fenced(message.text)]
        lines += ["## Waiting for the next question", "", *waiting]
    return "\n".join([*lines, "## Envelope", "", *segment_lines(prompt)]).rstrip() + "\n"


def layer_table(prompt: Prompt) -> list[str]:
    """A table of the size of each layer in a prompt."""
    rows = [
        f"| {size.layer} | {size.tokens:,} | {size.segments} | `{size.digest[:8]}` |"
        for size in measure_layers(prompt)
        if size.segments
    ]
    return ["| layer | tokens | segments | digest |", "|---|--:|--:|---|", *rows, ""]


def segment_lines(prompt: Iterable[Segment], *, full: bool = True) -> Iterator[str]:
    """Every segment of a prompt with its text; long texts are cut in the middle unless `full`."""
    for segment in prompt:
        uncached = "" if segment.cached else ", uncached"
        text = segment.text or msgspec.json.encode(segment.content).decode()
        if not full and len(text) > SHOWN:
            gap = f"\n[... {len(text) - SHOWN:,} characters; --full shows them ...]\n"
            text = text[: SHOWN // 2] + gap + text[-SHOWN // 2 :]
        yield from (f"### {segment.layer} · {segment.role} · {segment.source}", "")
        yield from (f"{segment.tokens:,} tokens{uncached}", "", *fenced(text))


def fenced(text: str) -> list[str]:
    """A text in a fence that is longer than any fence in it."""
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return [fence, text.strip("\n"), fence, ""]


def render_preview(session: Session, preview: Preview, *, full: bool) -> str:
    """The turn as Markdown."""
    turn = preview.turn
    context, fit = turn.context, turn.context.fit
    lines = [
        f"# Request to {context.target}",
        "",
        f"{fit.tokens:,} of {fit.window - fit.reserve:,} tokens "
        f"(window {fit.window:,}, {fit.reserve:,} reserved for the answer)",
        "",
        *_price(turn.cost_range, turn.rewrite),
        *layer_table(turn.prompt),
        *_agreement(turn),
    ]
    if options := write_options(turn.options, turn.citations):
        lines += [f"Options: {options}.", ""]
    items = [item_cells(item, item.placement) for item in context.items]
    lines += _table("Items", ITEM_COLUMNS, items)
    tools = [
        (key_of(tool.item).removeprefix("/"), f"{tool.tokens:,}", describe_listing(tool, context))
        for tool in context.tools
    ]
    lines += _table("Tools", ("tool", "tokens", "included"), tools)
    lines += _found(preview.search_result)
    lines += _left_out(context.left_out)
    lines += _warnings((*turn.warnings, *preview.warnings))
    lines += _patches(session)
    lines += _envelope(turn.prompt, full)
    return "\n".join(lines).rstrip() + "\n"


def render_plan_preview(preview: PlanPreview, *, full: bool) -> str:
    """The request for a plan as Markdown."""
    tools = [
        (tool.name, f"{segment.tokens:,}")
        for segment in preview.prompt
        if isinstance(tool := segment.content, ToolDefinition)
    ]
    lines = [
        f"# Request to {preview.target.name}, for a plan",
        "",
        ONLY_PLAN,
        "",
        f"{preview.prompt.tokens:,} tokens",
        "",
        *_price(preview.cost_range),
        *layer_table(preview.prompt),
    ]
    lines += _table("Tools that can be planned", ("tool", "tokens"), tools)
    lines += _left_out(preview.left_out)
    lines += _warnings(preview.warnings)
    lines += _envelope(preview.prompt, full)
    return "\n".join(lines).rstrip() + "\n"


def _price(cost: CostRange | None, rewrite: CacheRewrite | None = None) -> list[str]:
    """What a request may cost: from a full cache read and no answer, to no cache read and the
    longest answer."""
    if cost is None:
        lines = ["price unknown"]
    elif not cost.high:
        lines = ["free"]
    else:
        price = dollar_range(cost.low, cost.high)
        lines = [f"{price}, depending on the cache and the length of the answer"]
    if rewrite is not None and rewrite.price:
        lines += ["", describe_rewrite(rewrite)]
    return [*lines, ""]


def _found(found: NoteSearchResult | None) -> list[str]:
    """The sources sent with the question, each with its citation number."""
    if found is None:
        return []
    rows = [
        (f"[^{source.number}]", source.link, f"L{source.start}-L{source.end}")
        for source in list_sources(found.hits)
    ]
    notes = count_of(found.searched, "note")
    if not rows:
        if found.without_room:
            return [f"Nothing found in {notes} fits into the request.", ""]
        return [f"Nothing was found in {notes}.", ""]
    method = f", {found.tier.words}" if found.tier else ""
    title = f"Found in {notes}{method}"
    return _table(title, ("number", "source", "lines"), rows)


def _left_out(left_out: Sequence[LeftOut]) -> list[str]:
    rows = [(omission.what, omission.reason, omission.detail) for omission in left_out]
    return _table("Left out", ("what", "reason", "detail"), rows)


def _warnings(warnings: Sequence[str]) -> list[str]:
    return [line for warning in warnings for line in (f"> warning: {warning}", "")]


def _envelope(prompt: Prompt, full: bool) -> list[str]:
    return ["## Envelope", "", *segment_lines(prompt, full=full)]


def _agreement(turn: Turn) -> list[str]:
    agreement = turn.context.agreement
    lines = [f"Boundary: {boundary.reason}." for boundary in turn.context.boundaries]
    lines += describe_history_price(turn.context.history_price)
    if not agreement.first:
        lines.append(
            f"{agreement.tokens:,} tokens match the previous request; "
            f"{agreement.reprocessed:,} are new to the provider."
        )
    if agreement.broke:
        broke = agreement.broke
        reason = broke.reason or "no reason was recorded"
        lines.append(f"The prefix moves at {broke.source} ({broke.layer}): {reason}.")
    return [*lines, ""] if lines else []


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    lines = [f"## {title}", "", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return [*lines, ""]


def _patches(session: Session) -> list[str]:
    paragraphs = []
    for entry in session.entries:
        if isinstance(entry, TransformEntry) and (display := entry.patch.display):
            paragraphs += [f"### {display.title}", f"by `{entry.transformer}` at entry {entry.id}"]
            paragraphs += filter(None, (display.summary, *_whole(display)))
        elif isinstance(entry, EphemeralEntry):
            for shown in find_displays([entry]):
                paragraphs += [f"### {shown.display.title}", f"by `{shown.hook}`, for one request"]
                paragraphs += filter(None, (shown.display.summary, *_whole(shown.display)))
    lines = [line for paragraph in paragraphs for line in (paragraph, "")]
    return ["## Patches", "", *lines] if lines else []


def _whole(display: Display) -> list[str]:
    return [display.markdown, *(f"`{line}`" for line in display_data(display))]


async def show_context(
    question: str | None,
    options: SessionOptions,
    prompt: PromptOptions,
    *,
    script: Path | None = None,
    as_json: bool = False,
    wire: bool = False,
    full: bool = False,
) -> str:
    """Return the text that the command prints. Without a question, use the script's last one.

    Raises:
        UsageError: options contradict each other, or something cannot be attached.
        BudgetError: the request does not fit.
    """
    require_extras(options, prompt, sends=False)
    require_fetchable(prompt.references, options)
    played = read_script(script) if script else Script(turns=())
    turns = [*played.turns, *([] if question is None else [ScriptTurn(ask=question)])]
    if not turns:
        raise UsageError("there is no question")
    if script:
        options = replace(options, system=options.system or played.system)
    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    notices = ConsoleNotices(console, asks=can_ask(console))
    # Nothing about the notes is kept either.
    folder, index = FolderWorkspace(options.workspace, watch=False), LazyIndex(keep=False)
    try:
        await require_readable(prompt.references, folder)
        stage = _Stage(options, folder, turns)
        rehearsal = Rehearsal(index=index, clock=stage.clock if script else None)
        async with await open_runner(
            options, notices, workspace=stage.workspace, rehearsal=rehearsal
        ) as runner:
            preview = await stage.play(runner, prompt)
            refusals = tuple(
                f"`lamina ask` would not send this: {refusal}"
                for refusal in await why_refused(runner.session, preview)
            )
            preview = replace(preview, warnings=preview.warnings + refusals)
            # The wire format has no place for a limit's message.
            if (
                wire
                and isinstance(preview, Preview)
                and (limit := await find_refusal(runner.session, preview.turn))
            ):
                notices.say(f"`lamina ask` would not send this: {limit}")
            return _show(runner.session, preview, as_json=as_json, wire=wire, full=full)
    finally:
        await index.aclose()
        await folder.aclose()


def _show(
    session: Session, preview: Preview | PlanPreview, *, as_json: bool, wire: bool, full: bool
) -> str:
    if isinstance(preview, PlanPreview):
        if not (wire or as_json):
            return render_plan_preview(preview, full=full)
        return format_json(_body(preview.body) if wire else describe_plan_preview(preview))
    if not (wire or as_json):
        return render_preview(session, preview, full=full)
    return format_json(_body(preview.turn.request()) if wire else describe_preview(preview))


def _body(arguments: dict[str, Any]) -> dict[str, Any]:
    """The body that goes over the wire: a vendor's client accepts headers, and fields it has no
    parameter for, separately."""
    extra: dict[str, Any] = arguments.get("extra_body", {})
    besides = ("extra_body", "extra_headers")
    return {name: value for name, value in arguments.items() if name not in besides} | extra


class _Stage:
    """Plays all turns but the last one, which is only prepared."""

    def __init__(
        self, options: SessionOptions, folder: WorkspaceSource, turns: Sequence[ScriptTurn]
    ) -> None:
        self._turns = turns
        self.clock = ScriptClock()
        # Searches and tools see the folder itself, so edits are layered on it only if needed.
        self._edits: EditedWorkspace | None = None
        if any(turn.edit for turn in turns):
            if options.mode != "agent" or options.files:
                raise UsageError(
                    "the script edits notes, but searches and tools would not see that: remove the "
                    "edits, or leave out --mode and --files"
                )
            self._edits = EditedWorkspace(folder)
        self.workspace: WorkspaceSource = self._edits or folder

    async def play(self, runner: ChatRunner, prompt: PromptOptions) -> Preview | PlanPreview:
        *earlier, last = self._turns
        for scripted in earlier:
            self._begin(scripted)
            turn = await runner.session.prepare(scripted.ask, attach=scripted.attach)
            await turn.commit(scripted_reply(scripted.answer))
        self._begin(last)
        return await runner.preview(last.ask, attach=[*last.attach, *prompt.attachments()])

    def _begin(self, turn: ScriptTurn) -> None:
        self.clock.time += turn.pause
        if self._edits is not None:
            self._edits.edit(turn.edit)


@app.command()
@expand_flags
def context(
    question: Annotated[
        str | None, typer.Argument(help="Your question; '-' reads it from standard input.")
    ] = None,
    *,
    prompt: PersonFlags,
    opening: SessionFlags,
    script: Annotated[
        Path | None,
        typer.Option(help="A JSON conversation to play first; see `lamina demo --show-script`."),
    ] = None,
    promotion: Annotated[
        Promotion | None,
        _limit_option(
            help="When the text of items moves to the system prompt: at boundaries (lazy) or with "
            "the next turn (eager). Default: the setting of the session or its agent, or lazy."
        ),
    ] = None,
    window: Annotated[
        int | None,
        _limit_option(
            metavar="TOKENS",
            help="Limit the whole request to this many tokens; by default to the model's window.",
        ),
    ] = None,
    attachment_limit: Annotated[
        int | None,
        _limit_option(metavar="TOKENS", help="Limit all attachments together to this many tokens."),
    ] = None,
    as_json: AsJson = False,
    wire: Annotated[bool, typer.Option(help="Show the vendor's wire format.")] = False,
    full: Annotated[bool, typer.Option(help="Do not shorten long texts.")] = False,
) -> None:
    """Show the request that `lamina ask` would send for a question: layers, items, what is left
    out, and why.

    It accepts and refuses the same arguments as `ask`, but needs no key and no model. Nothing is
    sent to a model and nothing is saved, even with --session. Like `ask`, it fetches attached pages
    if you allow it and starts tool servers that you trust, as their tools are part of the request.
    Where a model is asked first (--mode plan, or a summary of a history that is too long), what
    depends on its answer cannot be shown.
    """
    refuse_if(
        script is not None and opening.session is not None,
        "--script and --session cannot be combined: a script plays its own session",
    )
    if question is not None or script is None:
        refuse_if(
            question is None and not is_piped(sys.stdin),
            "give a question, '-' for standard input, or --script",
        )
        try:
            question = read_question(question, sys.stdin)
        except UsageError as error:
            raise typer.BadParameter(str(error)) from error
    changes = SettingChanges(promotion=promotion, window=window, attachment_limit=attachment_limit)
    options = opening.options(changes)
    text = run_async(
        partial(
            show_context, question, options, prompt.options(),
            script=script, as_json=as_json, wire=wire, full=full,
        )
    )  # fmt: skip
    print_report(text if as_json or wire else visible(text), as_json=as_json or wire)

"""A prepared turn on a screen: Markdown for people, plain data for machines."""

from collections.abc import Sequence

from lamina.apps.cli.context_markdown import layer_table, segment_lines
from lamina.apps.cli.history_price import describe_history_price
from lamina.apps.cli.report_text import ITEM_COLUMNS, item_cells
from lamina.apps.views.journal_log import describe_listing, display_data
from lamina.apps.views.previews import ONLY_PLAN
from lamina.apps.views.request_context import write_options
from lamina.apps.views.spending import describe_rewrite
from lamina.core.audit.hook_displays import find_displays
from lamina.core.audit.vocabulary import count_of
from lamina.core.ledger import CostRange
from lamina.core.ledger.request_price import CacheRewrite
from lamina.core.text.money import dollar_range
from lamina.core.values.entry import EphemeralEntry, TransformEntry
from lamina.core.values.item import key_of
from lamina.core.values.message import ToolDefinition
from lamina.core.values.note import NoteSearchResult
from lamina.core.values.patch import Display
from lamina.core.values.prompt import Prompt
from lamina.core.values.request import LeftOut
from lamina.engine.runners.citations import list_sources
from lamina.engine.runners.preview import PlanPreview, Preview
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn


def render_preview(session: Session, preview: Preview, *, full: bool) -> str:
    """The turn as Markdown."""
    turn = preview.turn
    context, fit = turn.context, turn.context.fit
    lines = [
        f"# Request to {context.target}",
        "",
        f"{fit.tokens:,} of {fit.window - fit.reserve:,} tokens "
        f"(window {fit.window:,}, {fit.reserve:,} kept for the answer)",
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
    """What a request may cost: from all of its cache being read and no answer, to nothing being
    read and the longest answer."""
    if cost is None:
        lines = ["price unknown"]
    elif not cost.high:
        lines = ["free"]
    else:
        lines = [f"{dollar_range(cost.low, cost.high)}, by its cache and the length of its answer"]
    if rewrite is not None and rewrite.price:
        lines += ["", describe_rewrite(rewrite)]
    return [*lines, ""]


def _found(found: NoteSearchResult | None) -> list[str]:
    """The sources that went along, each with the number it would be cited by."""
    if found is None:
        return []
    rows = [
        (f"[^{source.number}]", source.link, f"L{source.start}-L{source.end}")
        for source in list_sources(found.hits)
    ]
    notes = count_of(found.searched, "note")
    if not rows:
        if found.without_room:
            return [f"Nothing that was found in {notes} goes along.", ""]
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
            f"{agreement.tokens:,} tokens agree with the request before; "
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

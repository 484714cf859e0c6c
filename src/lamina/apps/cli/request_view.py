"""`lamina log --requests` and `--request`: a line for every request of a session (two on a narrow
terminal); or one request: what was sent, and what changed since the one before, in wire order.
"""

from collections.abc import Sequence
from difflib import unified_diff
from itertools import groupby
from operator import attrgetter

from rich.cells import cell_len

from lamina.apps.cli.report_text import (
    ITEM_COLUMNS,
    damage_lines,
    describe_history_price,
    first_line,
    item_cells,
    markdown_table,
    moment,
    pad_cells,
)
from lamina.apps.views.answer_json import write_options
from lamina.apps.views.journal_log import describe_display, describe_listing, display_lines
from lamina.apps.views.sent_requests import (
    LAYER_NAMES,
    PLACEMENT_NAMES,
    VERDICT_MEANINGS,
    list_marks,
    measure_changes,
)
from lamina.core.audit.rebuilt_request import RebuiltRequest, SegmentChange
from lamina.core.audit.requests import ListedRequest, RequestList, list_requests
from lamina.core.journal import Journal
from lamina.core.values.item import key_of
from lamina.core.values.message import Image, Text, Thinking, ToolCall, ToolDefinition, ToolResult
from lamina.core.values.prompt import Segment, ToolReferences
from lamina.core.values.request import CacheVerdict

MARKS = {"kept": "=", "added": "+", "removed": "-"}
# The lines of a difference shown without --full, and the maximum width of the source column.
DIFF_LINES = 40
SOURCE_WIDTH = 36


def render_difference(recorded: RebuiltRequest, full: bool) -> list[str]:
    """Compare a request's segments with those of the one before it. Runs of unchanged segments are
    one line unless `full`."""
    if recorded.prompt is None:
        return []
    lines = [f"## {_compared(recorded)}", ""]
    base = recorded.base
    if base and base.request.target != recorded.listed.request.target:
        lines += [f"That went to {base.request.target}, which has a different cache.", ""]
    visible_changes = [change for change in recorded.changes if full or change.status != "kept"]
    width = min(
        SOURCE_WIDTH, max((len(change.segment.source) for change in visible_changes), default=0)
    )
    has_moved = False
    for (status, stays), run in groupby(recorded.changes, attrgetter("status", "stays")):
        changes = list(run)
        if not stays and not has_moved:
            has_moved = True
            lines += _first_difference(recorded, changes[0])
        if status == "kept":
            lines.append(_folded(changes))
        if status != "kept" or full:
            for change in changes:
                lines += _change(change, width, full)
    return [*lines, ""]


def _compared(recorded: RebuiltRequest) -> str:
    """Which request this one is compared with, and why if that is not the previous one."""
    listed, base = recorded.listed, recorded.base
    if base is None:
        if listed.request.base:
            return f"Compared with request {listed.request.base}, which is lost"
        elsewhere = ": earlier ones are on other branches, or were never answered"
        return f"The first request on its path{elsewhere * (listed.number > 1)}"
    earlier = ", the last answered one on its path"
    is_right_before = base.number == listed.number - 1
    note = "" if is_right_before else earlier
    return f"Compared with request {base.number} ({base.request.id}){note}"


def _first_difference(recorded: RebuiltRequest, change: SegmentChange) -> list[str]:
    context = recorded.listed.request.context
    broke = context.agreement.broke
    if broke:
        reason = broke.reason or "no reason was recorded"
        return [f"! the prefix moves here ({LAYER_NAMES[broke.layer]}, {broke.source}): {reason}"]
    if change.status == "removed":
        why = "".join(f"; {boundary.reason}" for boundary in context.boundaries)
        return [f"! removed here: content that was only for that request and never cached{why}"]
    return []


def _folded(changes: Sequence[SegmentChange]) -> str:
    first, last = (LAYER_NAMES[changes[place].segment.layer] for place in (0, -1))
    where = first if first == last else f"{first} … {last}"
    tokens = sum(change.segment.tokens for change in changes)
    summary = f"= {len(changes):,} segment{'s' * (len(changes) > 1)}, {tokens:,} tokens"
    if changes[0].stays:
        return f"{summary} unchanged: {where}"
    return f"{summary} unchanged but after the change, so processed again: {where}"


def _change(change: SegmentChange, width: int, full: bool) -> list[str]:
    segment = change.segment
    text = _text(segment)
    head = (
        f"{MARKS[change.status]} {LAYER_NAMES[segment.layer]:<10}  {segment.role:<9}  "
        f"{segment.source:<{width}}  {segment.tokens:>6,}"
    )
    older = change.instead_of or change.supersedes
    if older is not None and (lines := _lines_changed(older.text, text, full)):
        relation = "replaces" if change.instead_of else "now above"
        return [head, f"    {relation} {older.source}:", *lines]
    if not full:
        same = "  (same text, joined differently to the text before it)" if older else ""
        return [f"{head}  {first_line(text.strip())}{same}".rstrip()]
    return [head, *(f"    {line}".rstrip() for line in text.strip("\n").splitlines())]


def _lines_changed(before: str, after: str, full: bool) -> list[str]:
    """The changed lines between two texts; all lines if `full`."""
    old, new = (text.strip("\n").splitlines() for text in (before, after))
    around = len(old) + len(new) if full else 2
    lines = list(unified_diff(old, new, lineterm="", n=around))[2:]
    shown = lines if full else lines[:DIFF_LINES]
    more = len(lines) - len(shown)
    rest = [f"… {more:,} more line{'s' * (more > 1)}; --full shows all"] if more else []
    return [f"    {line}".rstrip() for line in (*shown, *rest)]


def _text(segment: Segment) -> str:
    match segment.content:
        case Text(text=text):
            return text
        case ToolResult(name=name, text=text, is_error=failed):
            return f"{name}{' failed' if failed else ''}: {text}"
        case ToolReferences(name=name, tools=tools):
            return f"{name} loads {', '.join(tool.name for tool in tools)}"
        case ToolCall(name=name, arguments=arguments):
            return f"calls {name} {arguments}"
        case Thinking(text=text):
            return f"(thinking: {text or 'not readable'})"
        case ToolDefinition(name=name, description=description):
            return f"{name}: {description}"
        case Image(picture=picture):
            size = f" {picture.width}x{picture.height}" if picture.width else ""
            return f"{picture.media_type}{size} {picture.digest[:8]}"


HEAD = ("#", "entry", "when", "target", "tokens", "match", "new", "cached", "outcome")
NUMERIC = {0, 4, 5, 6, 7}


def render_requests(journal: Journal, width: int = 0) -> str:
    """All requests as a table; without a `width`, a request is one line."""
    requests = list_requests(journal)
    lines = []
    if requests.listed:
        rows = pad_cells([HEAD, *map(_row, requests.listed)], NUMERIC)
        if width and max(cell_len("  ".join(row)) for row in rows) > width:
            indent = " " * (len(rows[0][0]) + 2)
            for *cells, outcome in rows:
                lines += ["  ".join(cells).rstrip(), f"{indent}{outcome}".rstrip()]
        else:
            lines += ["  ".join(row).rstrip() for row in rows]
    else:
        lines.append("This session has no requests.")
    lines += [f"request {request} is lost; only its reply is left" for request in requests.lost]
    return "\n".join([*lines, "", *damage_lines(journal.damage)]).rstrip()


def _row(listed: ListedRequest) -> tuple[str, ...]:
    request, reply = listed.request, listed.reply
    agreement = request.context.agreement
    cached = "" if reply is None else f"{reply.usage.cached:,}"
    if reply and not reply.usage.cache_reported:
        cached = "?"
    meanings = [VERDICT_MEANINGS[reply.verdict.meaning]] if reply and reply.verdict else []
    return (
        str(listed.number),
        request.id,
        moment(request.at, "%m-%d %H:%M:%S"),
        request.target,
        f"{request.tokens:,}",
        f"{agreement.tokens:,}",
        f"{agreement.reprocessed:,}",
        cached,
        " · ".join([*meanings, *list_marks(listed)]),
    )


def render_request(recorded: RebuiltRequest, requests: RequestList, *, full: bool) -> str:
    """A request as text: head, layers, items, what was left out, and the difference."""
    listed = recorded.listed
    context = listed.request.context
    lines = [*_head(recorded, len(requests.listed)), ""]
    if recorded.problems:
        lines += [*(f"! {problem}" for problem in recorded.problems), ""]
    lines += _layers(recorded)
    if context.boundaries:
        lines += [*(f"Boundary: {boundary.reason}." for boundary in context.boundaries), ""]
    if context.history_price:
        lines += [*describe_history_price(context.history_price), ""]
    items = (item_cells(item, PLACEMENT_NAMES[item.placement]) for item in context.items)
    lines += markdown_table("Items", ITEM_COLUMNS, items)
    tools = (
        (key_of(tool.item).removeprefix("/"), f"{tool.tokens:,}", describe_listing(tool, context))
        for tool in context.tools
    )
    lines += markdown_table("Tools", ("tool", "tokens", "included"), tools)
    omissions = ((left.what, left.reason, left.detail) for left in context.left_out)
    lines += markdown_table("Left out", ("what", "reason", "detail"), omissions)
    if recorded.warnings:
        lines += ["## Warnings", "", *(f"- {warning}" for warning in recorded.warnings), ""]
    if recorded.displays:
        lines += ["## Hooks", ""]
        for shown in recorded.displays:
            lines += [f"- {describe_display(shown)}"]
            lines += [f"  {line}" for line in display_lines(shown.display)]
        lines.append("")
    lines += render_difference(recorded, full)
    return "\n".join([*lines, *damage_lines(recorded.damage)]).rstrip()


def _head(recorded: RebuiltRequest, count: int) -> list[str]:
    listed = recorded.listed
    request, reply, fit = listed.request, listed.reply, listed.request.context.fit
    counted = f"{request.tokens:,} tokens"
    if fit.calibration != 1.0:
        counted += f", about {fit.tokens:,} as the provider counts,"
    lines = [
        f"# Request {listed.number} of {count:,}",
        "",
        f"entry    {request.id} of session {recorded.session.session}, {moment(request.at)}",
        f"target   {request.target}, {request.promotion}",
        f"size     {counted} of {fit.available:,} "
        f"(window {fit.window:,}, {fit.reserve:,} reserved for the answer)",
    ]
    if options := write_options(recorded.options, recorded.citations):
        lines.append(f"options  {options}")
    if (warm := request.context.warm) is not None:
        sender = "another branch" if warm.source == "branch" else "another session"
        seconds = f"{max(0.0, request.at - warm.at):,.0f} s"
        lines.append(f"warm     {warm.tokens:,} tokens were sent by {sender} {seconds} earlier")
    if reply:
        usage = reply.usage
        cached = f"{usage.cached:,} cached" if usage.cache_reported else "cache not reported"
        written = f", {usage.written:,} written to it" if usage.written else ""
        lines.append(f"usage    {usage.input:,} in, {cached}{written}, {usage.output:,} out")
        lines += [f"cache    {_verdict(reply.verdict)}"] if reply.verdict else []
    lines.append(f"answer   {_answer(listed)}")
    lines += [f"note     {mark}" for mark in list_marks(listed)]
    return lines


# Recorded details that only say again what the verdict means.
_REPEATED_DETAILS = ("the first request of this session", "the provider said nothing of its cache")


def _verdict(verdict: CacheVerdict) -> str:
    meaning = VERDICT_MEANINGS[verdict.meaning]
    if verdict.detail and verdict.detail not in (meaning, *_REPEATED_DETAILS):
        meaning += f" ({verdict.detail})"
    if verdict.meaning in ("not_reported", "nothing_sent_before"):
        return meaning
    return f"{meaning}; expected {verdict.expected:,}, reported {verdict.reported:,}"


def _answer(listed: ListedRequest) -> str:
    if listed.answer is None:
        return "none"
    message = listed.answer.message
    parts = [first_line(message.text.strip())] if message.text.strip() else []
    parts += [
        f"calls {first_line(f'{call.name} {call.arguments}'.strip())}" for call in message.calls
    ]
    if listed.reply:
        seconds = listed.reply.at - listed.request.at
        parts.append(f"[{listed.reply.stop or 'no stop'}, after {seconds:,.1f} s]")
    return " ".join(parts)


def _layers(recorded: RebuiltRequest) -> list[str]:
    sizes = measure_changes(recorded)
    if not sizes:
        return []
    keys = ("segments", "tokens", "stay", "new")
    rows = [
        (LAYER_NAMES[size["layer"]], *(f"{size[key]:,}" for key in keys))
        for size in sizes
        if size["segments"]
    ]
    rows.append(("all", *(f"{sum(size[key] for size in sizes):,}" for key in keys)))
    return markdown_table("", ("layer", *keys), rows)

"""`lamina log --request`: what was sent, and what changed since the request before."""

from lamina.apps.cli.difference import render_difference
from lamina.apps.cli.history_price import describe_history_price
from lamina.apps.cli.report_text import (
    ITEM_COLUMNS,
    damage_lines,
    first_line,
    item_cells,
    markdown_table,
    moment,
)
from lamina.apps.views.journal_log import describe_display, describe_listing, display_lines
from lamina.apps.views.request_context import write_options
from lamina.apps.views.sent_requests import (
    LAYER_NAMES,
    PLACEMENT_NAMES,
    VERDICT_MEANINGS,
    list_marks,
    measure_changes,
)
from lamina.core.audit.rebuilt_request import RebuiltRequest
from lamina.core.audit.requests import ListedRequest, RequestList
from lamina.core.values.item import key_of
from lamina.core.values.request import CacheVerdict


def render_request(recorded: RebuiltRequest, requests: RequestList, *, full: bool) -> str:
    """The request as text: head, layers, items, what was left out, and the difference."""
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
        f"(window {fit.window:,}, {fit.reserve:,} kept for the answer)",
    ]
    if options := write_options(recorded.options, recorded.citations):
        lines.append(f"options  {options}")
    if (warm := request.context.warm) is not None:
        sender = "another branch" if warm.source == "branch" else "another session"
        seconds = f"{max(0.0, request.at - warm.at):,.0f} s before"
        lines.append(f"warm     {warm.tokens:,} tokens were sent by {sender} {seconds}")
    if reply:
        usage = reply.usage
        cached = f"{usage.cached:,} cached" if usage.cache_reported else "nothing said of a cache"
        written = f", {usage.written:,} written to it" if usage.written else ""
        lines.append(f"usage    {usage.input:,} in, {cached}{written}, {usage.output:,} out")
        lines += [f"cache    {_verdict(reply.verdict)}"] if reply.verdict else []
    lines.append(f"answer   {_answer(listed)}")
    lines += [f"note     {mark}" for mark in list_marks(listed)]
    return lines


def _verdict(verdict: CacheVerdict) -> str:
    meaning = VERDICT_MEANINGS[verdict.meaning]
    if verdict.detail and verdict.detail not in meaning:
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

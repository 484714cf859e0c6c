"""`lamina log --request`: what was sent, and what changed since the request before."""

from lamina.audit.recorder import ListedRequest, RebuiltRequest, RequestList
from lamina.cli.difference import render_difference
from lamina.cli.render import damage_lines, first_line, markdown_table, moment
from lamina.faces.journal_log import describe_inclusion, describe_priority
from lamina.faces.recorder import (
    LAYER_NAMES,
    PLACEMENT_NAMES,
    VERDICT_MEANINGS,
    list_marks,
    measure_changes,
)
from lamina.values.item import key_of
from lamina.values.request import CacheVerdict, ContextItem, ContextTool


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
    lines += markdown_table(
        "Items",
        ("item", "stands in", "tokens", "priority", "included", "why"),
        map(_item, context.items),
    )
    lines += markdown_table("Tools", ("tool", "tokens", "included"), map(_tool, context.tools))
    lines += markdown_table(
        "Left out",
        ("what", "reason", "detail"),
        ((omission.what, omission.reason, omission.detail) for omission in context.left_out),
    )
    warnings = (*context.warnings, *(listed.reply.warnings if listed.reply else ()))
    if warnings:
        lines += ["## Warnings", "", *(f"- {warning}" for warning in warnings), ""]
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
    rows = [
        (
            LAYER_NAMES[size["layer"]],
            *(f"{size[key]:,}" for key in ("segments", "tokens", "stay", "new")),
        )
        for size in sizes
        if size["segments"]
    ]
    totals = [sum(size[key] for size in sizes) for key in ("segments", "tokens", "stay", "new")]
    rows.append(("all", *(f"{total:,}" for total in totals)))
    return markdown_table("", ("layer", "segments", "tokens", "stay", "new"), rows)


def _item(item: ContextItem) -> tuple[str, ...]:
    return (
        item.label,
        PLACEMENT_NAMES[item.placement],
        f"{item.tokens:,}",
        describe_priority(item),
        describe_inclusion(item),
        item.reason,
    )


def _tool(tool: ContextTool) -> tuple[str, ...]:
    return (key_of(tool.item), f"{tool.tokens:,}", describe_inclusion(tool))

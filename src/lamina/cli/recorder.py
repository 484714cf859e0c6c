"""`lamina log --request` and `--requests`: what was sent, and what changed since the last time."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from lamina.audit.recorder import (
    ListedRequest,
    RebuiltRequest,
    RequestList,
    SegmentChange,
    find_request,
    list_requests,
    pictures_in,
    rebuild_request,
    wire_request,
)
from lamina.cli.difference import LAYER_NAMES, first_line, render_difference
from lamina.cli.log import describe_inclusion, describe_priority
from lamina.errors import LaminaError
from lamina.faces.stored_session import StoredSession
from lamina.journal import Journal
from lamina.layers import measure_layers
from lamina.providers.model_book import load_book
from lamina.values.damage import Damage
from lamina.values.item import key_of
from lamina.values.message import Text
from lamina.values.prompt import LAYERS
from lamina.values.request import CacheVerdict, ContextItem, ContextTool

VERDICT_MEANINGS = {
    "as_expected": "the cache served what was to be expected",
    "more_than_expected": "the cache served more than was to be expected",
    "below_minimum": "too short for the cache",
    "lifetime_passed": "the cache had forgotten it",
    "prefix_moved": "the prefix was moved, and the cache served what was left of it",
    "model_changed": "another model, nothing of it was in a cache",
    "routed_elsewhere": "a miss: the cache should have served it",
    "not_reported": "the provider said nothing of its cache",
    "nothing_sent_before": "nothing was sent before it",
}
PLACEMENT_NAMES = {
    "library": "system library",
    "above": "above, where it was first sent",
    "message": "this message, in full",
    "left_out": "left out",
}


async def show_requests(found: StoredSession, *, as_json: bool) -> str:
    """The list of all requests, as the command prints it."""
    journal = await found.read()
    requests = list_requests(journal)
    if as_json:
        rows = [_describe_listed(request, requests) for request in requests.listed]
        return _json({"requests": rows, "lost": requests.lost, "damage": journal.damage})
    return render_requests(requests, journal)


async def show_request(found: StoredSession, wanted: str, *, full: bool, as_json: bool) -> str:
    """One request against the one before it, as the command prints it.

    Raises:
        UnknownSession: there is no such request.
    """
    recorded, requests = await _rebuild(found, wanted)
    if as_json:
        return _json(describe_request(recorded, requests))
    return render_request(recorded, requests, full=full)


async def show_wire(found: StoredSession, wanted: str) -> tuple[str, tuple[str, ...]]:
    """One request in the vendor's wire form, and why it may not be what was sent.

    Raises:
        UnknownSession: there is no such request, or it cannot be rebuilt.
    """
    recorded, _ = await _rebuild(found, wanted)
    book, problems = load_book(), list(recorded.problems)
    blobs: dict[str, bytes] = {}
    for digest in pictures_in(recorded.prompt) if recorded.prompt else ():
        try:
            blobs[digest] = await found.store.get_blob(digest)
        except LaminaError as error:
            blobs[digest] = b""
            problems.append(f"an image is missing and stands there empty: {error}")
    request = wire_request(recorded, book, blobs)
    return _json(book.wire(request.target).encode(request)), tuple(problems)


async def _rebuild(found: StoredSession, wanted: str) -> tuple[RebuiltRequest, RequestList]:
    journal = await found.read()
    requests = list_requests(journal)
    listed = find_request(requests, wanted)
    return rebuild_request(journal, requests, listed, load_book()), requests


# -- the list -----------------------------------------------------------------------------------


def render_requests(requests: RequestList, journal: Journal) -> str:
    lines = []
    if requests.listed:
        head = (
            "#",
            "entry",
            "when",
            "target",
            "tokens",
            "agree",
            "new",
            "cached",
            "what came of it",
        )
        rows = [_row(request) for request in requests.listed]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        right = {0, 4, 5, 6, 7}
        lines += [
            "  ".join(
                cell.rjust(width) if place in right else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in (head, *rows)
        ]
    else:
        lines.append("No request was made in this session.")
    lines += [f"request {each} is lost; a reply to it is there" for each in requests.lost]
    return "\n".join([*lines, "", *_damage(journal.damage)]).rstrip()


def _row(listed: ListedRequest) -> tuple[str, ...]:
    request, reply = listed.request, listed.reply
    agreement = request.context.agreement
    cached = "" if reply is None else f"{reply.usage.cached:,}"
    if reply and not reply.usage.cache_reported:
        cached = "?"
    said = [VERDICT_MEANINGS[reply.verdict.meaning]] if reply and reply.verdict else []
    return (
        str(listed.number),
        request.id,
        _moment(request.at, "%m-%d %H:%M:%S"),
        request.target,
        f"{request.tokens:,}",
        f"{agreement.tokens:,}",
        f"{agreement.reprocessed:,}",
        cached,
        " · ".join([*said, *_marks(listed)]),
    )


def _marks(listed: ListedRequest) -> list[str]:
    """What is out of the ordinary with a request."""
    marks = []
    if listed.request.retry:
        marks.append("asked again, smaller: the provider had said it was too long")
    if listed.answer and listed.answer.interrupted:
        marks.append("the answer broke off")
    if listed.open:
        marks.append("not answered yet")
    elif listed.reply is None:
        marks.append("what it cost is lost" if listed.answer else "never answered")
    elif listed.answer is None:
        marks.append("the answer is lost")
    if not listed.active:
        marks.append("not on the active path")
    return marks


# -- one request --------------------------------------------------------------------------------


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
    lines += _table(
        "Items",
        ("item", "stands in", "tokens", "priority", "included", "why"),
        map(_item, context.items),
    )
    lines += _table("Tools", ("tool", "tokens", "included"), map(_tool, context.tools))
    lines += _table(
        "Left out",
        ("what", "reason", "detail"),
        ((omission.what, omission.reason, omission.detail) for omission in context.left_out),
    )
    warnings = (*context.warnings, *(listed.reply.warnings if listed.reply else ()))
    if warnings:
        lines += ["## Warnings", "", *(f"- {warning}" for warning in warnings), ""]
    lines += render_difference(recorded, full)
    return "\n".join([*lines, *_damage(recorded.damage)]).rstrip()


def _head(recorded: RebuiltRequest, count: int) -> list[str]:
    listed = recorded.listed
    request, reply, fit = listed.request, listed.reply, listed.request.context.fit
    counted = f"{request.tokens:,} tokens"
    if fit.calibration != 1.0:
        counted += f", about {fit.tokens:,} as the provider counts,"
    lines = [
        f"# Request {listed.number} of {count:,}",
        "",
        f"entry    {request.id} of session {recorded.session.session}, {_moment(request.at)}",
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
    lines += [f"note     {mark}" for mark in _marks(listed)]
    return lines


def _verdict(verdict: CacheVerdict) -> str:
    said = VERDICT_MEANINGS[verdict.meaning]
    if verdict.detail and verdict.detail not in said:
        said += f" ({verdict.detail})"
    if verdict.meaning in ("not_reported", "nothing_sent_before"):
        return said
    return f"{said}; expected {verdict.expected:,}, reported {verdict.reported:,}"


def _answer(listed: ListedRequest) -> str:
    if listed.answer is None:
        return "none"
    message = listed.answer.message
    said = [first_line(message.text)] if message.text.strip() else []
    said += [f"calls {first_line(f'{call.name} {call.arguments}')}" for call in message.calls]
    if listed.reply:
        passed = listed.reply.at - listed.request.at
        said.append(f"[{listed.reply.stop or 'no stop'}, after {passed:,.1f} s]")
    return " ".join(said)


def _layers(recorded: RebuiltRequest) -> list[str]:
    sizes = _sizes(recorded)
    if not sizes:
        return []
    rows = [
        (
            LAYER_NAMES[siz["layer"]],
            *(f"{siz[key]:,}" for key in ("segments", "tokens", "stay", "new")),
        )
        for siz in sizes
        if siz["segments"]
    ]
    totals = [sum(siz[key] for siz in sizes) for key in ("segments", "tokens", "stay", "new")]
    rows.append(("all", *(f"{total:,}" for total in totals)))
    return _table("", ("layer", "segments", "tokens", "stay", "new"), rows)


def _sizes(recorded: RebuiltRequest) -> list[dict[str, Any]]:
    """What each layer amounts to, and how much of it stays where it was."""
    if recorded.prompt is None:
        return []
    stay = dict.fromkeys(LAYERS, 0)
    for change in recorded.changes:
        if change.stays:
            stay[change.segment.layer] += change.segment.tokens
    return [
        {
            "layer": size.layer,
            "segments": size.segments,
            "tokens": size.tokens,
            "stay": stay[size.layer],
            "new": size.tokens - stay[size.layer],
            "digest": size.digest,
        }
        for size in measure_layers(recorded.prompt)
    ]


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


# -- for machines -------------------------------------------------------------------------------


def describe_request(recorded: RebuiltRequest, requests: RequestList) -> dict[str, Any]:
    """The request as plain data."""
    return {
        "session": recorded.session.session,
        "of": len(requests.listed),
        **_describe_listed(recorded.listed, requests),
        "proven": recorded.prompt is not None and not recorded.problems,
        "problems": recorded.problems,
        "layers": _sizes(recorded),
        "segments": [_describe_change(change) for change in recorded.changes],
        "context": recorded.listed.request.context,
        "damage": recorded.damage,
    }


def _describe_listed(listed: ListedRequest, requests: RequestList) -> dict[str, Any]:
    request, reply, answer = listed.request, listed.reply, listed.answer
    agreement = request.context.agreement
    base = requests.by_id(request.base)
    return {
        "number": listed.number,
        "id": request.id,
        "at": request.at,
        "target": request.target,
        "promotion": request.promotion,
        "active": listed.active,
        "open": listed.open,
        "answered": reply is not None,
        "interrupted": answer is not None and answer.interrupted,
        "retry": request.retry,
        "base": request.base,
        "base_number": base.number if base else None,
        "tokens": request.tokens,
        "agree": agreement.tokens,
        "new": agreement.reprocessed,
        "usage": reply.usage if reply else None,
        "verdict": reply.verdict if reply else None,
        "meaning": VERDICT_MEANINGS[reply.verdict.meaning] if reply and reply.verdict else "",
        "stop": reply.stop if reply else None,
        "answer": answer.message if answer else None,
    }


def _describe_change(change: SegmentChange) -> dict[str, Any]:
    segment = change.segment
    described: dict[str, Any] = {
        "status": change.status,
        "stays": change.stays,
        "index": change.index,
        "layer": segment.layer,
        "role": segment.role,
        "message": segment.message,
        "source": segment.source,
        "tokens": segment.tokens,
        "cached": segment.cached,
        "digest": segment.digest,
        "text": segment.text,
    }
    if not isinstance(segment.content, Text):
        described["content"] = segment.content
    older = change.instead_of or change.supersedes
    if older is not None:
        key = "instead_of" if change.instead_of else "supersedes"
        described[key] = {"source": older.source, "digest": older.digest}
    return described


# -- pieces -------------------------------------------------------------------------------------


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _moment(at: float, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    return datetime.fromtimestamp(at).strftime(form)


def _table(title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """A Markdown table that can be read as it is."""
    cells = [tuple(cell.replace("|", r"\|") for cell in row) for row in (head, *rows)]
    if len(cells) == 1:
        return []
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    numbers = {place for place, cell in enumerate(cells[1]) if cell.replace(",", "").isdigit()}
    lines = [f"## {title}", ""] if title else []
    for row in cells:
        padded = (
            cell.rjust(width) if place in numbers else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append(f"| {' | '.join(padded)} |")
        if row is cells[0]:
            rules = (
                f"{'-' * (width + 1)}{':' if place in numbers else '-'}"
                for place, width in enumerate(widths)
            )
            lines.append(f"|{'|'.join(rules)}|")
    return [*lines, ""]


def _damage(damage: Sequence[Damage]) -> list[str]:
    if not damage:
        return []
    return [f"## Damage ({len(damage)})", "", *(f"- {damage.kind}: {damage}" for damage in damage)]

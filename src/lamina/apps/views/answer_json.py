"""Answers, previews and the context of requests as plain data: the output of `--json` and rpc.

Covers usage, cost, layers, items and segments; how much of a request the cache served; the
citations and pending calls of an answer; and why a prepared request would not be sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from lamina.apps.views.sent_requests import describe_segment, last_request
from lamina.apps.views.spending_report import find_refusal
from lamina.apps.wiring.clients import require_reachable
from lamina.core.layers import measure_layers
from lamina.core.ports import TargetBook
from lamina.core.text import label_of
from lamina.core.values.entry import RequestEntry
from lamina.core.values.envelope import Options
from lamina.core.values.event import UsageReported
from lamina.core.values.item import ITEM_KINDS, ItemId, Provenance, kind_of
from lamina.core.values.note import Hit
from lamina.core.values.prices import CostSum
from lamina.core.values.prompt import LAYERS, Prompt, Segment
from lamina.core.values.request import Agreement, LeftOut, RequestContext
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.engine.runners.answer import PlanPreview, Preview
from lamina.engine.runners.runner import Answer
from lamina.engine.session.session import Session
from lamina.errors import ProviderError


def leading_cached(tokens: int, agreement: Agreement, usage: Usage | None) -> int:
    """Return how many leading tokens of a prompt came from a cache.

    A cache serves only a prefix, so one number is enough: the tokens the provider reported,
    converted to our count, or, without a report, those that match the previous request.
    """
    if usage is None or not usage.cache_reported or not usage.input:
        return min(tokens, agreement.tokens)
    return min(tokens, round(usage.cached * tokens / usage.input))


def describe_layers(prompt: Iterable[Segment], cached: int, agree: int) -> list[dict[str, Any]]:
    """Return each layer with its tokens, how many of them are among the first `cached` tokens on
    the wire, and how many are among the first `agree`, whose bytes match the previous request.
    L1-L5 are always listed, tools only if there are any."""
    rows = {layer: {"id": layer, "tokens": 0, "cached": 0, "agree": 0} for layer in LAYERS}
    at = 0
    for segment in prompt:
        row: dict[str, Any] = rows[segment.layer]
        row["tokens"] += segment.tokens
        row["cached"] += max(0, min(cached - at, segment.tokens))
        row["agree"] += max(0, min(agree - at, segment.tokens))
        at += segment.tokens
    return [row for row in rows.values() if row["id"] != "tools" or row["tokens"]]


def describe_context_items(context: RequestContext) -> list[dict[str, Any]]:
    """Return what a request was built from, followed by what it leaves out."""
    out = {omission.what for omission in context.left_out}
    rows = []
    for item in context.items:
        if not (item.placement == "left_out" and item.item in out):
            row = _row(item.item, item.label, item.placement, item.tokens, item.reason)
            rows.append(row | _describe_provenance(item.provenance))
    for tool in context.tools:
        reason = "added for an earlier question" if tool.kept else "offered"
        reason = reason if context.allows(tool.name) else "listed, but not callable"
        row = _row(tool.item, label_of(tool.item), "tools", tool.tokens, reason)
        rows.append(row | _describe_provenance(tool.provenance))
    for left in context.left_out:
        row = _row(left.what, label_left_out(left), "left_out", left.tokens, left.reason)
        rows.append(row | {"detail": left.detail})
    return rows


def _row(item: str, label: str, placement: str, tokens: int, reason: str) -> dict[str, Any]:
    return {
        "id": item, "label": label, "placement": placement, "tokens": tokens, "reason": reason,
    }  # fmt: skip


def _describe_provenance(provenance: Provenance) -> dict[str, Any]:
    """Return how something came to be in a request, as far as anything is recorded."""
    names = ("include", "score", "origin", "source")
    values = {name: getattr(provenance, name) for name in names}
    return {name: value for name, value in values.items() if value not in (None, "")}


def label_left_out(omission: LeftOut) -> str:
    """`what` is an item's id, or the name of something that never became an item."""
    kind, _, key = omission.what.partition(":")
    return key if kind in ITEM_KINDS and key else omission.what


def is_notable(omission: LeftOut) -> bool:
    """Return whether to report an omission unasked. It is normal that other items fit better, and
    a separate warning names the tools that left without being removed by a person."""
    left = omission.reason == "removed" and kind_of(ItemId(omission.what)) == "tool"
    return omission.reason != "ranked_lower" and not left


def describe_context(session: Session, book: TargetBook, *, full: bool) -> dict[str, Any]:
    """Return the last request of the active path, rebuilt from the journal, even while it is
    running. `problems` says why it may differ from what was sent."""
    recorded = last_request(session, book)
    request = recorded.listed.request if recorded else None
    reply = recorded.listed.reply if recorded else None
    prompt = recorded.prompt if recorded and recorded.prompt else Prompt()
    agreement = request.context.agreement if request else Agreement(first=True)
    usage = reply.usage if reply else None
    cached = leading_cached(prompt.tokens, agreement, usage)
    plain = msgspec.to_builtins(request.context) if request else {}
    report = {
        "request": request.id if request else None,
        "target": request.context.target if request else None,
        "layers": describe_layers(prompt, cached, agreement.tokens),
        **{name: plain.get(name, []) for name in ("items", "tools", "left_out", "boundaries")},
        "options": describe_options(recorded.options) if recorded else {},
        "citations": list(recorded.citations) if recorded else [],
        "allowed_tools": plain.get("allowed_tools"),
        "agreement": _agreement(agreement),
        "fit": plain.get("fit", {}),
        "history_price": _history_price(request),
        "usage": describe_usage(usage) if usage else None,
        "verdict": msgspec.to_builtins(reply.verdict) if reply else None,
        "problems": list(recorded.problems) if recorded else [],
        "displays": msgspec.to_builtins(recorded.displays) if recorded else [],
    }
    if full:
        report["segments"] = [
            describe_segment(segment) | {"content": msgspec.to_builtins(segment.content)}
            for segment in prompt
        ]
    return report


def _history_price(request: RequestEntry | None) -> dict[str, Any] | None:
    price = request.context.history_price if request else None
    return asdict(price) if price else None


def describe_options(options: Options) -> dict[str, Any]:
    """Return the options for the model's answer that were set."""
    return {name: value for name, value in asdict(options).items() if value is not None}


def write_options(options: Options, citations: Sequence[int]) -> str:
    """Return the same in one line, with the required citations; empty if nothing was set."""
    words = [
        "a schema" if name == "schema" else f"{name} {value}"
        for name, value in describe_options(options).items()
    ]
    if citations:
        words.append(f"must cite {' '.join(f'[^{number}]' for number in citations)}")
    return ", ".join(words)


def _agreement(agreement: Agreement) -> Mapping[str, Any]:
    """Return all fields: a client should not have to know which are omitted when zero."""
    broke = msgspec.to_builtins(agreement.broke)
    return {"first": agreement.first} | asdict(agreement) | {"broke": broke}


def describe_usage(usage: Usage) -> dict[str, int]:
    return {"input": usage.input, "cached": usage.cached, "output": usage.output}


# How vendors say that an answer reached its limit.
CUT_OFF = ("length", "max_tokens", "MAX_TOKENS")


SPENT = ("input", "cached", "output")


def describe_answer(answer: Answer, session: Session, warnings: Sequence[str]) -> dict[str, Any]:
    """Return what `ask --json` prints. Usage and cost cover the whole turn; layers and context
    describe its last request."""
    turn = answer.turn
    layers: list[dict[str, Any]] = []
    context: list[dict[str, Any]] = []
    if turn is not None:
        cached = leading_cached(turn.prompt.tokens, turn.context.agreement, turn.usage)
        layers = describe_layers(turn.prompt, cached, turn.context.agreement.tokens)
        context = describe_context_items(turn.context)
    return {
        "session": session.id,
        "answer": answer.text,
        "ending": answer.ending,
        # The vendor's own stop reason: `length` if the answer was cut off.
        "stop": turn.stop_reason if turn else "",
        "target": turn.context.target if turn else session.settings.target,
        "usage": describe_usage(answer.usage),
        "cost": answer.cost,
        "unpriced": answer.unpriced,
        "requests": answer.requests,
        "layers": layers,
        "context": context,
        "verdict": msgspec.to_builtins(turn.verdict) if turn else None,
        "warnings": list(warnings),
        "displays": msgspec.to_builtins(turn.displays) if turn else [],
    } | _describe_sources(answer)


def _describe_sources(answer: Answer) -> dict[str, Any]:
    """Return what an answer from notes cites, and what was found for it."""
    if answer.search_result is None and not answer.sources:
        return {}
    hits = answer.search_result.hits if answer.search_result else ()
    return {"sources": msgspec.to_builtins(answer.sources), "found": describe_hits(hits)}


def describe_hits(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """Return the places of passages, without their texts."""
    names = ("path", "heading", "start", "end", "score")
    return [{name: getattr(hit, name) for name in names} for hit in hits]


def describe_outcome(answer: Answer, session: Session) -> dict[str, Any]:
    """Return what `prompt` and `resume` answer over rpc."""
    return {
        "answer": answer.text,
        "ending": answer.ending,
        "stop": answer.turn.stop_reason if answer.turn else "",
        "usage": describe_usage(answer.usage),
        "session": session.id,
        "request": answer.turn.id if answer.turn else None,
        "waiting": [
            {"call": msgspec.to_builtins(call.call), "tool": msgspec.to_builtins(call.tool)}
            for call in answer.waiting_calls
        ],
    } | _describe_sources(answer)


# Outcomes that need no report, or not a second one.
EXPECTED = ("as_expected", "nothing_sent_before", "more_than_expected", "not_reported")
# Something expected in the cache was missing.
MISSES = ("routed_elsewhere", "lifetime_passed")


class TurnCost(Struct, frozen=True, kw_only=True):
    """Combined cost of a turn's requests."""

    usage: Usage
    cost: CostSum
    first_s: float | None = None
    requests: int = 1


def sum_reports(reports: Sequence[UsageReported]) -> TurnCost:
    usages = [report.usage for report in reports]
    return TurnCost(
        usage=Usage(
            **{name: sum(getattr(usage, name) for usage in usages) for name in SPENT},
            cache_reported=all(usage.cache_reported for usage in usages),
        ),
        cost=reduce(CostSum.plus, (report.cost for report in reports), CostSum()),
        first_s=next((r.first_s for r in reports if r.first_s is not None), None),
        requests=len(reports),
    )


ONLY_PLAN = (
    "This is the request for the plan. The request that will be answered contains the results of "
    "the planned tools, so it cannot be shown before a model has made the plan."
)


def describe_preview(preview: Preview) -> dict[str, Any]:
    """Return the turn as plain data, with what a search found for it."""
    turn = preview.turn
    report = {
        "target": turn.context.target,
        "layers": [asdict(size) for size in turn.layers],
        "cost_range": msgspec.to_builtins(turn.cost_range),
        "rewrite": msgspec.to_builtins(turn.rewrite),
        "context": msgspec.to_builtins(turn.context),
        "segments": _plain(turn.prompt),
        "warnings": list(preview.warnings),
        "displays": msgspec.to_builtins(turn.displays),
    }
    if options := describe_options(turn.options):
        report["options"] = options
    if turn.citations:
        report["citations"] = list(turn.citations)
    if preview.search_result is not None:
        report["found"] = describe_hits(preview.search_result.hits)
    return report


def describe_plan_preview(preview: PlanPreview) -> dict[str, Any]:
    """Return the request for a plan as plain data."""
    return {
        "target": preview.target.name,
        "request": "plan",
        "not_shown": ONLY_PLAN,
        "cost_range": msgspec.to_builtins(preview.cost_range),
        "layers": [asdict(size) for size in measure_layers(preview.prompt)],
        "left_out": msgspec.to_builtins(preview.left_out),
        "segments": _plain(preview.prompt),
        "warnings": list(preview.warnings),
    }


def _plain(prompt: Prompt) -> list[dict[str, Any]]:
    names = ("layer", "role", "source", "tokens", "cached", "digest")
    return [
        {name: getattr(segment, name) for name in names}
        | {"content": msgspec.to_builtins(segment.content)}
        for segment in prompt
    ]


async def why_refused(session: Session, preview: Preview | PlanPreview) -> tuple[str, ...]:
    """Return why a question would not be sent: a spend limit, or an unreachable target."""
    refusals: tuple[str, ...] = ()
    if isinstance(preview, Preview) and (limit := await find_refusal(session, preview.turn)):
        refusals = (limit,)
    return (*refusals, *why_unreachable(session.target()))


def why_unreachable(target: Target) -> tuple[str, ...]:
    """Return why the request would not reach the target."""
    try:
        require_reachable(target)
    except ProviderError as error:
        return (str(error),)
    return ()

"""An answer as plain data: what it says, cites and cost, and what it waits for."""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import msgspec
from msgspec import Struct

from lamina.apps.views.request_context import (
    describe_context_items,
    describe_layers,
    describe_usage,
    leading_cached,
)
from lamina.core.values.event import UsageReported
from lamina.core.values.note import Hit
from lamina.core.values.prices import CostSum
from lamina.core.values.usage import Usage
from lamina.engine.runners.runner import Answer
from lamina.engine.session.session import Session

# The vendors' words for an answer that reached its limit.
CUT_OFF = ("length", "max_tokens", "MAX_TOKENS")


SPENT = ("input", "cached", "output")


def describe_answer(answer: Answer, session: Session, warnings: Sequence[str]) -> dict[str, Any]:
    """What `ask --json` prints. Usage and cost are of the whole turn; layers and context are those
    of its last request."""
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
        # The vendor's own word for why it ended: `length` if it was cut.
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
    """What an answer from notes cites, and what was found for it."""
    if answer.search_result is None and not answer.sources:
        return {}
    hits = answer.search_result.hits if answer.search_result else ()
    return {"sources": msgspec.to_builtins(answer.sources), "found": describe_hits(hits)}


def describe_hits(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """Where passages are, without their texts."""
    names = ("path", "heading", "start", "end", "score")
    return [{name: getattr(hit, name) for name in names} for hit in hits]


def describe_outcome(answer: Answer, session: Session) -> dict[str, Any]:
    """What `prompt` and `resume` give over rpc."""
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


# Nothing that a person has to be told, or not twice.
EXPECTED = ("as_expected", "nothing_sent_before", "more_than_expected", "not_reported")
# Something that was to be expected in the cache was not there.
MISSES = ("routed_elsewhere", "lifetime_passed")


class TurnCost(Struct, frozen=True, kw_only=True):
    """The requests of a turn together."""

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

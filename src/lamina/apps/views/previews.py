"""The request to come as plain data, and why it would not be sent."""

from typing import Any

import msgspec
from msgspec.structs import asdict

from lamina.apps.views.answer import describe_hits
from lamina.apps.views.request_context import describe_options
from lamina.apps.views.spending import find_refusal
from lamina.apps.wiring.clients import require_reachable
from lamina.core.layers import measure_layers
from lamina.core.values.prompt import Prompt
from lamina.core.values.settings import Target
from lamina.engine.runners.preview import PlanPreview, Preview
from lamina.engine.session.session import Session
from lamina.errors import ProviderError

ONLY_PLAN = (
    "This is the request for the plan. The one that is answered holds what the planned tools give, "
    "so it cannot be shown before a model has made the plan."
)


def describe_preview(preview: Preview) -> dict[str, Any]:
    """The turn as plain data, with what a search found for it."""
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
    """The request for a plan as plain data."""
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
    """Why a question would not be sent: a limit on spending, or nobody that could be asked."""
    refusals: tuple[str, ...] = ()
    if isinstance(preview, Preview) and (limit := await find_refusal(session, preview.turn)):
        refusals = (limit,)
    return (*refusals, *why_unreachable(session.target()))


def why_unreachable(target: Target) -> tuple[str, ...]:
    """Why nobody would get the request."""
    try:
        require_reachable(target)
    except ProviderError as error:
        return (str(error),)
    return ()

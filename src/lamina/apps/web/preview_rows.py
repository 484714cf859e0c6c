"""A request that was prepared and not sent, as the web app draws it."""

from collections.abc import Iterable, Sequence

from lamina.apps.web.shapes.previews import RequestPreview, SegmentView
from lamina.core.layers import measure_layers
from lamina.core.ledger.request_price import price_request
from lamina.core.values.prompt import Segment
from lamina.core.values.request import Agreement
from lamina.core.values.settings import Settings, Target
from lamina.engine.runners.preview import PlanPreview, Preview
from lamina.engine.session.session import Session
from lamina.errors import BudgetError, LaminaError


def describe_preview(
    preview: Preview | PlanPreview,
    session: Session,
    target: Target,
    refusals: Sequence[str],
    leaf: str,
) -> RequestPreview:
    """What would be sent, with how much of it a provider should have in its cache."""
    if isinstance(preview, PlanPreview):
        return _describe_plan(preview, session.settings, refusals, leaf)
    turn = preview.turn
    context = turn.context
    price = price_request(context, turn.options, session.settings, target)
    cached = price.cached
    if context.warm is not None:
        # Another session sent the same beginning not long ago.
        cached = max(cached, min(context.warm.tokens, context.fit.tokens))
    return RequestPreview(
        target=context.target,
        tokens=context.fit.tokens,
        window=context.fit.window,
        reserve=context.fit.reserve,
        exact=target.exact_tokens,
        layers=turn.layers,
        items=context.items,
        tools=context.tools,
        left_out=context.left_out,
        cached=cached,
        new=max(0, context.fit.tokens - cached),
        cost_range=turn.cost_range,
        rewrite=turn.rewrite,
        agreement=context.agreement,
        boundaries=context.boundaries,
        warnings=tuple(dict.fromkeys((*turn.warnings, *preview.warnings))),
        segments=_segments(turn.prompt),
        digest=turn.prompt.digest,
        only_plan=False,
        refusal="; ".join(refusals),
        leaf=leaf,
    )


def _describe_plan(
    preview: PlanPreview, settings: Settings, refusals: Sequence[str], leaf: str
) -> RequestPreview:
    prompt, target = preview.prompt, preview.target
    return RequestPreview(
        target=target.name,
        tokens=prompt.tokens,
        window=settings.window or target.window,
        reserve=0,
        exact=target.exact_tokens,
        layers=measure_layers(prompt),
        items=(),
        tools=(),
        left_out=preview.left_out,
        cached=None,
        new=None,
        cost_range=preview.cost_range,
        rewrite=None,
        agreement=Agreement(first=True),
        boundaries=(),
        warnings=preview.warnings,
        segments=_segments(prompt),
        digest=prompt.digest,
        only_plan=True,
        refusal="; ".join(refusals),
        leaf=leaf,
    )


def refused_preview(
    error: LaminaError, target: Target, settings: Settings, leaf: str
) -> RequestPreview:
    """What cannot even be prepared; of what does not fit, the sizes are known."""
    tokens = sum(error.sizes.values()) if isinstance(error, BudgetError) else 0
    return RequestPreview(
        target=target.name, tokens=tokens, window=settings.window or target.window, reserve=0,
        exact=target.exact_tokens, layers=(), items=(), tools=(), left_out=(), cached=None,
        new=None, cost_range=None, rewrite=None, agreement=Agreement(first=True), boundaries=(),
        warnings=(), segments=(), digest="", only_plan=False, refusal=str(error), leaf=leaf,
    )  # fmt: skip


def _segments(prompt: Iterable[Segment]) -> tuple[SegmentView, ...]:
    return tuple(
        SegmentView(
            layer=segment.layer, role=segment.role, source=segment.source, tokens=segment.tokens,
            cached=segment.cached, digest=segment.digest,
        )
        for segment in prompt
    )  # fmt: skip

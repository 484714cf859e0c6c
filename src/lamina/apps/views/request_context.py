"""What a request was made of: its layers, items and segments, and how much a cache served."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import asdict

from lamina.apps.views.sent_requests import describe_segment, last_request
from lamina.core.ports import TargetBook
from lamina.core.text import label_of
from lamina.core.values.entry import RequestEntry
from lamina.core.values.envelope import Options
from lamina.core.values.item import ItemId, Provenance, kind_of
from lamina.core.values.item_kind import ITEM_KINDS
from lamina.core.values.prompt import LAYERS, Prompt, Segment
from lamina.core.values.request import Agreement, LeftOut, RequestContext
from lamina.core.values.usage import Usage
from lamina.engine.session.session import Session


def leading_cached(tokens: int, agreement: Agreement, usage: Usage | None) -> int:
    """How many leading tokens of a prompt came from a cache. A cache serves a prefix and nothing
    else, so one number says it all: what the provider reported, in our tokens; or, where it
    reported nothing, what agrees with the request before."""
    if usage is None or not usage.cache_reported or not usage.input:
        return min(tokens, agreement.tokens)
    return min(tokens, round(usage.cached * tokens / usage.input))


def describe_layers(prompt: Iterable[Segment], cached: int, agree: int) -> list[dict[str, Any]]:
    """Each layer with its tokens, and how many are among the first `cached` ones on the wire and
    among the first `agree` ones, which are the same bytes as in the request before. L1-L5 are
    always there, tools only if there are any."""
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
    """What a request was built from, and then what is not in it."""
    out = {omission.what for omission in context.left_out}
    rows = []
    for item in context.items:
        if not (item.placement == "left_out" and item.item in out):
            row = _row(item.item, item.label, item.placement, item.tokens, item.reason)
            rows.append(row | _describe_provenance(item.provenance))
    for tool in context.tools:
        reason = "joined for an earlier question" if tool.kept else "offered"
        reason = reason if context.allows(tool.name) else "in the list, and not to be called"
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
    """How something came to be in a request, as far as there is anything to say."""
    names = ("include", "score", "origin", "source")
    values = {name: getattr(provenance, name) for name in names}
    return {name: value for name, value in values.items() if value not in (None, "")}


def label_left_out(omission: LeftOut) -> str:
    """`what` is an item's id, or the name of something that never became an item."""
    kind, _, key = omission.what.partition(":")
    return key if kind in ITEM_KINDS and key else omission.what


def is_news(omission: LeftOut) -> bool:
    """Whether a person is told of an omission unasked. That others fit better is how choosing goes;
    of tools that left, a warning names all that nobody removed."""
    left = omission.reason == "removed" and kind_of(ItemId(omission.what)) == "tool"
    return omission.reason != "ranked_lower" and not left


def describe_context(session: Session, book: TargetBook, *, full: bool) -> dict[str, Any]:
    """The last request of the active path, rebuilt from the journal; also while it is under way.
    `problems` says why it may not be what was sent."""
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
    """How a model was to answer, as far as anything was said of it."""
    return {name: value for name, value in asdict(options).items() if value is not None}


def write_options(options: Options, citations: Sequence[int]) -> str:
    """The same in a line, and what an answer was held to cite; empty if nothing was said."""
    words = [
        "a schema" if name == "schema" else f"{name} {value}"
        for name, value in describe_options(options).items()
    ]
    if citations:
        words.append(f"must cite {' '.join(f'[^{number}]' for number in citations)}")
    return ", ".join(words)


def _agreement(agreement: Agreement) -> Mapping[str, Any]:
    """With all of its fields: a client should not have to know what is left out when it is zero."""
    broke = msgspec.to_builtins(agreement.broke)
    return {"first": agreement.first} | asdict(agreement) | {"broke": broke}


def describe_usage(usage: Usage) -> dict[str, int]:
    return {"input": usage.input, "cached": usage.cached, "output": usage.output}

"""Answers and the requests behind them as plain data, for `ask --json` and `rpc`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from lamina.audit.recorder import ListedRequest, RebuiltRequest, list_requests, rebuild_request
from lamina.cli.log import describe_entry
from lamina.journal import Journal
from lamina.ports import TargetBook
from lamina.runners.caller import WaitingCall
from lamina.runners.runner import Answer
from lamina.session.session import Session
from lamina.session.tree import labels_of
from lamina.text import label_of
from lamina.values.item import ITEM_KINDS
from lamina.values.note import Hit
from lamina.values.prompt import LAYERS, Layer, Prompt, Segment
from lamina.values.request import Agreement, ContextItem, ContextTool, LeftOut, RequestContext
from lamina.values.usage import Usage

SUMMARY = 200


class LayerShare(Struct):
    """Tokens of a layer, how many of them a cache served, and how many it could have served."""

    tokens: int = 0
    cached: int = 0
    agree: int = 0


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
    shares: dict[Layer, LayerShare] = {layer: LayerShare() for layer in LAYERS}
    at = 0
    for segment in prompt:
        share = shares[segment.layer]
        share.tokens += segment.tokens
        share.cached += max(0, min(cached - at, segment.tokens))
        share.agree += max(0, min(agree - at, segment.tokens))
        at += segment.tokens
    return [
        {"id": layer, "tokens": share.tokens, "cached": share.cached, "agree": share.agree}
        for layer, share in shares.items()
        if layer != "tools" or share.tokens
    ]


def describe_context_items(context: RequestContext) -> list[dict[str, Any]]:
    """What a request was built from, and then what is not in it."""
    out = {omission.what for omission in context.left_out}
    rows = [
        {
            "id": item.item,
            "label": item.label,
            "placement": item.placement,
            "tokens": item.tokens,
            "reason": item.reason,
        }
        | _found(item)
        for item in context.items
        if not (item.placement == "left_out" and item.item in out)
    ]
    rows += [
        {
            "id": tool.item,
            "label": label_of(tool.item),
            "placement": "tools",
            "tokens": tool.tokens,
            "reason": "joined for an earlier question" if tool.kept else "offered",
        }
        | _found(tool)
        for tool in context.tools
    ]
    return rows + [
        {
            "id": omission.what,
            "label": label_left_out(omission),
            "placement": "left_out",
            "tokens": omission.tokens,
            "reason": omission.reason,
            "detail": omission.detail,
        }
        for omission in context.left_out
    ]


def _found(each: ContextItem | ContextTool) -> dict[str, Any]:
    """How something came to be in a request, as far as there is anything to say."""
    said = {"score": each.score, "origin": each.origin or None, "source": each.source or None}
    return {"include": each.include} | {name: it for name, it in said.items() if it is not None}


def label_left_out(each: LeftOut) -> str:
    """`what` is an item's id, or the name of something that never became an item."""
    kind, _, key = each.what.partition(":")
    return key if kind in ITEM_KINDS and key else each.what


# The vendors' words for an answer that reached its limit.
CUT_OFF = ("length", "max_tokens", "MAX_TOKENS")


def describe_usage(usage: Usage) -> dict[str, int]:
    return {"input": usage.input, "cached": usage.cached, "output": usage.output}


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
        "stop": turn.stop if turn else "",
        "target": turn.context.target if turn else session.settings.target,
        "usage": describe_usage(answer.usage),
        "cost": answer.cost,
        "requests": answer.requests,
        "layers": layers,
        "context": context,
        "verdict": msgspec.to_builtins(turn.verdict) if turn else None,
        "warnings": list(warnings),
    } | _describe_sources(answer)


def _describe_sources(answer: Answer) -> dict[str, Any]:
    """What an answer from notes cites, and what was found for it."""
    if answer.found is None and not answer.sources:
        return {}
    hits = answer.found.hits if answer.found else ()
    return {
        "sources": msgspec.to_builtins(answer.sources),
        "found": describe_hits(hits),
    }


def describe_hits(hits: Sequence[Hit]) -> list[dict[str, Any]]:
    """Where passages are, without their texts."""
    return [
        {
            "path": hit.path,
            "heading": hit.heading,
            "start": hit.start,
            "end": hit.end,
            "score": hit.score,
        }
        for hit in hits
    ]


def describe_outcome(answer: Answer, session: Session) -> dict[str, Any]:
    """What `prompt` and `resume` give over rpc."""
    return {
        "answer": answer.text,
        "ending": answer.ending,
        "stop": answer.turn.stop if answer.turn else "",
        "usage": describe_usage(answer.usage),
        "session": session.id,
        "request": answer.turn.id if answer.turn else None,
        "waiting": describe_waiting(answer.waiting),
    } | _describe_sources(answer)


def describe_waiting(waiting: Sequence[WaitingCall]) -> list[dict[str, Any]]:
    return [
        {"call": msgspec.to_builtins(call.call), "tool": msgspec.to_builtins(call.tool)}
        for call in waiting
    ]


# -- the session --------------------------------------------------------------------------------


def describe_tree(session: Session) -> dict[str, Any]:
    """Every entry in order of writing, with the branch that is active."""
    entries = session.entries
    active = {entry.id for entry in session.path}
    labels = labels_of(entries)
    rows = []
    for entry in entries:
        kind, said = describe_entry(entry)
        first = (said.splitlines() or [""])[0]
        rows.append(
            {
                "id": entry.id,
                "parent": entry.parent,
                "kind": kind,
                "summary": first if len(first) <= SUMMARY else f"{first[: SUMMARY - 1]}…",
                "active": entry.id in active,
                "label": labels.get(entry.id, ""),
            }
        )
    return {"leaf": session.state.leaf, "entries": rows}


def describe_context(session: Session, book: TargetBook, *, full: bool) -> dict[str, Any]:
    """The last request of the active path, rebuilt from the journal; also while it is under way.
    `problems` says why it may not be what was sent."""
    recorded = _last_request(session, book)
    if recorded is None:
        return _nothing_sent(full)
    listed, prompt = recorded.listed, recorded.prompt
    context = listed.request.context
    usage = listed.reply.usage if listed.reply else None
    cached = leading_cached(prompt.tokens if prompt else 0, context.agreement, usage)
    plain = msgspec.to_builtins(context)
    described = {
        "request": listed.request.id,
        "target": context.target,
        "layers": describe_layers(prompt or (), cached, context.agreement.tokens),
        "items": plain.get("items", []),
        "tools": plain.get("tools", []),
        "left_out": plain.get("left_out", []),
        "boundaries": plain.get("boundaries", []),
        "agreement": _agreement(context.agreement),
        "fit": plain.get("fit", {}),
        "usage": describe_usage(usage) if usage else None,
        "verdict": msgspec.to_builtins(listed.reply.verdict) if listed.reply else None,
        "problems": list(recorded.problems),
    }
    if full:
        described["segments"] = [_segment(segment) for segment in prompt or ()]
    return described


def _last_request(session: Session, book: TargetBook) -> RebuiltRequest | None:
    entries = {entry.id: entry for entry in session.entries}
    journal = Journal(entries=entries, leaf=session.state.leaf)
    requests = list_requests(journal)
    last: ListedRequest | None = next(
        (request for request in reversed(requests.listed) if request.active), None
    )
    return rebuild_request(journal, requests, last, book) if last else None


def _nothing_sent(full: bool) -> dict[str, Any]:
    described: dict[str, Any] = {
        "request": None,
        "target": None,
        "layers": describe_layers(Prompt(), 0, 0),
        "items": [],
        "tools": [],
        "left_out": [],
        "boundaries": [],
        "agreement": _agreement(Agreement(first=True)),
        "fit": {},
        "usage": None,
        "verdict": None,
        "problems": [],
    }
    return described | ({"segments": []} if full else {})


def _agreement(agreement: Agreement) -> Mapping[str, Any]:
    """With all of its fields: a client should not have to know what is left out when it is zero."""
    return {
        "first": agreement.first,
        "segments": agreement.segments,
        "tokens": agreement.tokens,
        "reprocessed": agreement.reprocessed,
        "broke": msgspec.to_builtins(agreement.broke),
    }


def _segment(segment: Segment) -> dict[str, Any]:
    return {
        "layer": segment.layer,
        "role": segment.role,
        "message": segment.message,
        "source": segment.source,
        "tokens": segment.tokens,
        "cached": segment.cached,
        "digest": segment.digest,
        "content": msgspec.to_builtins(segment.content),
    }

"""Exports requests as rows of plain data; docs/requests.md describes every field.

Laws: a row has figures, names and reasons, and neither the request's content nor the answer's.
Unknown values are null, never zero. A field keeps its name and its meaning; a change of either
raises `SCHEMA`.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import asdict

from lamina.core.assembly.wire_parameters import recorded_parameters, untaken_options
from lamina.core.audit.item_usage import Questions
from lamina.core.audit.requests import ListedRequest, RequestList, list_requests, sent_target
from lamina.core.audit.verification import Rebuilder, walk_states
from lamina.core.journal import Journal, State
from lamina.core.layers import measure_layers
from lamina.core.ledger import cost_of
from lamina.core.ports import TargetBook
from lamina.core.text import label_of
from lamina.core.values.entry import RequestEntry
from lamina.core.values.item import kind_of
from lamina.core.values.request import ContextItem, ContextTool, RequestContext
from lamina.core.values.usage import Usage
from lamina.errors import LaminaError

SCHEMA = 1


def list_request_rows(journal: Journal, book: TargetBook) -> Iterator[dict[str, Any]]:
    """Yield a row for every request of a session, on every branch, in writing order."""
    requests = list_requests(journal)
    rebuilder = Rebuilder(book)
    questions = Questions(journal.entries)
    for entry, state in walk_states(journal, []):
        if isinstance(entry, RequestEntry) and (listed := requests.by_id(entry.id)):
            asked = questions.of(entry)
            row = _row(listed, requests, state, book, rebuilder)
            yield row | {"question": asked if asked != entry.id else None}


def _row(
    listed: ListedRequest, requests: RequestList, state: State, book: TargetBook, by: Rebuilder
) -> dict[str, Any]:
    request, reply, answer = listed.request, listed.reply, listed.answer
    context, base = request.context, requests.by_id(request.base)
    row: dict[str, Any] = {
        "schema": SCHEMA,
        "session": state.session.session,
        "agent": state.session.with_agent or None,
        "request": request.id,
        "number": listed.number,
        "base": request.base,
        "at": request.at,
        "seconds": reply.at - request.at if reply else None,
        "target": request.target,
        "model": (reply.model or None) if reply else None,
        "active": listed.active,
        "answered": reply is not None,
        "interrupted": answer is not None and answer.interrupted,
        "retry": request.retry,
        "stop": reply.stop if reply else None,
        "calls": [call.name for call in answer.message.calls] if answer else [],
        "settings": msgspec.to_builtins(state.settings),
        "options": None,
        "citations": None,
        "tokens": request.tokens,
        "cached_tokens": request.cached_tokens,
        "fit": asdict(context.fit) | {"available": context.fit.available},
        "layers": None,
        "items": [_item(item) for item in context.items],
        "tools": [_tool(tool, context) for tool in context.tools],
        "left_out": [asdict(omission) for omission in context.left_out],
        "boundaries": [asdict(boundary) for boundary in context.boundaries],
        "agreement": msgspec.to_builtins(asdict(context.agreement)),
        "usage": _usage(reply.usage) if reply else None,
        "verdict": asdict(reply.verdict) if reply and reply.verdict else None,
        "cost": None,
        "warnings": [*context.warnings, *(reply.warnings if reply else ())],
    }
    try:
        target = sent_target(request, book)
        parameters = recorded_parameters(request, state, target, base.request if base else None)
        prompt = by.rebuild(request, state)
    except LaminaError:
        # Its target is no longer in the book, or the data it was made from is lost.
        return row
    wire_request = parameters.wire_request(prompt, target, {})
    row["warnings"] += untaken_options(wire_request)
    row["options"] = msgspec.to_builtins(parameters.options)
    row["citations"] = list(wire_request.enforced_citations)
    row["layers"] = {size.layer: size.tokens for size in measure_layers(prompt)}
    if reply:
        row["cost"] = cost_of(reply.usage, target)
    return row


def _usage(usage: Usage) -> dict[str, Any]:
    """Return the provider's counts; unreported counts are null."""
    figures = asdict(usage)
    return figures if usage.cache_reported else figures | {"cached": None, "written": None}


def _item(item: ContextItem) -> dict[str, Any]:
    return {
        "item": item.item,
        "kind": kind_of(item.item),
        "label": item.label,
        "version": item.version,
        "mode": item.include,
        "placement": item.placement,
        "layer": item.layer,
        "tokens": item.tokens,
        "priority": item.priority,
        "priority_before": item.priority_before,
        "essential": item.essential,
        "pinned": item.pinned,
        "score": item.score,
        "origin": item.origin or None,
        "source": item.source or None,
        "why": item.reason or None,
    }


def _tool(tool: ContextTool, context: RequestContext) -> dict[str, Any]:
    return {
        "item": tool.item,
        "label": label_of(tool.item),
        "name": tool.name,
        "mode": tool.include,
        "tokens": tool.tokens,
        "score": tool.score,
        "origin": tool.origin or None,
        "source": tool.source or None,
        "kept": tool.kept,
        "allowed": context.allows(tool.name),
    }

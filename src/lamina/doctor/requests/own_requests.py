"""Reads requests from Lamina's own journals for the doctor.

Law: a journal contains the digest of every segment, so it shows what agrees and what moved, with
the recorded reasons; nothing is rebuilt and nothing is compared twice.
"""

from collections.abc import Iterator

from lamina.core.audit.break_causes import name_moved
from lamina.core.audit.requests import ListedRequest, list_requests
from lamina.core.journal import Journal
from lamina.core.values.entry import MessageEntry
from lamina.core.values.message import Thinking
from lamina.core.values.prompt import Layer
from lamina.core.values.request import Agreement
from lamina.doctor.observed_request import OWN, ObservedRequest, PartLayer, PromptChange, StepKind

_LAYERS: dict[Layer, PartLayer] = {"tools": "tools", "L1": "system", "L2": "system"}


def read_own_requests(journal: Journal, session: str, file: str = "") -> Iterator[ObservedRequest]:
    """Yield the answered requests of all branches."""
    requests = list_requests(journal)
    for listed in requests.listed:
        request, reply = listed.request, listed.reply
        if reply is None or not reply.usage.input:
            continue
        provider, _, model = request.target.partition(":")
        base = requests.by_id(request.base)
        has_base = base is not None and base.reply is not None
        is_first = request.context.agreement.first
        yield ObservedRequest(
            source=OWN, session=session, id=f"{session}/{request.id}", usage=reply.usage,
            depth="bodies", at=request.at, ended=reply.at, provider=provider, model=model,
            parent=f"{session}/{request.base}" if has_base else "", is_root=is_first,
            step=_step_of(journal, listed), thought=_has_thought(base),
            change=None if is_first else _change_of(request.context.agreement, request.tokens),
            vendor_reason=reply.missed, file=file, line=0, is_own=True,
        )  # fmt: skip


def _step_of(journal: Journal, listed: ListedRequest) -> StepKind:
    at = journal.entries.get(listed.request.parent or "")
    while at is not None and not isinstance(at, MessageEntry):
        at = journal.entries.get(at.parent or "")
    if at is None:
        return ""
    return "loop" if at.message.role == "tool" else "turn"


def _has_thought(listed: ListedRequest | None) -> bool:
    answer = listed.answer if listed else None
    return answer is not None and any(isinstance(b, Thinking) for b in answer.message.blocks)


def _change_of(agreement: Agreement, tokens: int) -> PromptChange:
    broke = agreement.broke
    # Sizes are in tokens here, which shows the shared part just as well.
    change = PromptChange(shared=agreement.tokens, size=max(1, tokens))
    if broke is None:
        return change
    layer = _LAYERS.get(broke.layer, "messages")
    return PromptChange(
        cause=name_moved(agreement),
        layer=layer, place=f"segment {broke.segment} ({broke.source})", detail=broke.reason,
        shared=agreement.tokens, size=max(1, tokens),
    )  # fmt: skip

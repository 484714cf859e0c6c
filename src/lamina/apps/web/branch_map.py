"""The branches of a session as a map: questions, answers, compactions, and unanswered requests.

Law: every node hangs below the previous node on its path; the children of an entry that is not
a node hang below the nearest node above it.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from lamina.core.audit.requests import RequestList, list_requests
from lamina.core.journal import Journal, path_to
from lamina.core.text.excerpt import brief
from lamina.core.values.entry import (
    BranchSummaryEntry,
    Entry,
    MessageEntry,
    RequestEntry,
    SessionEntry,
    TransformEntry,
)
from lamina.core.values.message import ToolCall
from lamina.core.values.patch import CompactionApply
from lamina.engine.session.tree import labels_of

NodeKind = Literal["start", "question", "answer", "compaction", "unanswered", "summary"]
# Maximum length of the text at a node.
WIDTH = 160


class BranchNode(Struct, frozen=True, kw_only=True):
    """A place on the map. An answer covers all steps of its turn: `calls` counts their tool calls.
    `tokens` counts the request that it answers, by our count; `tokens_before` and `tokens_after`
    are those of the requests around a compaction. `is_leaf` marks the session's position;
    `can_resume` says that the request there has no answer yet. `children` counts the nodes right
    below it."""

    id: str
    parent: str
    kind: NodeKind
    at: float
    text: str
    active: bool
    label: str
    request: str
    target: str
    tokens: int | None
    tokens_before: int | None
    tokens_after: int | None
    calls: int
    interrupted: bool
    is_leaf: bool
    can_resume: bool
    depth: int
    children: int


class BranchMap(Struct, frozen=True, kw_only=True):
    """All nodes in the order they were written. `leaf` is the entry after which the session
    continues, `node` the last node on the way to it."""

    session: str
    leaf: str
    node: str
    nodes: tuple[BranchNode, ...]
    branches: int
    other_messages: int


def map_branches(journal: Journal) -> BranchMap:
    """Return the map of a session."""
    entries = journal.entries
    requests = list_requests(journal)
    path = path_to(journal.leaf, entries)
    active = {entry.id for entry in path}
    plan = _plan(entries, requests)
    labels = _labels_at_nodes(labels_of(tuple(entries.values())), plan)
    drawn = _Drawing(entries, requests, plan)
    node = next((plan.node_of[e.id] for e in reversed(path) if plan.node_of.get(e.id)), "")
    nodes = tuple(drawn.draw(entry, labels, active, node) for entry in plan.nodes.values())
    messages = [entry for entry in entries.values() if isinstance(entry, MessageEntry)]
    header = next(iter(entries.values()), None)
    return BranchMap(
        session=header.session if isinstance(header, SessionEntry) else "",
        leaf=journal.leaf,
        node=node,
        nodes=nodes,
        branches=sum(not drawn.children.get(entry) for entry in plan.nodes),
        other_messages=sum(entry.id not in active for entry in messages),
    )


def _labels_at_nodes(labels: Mapping[str, str], plan: "_MapPlan") -> dict[str, str]:
    """Return the labels by node: the label of another entry goes to the last node on the way to
    it, unless that node has its own."""
    at_nodes = {plan.node_of.get(entry, ""): label for entry, label in labels.items()}
    return at_nodes | {entry: label for entry, label in labels.items() if entry in plan.nodes}


class _MapPlan(Struct, frozen=True):
    """Which entries are nodes, the parent node of each, and for every entry the last node on the
    way to it. `calls` counts those of all steps that an answer covers."""

    nodes: dict[str, Entry]
    parents: dict[str, str]
    node_of: dict[str, str]
    calls: dict[str, int]


def _plan(entries: Mapping[str, Entry], requests: RequestList) -> _MapPlan:
    """Parents come before their children, so one pass over the entries is enough."""
    unanswered = {r.request.id for r in requests.listed if r.reply is None and r.answer is None}
    candidates = {id: entry for id, entry in entries.items() if _is_node(entry, unanswered)}
    above: dict[str, str] = {}
    below: dict[str, list[str]] = {}
    for id, entry in entries.items():
        nearest = above.get(entry.parent or "", "")
        if id in candidates:
            below.setdefault(nearest, []).append(id)
        above[id] = id if id in candidates else nearest
    # A step is merged into the answer that follows, unless a branch starts there or nothing
    # follows.
    steps = {id for id, entry in candidates.items() if _calls_in(entry) and _goes_on(
        below.get(id, ()), candidates)}  # fmt: skip
    nodes = {id: entry for id, entry in candidates.items() if id not in steps}
    parents: dict[str, str] = {}
    node_of: dict[str, str] = {}
    pending: dict[str, int] = {}
    calls: dict[str, int] = {}
    for id, entry in entries.items():
        parent = entry.parent or ""
        node, count = node_of.get(parent, ""), pending.get(parent, 0)
        if id in nodes:
            parents[id], calls[id] = node, count + _calls_in(entry)
            node, count = id, 0
        elif id in steps:
            count += _calls_in(entry)
        node_of[id], pending[id] = node, count
    return _MapPlan(nodes, parents, node_of, calls)


def _is_node(entry: Entry, unanswered: set[str]) -> bool:
    match entry:
        case SessionEntry() | BranchSummaryEntry():
            return True
        case MessageEntry(message=message):
            return message.role in ("user", "assistant")
        case RequestEntry():
            return entry.id in unanswered
        case TransformEntry():
            return _compaction_in(entry) is not None
        case _:
            return False


def _goes_on(below: list[str] | tuple[str, ...], candidates: Mapping[str, Entry]) -> bool:
    if len(below) != 1:
        return False
    following = candidates[below[0]]
    return isinstance(following, MessageEntry) and following.message.role == "assistant"


def _calls_in(entry: Entry) -> int:
    if not isinstance(entry, MessageEntry) or entry.message.role != "assistant":
        return 0
    return sum(isinstance(block, ToolCall) for block in entry.message.blocks)


def _compaction_in(entry: TransformEntry) -> CompactionApply | None:
    return next((op for op in entry.patch.ops if isinstance(op, CompactionApply)), None)


class _Drawing:
    def __init__(self, entries: Mapping[str, Entry], requests: RequestList, plan: _MapPlan) -> None:
        self._plan = plan
        self._requests = {r.request.id: r for r in requests.listed}
        self._by_answer = {r.answer.id: r for r in requests.listed if r.answer}
        self.children: dict[str, int] = {}
        self._depths: dict[str, int] = {}
        for id in plan.nodes:
            parent = plan.parents[id]
            self.children[parent] = self.children.get(parent, 0) + 1
            self._depths[id] = self._depths.get(parent, -1) + 1
        self._around = _requests_around(entries)

    def draw(
        self, entry: Entry, labels: Mapping[str, str], active: set[str], node: str
    ) -> BranchNode:
        listed = self._by_answer.get(entry.id) or self._requests.get(entry.id)
        request = listed.request if listed else None
        kind, text = _describe(entry)
        before, after = self._around.get(entry.id, (None, None))
        is_compaction = kind == "compaction"
        return BranchNode(
            id=entry.id,
            parent=self._plan.parents[entry.id],
            kind=kind,
            at=entry.at,
            text=brief(text, WIDTH),
            active=entry.id in active,
            label=labels.get(entry.id, ""),
            request=request.id if request else "",
            target=request.target if request else "",
            tokens=request.tokens if request else None,
            tokens_before=before if is_compaction else None,
            tokens_after=after if is_compaction else None,
            calls=self._plan.calls[entry.id],
            interrupted=isinstance(entry, MessageEntry) and entry.interrupted,
            is_leaf=entry.id == node,
            can_resume=listed is not None and listed.open,
            depth=self._depths[entry.id],
            children=self.children.get(entry.id, 0),
        )


def _requests_around(entries: Mapping[str, Entry]) -> dict[str, tuple[int | None, int | None]]:
    """Return for each compaction the tokens of the last request before and the first after it."""
    last: dict[str, int | None] = {}
    waiting: dict[str, list[str]] = {}
    around: dict[str, tuple[int | None, int | None]] = {}
    for id, entry in entries.items():
        parent = entry.parent or ""
        before, open_ = last.get(parent), waiting.get(parent, [])
        if isinstance(entry, TransformEntry) and _compaction_in(entry) is not None:
            around[id] = (before, None)
            open_ = [*open_, id]
        elif isinstance(entry, RequestEntry):
            for compaction in open_:
                if around[compaction][1] is None:
                    around[compaction] = (around[compaction][0], entry.tokens)
            before, open_ = entry.tokens, []
        last[id], waiting[id] = before, open_
    return around


def _describe(entry: Entry) -> tuple[NodeKind, str]:
    match entry:
        case MessageEntry(message=message):
            is_question = message.role == "user"
            names = [block.name for block in message.blocks if isinstance(block, ToolCall)]
            text = message.text.strip() or ", ".join(f"calls {name}" for name in names)
            return ("question" if is_question else "answer"), text
        case RequestEntry():
            return "unanswered", "a request that was never answered"
        case TransformEntry():
            op = _compaction_in(entry)
            return "compaction", (op.summary or op.reason) if op else ""
        case BranchSummaryEntry(summary=summary):
            return "summary", summary
        case _:
            return "start", ""

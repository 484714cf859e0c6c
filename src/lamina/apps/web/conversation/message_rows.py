"""The rows of a conversation as people read them: questions, answers with their tool calls and
citations, compactions and notices.

Laws: rows come from the journal, and unknown values are None. Citation numbers are final, as in
the live answer.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from lamina.apps.views.plain_text import shorten
from lamina.apps.web.conversation.message_outline import Outline, RowSpan
from lamina.apps.web.conversation.message_records import (
    AttachedRow,
    CallRow,
    CallState,
    CompactionView,
    MessageRow,
    SourceRow,
)
from lamina.core.audit.requests import describe_transformations, sent_target
from lamina.core.ledger import cost_of
from lamina.core.ports import TargetBook
from lamina.core.text import label_of
from lamina.core.text.citations import SOURCES_HEADING
from lamina.core.values.entry import (
    BranchSummaryEntry,
    CustomEntry,
    DecisionEntry,
    Entry,
    MessageEntry,
    ModelEntry,
    ReplyEntry,
    RequestEntry,
    ResultEntry,
    TransformEntry,
)
from lamina.core.values.item import key_of
from lamina.core.values.message import Image, Message, Text, Thinking, ToolCall, ToolResult
from lamina.core.values.patch import CompactionApply, MessagesCachedAppend
from lamina.core.values.tool import DENIED
from lamina.core.values.usage import Usage
from lamina.engine.runners.answer import CitedSource
from lamina.engine.runners.citations import CITED, SEARCHED, add_recorded, cite
from lamina.errors import UnknownTarget

# Maximum length of a result in a row; the rest is loaded on request.
SHOWN = 2_000


class CallOutcomes:
    """The results and decisions in some entries, by call."""

    def __init__(
        self, entries: Iterable[Entry], seconds: Mapping[str, float], is_running: bool
    ) -> None:
        self.results: dict[str, ToolResult] = {}
        self.whole: set[str] = set()
        self.decisions: dict[str, str] = {}
        self.seconds = seconds
        self.is_running = is_running
        for entry in entries:
            match entry:
                case ResultEntry(result=result, whole=whole):
                    self.results[result.call_id] = result
                    if whole:
                        self.whole.add(result.call_id)
                case MessageEntry(message=message, whole_results=wholes):
                    self.whole.update(wholes)
                    for block in message.blocks:
                        if isinstance(block, ToolResult):
                            self.results[block.call_id] = block
                case DecisionEntry(call_id=call, decision=decision):
                    self.decisions[call] = decision
                case _:
                    pass

    def state_of(self, call: str) -> CallState:
        result = self.results.get(call)
        if result is None:
            is_under_way = self.is_running or self.decisions.get(call, "deny") != "deny"
            return "running" if is_under_way else "waiting"
        if self.decisions.get(call) == "deny" or (result.is_error and result.text == DENIED):
            return "denied"
        return "error" if result.is_error else "done"


def describe_call(call: ToolCall, outcomes: CallOutcomes, request: RequestEntry | None) -> CallRow:
    """Return a call as a row shows it."""
    result = outcomes.results.get(call.id)
    text = result.text if result else ""
    shown = shorten(text, SHOWN)
    return CallRow(
        id=call.id,
        name=call.name,
        label=label_call(call.name, request),
        arguments=call.arguments,
        state=outcomes.state_of(call.id),
        result=shown,
        is_cut=shown != text or call.id in outcomes.whole,
        decision=outcomes.decisions.get(call.id),
        seconds=outcomes.seconds.get(call.id),
    )


def label_call(name: str, request: RequestEntry | None) -> str:
    """Return the name of a tool for people: its server and its own name, if a request has it."""
    for tool in request.context.tools if request else ():
        if tool.name == name:
            return label_of(tool.item)
    return name


ReadExcerpt = Callable[[CitedSource], str]
# By request: time to the first word and to the full answer.
Timings = Mapping[str, tuple[float | None, float]]


# An answer without citations ends with a list of all sources, which rows show separately.
_LIST = f"\n\n{SOURCES_HEADING}"
_UNREPORTED = Usage(cache_reported=False)


class RowMaker:
    """Makes the rows of one window. `timings` and `seconds` were measured while this server
    watched; `is_running` says that the last answer's calls may be running."""

    def __init__(
        self,
        outline: Outline,
        entries: Mapping[str, Entry],
        book: TargetBook,
        *,
        read_excerpt: ReadExcerpt,
        timings: Timings,
        seconds: Mapping[str, float],
        is_running: bool = False,
    ) -> None:
        self._outline = outline
        self._entries = entries
        self._book = book
        self._read_excerpt = read_excerpt
        self._timings = timings
        self._seconds = seconds
        self._is_running = is_running

    def make(self, span: RowSpan) -> tuple[MessageRow, ...]:
        """Return the rows of a span."""
        wanted = self._outline.rows[span.first : span.end]
        places = {row: span.first + place for place, row in enumerate(wanted)}
        replies = {e.request: e for e in span.entries if isinstance(e, ReplyEntry)}
        outcomes = CallOutcomes(span.entries, self._seconds, self._is_running)
        rows: list[MessageRow] = []
        request: RequestEntry | None = None
        requests = [entry for entry in span.entries if isinstance(entry, RequestEntry)]
        sources: tuple[CitedSource, ...] | None = None
        for entry in span.entries:
            match entry:
                case RequestEntry():
                    request = entry
                case CustomEntry(kind=kind, data=data) if kind in (SEARCHED, CITED):
                    sources = add_recorded(sources, data)
                case MessageEntry(message=message) if message.role == "user":
                    sources = None
                case _:
                    pass
            if (index := places.get(entry.id)) is None:
                continue
            if isinstance(entry, MessageEntry):
                own = request if entry.message.role == "assistant" else None
                reply = replies.get(own.id) if own else None
                rows.append(self._message(entry, index, own, reply, sources or (), outcomes))
                if own is not None:
                    request = None
            else:
                rows.append(self._other(entry, index, requests))
        return tuple(rows)

    def _message(
        self,
        entry: MessageEntry,
        index: int,
        request: RequestEntry | None,
        reply: ReplyEntry | None,
        sources: Sequence[CitedSource],
        outcomes: CallOutcomes,
    ) -> MessageRow:
        message = entry.message
        text = message.text
        cited: tuple[SourceRow, ...] = ()
        if message.role == "assistant" and sources:
            answer = cite(text, sources)
            cited = tuple(map(self._source, answer.sources))
            text = answer.text if _LIST in text else answer.text.partition(_LIST)[0]
        usage = reply.usage if reply else entry.usage
        if usage == _UNREPORTED:
            # A stopped answer has no reported usage.
            usage = None
        first_s, total_s = self._timing(entry, request)
        return self._row(
            entry, index,
            text=text,
            thinking=tuple(b.text for b in message.blocks if isinstance(b, Thinking) and b.text),
            calls=tuple(describe_call(call, outcomes, request) for call in message.calls),
            attached=_attached(message),
            sources=cited,
            request=request.id if request else None,
            target=request.target if request else entry.model,
            usage=usage,
            cost=self._cost(usage, request),
            verdict=reply.verdict if reply else None,
            first_s=first_s,
            total_s=total_s,
            stop=reply.stop if reply else "",
            interrupted=entry.interrupted,
            custom_type=message.custom_type,
            warnings=_warnings(request, reply),
        )  # fmt: skip

    def _other(self, entry: Entry, index: int, requests: Sequence[RequestEntry]) -> MessageRow:
        match entry:
            case TransformEntry(patch=patch):
                for op in patch.ops:
                    if isinstance(op, CompactionApply):
                        view = _compaction(entry, op, requests)
                        return self._row(entry, index, text=op.summary, compaction=view)
                added = [
                    message
                    for op in patch.ops
                    if isinstance(op, MessagesCachedAppend)
                    for message in op.messages
                    if message.shown
                ]
                text = "\n\n".join(message.text for message in added)
                custom_type = added[0].custom_type if added else ""
                return self._row(entry, index, text=text, custom_type=custom_type)
            case BranchSummaryEntry(summary=summary):
                return self._row(entry, index, text=summary, custom_type="branch_summary")
            case ModelEntry(target=target):
                return self._row(entry, index, text=target, target=target, custom_type="model")
            case CustomEntry(data={"problem": str(problem), **rest}):
                where = rest.get("where", "")
                text = f"{where}: {problem}" if where else problem
                return self._row(entry, index, text=text, custom_type="problem")
            case _:
                return self._row(entry, index, text="")

    def _row(self, entry: Entry, index: int, **fields: object) -> MessageRow:
        siblings = tuple(self._outline.siblings(entry.id, self._entries))
        values: dict[str, object] = {
            "text": "", "thinking": (), "calls": (), "attached": (), "sources": (),
            "request": None, "target": "", "usage": None, "cost": None, "verdict": None,
            "first_s": None, "total_s": None, "stop": "", "interrupted": False,
            "custom_type": "", "warnings": (), "compaction": None,
        }  # fmt: skip
        return MessageRow(
            id=entry.id,
            index=index,
            kind=self._outline.kinds[entry.id],
            at=entry.at,
            siblings=siblings,
            place=siblings.index(entry.id) if entry.id in siblings else 0,
            label=self._outline.labels.get(entry.id, ""),
            **(values | fields),  # type: ignore[arg-type]
        )

    def _timing(
        self, entry: MessageEntry, request: RequestEntry | None
    ) -> tuple[float | None, float | None]:
        if request is None:
            return None, None
        if (timing := self._timings.get(request.id)) is not None:
            return timing
        return None, max(0.0, entry.at - request.at)

    def _cost(self, usage: Usage | None, request: RequestEntry | None) -> float | None:
        if usage is None or request is None:
            return None
        try:
            return cost_of(usage, sent_target(request, self._book))
        except UnknownTarget:
            return None

    def _source(self, source: CitedSource) -> SourceRow:
        place = f"L{source.start}-L{source.end}" if source.start else ""
        return SourceRow(
            number=source.number, path=source.path, title=source.title, heading=source.heading,
            link=source.link, place=place, start=source.start, end=source.end,
            excerpt=self._read_excerpt(source),
        )  # fmt: skip


def _warnings(request: RequestEntry | None, reply: ReplyEntry | None) -> tuple[str, ...]:
    """Return the warnings of a request and of its answer."""
    sent = request.context.warnings if request else ()
    if reply is None:
        return sent
    return (*sent, *reply.warnings, *describe_transformations(reply.transformations))


def _attached(message: Message) -> tuple[AttachedRow, ...]:
    context = message.context
    rows = []
    if context is not None:
        rows += [
            AttachedRow(
                item=use.item, label=label_of(use.item), form=use.form, shape=use.shape,
                absent="", digest="",
            )
            for use in context.uses
        ]  # fmt: skip
        rows += [
            AttachedRow(
                item="", label=absent.label, form="named", shape="attached", absent=absent.why,
                digest="",
            )
            for absent in context.absent
        ]  # fmt: skip
    rows += [
        AttachedRow(
            item="", label="picture", form="full", shape="attached", absent="",
            digest=block.picture.digest,
        )
        for block in message.blocks
        if isinstance(block, Image)
    ]  # fmt: skip
    return tuple(rows)


def _compaction(
    entry: Entry, op: CompactionApply, requests: Sequence[RequestEntry]
) -> CompactionView:
    earlier = [request for request in requests if request.id < entry.id]
    later = [request for request in requests if request.id > entry.id]
    assert isinstance(entry, TransformEntry)
    return CompactionView(
        by=entry.transformer,
        reason=op.reason,
        summary=op.summary,
        messages=max(0, op.first_kept - op.after),
        tokens_before=earlier[-1].tokens if earlier else None,
        tokens_after=later[0].tokens if later else None,
        before=entry.parent or "",
    )


def text_of_row(entry: Entry) -> str:
    """Return the text of a row for search."""
    match entry:
        case MessageEntry(message=message):
            # Include arguments of calls, and the names of attachments.
            calls = [f"{call.name} {call.arguments}" for call in message.calls]
            uses = message.context.uses if message.context else ()
            texts = [b.text for b in message.blocks if isinstance(b, Text)]
            return "\n".join((*texts, *calls, *(key_of(use.item) for use in uses)))
        case TransformEntry(patch=patch):
            return "\n".join(
                op.summary if isinstance(op, CompactionApply) else "\n".join(
                    message.text for message in op.messages if message.shown
                )
                for op in patch.ops
                if isinstance(op, CompactionApply | MessagesCachedAppend)
            )  # fmt: skip
        case BranchSummaryEntry(summary=summary):
            return summary
        case ModelEntry(target=target):
            return target
        case _:
            return ""

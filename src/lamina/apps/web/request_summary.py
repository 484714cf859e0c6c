"""A request in a row: when, to which target, how large, its cache use and its cost.

Law: unreported figures are None, never 0. `cached` is a part of `input`.
"""

from collections.abc import Mapping

from msgspec import Struct

from lamina.apps.views.sent_requests import VERDICT_MEANINGS, list_marks
from lamina.core.audit.requests import ListedRequest, RequestList, list_requests
from lamina.core.journal import Journal
from lamina.core.ledger import cost_of
from lamina.core.ports import TargetBook
from lamina.core.text.excerpt import brief
from lamina.core.values.damage import Damage
from lamina.core.values.entry import Entry, MessageEntry, ReplyEntry
from lamina.core.values.request import CacheVerdict
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage
from lamina.errors import UnknownTarget

# Maximum length of a question in a row.
QUESTION = 160


class RequestSummary(Struct, frozen=True, kw_only=True):
    """One request. `step` says whether it adds a question or tool results; `question` and `answer`
    are their entries. `agree` counts tokens that match the previous request, `new` all others, both
    by our count; the figures from `input` on come from the provider, None if unreported."""

    number: int
    id: str
    at: float
    target: str
    active: bool
    open: bool
    interrupted: bool
    retry: bool
    step: str
    question: str
    question_text: str
    answer: str
    stop: str
    base: str
    base_number: int | None
    tokens: int
    agree: int
    new: int
    input: int | None
    cached: int | None
    written: int | None
    output: int | None
    cost: float | None
    verdict: CacheVerdict | None
    # The verdict in words, and anything unusual.
    meaning: str
    marks: tuple[str, ...]


class SentRequests(Struct, frozen=True, kw_only=True):
    """All requests of a session in the order written, on every branch. `lost` are unreadable
    requests whose replies exist."""

    requests: tuple[RequestSummary, ...]
    lost: tuple[str, ...]
    damage: tuple[Damage, ...]


class RequestRows:
    """The requests of a journal as rows, with shared lookups done once."""

    def __init__(self, journal: Journal, requests: RequestList, book: TargetBook) -> None:
        self._entries = journal.entries
        self._requests = requests
        self._book = book
        self._targets: dict[str, Target | None] = {}

    def row(self, listed: ListedRequest) -> RequestSummary:
        request, reply, answer = listed.request, listed.reply, listed.answer
        agreement = request.context.agreement
        base = self._requests.by_id(request.base)
        asked, step = find_asked(request, self._entries)
        usage = reported_usage(reply)
        verdict = reply.verdict if reply else None
        return RequestSummary(
            number=listed.number,
            id=request.id,
            at=request.at,
            target=request.target,
            active=listed.active,
            open=listed.open,
            interrupted=answer is not None and answer.interrupted,
            retry=request.retry,
            step=step,
            question=asked.id if asked else "",
            question_text=brief(asked.message.text, QUESTION) if asked else "",
            answer=answer.id if answer else "",
            stop=reply.stop if reply else "",
            base=request.base or "",
            base_number=base.number if base else None,
            tokens=request.tokens,
            agree=agreement.tokens,
            new=agreement.reprocessed,
            input=usage.input if usage else None,
            cached=reported_cached(usage),
            written=usage.written if usage else None,
            output=usage.output if usage else None,
            cost=self.cost(request.target, usage),
            verdict=verdict,
            meaning=VERDICT_MEANINGS[verdict.meaning] if verdict else "",
            marks=tuple(list_marks(listed)),
        )

    def cost(self, target: str, usage: Usage | None) -> float | None:
        """Return what a request cost; None without reported usage or a known price."""
        found = self.target(target)
        return cost_of(usage, found) if usage and found else None

    def target(self, name: str) -> Target | None:
        """Return a target of the book; None if it is no longer listed."""
        if name not in self._targets:
            try:
                self._targets[name] = self._book.find(name)
            except UnknownTarget:
                self._targets[name] = None
        return self._targets[name]


def reported_usage(reply: ReplyEntry | None) -> Usage | None:
    """Return the usage that a provider reported; None if it reported nothing, as some servers do.
    Every request has input."""
    return reply.usage if reply is not None and reply.usage.input else None


def reported_cached(usage: Usage | None) -> int | None:
    """Return the tokens that a provider read from its cache; None if unreported."""
    return usage.cached if usage is not None and usage.cache_reported else None


def find_asked(entry: Entry, entries: Mapping[str, Entry]) -> tuple[MessageEntry | None, str]:
    """Return the question that a request belongs to, and whether the request adds it (`question`)
    or tool results (`results`)."""
    step = ""
    at = entries.get(entry.parent or "")
    while at is not None:
        if isinstance(at, MessageEntry):
            if at.message.role == "user":
                return at, step or "question"
            step = step or ("results" if at.message.role == "tool" else "")
        at = entries.get(at.parent or "")
    return None, step


def list_sent(journal: Journal, book: TargetBook) -> SentRequests:
    """Return every request of a journal, without rebuilding any."""
    requests = list_requests(journal)
    rows = RequestRows(journal, requests, book)
    return SentRequests(
        requests=tuple(map(rows.row, requests.listed)),
        lost=requests.lost,
        damage=tuple(journal.damage),
    )

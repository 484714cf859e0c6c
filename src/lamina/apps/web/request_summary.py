"""A request in a row: when, to whom, how large, what its provider said it read and cost.

Law: what a provider did not report is None, and never 0. `cached` is a part of `input`.
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

# How much of a question stands in a row.
QUESTION = 160


class RequestSummary(Struct, frozen=True, kw_only=True):
    """One request. `step` says whether a question or the results of tools are new in it; `question`
    and `answer` are the entries of these. `agree` are tokens that are the same as in the request
    before, `new` all others, both as we count; the figures from `input` on are the provider's, and
    None as far as it gave none."""

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
    # The verdict in words, and what is out of the ordinary.
    meaning: str
    marks: tuple[str, ...]


class SentRequests(Struct, frozen=True, kw_only=True):
    """All requests of a session in order of writing, on every branch. `lost` are requests that
    replies answer and that cannot be read."""

    requests: tuple[RequestSummary, ...]
    lost: tuple[str, ...]
    damage: tuple[Damage, ...]


class RequestRows:
    """The requests of a journal as rows; what several of them need is looked up once."""

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
        usage = usage_told(reply)
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
        """What a request cost; None without a report, or if nobody knows the price."""
        found = self.target(target)
        return cost_of(usage, found) if usage and found else None

    def target(self, name: str) -> Target | None:
        """A target of the book; None if it is not there any more."""
        if name not in self._targets:
            try:
                self._targets[name] = self._book.find(name)
            except UnknownTarget:
                self._targets[name] = None
        return self._targets[name]


def usage_told(reply: ReplyEntry | None) -> Usage | None:
    """What a provider said a request took; None if it said nothing, as some servers do. There is no
    request without input."""
    return reply.usage if reply is not None and reply.usage.input else None


def reported_cached(usage: Usage | None) -> int | None:
    """The tokens that a provider says it read from its cache; None if it says nothing of it."""
    return usage.cached if usage is not None and usage.cache_reported else None


def find_asked(entry: Entry, entries: Mapping[str, Entry]) -> tuple[MessageEntry | None, str]:
    """The question that a request belongs to, and whether that is new in it (`question`) or what
    tools gave (`results`)."""
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
    """Every request of a journal; none is rebuilt."""
    requests = list_requests(journal)
    rows = RequestRows(journal, requests, book)
    return SentRequests(
        requests=tuple(map(rows.row, requests.listed)),
        lost=requests.lost,
        damage=tuple(journal.damage),
    )

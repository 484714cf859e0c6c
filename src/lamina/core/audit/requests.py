"""Lists, numbers and finds the requests of a journal in writing order, without rebuilding them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from re import fullmatch
from typing import cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.journal import Journal, path_to
from lamina.core.ports import TargetBook
from lamina.core.values.entry import Entry, LeaveEntry, MessageEntry, ReplyEntry, RequestEntry
from lamina.core.values.prompt import Prompt
from lamina.core.values.settings import Target, WireName
from lamina.core.values.usage import InputTransformation
from lamina.errors import NoSuchEntry


class ListedRequest(Struct, frozen=True, kw_only=True):
    """One request with its answer. `number` counts requests in writing order, from 1."""

    number: int
    request: RequestEntry
    reply: ReplyEntry | None = None
    answer: MessageEntry | None = None
    # Whether it is on the active path, and whether the session continues with it.
    active: bool = True
    open: bool = False


class RequestList(Struct, frozen=True, kw_only=True):
    """All requests of a journal in writing order, on every branch."""

    listed: tuple[ListedRequest, ...]
    # The request numbers by entry id.
    numbers: Mapping[str, int]
    # Requests that have replies but cannot be read.
    lost: tuple[str, ...] = ()

    def by_id(self, entry: str | None) -> ListedRequest | None:
        number = self.numbers.get(entry or "")
        return self.listed[number - 1] if number else None


def list_requests(journal: Journal) -> RequestList:
    """Return every request of the journal, without rebuilding any."""
    entries = journal.entries
    requests = [entry for entry in entries.values() if isinstance(entry, RequestEntry)]
    replies: dict[str, ReplyEntry] = {}
    answers: dict[str, MessageEntry] = {}
    for entry in entries.values():
        if isinstance(entry, ReplyEntry):
            replies[entry.request] = entry
        elif isinstance(entry, MessageEntry) and entry.message.role == "assistant":
            answers.setdefault(_asked_by(entry, entries), entry)
    active = path_to(journal.leaf, entries)
    on_path = {entry.id for entry in active}
    waiting = waiting_request(active)
    numbers = {request.id: number for number, request in enumerate(requests, 1)}
    return RequestList(
        numbers=numbers,
        listed=tuple(
            ListedRequest(
                number=numbers[request.id],
                request=request,
                reply=replies.get(request.id),
                answer=answers.get(request.id),
                active=request.id in on_path,
                open=request.id == waiting,
            )
            for request in requests
        ),
        lost=tuple(request for request in replies if request not in numbers),
    )


def _asked_by(answer: Entry, entries: Mapping[str, Entry]) -> str:
    """Return the request that an answer belongs to: a person's actions may come between them."""
    at = entries.get(answer.parent or "")
    while at is not None and not isinstance(at, RequestEntry | MessageEntry):
        at = entries.get(at.parent or "")
    return at.id if isinstance(at, RequestEntry) else ""


def waiting_request(path: Sequence[Entry]) -> str:
    """Return the unanswered request at the end of a path."""
    for entry in reversed(path):
        if isinstance(entry, RequestEntry):
            return entry.id
        if isinstance(entry, MessageEntry | ReplyEntry | LeaveEntry):
            break
    return ""


def find_request(requests: RequestList, wanted: str) -> ListedRequest:
    """Return a request by its number (negative: from the end), by `last`, or by the id of its entry
    or of its answer.

    Raises:
        NoSuchEntry: there is no such request.
    """
    listed = requests.listed
    for request in listed:
        own = (request.request, request.answer, request.reply)
        if wanted in [entry.id for entry in own if entry]:
            return request
    if not listed:
        raise NoSuchEntry("the session has no requests that could be shown")
    if wanted == "last":
        return listed[-1]
    near = [request for request in listed if request.request.id.lstrip("0") == wanted.lstrip("0")]
    # With leading zeros it is the id of an entry.
    number = int(wanted) if fullmatch(r"-?[1-9][0-9]{0,11}", wanted) else 0
    if near and not number:
        return near[0]
    if number and -len(listed) <= number <= len(listed):
        return listed[number - 1 if number > 0 else number]
    has = f"{len(listed):,} request{'s' * (len(listed) > 1)}"
    raise NoSuchEntry(
        f"no request {wanted!r}: the session has {has}, numbered from 1; -1 or 'last' is the last "
        f"one, an entry's id works as well, and --requests lists them"
    )


def sent_target(request: RequestEntry, book: TargetBook) -> Target:
    """Return a request's target, with the wire it was sent over.

    Raises:
        UnknownTarget: the book does not have it.
    """
    target = book.find(request.target)
    if request.wire == target.wire or request.wire not in get_args(WireName):
        return target
    return replace(target, wire=cast(WireName, request.wire))


def recorded_digests(request: RequestEntry, known: Mapping[str, Entry]) -> tuple[str | None, ...]:
    """Return the digest of every segment in wire order, from the deltas in the journal; None if a
    request with the deltas is lost."""
    need = request.kept + len(request.digests)
    parts: list[Sequence[str | None]] = []
    visited: set[str] = set()
    at: Entry | None = request
    while need and isinstance(at, RequestEntry) and at.id not in visited:
        visited.add(at.id)
        shared = min(at.kept, need)
        parts.append(at.digests[: need - shared])
        need = shared
        at = known.get(at.base or "")
    parts.append([None] * need)
    return tuple(digest for part in reversed(parts) for digest in part)


def other_digests(
    request: RequestEntry, prompt: Prompt, known: Mapping[str, Entry]
) -> tuple[str, ...] | None:
    """Return the recorded digests if they differ from those of `prompt`; if they are lost, nothing
    contradicts it."""
    if request.prompt_digest == prompt.digest and prompt.ends_with(request.digests, request.kept):
        # All of it is proven, without looking at earlier requests.
        return None
    own = tuple(segment.digest for segment in prompt)
    recorded = tuple(
        digest or "".join(own[place : place + 1])
        for place, digest in enumerate(recorded_digests(request, known))
    )
    return None if recorded == own else recorded


# A provider's changes to blocks of a request, and the checks they failed, in its own words.
_TREATMENTS = {
    "thinking_dropped": "dropped {blocks}",
    "thinking_mismatch_allowed": "kept {blocks} that fail{s} its check",
}
_FAILED_CHECKS = {
    "prefix_binding_mismatch": "what stood before {them} changed",
    "model_binding_mismatch": "this model does not read the thinking of the one before",
    "organization_binding_mismatch": "{they} came from another account",
    "end_user_binding_mismatch": "{they} came from another end user",
}


def describe_transformations(changes: Iterable[InputTransformation]) -> tuple[str, ...]:
    """Describe a provider's changes to blocks of a request before the model saw them, for
    display."""
    counts = Counter((change.kind, change.reason) for change in changes)
    return tuple(_describe_treatment(kind, why, n) for (kind, why), n in counts.items())


def _describe_treatment(kind: str, reason: str, count: int) -> str:
    one = count == 1
    words = {
        "blocks": "1 thinking block" if one else f"{count:,} thinking blocks",
        "they": "it" if one else "they", "them": "it" if one else "them", "s": "s" if one else "",
    }  # fmt: skip
    treatment = _TREATMENTS.get(kind, f"reports {kind} for {{blocks}}")
    failed_check = _FAILED_CHECKS.get(reason, reason or "no reason is given")
    return f"the provider {treatment}: {failed_check}".format(**words)

"""Rebuilds any request of a session, beside the request it was compared with when it was sent.

Law: nothing unproven is shown as sent: rebuilt segments are compared with the recorded digests, and
differences are reported. Rebuilding costs one fold of the path and two prompts.
"""

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal

from msgspec import Struct

from lamina.core.assembly.wire_parameters import recorded_parameters, untaken_options
from lamina.core.audit.hook_displays import displays_of_request
from lamina.core.audit.requests import (
    ListedRequest,
    RequestList,
    describe_transformations,
    recorded_digests,
    sent_target,
)
from lamina.core.audit.verification import Rebuilder, check_parameters, other_renderer
from lamina.core.journal import Journal, State, fold_repaired, path_to
from lamina.core.ledger.agreement import shared_prefix
from lamina.core.ports import TargetBook
from lamina.core.values.damage import Damage
from lamina.core.values.entry import RequestEntry, SessionEntry
from lamina.core.values.envelope import Options
from lamina.core.values.message import Image, Text
from lamina.core.values.patch import HookDisplay
from lamina.core.values.prompt import Prompt, Segment
from lamina.core.values.wire import WireRequest
from lamina.errors import LaminaError, UnknownSession

Status = Literal["kept", "added", "removed"]
# Above this size, frequent texts are no longer searched for everywhere.
MANY = 2_000


class SegmentChange(Struct, frozen=True, kw_only=True):
    """A segment of a request, or a removed segment of the previous one. `index` is its place on the
    wire; `stays` means that nothing before it changed, so that a cache can serve it."""

    status: Status
    segment: Segment
    index: int
    stays: bool = False
    # The text it replaces, or an earlier version that still stands above.
    instead_of: Segment | None = None
    supersedes: Segment | None = None


class RebuiltRequest(Struct, frozen=True, kw_only=True):
    """A request as it was sent. `problems` is empty if that is proven; without a `prompt` the
    request could not be rebuilt at all."""

    listed: ListedRequest
    session: SessionEntry
    base: ListedRequest | None = None
    prompt: Prompt | None = None
    state: State | None = None
    # The answer mode, from the settings and options at that time.
    options: Options = Options()
    # The numbers of the sources that it was required to cite.
    citations: tuple[int, ...] = ()
    # Notices shown to a person about it, including unused options.
    warnings: tuple[str, ...] = ()
    changes: tuple[SegmentChange, ...] = ()
    problems: tuple[str, ...] = ()
    damage: tuple[Damage, ...] = ()
    # What hooks display about their changes.
    displays: tuple[HookDisplay, ...] = ()


def rebuild_request(
    journal: Journal, requests: RequestList, listed: ListedRequest, book: TargetBook
) -> RebuiltRequest:
    """Return the rebuilt request, with the one it was compared with when it was sent."""
    request = listed.request
    base = requests.by_id(request.base)
    header = next(iter(journal.entries.values()))
    assert isinstance(header, SessionEntry)
    known = {request.request.id: request.request for request in requests.listed}
    problems = list(_doubts(request, base, known))
    damage: list[Damage] = []
    state, earlier = _states(journal, listed, base, damage)
    rebuilder = Rebuilder(book)
    before = None
    if base and earlier:
        before, problem = _prove(base.request, earlier, rebuilder, known)
        if problem:
            problems.append(f"request {base.number}, which it was compared with, {problem}")
    after, problem = _prove(request, state, rebuilder, known)
    if problem:
        problems += filter(None, (f"this request {problem}", other_renderer(request, header)))
    elif problem := check_parameters(
        request, state, sent_target(request, book), base.request if base else None
    ):
        problems.append(f"this request is shown otherwise than it was sent: {problem}")
    target, compared = sent_target(request, book), base.request if base else None
    parameters = recorded_parameters(request, state, target, compared)
    encoded = parameters.wire_request(after or Prompt(), target, {})
    reply = listed.reply
    replied = (*reply.warnings, *describe_transformations(reply.transformations)) if reply else ()
    return RebuiltRequest(
        listed=listed,
        session=header,
        base=base,
        prompt=after,
        state=state,
        options=parameters.options,
        citations=encoded.enforced_citations,
        warnings=(*request.context.warnings, *untaken_options(encoded), *replied),
        changes=tuple(list_changes(before, after, request.kept)) if after is not None else (),
        problems=tuple(problems),
        damage=(*journal.damage, *damage),
        displays=displays_of_request(request, journal),
    )


def _doubts(
    request: RequestEntry, base: ListedRequest | None, known: Mapping[str, RequestEntry]
) -> Iterator[str]:
    """Return why a request cannot be proven even if it is rebuilt."""
    if request.base and base is None:
        yield (
            f"request {request.base!r}, which it was compared with, is lost: what went away "
            f"cannot be shown"
        )
    if unproven := recorded_digests(request, known).count(None):
        yield (
            f"the digests of its first {unproven:,} segments are lost with an earlier request: "
            f"they cannot be proven"
        )


def wire_request(
    recorded: RebuiltRequest, book: TargetBook, blobs: Mapping[str, bytes]
) -> WireRequest:
    """Return the request that was passed to the encoder.

    Raises:
        UnknownSession: the request cannot be rebuilt.
    """
    if recorded.prompt is None or recorded.state is None:
        raise UnknownSession("; ".join(recorded.problems))
    request = recorded.listed.request
    target = sent_target(request, book)
    base = recorded.base.request if recorded.base else None
    parameters = recorded_parameters(request, recorded.state, target, base)
    return parameters.wire_request(recorded.prompt, target, blobs)


def pictures_in(prompt: Prompt) -> list[str]:
    """Return the digests of the images in a prompt."""
    return sorted(
        {segment.content.picture.digest for segment in prompt if isinstance(segment.content, Image)}
    )


def _states(
    journal: Journal, listed: ListedRequest, base: ListedRequest | None, damage: list[Damage]
) -> tuple[State, State | None]:
    """Return the state at the request and at its base, which is nearly always on the path."""
    state = earlier = None
    for entry in path_to(listed.request.id, journal.entries):
        state = fold_repaired(state, entry, damage)
        if base and entry.id == base.request.id:
            earlier = state
    assert state is not None
    if base and earlier is None:
        earlier, _ = _states(journal, base, None, [])
    return state, earlier


def _prove(
    request: RequestEntry, state: State, rebuilder: Rebuilder, known: Mapping[str, RequestEntry]
) -> tuple[Prompt | None, str]:
    """Return a request's prompt, and its problems."""
    try:
        prompt = rebuilder.rebuild(request, state)
    except KeyError as error:
        return None, f"cannot be rebuilt: the content of {error.args[0]!r} is lost"
    except LaminaError as error:
        return None, f"cannot be rebuilt: {error}"
    return prompt, _differs(request, prompt, known)


def _differs(request: RequestEntry, prompt: Prompt, known: Mapping[str, RequestEntry]) -> str:
    """Return where the prompt differs from the record; empty if it does not."""
    digests = recorded_digests(request, known)
    segments = prompt.segments
    wrong = [
        index
        for index, (digest, segment) in enumerate(zip(digests, segments, strict=False))
        if digest is not None and digest != segment.digest
    ]
    first = wrong[0] if wrong else min(len(digests), len(segments))
    if not wrong and len(digests) == len(segments):
        return ""
    if first < len(segments):
        where = f"segment {first} ({segments[first].layer}, {segments[first].source})"
    else:
        where = f"segment {first}, which is missing"
    return (
        f"is shown otherwise than it was sent: it differs at {where}; {len(digests):,} segments "
        f"were recorded, {len(segments):,} are rebuilt"
    )


# -- changes ------------------------------------------------------------------------------------


def list_changes(before: Prompt | None, after: Prompt, kept: int = 0) -> Iterator[SegmentChange]:
    """Yield the segments of both prompts in wire order. Without the previous request, the record
    says how far they agree."""
    shared = min(kept, len(after)) if before is None else shared_prefix(before, after)
    new = after.segments
    standing: dict[str, Segment] = {}
    for index, segment in enumerate(new[:shared]):
        standing[_artefact(segment)] = segment
        yield SegmentChange(status="kept", segment=segment, index=index, stays=True)
    old = before.segments if before is not None else new[:shared]
    matcher = SequenceMatcher(
        None,
        [segment.digest for segment in old[shared:]],
        [segment.digest for segment in new[shared:]],
        autojunk=len(new) - shared > MANY,
    )
    for kind, *places in matcher.get_opcodes():
        old_from, old_to, new_from, new_to = (shared + place for place in places)
        if kind == "equal":
            for index in range(new_from, new_to):
                yield SegmentChange(status="kept", segment=new[index], index=index)
            continue
        gone = old[old_from:old_to]
        for index, segment in enumerate(gone, old_from):
            yield SegmentChange(status="removed", segment=segment, index=index)
        for index in range(new_from, new_to):
            alone = len(gone) == new_to - new_from == 1
            yield _added(new[index], index, gone, standing, alone=alone)


def _added(
    segment: Segment,
    index: int,
    gone: Sequence[Segment],
    standing: Mapping[str, Segment],
    *,
    alone: bool,
) -> SegmentChange:
    instead = supersedes = None
    if isinstance(segment.content, Text):
        instead = next((old for old in gone if _replaces(segment, old, alone)), None)
        above = standing.get(_artefact(segment))
        if instead is None and above is not None and "@" in segment.source:
            supersedes = above if isinstance(above.content, Text) else None
    return SegmentChange(
        status="added", segment=segment, index=index, instead_of=instead, supersedes=supersedes
    )


def _replaces(segment: Segment, gone: Segment, alone: bool) -> bool:
    if not isinstance(gone.content, Text) or gone.role != segment.role:
        return False
    if _artefact(segment) == _artefact(gone):
        return True
    kind = segment.source.partition(":")[0]
    # Another question is not another version of the previous one.
    return alone and kind != "message" and kind == gone.source.partition(":")[0]


def _artefact(segment: Segment) -> str:
    """Return the artefact that a segment shows, whatever its version."""
    return segment.source.rpartition("@")[0] or segment.source

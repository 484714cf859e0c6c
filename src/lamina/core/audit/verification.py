"""Rebuilds every request of a session and compares it with the journal's record of what was sent.

Laws: rebuilding runs no hook, calls no model and reads no file; a request that cannot be rebuilt
byte for byte is named, with the first segment that differs. Parts that a record does not contain,
or that this version cannot build, are not covered: they are neither right nor wrong, and are
reported as such.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Literal

from msgspec import Struct

from lamina.core.assembly.budget import assemble_turn
from lamina.core.assembly.wire_parameters import digest_target, find_citations, recorded_parameters
from lamina.core.audit.requests import sent_target
from lamina.core.journal import Journal, State, fold_repaired, options_for_request
from lamina.core.layers import Assembler, Layout, layout_of
from lamina.core.ledger.agreement import shared_prefix
from lamina.core.ports import TargetBook
from lamina.core.values.damage import Damage
from lamina.core.values.entry import (
    RENDERER,
    RENDERERS,
    WIRE_FORM,
    Entry,
    ItemEntry,
    MessageEntry,
    RequestEntry,
    SessionEntry,
)
from lamina.core.values.item import content_version
from lamina.core.values.message import Image
from lamina.core.values.prompt import Prompt
from lamina.core.values.settings import Target
from lamina.errors import LaminaError

Part = Literal["texts", "parameters", "target", "wire"]


class UncoveredPart(Struct, frozen=True, kw_only=True):
    """A part of a request that cannot be proven, and why."""

    part: Part
    why: str


class UncoveredRequests(UncoveredPart, frozen=True, kw_only=True):
    """A part that cannot be proven, and the number of requests with it."""

    requests: int


class RequestCheck(Struct, frozen=True, kw_only=True):
    """One request, rebuilt. `problem` is empty if nothing differs from the record; `uncovered` are
    the parts that the record cannot prove."""

    request: str
    target: str
    segments: int = 0
    tokens: int = 0
    problem: str = ""
    uncovered: tuple[UncoveredPart, ...] = ()

    @property
    def is_rebuilt(self) -> bool:
        """Whether its segments are exactly those that were sent, byte for byte."""
        return not self.problem and all(part.part != "texts" for part in self.uncovered)


class Verification(Struct, frozen=True, kw_only=True):
    """All requests of a session, on every branch, and all other problems with it."""

    checked: tuple[RequestCheck, ...]
    damage: tuple[Damage, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def state(self) -> Literal["sound", "not_covered", "broken"]:
        """The overall result. Only proven requests are sound; unproven ones are not therefore
        broken."""
        if self.damage or self.problems or any(check.problem for check in self.checked):
            return "broken"
        return "not_covered" if self.uncovered else "sound"

    @property
    def sound(self) -> bool:
        return self.state == "sound"

    @property
    def uncovered(self) -> tuple[UncoveredRequests, ...]:
        """The parts not covered, and the number of requests with each."""
        counts = Counter(part for check in self.checked for part in check.uncovered)
        return tuple(
            UncoveredRequests(part=part.part, why=part.why, requests=count)
            for part, count in counts.items()
        )


def verify(journal: Journal, book: TargetBook) -> Verification:
    """Rebuild and compare every request of the journal."""
    verifier = _Verifier(book, journal.entries)
    damage: list[Damage] = []
    for entry, state in walk_states(journal, damage):
        verifier.take(entry, state)
    return Verification(
        checked=tuple(verifier.checked),
        damage=(*journal.damage, *damage),
        problems=tuple(verifier.problems),
    )


def walk_states(journal: Journal, damage: list[Damage]) -> Iterator[tuple[Entry, State]]:
    """Yield every entry with the state after it, in writing order. States are kept only where the
    tree continues from them, so a long session costs no more than its branches."""
    children = Counter(entry.parent for entry in journal.entries.values())
    states: dict[str | None, State] = {}
    for entry in journal.entries.values():
        state = fold_repaired(states.get(entry.parent), entry, damage)
        children[entry.parent] -= 1
        if not children[entry.parent]:
            states.pop(entry.parent, None)
        if children[entry.id]:
            states[entry.id] = state
        yield entry, state


class Rebuilder:
    """Rebuilds prompts. Requests with the same layout share their common parts."""

    def __init__(self, book: TargetBook) -> None:
        self._book = book
        self._assemblers: dict[tuple[str, Layout], Assembler] = {}

    def rebuild(self, request: RequestEntry, state: State) -> Prompt:
        target = sent_target(request, self._book)
        counter = self._book.counter(target)
        layout = layout_of(request, target.wire, state.session)
        key = (counter.name, layout)
        if key not in self._assemblers:
            self._assemblers[key] = Assembler(counter.count, layout)
        assembler = self._assemblers[key]
        return assemble_turn(state, assembler)


def other_renderer(request: RequestEntry, header: SessionEntry) -> str:
    """Return why a request's texts may differ from those sent; empty if they do not."""
    renderer = request.renderer or header.renderer
    if renderer in RENDERERS:
        return ""
    return f"its texts were made by renderer {renderer}, and this is {RENDERER}"


def check_parameters(
    request: RequestEntry, state: State, target: Target, base: Entry | None
) -> str:
    """Return the problems with the other parameters on the wire; empty if they match the record, or
    if nothing was recorded."""
    if not request.parameters_digest:
        return ""
    parameters = recorded_parameters(request, state, target, base)
    if parameters.digest_for(target, request.cached_run) == request.parameters_digest:
        return ""
    return "its options or parameters are not those that were sent"


def _find_uncovered(request: RequestEntry, state: State, target: Target) -> Iterator[UncoveredPart]:
    if not request.parameters_digest:
        yield UncoveredPart(part="parameters", why="older records lack them")
    elif request.target_digest != digest_target(
        target,
        state.settings.explicit_cache,
        bool(find_citations(state)),
        options_for_request(state).effort,
    ):
        why = f"the model book says otherwise of {target.name} than it did then"
        yield UncoveredPart(part="target", why=why)
    if request.wire_form != WIRE_FORM:
        why = f"encoded in form {request.wire_form} of the wires, and this is {WIRE_FORM}"
        yield UncoveredPart(part="wire", why=why)


class _Verifier:
    def __init__(self, book: TargetBook, entries: Mapping[str, Entry]) -> None:
        self._book = book
        self._entries = entries
        self._rebuilder = Rebuilder(book)
        self._prompts: dict[str, Prompt] = {}
        self._wrong: set[str] = set()
        self.checked: list[RequestCheck] = []
        self.problems: list[str] = []

    def take(self, entry: Entry, state: State) -> None:
        match entry:
            case ItemEntry(item=item) if item.version != content_version(
                item.content, item.pictures
            ):
                self.problems.append(
                    f"entry {entry.id!r}: the content of {item.id!r} is not the version it names"
                )
            case RequestEntry():
                self.checked.append(self._check(entry, state))
            case _:
                pass

    def _check(self, request: RequestEntry, state: State) -> RequestCheck:
        try:
            target = sent_target(request, self._book)
            prompt = self._rebuilder.rebuild(request, state)
        except (LaminaError, KeyError) as error:
            problem = f"cannot be rebuilt: {error}"
            return RequestCheck(request=request.id, target=request.target, problem=problem)
        self._prompts[request.id] = prompt
        uncovered = [*_find_uncovered(request, state, target)]
        problem = self._differs(request, prompt)
        if problem and (why := other_renderer(request, state.session)):
            uncovered.append(UncoveredPart(part="texts", why=why))
            problem = ""
        elif not problem and prompt.cached_run() != request.cached_run:
            problem = "what of it was to be sent again is not what was recorded"
        base = self._entries.get(request.base or "")
        return RequestCheck(
            request=request.id,
            target=request.target,
            segments=len(prompt),
            tokens=prompt.tokens,
            problem=problem or check_parameters(request, state, target, base),
            uncovered=tuple(uncovered),
        )

    def _differs(self, request: RequestEntry, prompt: Prompt) -> str:
        """Return where the prompt differs from the entry's record; empty if it does not."""
        proof = request.prompt_digest
        is_proven = bool(proof) and proof == prompt.digest
        if request.base is not None:
            base = self._prompts.get(request.base)
            if base is None or request.base in self._wrong:
                if is_proven:
                    return ""
                self._wrong.add(request.id)
                return f"its digests build on request {request.base!r}, which is not as it was sent"
            shared = shared_prefix(base, prompt)
            if shared < request.kept:
                return self._wrong_at(request, prompt, shared)
        digests = [segment.digest for segment in prompt.since(request.kept)]
        pairs = enumerate(zip_longest(digests, request.digests), request.kept)
        wrong = next((index for index, (ours, theirs) in pairs if ours != theirs), None)
        if wrong is not None:
            return self._wrong_at(request, prompt, wrong)
        return "" if is_proven or not proof else "the digest of all of it is another one"

    def _wrong_at(self, request: RequestEntry, prompt: Prompt, index: int) -> str:
        self._wrong.add(request.id)
        segment = next(prompt.since(index), None)
        where = f"{segment.source}, {segment.layer}" if segment else "missing"
        return f"differs from what was sent at segment {index} ({where})"


def pictures_of(entries: Iterable[Entry]) -> set[str]:
    """Return the digests of all pictures that entries refer to; their bytes are blobs."""
    digests: set[str] = set()
    for entry in entries:
        if isinstance(entry, ItemEntry):
            digests |= {picture.digest for picture in entry.item.pictures}
        elif isinstance(entry, MessageEntry):
            blocks = [block for block in entry.message.blocks if isinstance(block, Image)]
            digests |= {block.picture.digest for block in blocks}
    return digests

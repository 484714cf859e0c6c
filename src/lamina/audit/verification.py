"""Rebuilding every request of a session and comparing it with what the journal says was sent.

Law: rebuilding runs no hook, calls no model and reads no file; a request that cannot be rebuilt
byte for byte is named, with the first segment that differs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import zip_longest

from msgspec import Struct

from lamina.errors import LaminaError
from lamina.journal import Journal, State, fold_repaired
from lamina.layers import Assembler, Layout
from lamina.ledger import shared_prefix
from lamina.ports import TargetBook
from lamina.values.damage import Damage
from lamina.values.entry import RENDERER, Entry, ItemEntry, MessageEntry, RequestEntry, SessionEntry
from lamina.values.item import content_version
from lamina.values.message import Image
from lamina.values.prompt import Prompt


class RequestCheck(Struct, frozen=True, kw_only=True):
    """One request, rebuilt. `problem` is empty if its bytes are those that were recorded."""

    request: str
    target: str
    segments: int = 0
    tokens: int = 0
    problem: str = ""


class Verification(Struct, frozen=True, kw_only=True):
    """All requests of a session, on every branch, and everything else that is wrong with it."""

    checked: tuple[RequestCheck, ...]
    damage: tuple[Damage, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not (self.damage or self.problems or any(check.problem for check in self.checked))


def verify(journal: Journal, book: TargetBook) -> Verification:
    """Every request of the journal, rebuilt and compared."""
    verifier = _Verifier(book)
    damage: list[Damage] = []
    for entry, state in _states(journal, damage):
        verifier.take(entry, state)
    return Verification(
        checked=tuple(verifier.checked),
        damage=(*journal.damage, *damage),
        problems=tuple(verifier.problems),
    )


def _states(journal: Journal, damage: list[Damage]) -> Iterator[tuple[Entry, State]]:
    """Every entry with the state after it, in order of writing. States are kept only where the
    tree goes on from them, so a long session costs no more than its branches."""
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
    """Rebuilds prompts. Requests that are laid out alike share what they have in common."""

    def __init__(self, book: TargetBook) -> None:
        self._book = book
        self._assemblers: dict[tuple[str, Layout], Assembler] = {}

    def rebuild(self, request: RequestEntry, state: State) -> Prompt:
        target = self._book.find(request.target)
        counter = self._book.counter(target)
        layout = Layout(promotion=request.promotion, wire=target.wire)
        key = (counter.name, layout)
        if key not in self._assemblers:
            self._assemblers[key] = Assembler(counter.count, layout)
        assembler = self._assemblers[key]
        return assembler.assemble(state.envelope, state.items, state.turn_start or 0)


def renderer_problem(header: SessionEntry) -> str:
    """Why the texts of a session are not those that were sent; empty if they are."""
    if header.renderer == RENDERER:
        return ""
    return (
        f"the session was written by renderer {header.renderer}, this is {RENDERER}: "
        f"its texts differ, and digests with them"
    )


class _Verifier:
    def __init__(self, book: TargetBook) -> None:
        self._rebuilder = Rebuilder(book)
        self._prompts: dict[str, Prompt] = {}
        self._wrong: set[str] = set()
        self.checked: list[RequestCheck] = []
        self.problems: list[str] = []

    def take(self, entry: Entry, state: State) -> None:
        match entry:
            case SessionEntry() if problem := renderer_problem(entry):
                self.problems.append(problem)
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
            prompt = self._rebuilder.rebuild(request, state)
        except (LaminaError, KeyError) as error:
            problem = f"cannot be rebuilt: {error}"
            return RequestCheck(request=request.id, target=request.target, problem=problem)
        self._prompts[request.id] = prompt
        return RequestCheck(
            request=request.id,
            target=request.target,
            segments=len(prompt),
            tokens=prompt.tokens,
            problem=self._differs(request, prompt),
        )

    def _differs(self, request: RequestEntry, prompt: Prompt) -> str:
        """Where the prompt is not what the entry recorded; nothing if it is."""
        if request.base is not None:
            base = self._prompts.get(request.base)
            if base is None or request.base in self._wrong:
                self._wrong.add(request.id)
                return f"its digests build on request {request.base!r}, which is not as it was sent"
            shared = shared_prefix(base, prompt)
            if shared < request.kept:
                return self._wrong_at(request, prompt, shared)
        digests = [segment.digest for segment in prompt.since(request.kept)]
        pairs = enumerate(zip_longest(digests, request.digests), request.kept)
        wrong = next((index for index, (ours, theirs) in pairs if ours != theirs), None)
        return "" if wrong is None else self._wrong_at(request, prompt, wrong)

    def _wrong_at(self, request: RequestEntry, prompt: Prompt, index: int) -> str:
        self._wrong.add(request.id)
        segment = next(prompt.since(index), None)
        where = f"{segment.source}, {segment.layer}" if segment else "missing"
        return f"differs from what was sent at segment {index} ({where})"


def pictures_of(entries: Iterable[Entry]) -> set[str]:
    """The digests of all pictures that entries refer to; their bytes are blobs."""
    digests: set[str] = set()
    for entry in entries:
        if isinstance(entry, ItemEntry):
            digests |= {picture.digest for picture in entry.item.pictures}
        elif isinstance(entry, MessageEntry):
            blocks = [block for block in entry.message.blocks if isinstance(block, Image)]
            digests |= {block.picture.digest for block in blocks}
    return digests

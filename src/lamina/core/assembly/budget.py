"""Decides what fits into a request, what is dropped first, and how that is reported.

Laws: no plan exceeds its budget; nothing is dropped without being reported; unsent parts are pruned
exactly, sent parts only in big steps. Items that cannot fit at all are dropped first, then those
with higher priority numbers, and among equals the earliest added; essentials are never dropped.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.journal import State, copy_for_request
from lamina.core.layers import Assembler
from lamina.core.text import label_of
from lamina.core.values.item import Attachment, ItemId, is_member
from lamina.core.values.prompt import Prompt, total_tokens
from lamina.core.values.request import Attachments, LeftOut
from lamina.core.values.settings import Settings, Target
from lamina.errors import EssentialsTooLarge, InvalidSetting

# The maximum shares of the remaining room for one item chosen by search and for single-request
# texts; and the minimum room for these texts beside tools and L1, at the expense of history.
CHOSEN_SHARE = 0.5
TEXTS_SHARE = 0.5
LEAST_TEXTS_SHARE = 0.25
# After a prune, items that apply to the turn may use this share of the room.
ITEMS_SHARE = 0.75
# How much of the room the latest exchange and the head may use if the exchange is large.
EXCHANGE_SHARE = 0.75
# A prune that would leave less than this share of its goal shortens an exchange instead of dropping
# it.
FULL_ENOUGH = 0.5
# "## Context Library" and its sentence.
HEADER_TOKENS = 24
_Reason = Literal["window", "removed", "still_out", "attachment_limit"]


class PruneCandidate(Struct, frozen=True, kw_only=True):
    """A candidate for pruning. `recency` orders those of equal priority: the lowest goes first."""

    item: ItemId
    label: str
    tokens: int
    priority: int
    essential: bool = False
    recency: int = 0


class PruneChoice(Struct, frozen=True, kw_only=True):
    kept: tuple[PruneCandidate, ...]
    dropped: tuple[PruneCandidate, ...]


def drop_until(candidates: Sequence[PruneCandidate], excess: int) -> PruneChoice:
    """Drop candidates, the least wanted first, until `excess` tokens are freed or none may go. A
    candidate that would not fit even beside the essentials alone goes first: dropping the others
    would not make room for it."""
    spare = [candidate for candidate in candidates if not candidate.essential]
    room = sum(candidate.tokens for candidate in spare) - excess
    victims: list[PruneCandidate] = []
    for candidate in sorted(spare, key=lambda c: (c.tokens <= room, -c.priority, c.recency)):
        if excess <= 0:
            break
        victims.append(candidate)
        excess -= candidate.tokens
    victim_ids = {id(candidate) for candidate in victims}
    rest = tuple(candidate for candidate in candidates if id(candidate) not in victim_ids)
    return PruneChoice(kept=rest, dropped=tuple(victims))


def fit_attachments(candidates: Sequence[PruneCandidate], limit: int) -> PruneChoice:
    """Choose which of a turn's attachments fit their own limit; exactly at the limit none is
    dropped.

    Raises:
        EssentialsTooLarge: the essentials alone exceed it.
    """
    labels = Counter(candidate.label for candidate in candidates)
    essential = {
        # Two may have the same name: a note and a file at one path.
        candidate.label if labels[candidate.label] == 1 else str(candidate.item): candidate.tokens
        for candidate in candidates
        if candidate.essential
    }
    if sum(essential.values()) > limit:
        raise EssentialsTooLarge(
            "essential attachments are over the attachment limit; "
            "raise attachment_limit or make fewer of them essential",
            essential,
            limit,
        )
    return drop_until(candidates, sum(candidate.tokens for candidate in candidates) - limit)


class Room(Struct, frozen=True, kw_only=True):
    """The room left beside a prompt under a limit."""

    limit: int
    prompt: Prompt

    @property
    def standing(self) -> int:
        return self.prompt.tokens

    @property
    def left(self) -> int:
        """The unused room."""
        return self.limit - self.prompt.tokens

    @property
    def free(self) -> int:
        """The room left by tools and L1, which are part of every request."""
        segments = (link.segment for link in self.prompt.front)
        return self.limit - sum(s.tokens for s in segments if s.layer in ("tools", "L1"))

    @property
    def for_history(self) -> int:
        """The room left by tools, L1 and the library."""
        return self.limit - total_tokens(self.prompt.front)

    def texts(self, beside: int) -> int:
        """Return the room for single-request texts, beside `beside` more tokens."""
        half, least = TEXTS_SHARE * (self.left - beside), LEAST_TEXTS_SHARE * (self.free - beside)
        return max(0, int(half), int(least))


class Budget(Struct, frozen=True, kw_only=True):
    """The window, the reserve for the answer, and the remaining room, in calibrated tokens. `limit`
    is in the counter's own tokens, so that comparisons need no scaling."""

    window: int
    reserve: int
    calibration: float = 1.0

    @property
    def limit(self) -> int:
        return int((self.window - self.reserve) / self.calibration)

    def beside(self, prompt: Prompt, turn: int = 0) -> Room:
        """Return the room beside a prompt and `turn` more tokens."""
        return Room(limit=self.limit - turn, prompt=prompt)


def assemble_standing(state: State, assembler: Assembler) -> Prompt:
    """Return the prompt of the standing parts, without a turn."""
    return assembler.assemble(state.envelope, state.library.items, len(state.envelope.cached))


def assemble_turn(state: State, assembler: Assembler) -> Prompt:
    """Return the prompt with the current turn."""
    copy = copy_for_request(state)
    return assembler.assemble(copy.envelope, state.library.items, copy.start)


def make_budget(settings: Settings, target: Target, max_tokens: int | None, scale: float) -> Budget:
    """Return the room for a request to `target`.

    Raises:
        InvalidSetting: the reserve leaves no room.
    """
    window = settings.window if settings.window is not None else target.window
    if window <= 0:
        raise InvalidSetting("window", window, "must be above 0")
    reserve = settings.output_reserve
    if reserve is None:
        reserve = max_tokens or min(target.max_output, 16_384, window // 4)
    if target.max_input is not None:
        window = min(window, target.max_input + reserve)
    if not 0 <= reserve < window:
        raise InvalidSetting("output_reserve", reserve, f"must be below the window of {window:,}")
    return Budget(window=window, reserve=reserve, calibration=scale)


def split_still_out(
    state: State, attached: Attachments, room: int, assembler: Assembler
) -> Attachments:
    """Separate items that must stay out: those dropped for lack of room stay out while they are
    attached, since readmitting them would push others out, turn after turn. Those that fit `room`
    may come back."""
    reports: dict[ItemId, LeftOut] = {}
    for attachment in attached.attachments:
        item = attachment.item
        out = item.id in state.library.still_out and item.id not in state.library.standing
        if not out or attachment.is_essential or item.id in state.library.pinned:
            continue
        if (tokens := assembler.item_tokens(item)) <= room:
            room -= tokens
        else:
            detail = f"{label_of(item.id)} had no room before; detach and attach it to try again"
            reports[item.id] = _left_out(attachment, "still_out", detail, tokens)
    return attached.without(reports, lambda attachment: reports[attachment.item.id])


def limit_attachments(state: State, attached: Attachments, assembler: Assembler) -> Attachments:
    """Return the attachments that fit their own limit. Rules and references are not attachments.

    Raises:
        EssentialsTooLarge: the essentials alone exceed it.
    """
    limit = state.settings.attachment_limit
    if limit is None:
        return attached
    limited = [a for a in attached.attachments if not is_member(a.item.id)]
    by_id = {a.item.id: a for a in attached.attachments}
    reports: dict[ItemId, LeftOut] = {}
    for candidate in fit_attachments(size_attachments(state, limited, assembler), limit).dropped:
        item, tokens = candidate.item, candidate.tokens
        detail = f"{candidate.label} ({tokens:,} tokens) is over the attachment limit of {limit:,}"
        if item in state.library.standing:
            detail += "; its text stays in the context until the next boundary"
        reports[item] = _left_out(by_id[item], "attachment_limit", detail, tokens)
    # The least wanted is reported first.
    left_out = attached.left_out + tuple(reports.values())
    rest = tuple(a for a in attached.attachments if a.item.id not in reports)
    return replace(attached, attachments=rest, left_out=left_out)


def size_attachments(
    state: State, attachments: Iterable[Attachment], assembler: Assembler
) -> list[PruneCandidate]:
    candidates = []
    for index, attachment in enumerate(attachments):
        item = attachment.item
        known = state.library.known.get(item.id)
        candidates.append(
            PruneCandidate(
                item=item.id,
                label=label_of(item.id),
                tokens=assembler.item_tokens(item),
                priority=attachment.priority,
                essential=attachment.is_essential or item.id in state.library.pinned,
                recency=known.added if known else len(state.library.known) + index,
            )
        )
    return candidates


def no_room(attachment: Attachment, assembler: Assembler, *, reason: _Reason = "window") -> LeftOut:
    tokens = assembler.item_tokens(attachment.item)
    label = label_of(attachment.item.id)
    detail = f"{label} ({tokens:,} tokens, priority {attachment.priority}) does not fit the window"
    return _left_out(attachment, reason, detail, tokens)


def _left_out(attachment: Attachment, reason: _Reason, detail: str, tokens: int) -> LeftOut:
    item, source = attachment.item.id, attachment.provenance.brought_by
    return LeftOut(what=item, reason=reason, detail=detail, tokens=tokens, source=source)

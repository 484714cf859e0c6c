"""What fits, and who goes first.

Laws: no plan exceeds its budget; nothing is dropped without being reported; what was not sent is
pruned exactly, what was sent only in big steps. The higher priority number goes first, among
equals the earliest added; essentials never go.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from lamina.errors import EssentialsTooLarge, InvalidSetting
from lamina.values.item import ItemId
from lamina.values.settings import Settings, Target


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
    """Drops candidates, the least wanted first, until `excess` tokens are gone or none may go."""
    order = sorted(
        (candidate for candidate in candidates if not candidate.essential),
        key=lambda candidate: (-candidate.priority, candidate.recency),
    )
    dropped: list[PruneCandidate] = []
    for each in order:
        if excess <= 0:
            break
        dropped.append(each)
        excess -= each.tokens
    gone = {id(candidate) for candidate in dropped}
    kept = tuple(candidate for candidate in candidates if id(candidate) not in gone)
    return PruneChoice(kept=kept, dropped=tuple(dropped))


def fit_attachments(candidates: Sequence[PruneCandidate], limit: int | None) -> PruneChoice:
    """What of a turn's attachments stays under their own limit; exactly at it nothing goes.

    Raises:
        EssentialsTooLarge: the essentials alone are over it.
    """
    if limit is None:
        return PruneChoice(kept=tuple(candidates), dropped=())
    labels = Counter(candidate.label for candidate in candidates)
    essential = {
        # Two may be called alike: a note and a file of one path.
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


class Budget(Struct, frozen=True, kw_only=True):
    """The window, what is kept free for the answer, and what is left, in calibrated tokens.
    `limit` is what the counter may say, so that comparisons need no scaling."""

    window: int
    reserve: int
    calibration: float = 1.0

    @property
    def limit(self) -> int:
        return int((self.window - self.reserve) / self.calibration)


def make_budget(
    settings: Settings, target: Target, max_tokens: int | None, factor: float
) -> Budget:
    """The room for a request to `target`.

    Raises:
        InvalidSetting: the reserve leaves no room.
    """
    window = settings.window if settings.window is not None else target.window
    if window <= 0:
        raise InvalidSetting("window", window, "must be above 0")
    reserve = settings.output_reserve
    if reserve is None:
        reserve = max_tokens or min(target.max_output, 16_384, window // 4)
    if not 0 <= reserve < window:
        raise InvalidSetting("output_reserve", reserve, f"must be below the window of {window:,}")
    return Budget(window=window, reserve=reserve, calibration=factor)

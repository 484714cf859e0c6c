"""What a whole session shows that no single request does, each with its chance rate.

Law: a pattern counts against what happens in the same session without it. A rule that would hold
as often by chance says nothing.
"""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from lamina.doctor.readings import Reading

# How often something has to come, and how much more often than by chance, to be a pattern.
_TIMES, _RATIO = 3, 3.0
# A coincidence that holds for half of the hits explains no miss.
MOSTLY = 0.5


class SessionPatterns(Struct, frozen=True, kw_only=True):
    """Rates of one session. None: too little was seen to say."""

    # The share of requests inside tool loops that read nothing, if turns do so far more often.
    front_chance: float | None = None
    # Whether the window slides: most turns stop at the floor and the prompt does not grow.
    slides: bool = False
    # For every event: the share of requests without a miss that have it as well.
    event_chances: dict[str, float] = {}


def find_patterns(readings: Sequence[Reading]) -> SessionPatterns:
    """The patterns of one session."""
    warm = [r for r in readings if r.before is not None and not _is_late(r)]
    return SessionPatterns(
        front_chance=_front_chance(warm),
        slides=_slides(warm),
        event_chances=_event_chances(warm),
    )


def _is_late(reading: Reading) -> bool:
    gap, lifetime = reading.gap, reading.lifetime
    return gap is not None and lifetime is not None and gap > lifetime


def _front_chance(warm: Sequence[Reading]) -> float | None:
    """How often loops read nothing, if turns do so at least three times as often."""
    turns = [r for r in warm if r.request.step == "turn"]
    loops = [r for r in warm if r.request.step == "loop"]
    broken_turns, broken_loops = (sum(_reads_nothing(r) for r in part) for part in (turns, loops))
    if broken_turns < _TIMES or len(loops) < _TIMES:
        return None
    # One more than was seen: that something did not happen yet is not that it cannot.
    chance = (broken_loops + 1) / (len(loops) + 1)
    return chance if broken_turns / len(turns) >= _RATIO * chance else None


def _reads_nothing(reading: Reading) -> bool:
    return reading.stop is not None and reading.stop.place == "nothing"


def _slides(warm: Sequence[Reading]) -> bool:
    """Whether prompts stay as long as they were while reading stops at the front, again and
    again."""
    stuck = [
        r
        for r in warm
        if r.stop is not None
        and r.stop.place in ("floor", "nothing")
        and r.before is not None
        and r.request.usage.input <= 1.02 * r.before.usage.input
    ]
    return len(stuck) >= _TIMES and len(stuck) >= MOSTLY * len(warm)


def _event_chances(warm: Sequence[Reading]) -> dict[str, float]:
    hits = [r for r in warm if not r.lost]
    if not hits:
        return {}
    counts = Counter(event for r in hits for event in set(r.request.events))
    return {event: count / len(hits) for event, count in counts.items()}

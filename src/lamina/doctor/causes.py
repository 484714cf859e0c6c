"""Explains cache misses with an ordered list of rules; the first match wins.

Laws: recorded bytes decide. Without them, a cause is at best likely, and only if its sign would be
rarer by chance; if two causes leave the same trace, both are listed and neither is chosen. A
pattern is compared with the rest of the same session only: a rule that would match as often by
chance proves nothing.
"""

from collections import Counter
from collections.abc import Callable, Sequence

from msgspec import Struct

from lamina.core.audit.break_causes import CAUSES, CauseName, Certainty, cap_certainty, count_of
from lamina.doctor.readings import Reading

# How often something must happen, and how far above chance, to count as a pattern.
_TIMES, _RATIO = 3, 3.0
# A coincidence present in half of the hits explains no miss.
MOSTLY = 0.5


class SessionPatterns(Struct, frozen=True, kw_only=True):
    """Rates within one session. None means too little data."""

    # The share of requests inside tool loops that read nothing, if turns do so much more often.
    front_chance: float | None = None
    # Whether the window slides: most turns stop at the floor and the prompt does not grow.
    slides: bool = False
    # For each event, the share of requests without a miss that also have that event.
    event_chances: dict[str, float] = {}


def find_patterns(readings: Sequence[Reading]) -> SessionPatterns:
    """Return the patterns of one session."""
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
    """Return how often requests in loops read nothing, if turns do so at least three times as
    often."""
    turns = [r for r in warm if r.request.step == "turn"]
    loops = [r for r in warm if r.request.step == "loop"]
    broken_turns, broken_loops = (sum(_reads_nothing(r) for r in part) for part in (turns, loops))
    if broken_turns < _TIMES or len(loops) < _TIMES:
        return None
    # One more than observed: an event that has not occurred yet still can.
    chance = (broken_loops + 1) / (len(loops) + 1)
    return chance if broken_turns / len(turns) >= _RATIO * chance else None


def _reads_nothing(reading: Reading) -> bool:
    return reading.stop is not None and reading.stop.place == "nothing"


def _slides(warm: Sequence[Reading]) -> bool:
    """Return whether reading repeatedly stops at the front while prompts do not grow."""
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


# Entries may expire a little early.
_NEAR_EXPIRY = 0.8
# A prompt that shrinks by more than this was truncated, not continued.
_SHRUNK = 0.9
_LOOK_BACK = 20
# Events recorded along with a changed first message.
_APPENDS = "inside a tool loop, where the program only appends"
_FRONT_EVENTS = ("skill", "interruption", "permission", "command")


class LossExplanation(Struct, frozen=True, kw_only=True):
    """A cause and its certainty. `candidates` lists the possible causes if undecided; `sign` is the
    evidence, and `chance` its frequency without the cause."""

    cause: CauseName
    certainty: Certainty
    candidates: tuple[CauseName, ...] = ()
    detail: str = ""
    chance: float | None = None
    sign: str = ""


_Rule = Callable[[Reading, SessionPatterns], LossExplanation | None]


def explain(reading: Reading, patterns: SessionPatterns) -> LossExplanation:
    """Return why tokens were lost."""
    has_bytes = reading.request.depth == "bodies" and (
        reading.request.change is not None or reading.writer is not None
    )
    rules: Sequence[_Rule] = _BY_BYTES if has_bytes else _BY_FIGURES
    for rule in rules:
        found = rule(reading, patterns)
        if found is not None:
            depth = reading.request.depth if has_bytes else "transcript"
            certainty = cap_certainty(found.certainty, found.cause, depth)
            return LossExplanation(
                cause=found.cause, certainty=certainty, candidates=found.candidates,
                detail=found.detail, chance=found.chance, sign=found.sign,
            )  # fmt: skip
    return LossExplanation(cause="unexplained", certainty="unknown")


def is_expired(reading: Reading, share: float = 1.0) -> bool:
    """Return whether this share of the cache lifetime has passed since the previous request."""
    gap, lifetime = reading.gap, reading.lifetime
    return gap is not None and lifetime is not None and gap > share * lifetime


def _located(*candidates: CauseName, detail: str = "") -> LossExplanation:
    return LossExplanation(
        cause="unexplained", certainty="located", candidates=candidates, detail=detail
    )


# -- rules for bytes and figures -----------------------------------------------------------------


def _model(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    before, request = reading.before, reading.request
    if before is None or not before.model or not request.model or before.model == request.model:
        return None
    detail = f"{before.model} -> {request.model}"
    return LossExplanation(cause="model", certainty="proven", detail=detail)


def _idle(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    if not is_expired(reading):
        return None
    assert reading.gap is not None
    assert reading.lifetime is not None
    detail = (
        f"{_span(reading.gap)} since the previous request; entries live {_span(reading.lifetime)}"
    )
    return LossExplanation(cause="idle", certainty="proven", detail=detail)


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7_200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"


def _fan_out(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    writer, before, request = reading.writer, reading.before, reading.request
    if writer is not None:
        detail = f"request {writer} was still being answered"
        if request.change is None:
            return _located("fan_out", "system_changed", detail=detail)
        return LossExplanation(cause="fan_out", certainty="proven", detail=detail)
    if before is None or request.at is None or before.ended is None or before.at is None:
        return None
    if before.at <= request.at < before.ended and reading.stop and not request.usage.cached:
        detail = f"request {reading.before_number} was still being answered"
        return LossExplanation(cause="fan_out", certainty="proven", detail=detail)
    return None


# -- rules for bytes -----------------------------------------------------------------------------


def _cut_on_purpose(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    change = reading.request.change
    if change is None or change.cause not in ("compaction", "rewound", "boundary"):
        return None
    certainty: Certainty = "proven" if change.is_sure else "likely"
    return LossExplanation(cause=change.cause, certainty=certainty, detail=change.detail)


def _changed_bytes(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    change = reading.request.change
    if change is None or change.cause is None:
        return None
    if _stopped_short(reading):
        return LossExplanation(
            cause="other_machine", certainty="likely",
            detail=f"the bytes agree up to {change.place}, far beyond what was read",
        )  # fmt: skip
    certainty: Certainty = "proven" if change.is_sure else "likely"
    return LossExplanation(cause=change.cause, certainty=certainty, detail=change.detail)


def _stopped_short(reading: Reading) -> bool:
    """Return whether nothing was read although much of the prompt precedes the first change, which
    is in the conversation."""
    change, before = reading.request.change, reading.before
    if change is None or before is None or change.layer != "messages" or not change.size:
        return False
    if change.cause in ("image", "marker", "look_back") or reading.request.usage.cached:
        return False
    shared = before.usage.input * change.shared / change.size
    # With markers, only content marked by an earlier request can be read.
    return not reading.at_markers and shared >= 2 * reading.rules.minimum


def _below_minimum(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    before, minimum = reading.before, reading.rules.minimum
    if before is None or before.usage.input >= minimum or before.usage.cached:
        return None
    detail = f"{count_of(before.usage.input, 'token')}; the minimum is {minimum:,}"
    return LossExplanation(cause="below_minimum", certainty="proven", detail=detail)


def _gateway(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    if not reading.at_markers or not reading.never_read or not reading.request.usage.written:
        return None
    if reading.request.depth == "bodies":
        return LossExplanation(cause="gateway", certainty="likely")
    return _located("gateway", "clock", detail="every request writes and none reads")


def _near_expiry(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    if not is_expired(reading, _NEAR_EXPIRY):
        return None
    assert reading.gap is not None
    detail = f"{_span(reading.gap)} since the previous request: entries may expire a little early"
    return LossExplanation(cause="idle", certainty="likely", detail=detail)


def _other_machine(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    stop = reading.stop
    return LossExplanation(
        cause="other_machine", certainty="likely", chance=stop.chance if stop else None,
        sign="reading stops at an older end" if stop and stop.place == "end_of" else "",
        detail="the bytes agree and are young enough",
    )  # fmt: skip


# -- rules for figures ---------------------------------------------------------------------------


def _recorded_compaction(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    if "compaction" in reading.request.events:
        return LossExplanation(cause="compaction", certainty="likely")
    before, request = reading.before, reading.request
    if before is None or request.depth != "usage":
        return None
    if request.usage.input < _SHRUNK * before.usage.input:
        shrunk = 1 - request.usage.input / before.usage.input
        return LossExplanation(
            cause="compaction", certainty="likely", detail=f"the prompt shrank by {shrunk:.0%}"
        )
    return None


def _recorded_parameter(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    if reading.before is None:
        return None
    old, new = dict(reading.before.parameters), dict(reading.request.parameters)
    named = [
        f"{name} {old[name]} -> {new[name]}"
        for name in sorted(old.keys() & new.keys())
        if old[name] != new[name]
    ]
    if not named:
        return None
    return LossExplanation(cause="parameter", certainty="likely", detail=", ".join(named))


def _recorded_update(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    before, request = reading.before, reading.request
    if before is None or not before.version or not request.version:
        return None
    if before.version == request.version:
        return None
    return LossExplanation(
        cause="update", certainty="likely", detail=f"{before.version} -> {request.version}"
    )


# Events recorded before a request, and their effects on the cache.
_EVENT_CAUSES: dict[str, CauseName] = {
    "tools": "tools_changed", "results_cleared": "history_edited", "image": "image",
}  # fmt: skip


def _recorded_event(reading: Reading, patterns: SessionPatterns) -> LossExplanation | None:
    for event, cause in _EVENT_CAUSES.items():
        if event not in reading.request.events:
            continue
        chance = patterns.event_chances.get(event, 0.0)
        if chance <= MOSTLY:
            sign = f"{event.replace('_', ' ')} beside a request that hit"
            return LossExplanation(cause=cause, certainty="likely", chance=chance, sign=sign)
    return None


def _no_markers(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    before = reading.before
    if before is None or not reading.rules.explicit or not reading.never_written:
        return None
    if reading.request.usage.cached or reading.request.usage.written:
        return None
    return LossExplanation(cause="marker", certainty="likely", detail="nothing was ever written")


def _far_back(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    blocks, stop = reading.request.blocks, reading.stop
    if not reading.at_markers or blocks is None or blocks <= _LOOK_BACK or stop is None:
        return None
    if stop.place != "end_of":
        return None
    return LossExplanation(
        cause="look_back", certainty="likely", detail=f"{blocks} blocks were added"
    )


def _read_nothing(reading: Reading, patterns: SessionPatterns) -> LossExplanation | None:
    if reading.stop is None or reading.stop.place != "nothing":
        return None
    if reading.request.step == "turn" and patterns.front_chance is not None:
        return LossExplanation(
            cause="clock", certainty="likely", chance=patterns.front_chance,
            sign="nothing read inside a tool loop",
            detail="the front breaks when a person speaks, and hardly ever in between",
        )  # fmt: skip
    return _located("clock", "system_changed", "tools_changed", "other_machine")


def _read_the_floor(reading: Reading, patterns: SessionPatterns) -> LossExplanation | None:
    if reading.stop is None or reading.stop.place != "floor":
        return None
    if patterns.slides:
        return LossExplanation(
            cause="trimmed", certainty="likely",
            detail="the prompt does not grow, and only its front is read",
        )  # fmt: skip
    if reading.request.step == "loop" and not reading.at_markers:
        return LossExplanation(
            cause="other_machine", certainty="likely", chance=reading.stop.chance,
            sign="a place that close to the floor", detail=_APPENDS,
        )  # fmt: skip
    for event in _FRONT_EVENTS:
        chance = patterns.event_chances.get(event, 0.0)
        if event in reading.request.events and chance <= MOSTLY:
            sign = f"{event} beside a request that hit"
            return LossExplanation(
                cause="first_message", certainty="likely", chance=chance, sign=sign,
                detail=f"together with: {event}",
            )  # fmt: skip
    return _located("first_message", "parameter", detail="only tools and system were read")


def _read_an_older_end(reading: Reading, _: SessionPatterns) -> LossExplanation | None:
    stop = reading.stop
    if stop is None or stop.place != "end_of":
        return None
    sign = "a place that close to an older end"
    step = reading.request.step
    if step == "loop" and (stop.chance or 0.0) <= MOSTLY:
        return LossExplanation(
            cause="other_machine", certainty="likely", chance=stop.chance, sign=sign,
            detail=_APPENDS,
        )  # fmt: skip
    edited: CauseName = "thinking" if step == "turn" and reading.request.thought else (
        "history_edited"
    )  # fmt: skip
    return LossExplanation(
        cause="unexplained", certainty="located", candidates=(edited, "other_machine"),
        chance=stop.chance, sign=sign,
    )  # fmt: skip


_BY_BYTES: tuple[_Rule, ...] = (
    _model, _cut_on_purpose, _below_minimum, _idle, _fan_out, _changed_bytes, _gateway,
    _near_expiry, _other_machine,
)  # fmt: skip
_BY_FIGURES: tuple[_Rule, ...] = (
    _model, _recorded_compaction, _below_minimum, _idle, _recorded_update, _recorded_parameter,
    _fan_out, _no_markers, _gateway, _far_back, _recorded_event, _near_expiry, _read_nothing,
    _read_the_floor, _read_an_older_end,
)  # fmt: skip


def kind_of_break(explanation: LossExplanation) -> CauseName:
    """Return the cause that determines a finding's kind and blame; if undecided, the first
    candidate."""
    if explanation.cause == "unexplained" and explanation.candidates:
        return explanation.candidates[0]
    return explanation.cause


__all__ = ["CAUSES", "LossExplanation", "explain", "is_expired", "kind_of_break"]

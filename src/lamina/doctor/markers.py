"""Markers of a cache: whether those of a request reach what the one before it wrote.

Law: an entry ends at a marker, and a later marker finds it at most 20 blocks back; runs of calls
and results count once.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from lamina.doctor.observed import PromptChange, PromptPart, RecordedPrompt

LOOK_BACK = 20


def judge_markers(
    change: PromptChange, before: RecordedPrompt, after: RecordedPrompt
) -> PromptChange:
    """The change with what is wrong with the markers, if the bytes agree and something is."""
    if not (before.has_markers and after.has_markers):
        return change
    old, new = _marks(before.parts), _marks(after.parts)
    if not old:
        return _say(change, "marker", before.parts, -1, "the request before had no marker")
    if not new:
        return _say(change, "marker", after.parts, -1, "no marker")
    reaching = [mark for mark in new if mark >= old[-1]]
    if not reaching:
        detail = "the last marker stands before that of the request before"
        return _say(change, "marker", after.parts, new[-1], detail)
    positions = _positions(after.parts)
    distance = min(positions[mark] - positions[old[-1]] for mark in reaching)
    if distance >= LOOK_BACK:
        detail = f"{distance} blocks from the last marker to the next"
        return _say(change, "look_back", after.parts, reaching[0], detail)
    return change


def _marks(parts: Sequence[PromptPart]) -> list[int]:
    return [index for index, part in enumerate(parts) if part.marked]


def _positions(parts: Sequence[PromptPart]) -> list[int]:
    """The place of every part as it is counted: runs of calls and of results are one each."""
    positions, at, last = [], -1, ""
    for part in parts:
        if part.kind not in ("call", "result") or part.kind != last:
            at += 1
        last = part.kind
        positions.append(at)
    return positions


def _say(
    change: PromptChange, cause: str, parts: Sequence[PromptPart], index: int, detail: str
) -> PromptChange:
    part = parts[index] if parts else None
    return replace(
        change, cause=cause, detail=detail, place=part.place if part else "",
        layer=part.layer if part else None,
    )  # fmt: skip

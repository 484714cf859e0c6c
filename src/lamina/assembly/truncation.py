"""Texts with their middle taken out, and a line that says so."""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.compaction.cuts import find_cuts
from lamina.values.message import Message, ToolResult
from lamina.values.patch import ResultsReplace
from lamina.values.request import LeftOut

Count = Callable[[str], int]

# What the line about a removed middle costs.
NOTICE_TOKENS = 24
_GAP = re.compile(r"\[\.\.\. ([\d,]+) tokens removed to fit the context window \.\.\.\]")
# Less than this of an exchange is not worth keeping.
LEAST_RESULTS = 500


def shorten_text(text: str, limit: int, count: Count) -> str:
    """`text` with about `limit` tokens of it left, and a line in place of its middle."""
    size = count(text)
    if size <= limit:
        return text
    half = len(text) * limit // size // 2
    end = len(text) - half
    # A gap that was there before goes with the middle, and its tokens are still missing.
    before = sum(int(tokens.replace(",", "")) for tokens in _GAP.findall(text, half, end))
    gap = f"\n[... {size - limit + before:,} tokens removed to fit the context window ...]\n"
    return f"{text[:half]}{gap}{text[end:]}"


def find_level(sizes: Sequence[int], goal: int) -> int:
    """What the large ones come down to, so that all are within `goal`; the small ones stay."""
    rest = sorted(sizes)
    while rest and rest[0] * len(rest) <= goal:
        goal -= rest.pop(0)
    return max(0, goal // len(rest)) if rest else max(sizes, default=0)


def shorten_results(
    results: Sequence[ToolResult], excess: int, count: Count
) -> tuple[list[ToolResult], list[LeftOut]]:
    """Tool results with `excess` tokens less: the largest lose their middle, and say so."""
    sizes = {result.call_id: count(result.text) for result in results}
    goal = sum(sizes.values()) - excess - NOTICE_TOKENS * len(results)
    level = find_level(tuple(sizes.values()), goal)
    shorter, reports = list(results), []
    for index, result in enumerate(results):
        size = sizes[result.call_id]
        if (surplus := size - level) > 0:
            shorter[index] = replace(result, text=shorten_text(result.text, level, count))
            detail = f"the result of {result.name} lost {surplus:,} of its {size:,} tokens"
            what = result_name(result)
            reports.append(LeftOut(what=what, reason="window", detail=detail, tokens=surplus))
    return shorter, reports


def result_name(result: ToolResult) -> str:
    """What a result is called in reports."""
    return f"result:{result.call_id}"


def is_result(what: str) -> bool:
    return what.startswith("result:")


class Exchange(Struct, frozen=True, kw_only=True):
    """A call and its results that stay, shortened where they have to be."""

    start: int
    ops: tuple[ResultsReplace, ...] = ()
    reports: tuple[LeftOut, ...] = ()


def shorten_exchange(
    messages: Sequence[Message], sizes: Sequence[int], within: range, room: int, count: Count,
    reason: str,
) -> Exchange | None:  # fmt: skip
    """The last exchange within these messages, brought down to `room`; None if too little of it
    would be left, or if it is not a call with its results."""
    cuts = [cut for cut in find_cuts(messages) if cut in within]
    if not cuts or within.stop - cuts[-1] != 2:
        return None
    start = cuts[-1]
    call, answer = messages[start : within.stop]
    results = [block for block in answer.blocks if isinstance(block, ToolResult)]
    excess = sum(sizes[start : within.stop]) - room
    if not call.calls or sum(count(result.text) for result in results) - excess < LEAST_RESULTS:
        return None
    if excess <= 0:
        return Exchange(start=start)
    shorter, reports = shorten_results(results, excess, count)
    changes = tuple(new for new, old in zip(shorter, results, strict=True) if new is not old)
    op = ResultsReplace(message=answer.id, results=changes, reason=reason)
    return Exchange(start=start, ops=(op,), reports=tuple(reports))

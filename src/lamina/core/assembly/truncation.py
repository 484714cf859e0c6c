"""Texts with their middle taken out, and a line that says so."""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.read_result import READ_RESULT, can_read_results, say_how_to_read
from lamina.core.compaction.cuts import find_cuts
from lamina.core.journal import State, whole_digest
from lamina.core.values.message import Message, ToolResult
from lamina.core.values.patch import ResultsReplace
from lamina.core.values.request import LeftOut

Count = Callable[[str], int]

# What the line about a removed middle costs, also if it says how to read what is gone.
NOTICE_TOKENS, READABLE_NOTICE_TOKENS = 24, 48
_GAP = re.compile(
    r"\[\.\.\. ([\d,]+) tokens removed to fit the context window(?:; [^\n\]]{,80})? \.\.\.\]"
)
# What stands instead of a handle in what was itself read by one.
FEWER_LINES = "ask for fewer lines"
# Less than this of an exchange is not worth keeping.
LEAST_RESULTS = 500


def shorten_text(text: str, limit: int, count: Count, how_to_read: str = "") -> str:
    """`text` with about `limit` tokens of it left, and a line in place of its middle, which says
    `how_to_read` that if it is given."""
    size = count(text)
    if size <= limit:
        return text
    half = len(text) * limit // size // 2
    end = len(text) - half
    # A gap that was there before goes with the middle, and its tokens are still missing.
    before = sum(int(tokens.replace(",", "")) for tokens in _GAP.findall(text, half, end))
    gone = f"{size - limit + before:,} tokens removed to fit the context window"
    gap = "; ".join(filter(None, (gone, how_to_read)))
    return f"{text[:half]}\n[... {gap} ...]\n{text[end:]}"


def find_level(sizes: Sequence[int], goal: int) -> int:
    """What the large ones come down to, so that all are within `goal`; the small ones stay."""
    rest = sorted(sizes)
    while rest and rest[0] * len(rest) <= goal:
        goal -= rest.pop(0)
    return max(0, goal // len(rest)) if rest else max(sizes, default=0)


def shorten_results(
    results: Sequence[ToolResult],
    excess: int,
    count: Count,
    digests: Mapping[str, str] | None = None,
) -> tuple[list[ToolResult], list[LeftOut]]:
    """Tool results with `excess` tokens less: the largest lose their middle, and say so. With the
    `digests` of all that each was, by call, they say how to read it."""
    sizes = {result.call_id: count(result.text) for result in results}
    goal = sum(sizes.values()) - excess - notice_tokens(digests) * len(results)
    level = find_level(tuple(sizes.values()), goal)
    shorter, reports = list(results), []
    for index, result in enumerate(results):
        size = sizes[result.call_id]
        if (surplus := size - level) > 0:
            how = _how_to_read(result, digests)
            shorter[index] = replace(result, text=shorten_text(result.text, level, count, how))
            detail = f"the result of {result.name} lost {surplus:,} of its {size:,} tokens"
            what = result_name(result)
            reports.append(LeftOut(what=what, reason="window", detail=detail, tokens=surplus))
    return shorter, reports


def notice_tokens(digests: Mapping[str, str] | None) -> int:
    """What the line about a removed middle costs."""
    return NOTICE_TOKENS if digests is None else READABLE_NOTICE_TOKENS


def _how_to_read(result: ToolResult, digests: Mapping[str, str] | None) -> str:
    if digests is None:
        return ""
    # What was read by a handle says at its head by which.
    return (
        FEWER_LINES if result.name == READ_RESULT.name else say_how_to_read(digests[result.call_id])
    )


def find_digests(
    state: State, message: str, results: Sequence[ToolResult]
) -> dict[str, str] | None:
    """The digests of all that results of a message were, by call; None if the model has nothing to
    read them with."""
    if not can_read_results(state):
        return None
    return {result.call_id: whole_digest(state, message, result) for result in results}


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
    state: State, messages: Sequence[Message], sizes: Sequence[int], within: range, room: int,
    count: Count, reason: str,
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
    digests = find_digests(state, answer.id, results)
    shorter, reports = shorten_results(results, excess, count, digests)
    changes = tuple(new for new, old in zip(shorter, results, strict=True) if new is not old)
    op = ResultsReplace(message=answer.id, results=changes, reason=reason)
    return Exchange(start=start, ops=(op,), reports=tuple(reports))

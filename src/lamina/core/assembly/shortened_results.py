"""Shortens the middle of tool results that are too long; the model reads the rest by a handle with
`read_result`.

Laws: a text that lost its middle says so, and how to read the rest if the model can. A handle is
the beginning of the digest of the tool's whole output: the same output has the same handle on every
branch, in every fork and after every restart. The model sees a handle only where it can use one. An
error in a call is reported as its result.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.compaction.cuts import find_cuts
from lamina.core.journal import State, whole_digest
from lamina.core.values.message import Message, ToolDefinition, ToolResult
from lamina.core.values.patch import ResultsReplace
from lamina.core.values.request import LeftOut

# The minimum digits of a handle, and the maximum tokens of a page: at most this share of a
# request's room, and never less than a few lines.
DIGITS = 8
MAX_TOKENS, LEAST_TOKENS, PAGE_SHARE = 8_000, 500, 8
_HANDLE = re.compile(rf"\s*r?([0-9a-f]{{{DIGITS},64}})\s*")

READ_RESULT = ToolDefinition(
    name="read_result",
    description=(
        "Reads what was left out of a long tool result, by the handle that stands where it was "
        "cut. Gives numbered lines, and says how to go on."
    ),
    parameters={
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "The handle, such as r1a2b3c4d."},
            "lines": {
                "type": "string",
                "description": 'Which lines: "120-180", "120-", or "-50" for the last 50.',
            },
            "find": {
                "type": "string",
                "description": (
                    "Gives only lines with this text, in any case; * stands for anything, a|b for "
                    "either. Not a regular expression."
                ),
            },
            "context": {
                "type": "integer",
                "description": "How many lines to give around each that was found; 2 if not said.",
            },
        },
        "required": ["handle"],
    },
)


class ReadArguments(Struct, frozen=True, kw_only=True):
    """The arguments of a tool call."""

    handle: str
    lines: str = ""
    find: str = ""
    context: int = 2


def make_handle(digest: str) -> str:
    """Return the handle for this digest."""
    return f"r{digest[:DIGITS]}"


def digits_of(handle: str) -> str:
    """Return the digest prefix that a handle contains; empty if it is not a handle."""
    match = _HANDLE.fullmatch(handle.lower())
    return match[1] if match else ""


def can_read_results(state: State) -> bool:
    """Return whether the model has the engine's own tool, not another one of that name."""
    return any(is_reader(tool) for tool in state.envelope.tools)


def is_reader(tool: ToolDefinition) -> bool:
    return tool.name == READ_RESULT.name and "handle" in tool.parameters.get("properties", {})


def say_how_to_read(digest: str) -> str:
    """Return the notice that replaces the cut part of a result."""
    return f"{READ_RESULT.name} gives the rest: handle {make_handle(digest)}"


def page_tokens(limit: int) -> int:
    """Return the maximum tokens of a page if requests may have `limit`."""
    return max(LEAST_TOKENS, min(MAX_TOKENS, limit // PAGE_SHARE))


Count = Callable[[str], int]

# The tokens of the notice for a removed middle, including how to read the removed part.
NOTICE_TOKENS, READABLE_NOTICE_TOKENS = 24, 48
_GAP = re.compile(
    r"\[\.\.\. ([\d,]+) tokens removed to fit the context window(?:; [^\n\]]{,80})? \.\.\.\]"
)
# Replaces a handle in text that was itself read by a handle.
FEWER_LINES = "ask for fewer lines"
# Less than this of an exchange is not worth keeping.
LEAST_RESULTS = 500


def shorten_text(text: str, limit: int, count: Count, how_to_read: str = "") -> str:
    """Return `text` shortened to about `limit` tokens, with a notice in place of its middle, which
    includes `how_to_read` if given."""
    size = count(text)
    if size <= limit:
        return text
    half = len(text) * limit // size // 2
    end = len(text) - half
    # An earlier gap is removed with the middle, and its tokens are still missing.
    before = sum(int(tokens.replace(",", "")) for tokens in _GAP.findall(text, half, end))
    gone = f"{size - limit + before:,} tokens removed to fit the context window"
    gap = "; ".join(filter(None, (gone, how_to_read)))
    return f"{text[:half]}\n[... {gap} ...]\n{text[end:]}"


def find_level(sizes: Sequence[int], goal: int) -> int:
    """Return the size to which large results are cut so that all of them are within `goal`; small
    ones stay whole."""
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
    """Return tool results reduced by `excess` tokens: the largest lose their middle, with a notice.
    Given the `digests` of the whole results, by call, the notices say how to read them."""
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
    """Return the tokens of the notice for a removed middle."""
    return NOTICE_TOKENS if digests is None else READABLE_NOTICE_TOKENS


def _how_to_read(result: ToolResult, digests: Mapping[str, str] | None) -> str:
    if digests is None:
        return ""
    # Text read by a handle has that handle in its header.
    return (
        FEWER_LINES if result.name == READ_RESULT.name else say_how_to_read(digests[result.call_id])
    )


def find_digests(
    state: State, message: str, results: Sequence[ToolResult]
) -> dict[str, str] | None:
    """Return the digests of a message's whole results, by call; None if the model has no tool to
    read them."""
    if not can_read_results(state):
        return None
    return {result.call_id: whole_digest(state, message, result) for result in results}


def result_name(result: ToolResult) -> str:
    """Return the name under which reports show a result."""
    return f"result:{result.call_id}"


def is_result(what: str) -> bool:
    return what.startswith("result:")


class Exchange(Struct, frozen=True, kw_only=True):
    """A call and the results kept with it, shortened where necessary."""

    start: int
    ops: tuple[ResultsReplace, ...] = ()
    reports: tuple[LeftOut, ...] = ()


def shorten_exchange(
    state: State, messages: Sequence[Message], sizes: Sequence[int], within: range, room: int,
    count: Count, reason: str,
) -> Exchange | None:  # fmt: skip
    """Return the last exchange in these messages, cut to `room`; None if too little of it would
    remain, or if it is not a call with its results."""
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

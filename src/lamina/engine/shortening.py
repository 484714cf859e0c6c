"""Texts that were not sent yet, with their middle taken out and said to be."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from lamina.values.message import ToolResult
from lamina.values.request import LeftOut

Count = Callable[[str], int]

# What the line about a removed middle costs.
NOTICE_TOKENS = 24


def shorten_text(text: str, limit: int, count: Count) -> str:
    """`text` with about `limit` tokens of it left, the middle gone and said to be."""
    size = count(text)
    if size <= limit:
        return text
    half = len(text) * limit // size // 2
    gap = f"\n[... {size - limit:,} tokens removed to fit the context window ...]\n"
    return f"{text[:half]}{gap}{text[len(text) - half :]}"


def shorten_results(
    results: Sequence[ToolResult], excess: int, count: Count
) -> tuple[list[ToolResult], list[LeftOut]]:
    """Tool results with `excess` tokens less: the largest lose their middle, and say so."""
    sizes = {result.call_id: count(result.text) for result in results}
    # A level that the large ones come down to; the small ones stay whole.
    goal = max(0, sum(sizes.values()) - excess - NOTICE_TOKENS * len(results))
    level, left = 0, sorted(sizes.values())
    while left and left[0] * len(left) <= goal:
        goal -= left.pop(0)
    level = goal // len(left) if left else max(sizes.values(), default=0)
    shortened, reports = [], []
    for result in results:
        size = sizes[result.call_id]
        if size <= level:
            shortened.append(result)
            continue
        shortened.append(replace(result, text=shorten_text(result.text, level, count)))
        detail = f"the result of {result.name} lost {size - level:,} of its {size:,} tokens"
        reports.append(
            LeftOut(
                what=f"result:{result.call_id}", reason="window", detail=detail, tokens=size - level
            )
        )
    return shortened, reports

"""What `lamina select` and `search` found, and why, as text."""

import shutil
import sys
from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict
from rich.console import Console

from lamina.apps.cli.search_index import gather_from, open_search, print_line, to_json
from lamina.apps.cli.terminal_text import one_line
from lamina.apps.views.search_candidates import CandidateSources
from lamina.core.values.request import WHOLE_POOL
from lamina.engine.sources.item_search import (
    SearchResult,
    SelectOptions,
    rank_candidates,
    select_candidates,
)

# How much of a text is shown where there is no terminal whose width would say.
WIDTH = 160


async def select_from(
    question: str, sources: CandidateSources, how: SelectOptions, console: Console
) -> tuple[SearchResult, ...]:
    candidates = await gather_from(sources, console)
    async with open_search(how.lexical, console) as (_, search):
        results = await select_candidates(question, candidates, how, search)
    if all(result.origin == WHOLE_POOL for result in results):
        print_line(console, "nothing fits the question; `lamina search` shows how everything ranks")
    return results


async def rank_from(
    question: str, sources: CandidateSources, top: int, lexical: bool, console: Console
) -> tuple[SearchResult, ...]:
    candidates = await gather_from(sources, console)
    async with open_search(lexical, console) as (_, search):
        return await rank_candidates(question, candidates, top, search)


def show_chosen(results: Sequence[SearchResult], as_json: bool) -> str:
    """Each item with its score, and under it why."""
    if as_json:
        return to_json([_row(result, ("rank", "lexical_rank")) for result in results])
    width = _width()
    return "\n".join(
        f"{_score(result)}  {_label(result)}\n      {one_line(result.why, width - 6)}"
        for result in results
    )


def show_ranked(results: Sequence[SearchResult], as_json: bool) -> str:
    """Each item with its place, its score and its place by words, and under it the best text."""
    if as_json:
        return to_json([_row(result, ("origin", "source")) for result in results])
    width = _width()
    lines: list[str] = []
    for result in results:
        words = "no words" if result.lexical_rank is None else f"by words {result.lexical_rank}"
        lines.append(f"{result.rank:>3}  {_score(result)}  {_label(result)}, {words}")
        lines.append(f"           {one_line(result.chunk, width - 11)}")
    return "\n".join(lines)


def _row(result: SearchResult, without: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in asdict(result).items() if key not in without}


def _score(result: SearchResult) -> str:
    return "   -" if result.score is None else f"{result.score:4.2f}"


def _label(result: SearchResult) -> str:
    name = one_line(f"{result.server} · {result.name}" if result.server else result.name)
    return f"{name} ({result.kind}, {result.include})" if result.include else name


def _width() -> int:
    return max(40, shutil.get_terminal_size().columns) if sys.stdout.isatty() else WIDTH

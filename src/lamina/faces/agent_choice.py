"""What a question would choose of an agent's rules, references and tools, and what only just not.

Law: what is chosen here is chosen as a session begins, by the same functions.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from lamina.faces.agents import ENCODING
from lamina.faces.context_record import NearMiss, near_miss
from lamina.faces.search_candidates import Candidates, CandidateSources, gather_candidates
from lamina.providers.tokens import EncodingCounter
from lamina.sources.selector import RUNNERS_UP
from lamina.values.selection import Preset
from lamina.wiring.trust import FolderTrust

if TYPE_CHECKING:
    from lamina.embed.index.sqlite_index import SqliteIndex
    from lamina.faces.search import IndexSearch, SearchResult, SelectOptions


class ChosenItem(Struct, frozen=True, kw_only=True):
    """Something that a question would bring. `part` is the part of the question that it fits best,
    `chunk` the text of it that does."""

    item: str
    kind: str
    name: str
    server: str
    include: str
    score: float | None
    origin: str
    source: str
    part: str
    chunk: str
    why: str
    tokens: int


class AgentChoice(Struct, frozen=True, kw_only=True):
    """The choice. `tokens` are those of what search chose; `always` of what is in anyway. `method`
    says whether meaning was looked at or words alone."""

    question: str
    preset: str
    method: str
    items: tuple[ChosenItem, ...]
    near: tuple[NearMiss, ...]
    tokens: int
    always: int
    warnings: tuple[str, ...]


class NobodyToAsk:
    """What a folder brings counts if it was trusted before."""

    async def agree(self, folder: FolderTrust) -> bool:  # noqa: ARG002
        return False

    def say(self, line: str) -> None:
        """Whatever is odd stands in the choice."""


async def choose_for(
    question: str, agent: Path, workspace: Path, preset: Preset | None, index: "SqliteIndex"
) -> AgentChoice:
    """What a question would choose of the agent at a path.

    Raises:
        ExtraMissing: what searches, or what speaks to its servers, is not installed.
        UsageError: the agent cannot be read.
    """
    # numpy takes its time to load, and is needed only for a search.
    from lamina.faces.search import IndexSearch, SelectOptions, select_candidates

    sources = CandidateSources(agents=(str(agent),), workspace=workspace)
    candidates = await gather_candidates(sources, NobodyToAsk())
    warnings: list[str] = []
    search = IndexSearch(index, warnings.append)
    options = SelectOptions(preset=preset)
    results = await select_candidates(question, candidates, options, search)
    sizes = _sizes(candidates)
    near = await _near(question, candidates, options, search, {r.id for r in results})
    by_words = next((line for line in warnings if line.startswith("found by words alone")), "")
    items = tuple(_item(result, sizes.get(result.id, 0)) for result in results)
    return AgentChoice(
        question=question,
        preset=preset or "",
        method=by_words or "by meaning and words",
        items=items,
        near=near,
        tokens=sum(item.tokens for item in items if item.origin),
        always=sum(item.tokens for item in items if not item.origin),
        warnings=tuple(line for line in warnings if line != by_words),
    )


def _sizes(candidates: Candidates) -> dict[str, int]:
    """About how many tokens each takes; of a tool, what is said of it."""
    count = EncodingCounter(ENCODING).count
    sizes = {
        str(candidate.document.id): count("\n".join(candidate.document.chunks))
        for candidate in candidates.candidates
        if candidate.kind == "tool"
    }
    return sizes | {str(guide.id): count(guide.text) for guide in candidates.guides}


def _item(result: "SearchResult", tokens: int) -> ChosenItem:
    return ChosenItem(
        item=result.id,
        kind=result.kind,
        name=result.name,
        server=result.server,
        include=result.include,
        score=result.score,
        origin=result.origin,
        source=result.source,
        part=result.part,
        chunk=result.chunk,
        why=result.why,
        tokens=tokens,
    )


async def _near(
    question: str,
    candidates: Candidates,
    options: "SelectOptions",
    search: "IndexSearch",
    chosen: set[str],
) -> tuple[NearMiss, ...]:
    """The best of what was not chosen, of rules and references and of tools."""
    from lamina.faces.search import find_lacking, rank_candidates

    misses: list[NearMiss] = []
    for pool, own in candidates.searched():
        settings = options.settings(own)
        if not settings.search:
            continue
        of_pool = replace(candidates, candidates=pool, problems=())
        most = len(chosen) + RUNNERS_UP
        ranking: Sequence[SearchResult] = await rank_candidates(question, of_pool, most, search)
        rest = [result for result in ranking if result.id not in chosen][:RUNNERS_UP]
        lacking = await find_lacking(question, of_pool, settings, search) if rest else None
        misses += [near_miss(result.id, result.score, settings, "now", lacking) for result in rest]
    return tuple(misses)

"""What a question would choose of what there is, and what only just not.

Law: what is chosen here is chosen as in a session, by the same functions.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from lamina.core.ports import Index, Progress
from lamina.core.values.agent_choice import AgentChoice, ChosenItem, NearMiss
from lamina.core.values.item import ItemId, key_of, kind_of
from lamina.core.values.selection import Evidence, Preset, SearchSettings
from lamina.engine.sources.candidates import Candidates
from lamina.engine.sources.selector import RUNNERS_UP

# How an item came that search itself found, and nothing brought along.
SEARCHED_ORIGINS = ("search", "lexical")

if TYPE_CHECKING:
    from lamina.engine.sources.item_search import IndexSearch, SearchResult, SelectOptions


async def choose_candidates(
    question: str,
    candidates: Candidates,
    index: Index,
    count: Callable[[str], int],
    *,
    preset: Preset | None = None,
    top: int | None = None,
    progress: Progress | None = None,
) -> AgentChoice:
    """What a question would choose of candidates: as their settings say, as a preset says, or just
    the `top` best. `count` counts tokens."""
    # numpy takes its time to load, and is needed only for a search.
    from lamina.engine.sources.item_search import IndexSearch, SelectOptions, select_candidates

    warnings: list[str] = []
    search = IndexSearch(index, warnings.append, progress)
    options = SelectOptions(preset=preset, top=top)
    results = await select_candidates(question, candidates, options, search)
    sizes = _sizes(candidates, count)
    near = await _near(question, candidates, options, search, results)
    by_words = next((line for line in warnings if line.startswith("found by words alone")), "")
    items = tuple(_item(result, sizes.get(result.id, 0)) for result in results)
    return AgentChoice(
        question=question,
        preset=preset or "",
        method=by_words or "by meaning and words",
        items=items,
        near=near,
        **sum_tokens(items, candidates),
        warnings=tuple(line for line in warnings if line != by_words),
    )


def sum_tokens(items: Sequence[ChosenItem], candidates: Candidates) -> dict[str, int]:
    """The tokens of what search chose, and of what is in anyway."""
    anyway = [item for item in items if not item.origin or item.item in candidates.whole_pool]
    always = sum(item.tokens for item in anyway)
    return {"tokens": sum(item.tokens for item in items) - always, "always": always}


def _sizes(candidates: Candidates, count: Callable[[str], int]) -> dict[str, int]:
    """About how many tokens each takes; of a tool, what is said of it."""
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
    results: "Sequence[SearchResult]",
) -> tuple[NearMiss, ...]:
    """The best of what was not chosen, of rules and references and of tools."""
    from lamina.engine.sources.item_search import find_lacking, rank_candidates

    misses: list[NearMiss] = []
    chosen = {result.id for result in results}
    found = {result.id for result in results if result.origin in SEARCHED_ORIGINS}
    for pool, own in candidates.searched():
        settings = options.settings(own)
        if not settings.search:
            continue
        of_pool = replace(candidates, candidates=pool, problems=())
        most = len(chosen) + RUNNERS_UP
        ranking: Sequence[SearchResult] = await rank_candidates(question, of_pool, most, search)
        rest = [result for result in ranking if result.id not in chosen][:RUNNERS_UP]
        lacking = None
        if options.top is not None:
            # Just the best of everything, whatever the settings say.
            settings = SearchSettings(top_n=options.top, floor=-1.0, include_score=1.0)
            taken = options.top
        else:
            lacking = await find_lacking(question, of_pool, settings, search) if rest else None
            taken = sum(candidate.document.id in found for candidate in pool)
        misses += [
            near_miss(result.id, result.score, settings, "now", lacking, taken=taken)
            for result in rest
        ]
    return tuple(misses)


def near_miss(
    item: str,
    score: float | None,
    how: SearchSettings,
    as_of: Literal["request", "now"],
    lacking: Evidence | None = None,
    *,
    taken: int | None = None,
) -> NearMiss:
    """Something that was not chosen, and how far it was from it. `taken` is how many others were
    chosen, if that is known."""
    kind, key = str(kind_of(ItemId(item))), key_of(ItemId(item))
    server, slash, name = key.partition("/") if kind == "tool" else ("", "", key)
    if score is not None and score <= how.floor:
        why = f"{score:z.2f} is not above {how.floor:g}, the least that is chosen"
    elif lacking is not None:
        why = lacking.verdict
    elif taken is not None and taken < how.top_n:
        # There was a place left for it, and it did not get as far as that.
        why = f"others fit better: no text of it is among the {how.top_k} that fit best"
    elif taken is None:
        why = "others fit better"
    elif how.include_score < 1:
        best = f"the best {how.top_n}" if how.top_n != 1 else "only the best one"
        why = f"others fit better: {best} and all from {how.include_score:g} on are taken"
    else:
        why = f"others fit better: the best {taken} are taken"
        why = why if taken != 1 else "another one fits better, and only the best one is taken"
    return NearMiss(
        item=item,
        kind=kind,
        name=name if slash or kind != "tool" else server,
        server=server if slash else "",
        score=score,
        floor=how.floor,
        threshold=how.include_score,
        most=how.top_n,
        why=why,
        as_of=as_of,
    )

"""Finds the rules, references and tools of an agent that a question would choose if it were asked
now.

Laws: items are chosen by the same functions as in a session; nothing is asked, written or run. As
with a question, items that a person removed from the session are left out.
"""

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from lamina.core.assembly.boundary import find_boundary
from lamina.core.assembly.inclusion import Inclusion, in_session, sort_by_include, sort_tools
from lamina.core.assembly.tool_offer import offers_whole_pool
from lamina.core.ports import Index, Progress
from lamina.core.values.agent import Guide
from lamina.core.values.item import GUIDE_KINDS, ItemId, key_of, kind_of
from lamina.core.values.selection import (
    AgentChoice,
    ChosenItem,
    Evidence,
    NearMiss,
    Preset,
    SearchSettings,
)
from lamina.core.values.tool import OfferedTool, Toolset
from lamina.engine.session.session import Session, core_of
from lamina.engine.sources.candidates import (
    Candidates,
    guide_candidate,
    offered_candidate,
    recent_questions,
)
from lamina.engine.sources.note_search import check_query, check_top
from lamina.engine.sources.selector import RUNNERS_UP, describe_problems
from lamina.errors import UsageError

if TYPE_CHECKING:
    from lamina.engine.sources.item_search import IndexSearch, SearchResult, SelectOptions


# How an item got in that was found by search itself, not brought along by another item.
SEARCHED_ORIGINS = ("search", "lexical")


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
    """Return the candidates that a question would choose: by their settings, by a preset, or just
    the `top` best. `count` counts tokens.
    """
    # numpy takes time to load, and is needed only for a search.
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
    """Return the tokens of the items chosen by search, and of those included anyway."""
    anyway = [item for item in items if not item.origin or item.item in candidates.whole_pool]
    always = sum(item.tokens for item in anyway)
    return {"tokens": sum(item.tokens for item in items) - always, "always": always}


def _sizes(candidates: Candidates, count: Callable[[str], int]) -> dict[str, int]:
    """Return the approximate size of each item in tokens; for a tool, that of its description."""
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
    """Return the best items that were not chosen: of rules and references, and of tools."""
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
            # Just the best of all items, whatever the settings require.
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
    """Return an item that was not chosen, with its distance from the threshold. `taken` is how many
    others were chosen, if that is known.
    """
    kind, key = str(kind_of(ItemId(item))), key_of(ItemId(item))
    server, slash, name = key.partition("/") if kind == "tool" else ("", "", key)
    if score is not None and score <= how.floor:
        why = f"{score:z.2f} is not above {how.floor:g}, the least that is chosen"
    elif lacking is not None:
        why = lacking.verdict
    elif taken is not None and taken < how.top_n:
        # There was still room for it, but its score was too low.
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


SearchedKind = Literal["rule", "reference", "tool"]
ALL_KINDS: tuple[SearchedKind, ...] = ("rule", "reference", "tool")


async def search_session(
    session: Session,
    toolset: Toolset,
    question: str,
    kinds: Collection[SearchedKind],
    preset: Preset | None,
    top: int | None,
) -> AgentChoice:
    """Return the items that a question would choose from the session's rules and references and
    from a toolset.

    Raises:
        ExtraMissing: search is not installed.
        UsageError: the question is empty, a kind is unknown, or both `top` and `preset` are passed.
    """
    _check(question, kinds, preset, top)
    core = core_of(session)
    selector = core.turns.tools.selector
    index = selector.require_index()
    candidates = await _gather(session, toolset)
    if top is not None:
        candidates = replace(
            candidates, candidates=tuple(c for c in candidates.candidates if c.kind in kinds)
        )
    counter = core.layouts.book.counter(session.target())
    choice = await choose_candidates(
        question, candidates, index, counter.count,
        preset=preset, top=top, progress=selector.progress,
    )  # fmt: skip
    items = tuple(item for item in choice.items if item.kind in kinds)
    return replace(
        choice,
        items=items,
        near=tuple(miss for miss in choice.near if miss.kind in kinds),
        **sum_tokens(items, candidates),
    )


def _check(
    question: str, kinds: Collection[SearchedKind], preset: Preset | None, top: int | None
) -> None:
    check_query(question, "question")
    _check_kinds(kinds)
    if top is not None and preset is not None:
        raise UsageError("pass either top or preset, not both: each says how much is taken")
    if top is not None:
        check_top(top, "items")


def _check_kinds(kinds: object) -> None:
    known = f"pass a list of {', '.join(map(repr, ALL_KINDS))}, or of some of them"
    if not isinstance(kinds, Collection) or isinstance(kinds, str | bytes) or not kinds:
        raise UsageError(f"kinds is {kinds!r}: {known}")
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise UsageError(f"{kind!r} is not a kind: {known}")


async def _gather(session: Session, toolset: Toolset) -> Candidates:
    """Return the candidates of a session in its current state."""
    core, state, settings = core_of(session), session.state, session.settings
    target = session.target()
    guides = await core.turns.tools.selector.guides(state)
    members = state.library.members
    own_guides = tuple(g for g in guides.guides if members.get(g.id) != "removed")
    tools = sort_tools(state, toolset.tools)
    gone = {tool.id for tool in tools.removed}
    boundary = find_boundary(state, target, core.clock.now())
    count = core.layouts.assembler_for(target, settings.promotion).definition_tokens
    is_whole = offers_whole_pool(state, target, tools, boundary, count)
    there = in_session(toolset.tools, state.library.include_modes)
    withheld = (f"not offered: {tool.what}: {tool.detail}" for tool in toolset.withheld)
    return Candidates(
        candidates=(
            *map(guide_candidate, own_guides),
            *(offered_candidate(tool, settings) for tool in there if tool.id not in gone),
        ),
        guides=own_guides,
        guide_search=settings.guide_search,
        tool_search=settings.tool_search,
        relations=core.turns.tools.selector.relations,
        problems=(*describe_problems(guides.problems), *withheld),
        added=_added(sort_by_include(own_guides, members, *GUIDE_KINDS)) | _added(tools),
        recent=recent_questions(state),
        whole_pool=frozenset(tool.id for tool in tools.agent if is_whole),
    )


def _added(inclusion: Inclusion[Guide] | Inclusion[OfferedTool]) -> frozenset[ItemId]:
    return frozenset(member.id for member in inclusion.manual)

"""What a question would choose in a session, if it were asked now.

Laws: what is chosen is what the session would choose, by the same functions; nothing is asked,
written or run for it. What a person took out of the session is not there, as for a question.
"""

from collections.abc import Collection
from typing import Literal

from msgspec.structs import replace

from lamina.core.assembly.boundary import find_boundary
from lamina.core.assembly.inclusion import Inclusion, in_session, sort_by_include, sort_tools
from lamina.core.assembly.tools import offers_whole_pool
from lamina.core.values.agent import Guide
from lamina.core.values.agent_choice import AgentChoice
from lamina.core.values.item import ItemId
from lamina.core.values.item_kind import GUIDE_KINDS
from lamina.core.values.selection import Preset
from lamina.core.values.tool import OfferedTool, Toolset
from lamina.engine.session.session import Session, core_of
from lamina.engine.sources.agent_choice import choose_candidates, sum_tokens
from lamina.engine.sources.agent_problems import describe_problems
from lamina.engine.sources.candidates import (
    Candidates,
    guide_candidate,
    offered_candidate,
    recent_questions,
)
from lamina.engine.sources.search_arguments import check_query, check_top
from lamina.errors import UsageError

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
    """What a question would choose of the session's rules and references and of a toolset.

    Raises:
        ExtraMissing: search is not installed.
        UsageError: the question is empty, a kind is none, or `top` and `preset` are both given.
    """
    _check(question, kinds, preset, top)
    core = core_of(session)
    selector = core.turns.selector
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
        raise UsageError("top and preset do not go together: both say how much is taken")
    if top is not None:
        check_top(top, "items")


def _check_kinds(kinds: object) -> None:
    known = f"it takes a list of some of {', '.join(map(repr, ALL_KINDS))}"
    if not isinstance(kinds, Collection) or isinstance(kinds, str | bytes) or not kinds:
        raise UsageError(f"kinds is {kinds!r}: {known}")
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise UsageError(f"{kind!r} is no kind: {known}")


async def _gather(session: Session, toolset: Toolset) -> Candidates:
    """What there is to choose from in a session as it stands."""
    core, state, settings = core_of(session), session.state, session.settings
    target = session.target()
    guides = await core.turns.selector.guides(state)
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
        relations=core.turns.selector.relations,
        problems=(*describe_problems(guides.problems), *withheld),
        added=_added(sort_by_include(own_guides, members, *GUIDE_KINDS)) | _added(tools),
        recent=recent_questions(state),
        whole_pool=frozenset(tool.id for tool in tools.agent if is_whole),
    )


def _added(inclusion: Inclusion[Guide] | Inclusion[OfferedTool]) -> frozenset[ItemId]:
    return frozenset(member.id for member in inclusion.manual)

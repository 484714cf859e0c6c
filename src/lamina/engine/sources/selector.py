"""Selects the rules, references and tools that apply to a question, in addition to attachments.

Laws: a failed search loses only its own results: the session's items are still sent. Choices and
near misses are reported with their scores, and so are problems with the agent's files.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.budget import CHOSEN_SHARE
from lamina.core.assembly.inclusion import (
    Inclusion,
    agent_changes,
    find_member,
    find_mentions,
    in_session,
    sort_by_include,
    sort_guides,
)
from lamina.core.journal import State
from lamina.core.ports import Corpus, GuideSource, Index, Progress
from lamina.core.text import label_of
from lamina.core.values.agent import AgentChange, Guide, Guides, Problem
from lamina.core.values.item import (
    ALWAYS,
    BY_HAND,
    GUIDE_KINDS,
    Attachment,
    Item,
    ItemId,
    Provenance,
    key_of,
    kind_of,
)
from lamina.core.values.request import LeftOut
from lamina.core.values.selection import Document, Evidence, SearchSettings, SelectedItem
from lamina.core.values.tool import OfferedTool
from lamina.engine.sources.attachments import Attachments
from lamina.engine.sources.candidates import (
    corpus_warnings,
    guide_document,
    matching_guides,
    recent_questions,
    recent_results,
    tool_document,
    vanished_guides,
)
from lamina.engine.sources.related_items import ChosenFrom, Pool, expand_all, expand_results
from lamina.errors import ExtraMissing, LaminaError

# How many problems in an agent's files are named with a request.
PROBLEMS_SHOWN = 5


def name_errors(problems: Sequence[Problem]) -> list[str]:
    """Return the problems with an agent's files that deserve a line each."""
    errors = [str(problem) for problem in problems if problem.level == "error"]
    return errors[:PROBLEMS_SHOWN]


def describe_problems(problems: Sequence[Problem]) -> list[str]:
    """Return a description of the problems with an agent's files; minor ones are only counted."""
    errors = [problem for problem in problems if problem.level == "error"]
    lines = name_errors(problems)
    if rest := len(problems) - len(lines):
        one, many = ("problem", "problems") if len(errors) > len(lines) else ("oddity", "oddities")
        noun = many if rest > 1 else one
        lines.append(f"{rest} {noun} in the files of the agent; `lamina agent check` names them")
    return lines


def describe_changes(changes: Sequence[AgentChange]) -> list[str]:
    """Return, in one line, how the files of an agent differ from what the session adopted."""
    if not changes:
        return []
    named = "; ".join(change.detail for change in changes[:PROBLEMS_SHOWN])
    more = f"; and {len(changes) - PROBLEMS_SHOWN} more" if len(changes) > PROBLEMS_SHOWN else ""
    return [
        f"{named}{more}. The session keeps what it has; `/items adopt`, `lamina sessions adopt` or "
        f"`session.adopt_agent()` takes the agent's files over"
    ]


class SearchChoice(Struct, frozen=True, kw_only=True):
    """The results of a search: the best first, and the best that were not taken. `lacking` says
    what is missing, if there is too little evidence for taking any.
    """

    items: tuple[SelectedItem, ...] = ()
    next_best: tuple[SelectedItem, ...] = ()
    lacking: Evidence | None = None
    warnings: tuple[str, ...] = ()


NO_CHOICE = SearchChoice()


def take_while_room(
    choice: SearchChoice, room_left: int, cost_of: Callable[[SelectedItem], int]
) -> tuple[SearchChoice, tuple[LeftOut, ...]]:
    """Return the choice without items that would use too much of the remaining room; smaller items
    behind them may still be included.
    """
    items: list[SelectedItem] = []
    too_large: list[LeftOut] = []
    for item in choice.items:
        cost = cost_of(item)
        if cost and cost > room_left * CHOSEN_SHARE:
            detail = f"{_scored_label(item)} was chosen, and {cost:,} tokens are too many"
            detail += " for the room left"
            what = item.item
            too_large.append(LeftOut(what=what, reason="room_left", detail=detail, tokens=cost))
        else:
            room_left -= cost
            items.append(item)
    return replace(choice, items=tuple(items)), tuple(too_large)


def runners_up(choice: SearchChoice) -> tuple[LeftOut, ...]:
    """Return the near misses."""
    lacking = choice.lacking
    why = lacking.verdict if lacking else "others fit the question better"
    return tuple(
        LeftOut(
            what=item.item,
            reason="ranked_lower",
            detail=f"{_scored_label(item)}: {why}",
            score=item.score,
            lacking=lacking,
        )
        for item in choice.next_best
    )


def _scored_label(item: SelectedItem) -> str:
    score = f" ({item.score:.2f})" if item.score is not None else ""
    return f"{label_of(item.item)}{score}"


# How many of the next best are reported.
RUNNERS_UP = 3
# An attachment with this similarity to the question keeps its priority; every tenth above or below
# moves it by 0.6.
PIVOT, SLOPE = 0.3, 6.0


class Selector:
    """Chooses for the questions of one session. Without a source, only attached rules and
    references apply; without an index nothing is searched for, and `no_index` says why.
    """

    def __init__(
        self,
        index: Index | None = None,
        source: GuideSource | None = None,
        *,
        relations: Mapping[str, Sequence[str]] | None = None,
        progress: Progress | None = None,
        notices: Sequence[str] = (),
        no_index: str = "there is no index",
    ) -> None:
        """`notices` are warnings about the agent, whatever is asked."""
        self._notices = tuple(notices)
        self.index = index
        self.no_index = no_index
        self._source = source
        # Whether there is an agent, whose rules and references may apply.
        self.guides_turns = source is not None
        self._relations = dict(relations or {})
        self.progress = progress
        # The last files read, the include modes applied to them, and the result.
        self._in_session: tuple[object, object, tuple[Guide, ...]] = (None, None, ())
        # A warning is not repeated on every turn.
        self._reports: set[str] = set()

    @property
    def relations(self) -> dict[str, tuple[str, ...]]:
        """The agent's relations: the items that each item brings along."""
        return {item: tuple(others) for item, others in self._relations.items()}

    def require_index(self) -> Index:
        """Return the index that is searched.

        Raises:
            ExtraMissing: there is no index, because search is not installed.
        """
        if self.index is None:
            raise ExtraMissing(self.no_index)
        return self.index

    async def guides(self, state: State) -> Guides:
        """Return the available rules and references, under the include modes that the session has
        for them; and how the agent's files differ from it.
        """
        guides, modes = await self.agent_guides(), state.library.include_modes
        if modes is None:
            return guides
        before, known_modes, own = self._in_session
        if guides.guides is not before or modes != known_modes:
            own = tuple(in_session(guides.guides, modes))
            # The same value as long as nothing changed: others compare by identity.
            self._in_session = (guides.guides, modes, own)
        return replace(guides, guides=own, changes=agent_changes(state.library, guides))

    async def agent_guides(self) -> Guides:
        """Return the rules and references in the agent's current files. An agent that cannot be
        read has none, and this is reported: the session's items from it are then missing.
        """
        if self._source is None:
            return Guides()
        try:
            return await self._source.guides()
        except (LaminaError, OSError) as error:
            problem = Problem(path="agent", problem=str(error))
            return Guides(problems=(problem,), gone=str(error))

    def mentions(self, text: str, guides: Guides) -> tuple[ItemId, ...]:
        """Return the rules and references that a message adds by name, including missing ones."""
        if self._source is None:
            return ()
        items = (find_member(mention, guides.guides) or mention for mention in find_mentions(text))
        return tuple(dict.fromkeys(items))

    def guide_pool(
        self,
        state: State,
        attached: Sequence[Attachment],
        guides: Guides,
        mentions: Iterable[ItemId] = (),
    ) -> Pool:
        """Return the candidate rules and references for a question, which adds `mentions`."""
        inclusion = sort_by_include(guides.guides, state.library.members, *GUIDE_KINDS)
        matches = matching_guides(guides.guides, state, attached)
        there = {attachment.item.id for attachment in attached} | {*mentions}
        there |= {guide.id for guide in (*inclusion.present, *(guide for guide, _ in matches))}
        members = state.library.members
        return Pool(
            documents=[guide_document(g) for g in inclusion.agent if g.id not in there],
            settings=state.settings.guide_search,
            candidates=frozenset(g.id for g in guides.guides if members.get(g.id) != "removed"),
            there=frozenset(there),
        )

    def tool_pool(self, state: State, inclusion: Inclusion[OfferedTool]) -> Pool:
        """Return the candidate tools for a question."""
        if state.settings.tool_policy == "all":
            return Pool(settings=state.settings.tool_search)
        present = frozenset(tool.id for tool in inclusion.present)
        return Pool(
            documents=[tool_document(tool) for tool in inclusion.agent],
            settings=state.settings.tool_search,
            candidates=present | {tool.id for tool in inclusion.agent},
            there=present,
        )

    def guide(
        self,
        state: State,
        attached: Sequence[Attachment],
        guides: Guides,
        choice: SearchChoice,
        room: Callable[[Item], int],
        room_left: int,
    ) -> Attachments:
        """Return the rules and references that apply to a question, after search made its choice.
        `room` determines how much an item adds to the request.
        """
        inclusion = sort_by_include(guides.guides, state.library.members, *GUIDE_KINDS)
        own = {attachment.item.id for attachment in attached}
        by_id = {guide.id: guide for guide in guides.guides}
        additions = {
            guide.id: attach_guide(guide, ALWAYS) for guide in sort_guides(inclusion.always)
        }
        additions |= {guide.id: attach_guide(guide, BY_HAND) for guide in inclusion.manual}
        for guide, path in matching_guides(guides.guides, state, attached):
            found = Provenance(include="agent", origin="glob", source=path)
            additions.setdefault(guide.id, attach_guide(guide, found))
        # Items that a person or the agent put in get their room first.
        room_left -= sum(room(a.item) for item, a in additions.items() if item not in own)
        choice, too_large = take_while_room(
            choice, room_left, lambda hit: room(by_id[hit.item].item())
        )
        for hit in choice.items:
            additions[hit.item] = attach_guide(by_id[hit.item], hit.provenance)
        missing = (_missing(item) for item in (*inclusion.missing, *vanished_guides(state, by_id)))
        return Attachments(
            attachments=tuple(a for item, a in additions.items() if item not in own),
            left_out=(*missing, *too_large, *runners_up(choice)),
            warnings=self.take_new_warnings(
                (
                    *self._notices,
                    *describe_problems(guides.problems),
                    *describe_changes(guides.changes),
                )
            )
            + choice.warnings,
        )

    async def choose(self, state: State, question: str, *pools: Pool) -> tuple[SearchChoice, ...]:
        """Return the items from each pool that fit a question, and those they bring along, from
        either pool.
        """
        searches = [await self._search(state, question, pool) for pool in pools]
        choices = [
            ChosenFrom(settings=search.pool.settings, corpus=search.corpus, items=search.items)
            for search in searches
        ]
        try:
            additions = await expand_all(choices)
        # If the expansion fails, the choice is still valid.
        except Exception as error:  # noqa: BLE001
            additions = [() for _ in choices]
            problem = f"expansion failed, so nothing came along: {type(error).__name__}: {error}"
            searches[0].warnings.append(problem)
        for search, new in zip(searches, additions, strict=True):
            search.items += new
        for search in searches:
            if state.settings.expand_results and search.corpus is not None:
                search.items += await expand_results(
                    search.corpus, recent_results(state), search.items, search.pool.settings
                )
        return self._with_relations(searches)

    async def choose_from_results(
        self, results: Sequence[tuple[str, str]], *pools: Pool
    ) -> tuple[SearchChoice, ...]:
        """Return items similar to the results of tools, (name, text) each, and the items these
        bring along.
        """
        searches = [PoolSearch(pool) for pool in pools]
        for search in searches:
            pool = search.pool
            if self.index is None or not (pool.documents and pool.settings.search):
                continue
            try:
                corpus = await self.index.load(pool.documents, self.progress)
                found = await expand_results(corpus, results, (), pool.settings)
                search.items = tuple(item for item in found if item.item not in pool.there)
            # The turn continues without the results.
            except Exception as error:  # noqa: BLE001
                problem = f"{type(error).__name__}: {error}"
                search.warnings.append(f"results were not searched from: {problem}")
        return self._with_relations(searches)

    async def choose_tools(
        self, state: State, question: str, inclusion: Inclusion[OfferedTool]
    ) -> SearchChoice:
        """Return the tools that fit a question, among those chosen by search; chosen rules and
        references may bring some along.
        """
        guides = self.guide_pool(state, (), await self.guides(state))
        tools = self.tool_pool(state, inclusion)
        if not self.crosses(guides, tools):
            return (await self.choose(state, question, tools))[0]
        return (await self.choose(state, question, guides, tools))[1]

    async def weigh(
        self, question: str, attachments: Sequence[Attachment], state: State
    ) -> tuple[tuple[Attachment, ...], tuple[str, ...]]:
        """Return the attachments, with their priorities adjusted by relevance to the question; and
        what prevents that.
        """
        from lamina.core.selection.chunks import chunk_item

        documents = [
            Document(a.item.id, chunk_item(label_of(a.item.id), a.item.title, a.item.content))
            for a in (attachments if state.settings.relevance_priority else ())
            if not a.is_essential
            and a.item.id not in state.library.pinned
            and a.item.content.strip()
        ]
        if not documents:
            return tuple(attachments), ()
        try:
            scores, problem = await self._likeness(question, documents)
        # Then an attachment keeps its original priority.
        except Exception as error:  # noqa: BLE001
            scores, problem = {}, f"{type(error).__name__}: {error}"
        warnings = self.take_new_warnings(
            [f"relevance moves no priority: {problem}"] if problem else []
        )
        return tuple(_weigh(a, scores.get(a.item.id)) for a in attachments), warnings

    # -- inside ----------------------------------------------------------------------------------

    def crosses(self, *pools: Pool) -> bool:
        """Return whether choices from one pool may bring along items of another."""
        return bool(self._relations) or all(pool.settings.expansion_depth for pool in pools)

    async def _search(self, state: State, question: str, pool: Pool) -> "PoolSearch":
        """Return the results of a search in a pool."""
        search = PoolSearch(pool)
        if not (pool.documents and pool.settings.search):
            return search
        if self.index is None:
            problem = f"{len(pool.documents)} items are chosen by search, and {self.no_index}"
            search.warnings += self.take_new_warnings([problem])
            return search
        try:
            await self._find(self.index, state, question, search)
        # Even if a search fails, a question can be asked without its results.
        except Exception as error:  # noqa: BLE001
            problem = f"{type(error).__name__}: {error}"
            problem = f"search failed, so nothing was chosen by it: {problem}"
            search = PoolSearch(pool)
            search.warnings.append(problem)
        return search

    async def _find(self, index: Index, state: State, question: str, search: "PoolSearch") -> None:
        from lamina.core.selection.chosen_items import judge_items
        from lamina.core.selection.question import split_question
        from lamina.core.selection.scores import measure_fits, rank_documents

        query = split_question(question, recent=recent_questions(state))
        if not query.parts:
            return
        documents, settings = search.pool.documents, search.pool.settings
        search.corpus = corpus = await index.load(documents, self.progress)
        scores = await corpus.score([part.text for part in query.parts])
        fits = measure_fits(documents, scores, query)
        choice = judge_items(documents, scores, query, settings, fits=fits)
        search.items, search.lacking = choice.items, choice.lacking
        # Items that are brought along may be among the next best.
        most = len(search.items) + RUNNERS_UP
        most += settings.expansion_top_n * (settings.expansion_depth + 2)
        search.ranking = rank_documents(documents, scores, query, settings, most=most, fits=fits)
        warnings = [f"search by words alone: {corpus.lexical}"] if corpus.lexical else []
        search.warnings += self.take_new_warnings(warnings + corpus_warnings(corpus))

    def _with_relations(self, searches: Sequence["PoolSearch"]) -> tuple[SearchChoice, ...]:
        """Return the results in each pool, with the relations of all of it."""
        found_items = [item for search in searches for item in search.items]
        if self._relations and found_items:
            from lamina.core.selection.expansion import find_related

            candidates = frozenset().union(*(search.pool.candidates for search in searches))
            there = frozenset().union(*(search.pool.there for search in searches))
            for item in find_related(found_items, self._relations, candidates, there):
                owner = next(s for s in searches if item.item in s.pool.candidates)
                owner.items += (item,)
        return tuple(search.choice() for search in searches)

    async def _likeness(
        self, question: str, documents: Sequence[Document]
    ) -> tuple[dict[ItemId, float], str]:
        """Return the best similarity of each document to a question; and why it is unknown."""
        if self.index is None:
            return {}, self.no_index
        from lamina.core.selection.chosen_items import choose_items
        from lamina.core.selection.question import split_question

        query = split_question(question)
        if not query.parts:
            return {}, ""
        every = SearchSettings(top_k=10**6, top_n=len(documents), floor=-1.0, include_score=1.0)
        corpus = await self.index.load(documents, self.progress)
        scores = await corpus.score([part.text for part in query.parts])
        items = choose_items(documents, scores, query, every)
        likeness = {item.item: item.score for item in items if item.score is not None}
        return likeness, corpus.lexical

    def take_new_warnings(self, reports: Iterable[str]) -> tuple[str, ...]:
        """Return the warnings that this session has not reported yet, and count them as
        reported.
        """
        warnings = tuple(report for report in dict.fromkeys(reports) if report not in self._reports)
        self._reports.update(warnings)
        return warnings


class PoolSearch:
    """The items found in a pool so far, and the ranking of the rest of it."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.corpus: Corpus | None = None
        self.items: tuple[SelectedItem, ...] = ()
        self.ranking: tuple[SelectedItem, ...] = ()
        self.lacking: Evidence | None = None
        self.warnings: list[str] = []

    def choice(self) -> SearchChoice:
        names = {item.item for item in self.items}
        next_best = tuple(item for item in self.ranking if item.item not in names)[:RUNNERS_UP]
        return SearchChoice(
            items=self.items,
            next_best=next_best,
            lacking=self.lacking,
            warnings=tuple(self.warnings),
        )


def attach_guide(guide: Guide, provenance: Provenance) -> Attachment:
    """Return a rule or a reference as an attachment to a turn."""
    return Attachment(item=guide.item(), provenance=replace(provenance, level=guide.level))


def _missing(item: ItemId) -> LeftOut:
    detail = f"{kind_of(item)} {key_of(item)!r} is not there any more; it was deleted or renamed"
    return LeftOut(what=item, reason="missing", detail=detail)


def _weigh(attachment: Attachment, score: float | None) -> Attachment:
    if score is None:
        return attachment
    priority = max(1, attachment.priority + round(SLOPE * (PIVOT - score)))
    before = attachment.priority if attachment.priority != priority else None
    provenance = replace(attachment.provenance, score=score, priority_before=before)
    return replace(attachment, priority=priority, provenance=provenance)

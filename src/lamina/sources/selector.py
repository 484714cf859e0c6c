"""What applies to a question besides what was attached to it: rules, references and tools.

Laws: a search that fails costs its finds and nothing else: what the session holds is still sent.
What is chosen, and what only just was not, is reported with its score.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.assembly.budget import CHOSEN_SHARE
from lamina.assembly.inclusion import (
    Inclusion,
    find_member,
    find_mentions,
    sort_by_include,
    sort_guides,
)
from lamina.errors import LaminaError
from lamina.journal import State
from lamina.ports import GuideSource, Index, Progress
from lamina.sources.attachments import Attachments
from lamina.sources.candidates import (
    corpus_warnings,
    guide_document,
    matching_guides,
    recent_questions,
    recent_results,
    tool_document,
    vanished_guides,
)
from lamina.sources.related_items import expand_chosen, expand_results
from lamina.text import label_of
from lamina.values.agent import Guide, Guides, Problem
from lamina.values.item import (
    ALWAYS,
    BY_HAND,
    Attachment,
    Item,
    ItemId,
    Provenance,
    key_of,
    kind_of,
)
from lamina.values.item_kind import GUIDE_KINDS
from lamina.values.request import LeftOut
from lamina.values.selection import Document, SearchSettings, SelectedItem
from lamina.values.tool import OfferedTool

# How many of the next best are reported.
RUNNERS_UP = 3
# How many problems of an agent's files are named with a request.
PROBLEMS_SHOWN = 5
# An attachment this much like the question keeps its priority; every tenth more or less moves it by
# 0.6.
PIVOT, SLOPE = 0.3, 6.0


class SearchChoice(Struct, frozen=True, kw_only=True):
    """What a search found: the best first, and the best of what was not taken."""

    items: tuple[SelectedItem, ...] = ()
    next_best: tuple[SelectedItem, ...] = ()
    warnings: tuple[str, ...] = ()


class Selector:
    """Chooses for the questions of one session. Without a source only attached rules and references
    apply; without an index nothing is searched for, and `no_index` says why."""

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
        """`notices` are what a person has to know of the agent, whatever is asked."""
        self._notices = tuple(notices)
        self._index = index
        self._no_index = no_index
        self._source = source
        # Whether there is an agent, whose rules and references may apply.
        self.guides_turns = source is not None
        self._relations = dict(relations or {})
        self.progress = progress
        # What was reported once is not news on every turn.
        self._reports: set[str] = set()

    async def guides(self) -> Guides:
        """The rules and references there are. An agent that cannot be read has none, and says
        so: what the session holds of it is then missing."""
        if self._source is None:
            return Guides()
        try:
            return await self._source.guides()
        except (LaminaError, OSError) as error:
            return Guides(problems=(Problem(path="agent", problem=str(error)),))

    def mentions(self, text: str, guides: Guides) -> tuple[ItemId, ...]:
        """The rules and references that a message adds by name; those that are not there, too."""
        if self._source is None:
            return ()
        items = (find_member(mention, guides.guides) or mention for mention in find_mentions(text))
        return tuple(dict.fromkeys(items))

    async def guide(
        self,
        state: State,
        question: str,
        attached: Sequence[Attachment],
        guides: Guides,
        room: Callable[[Item], int],
        room_left: int,
    ) -> Attachments:
        """The rules and references that apply to a question. `room` says what an item adds to the
        request."""
        inclusion = sort_by_include(guides.guides, state.library.members, *GUIDE_KINDS)
        own = {attachment.item.id for attachment in attached}
        by_id = {guide.id: guide for guide in guides.guides}
        additions = {guide.id: _attach(guide, ALWAYS) for guide in sort_guides(inclusion.always)}
        additions |= {guide.id: _attach(guide, BY_HAND) for guide in inclusion.manual}
        for guide, path in matching_guides(guides.guides, state, attached):
            found = Provenance(include="agent", origin="glob", source=path)
            additions.setdefault(guide.id, _attach(guide, found))
        there = own | additions.keys()
        documents = [guide_document(guide) for guide in inclusion.agent if guide.id not in there]
        candidates = {item for item in by_id if state.library.members.get(item) != "removed"}
        choice = await self._search(
            state, question, documents, state.settings.guide_search, candidates, there
        )
        # What a person or the agent put in has its room first.
        room_left -= sum(room(a.item) for item, a in additions.items() if item not in own)
        choice, too_large = take_while_room(
            choice, room_left, lambda hit: room(by_id[hit.item].item())
        )
        for hit in choice.items:
            additions[hit.item] = _attach(by_id[hit.item], hit.provenance)
        missing = (_missing(item) for item in (*inclusion.missing, *vanished_guides(state, by_id)))
        lower = map(runner_up, choice.next_best)
        return Attachments(
            attachments=tuple(a for item, a in additions.items() if item not in own),
            left_out=(*missing, *too_large, *lower),
            warnings=self._news((*self._notices, *describe_problems(guides.problems)))
            + choice.warnings,
        )

    async def choose_tools(
        self, state: State, question: str, inclusion: Inclusion[OfferedTool]
    ) -> SearchChoice:
        """The tools that fit a question, of those that are chosen by search."""
        if state.settings.tool_policy == "all" or not inclusion.agent:
            return SearchChoice()
        documents = [tool_document(tool) for tool in inclusion.agent]
        present = {tool.id for tool in inclusion.present}
        candidates = present | {tool.id for tool in inclusion.agent}
        return await self._search(
            state, question, documents, state.settings.tool_search, candidates, present
        )

    async def weigh(
        self, question: str, attachments: Sequence[Attachment], state: State
    ) -> tuple[tuple[Attachment, ...], tuple[str, ...]]:
        """The attachments, worth more or less by how much they have to do with the question; and
        what is in the way of that."""
        from lamina.selection.chunks import chunk_item

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
        # An attachment then keeps the priority it came with.
        except Exception as error:  # noqa: BLE001
            scores, problem = {}, f"{type(error).__name__}: {error}"
        warnings = self._news([f"relevance moves no priority: {problem}"] if problem else [])
        return tuple(_weigh(a, scores.get(a.item.id)) for a in attachments), warnings

    # -- inside ----------------------------------------------------------------------------------

    async def _search(
        self,
        state: State,
        question: str,
        documents: Sequence[Document],
        settings: SearchSettings,
        candidates: set[ItemId],
        there: set[ItemId],
    ) -> SearchChoice:
        """What a search chooses, and the `candidates` that come along with it and are not `there`
        already."""
        choice = SearchChoice()
        if documents and settings.search:
            if self._index is None:
                problem = f"{len(documents)} items are chosen by search, and {self._no_index}"
                return SearchChoice(warnings=self._news([problem]))
            try:
                choice = await self._find(self._index, state, question, documents, settings)
            # Whatever goes wrong in a search, a question can be asked without its finds.
            except Exception as error:  # noqa: BLE001
                problem = f"{type(error).__name__}: {error}"
                problem = f"search failed, so nothing was chosen by it: {problem}"
                return SearchChoice(warnings=(problem,))
        if not self._relations or not choice.items:
            return choice
        from lamina.selection.expansion import find_related

        related_items = find_related(choice.items, self._relations, candidates, there)
        names = {item.item for item in related_items}
        next_best = tuple(item for item in choice.next_best if item.item not in names)
        return replace(choice, items=choice.items + related_items, next_best=next_best)

    async def _find(
        self,
        index: Index,
        state: State,
        question: str,
        documents: Sequence[Document],
        settings: SearchSettings,
    ) -> SearchChoice:
        from lamina.selection.items import choose_items
        from lamina.selection.question import split_question
        from lamina.selection.scores import measure_fits, rank_documents

        query = split_question(question, recent=recent_questions(state))
        if not query.parts:
            return SearchChoice()
        corpus = await index.load(documents, self.progress)
        scores = await corpus.score([part.text for part in query.parts])
        fits = measure_fits(documents, scores, query)
        items = choose_items(documents, scores, query, settings, fits=fits)
        items += await expand_chosen(corpus, items, settings)
        if state.settings.expand_results:
            items += await expand_results(corpus, recent_results(state), items, settings)
        names = {item.item for item in items}
        most = len(names) + RUNNERS_UP
        ranking = rank_documents(documents, scores, query, settings, most=most, fits=fits)
        next_best = tuple(item for item in ranking if item.item not in names)[:RUNNERS_UP]
        warnings = [f"search by words alone: {corpus.lexical}"] if corpus.lexical else []
        warnings += corpus_warnings(corpus)
        return SearchChoice(items=items, next_best=next_best, warnings=self._news(warnings))

    async def _likeness(
        self, question: str, documents: Sequence[Document]
    ) -> tuple[dict[ItemId, float], str]:
        """How alike every document is to a question, at its best; and why that is not known."""
        if self._index is None:
            return {}, self._no_index
        from lamina.selection.items import choose_items
        from lamina.selection.question import split_question

        query = split_question(question)
        if not query.parts:
            return {}, ""
        every = SearchSettings(top_k=10**6, top_n=len(documents), floor=-1.0, include_score=1.0)
        corpus = await self._index.load(documents, self.progress)
        scores = await corpus.score([part.text for part in query.parts])
        items = choose_items(documents, scores, query, every)
        likeness = {item.item: item.score for item in items if item.score is not None}
        return likeness, corpus.lexical

    def _news(self, reports: Iterable[str]) -> tuple[str, ...]:
        news = tuple(report for report in dict.fromkeys(reports) if report not in self._reports)
        self._reports.update(news)
        return news


def describe_problems(problems: Sequence[Problem]) -> list[str]:
    """What is wrong with an agent's files; what is only odd is counted."""
    errors = [str(problem) for problem in problems if problem.level == "error"]
    lines = errors[:PROBLEMS_SHOWN]
    if rest := len(problems) - len(lines):
        one, many = ("problem", "problems") if len(errors) > len(lines) else ("oddity", "oddities")
        noun = many if rest > 1 else one
        lines.append(f"{rest} {noun} in the files of the agent; `lamina agent check` names them")
    return lines


def _attach(guide: Guide, provenance: Provenance) -> Attachment:
    return Attachment(item=guide.item(), provenance=replace(provenance, level=guide.level))


def _missing(item: ItemId) -> LeftOut:
    detail = f"{kind_of(item)} {key_of(item)!r} is not there any more; it was deleted or renamed"
    return LeftOut(what=item, reason="missing", detail=detail)


def take_while_room(
    choice: SearchChoice, room_left: int, cost_of: Callable[[SelectedItem], int]
) -> tuple[SearchChoice, tuple[LeftOut, ...]]:
    """The choice without what would take too much of the room that is left; smaller items behind
    it may still come."""
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


def runner_up(item: SelectedItem) -> LeftOut:
    """An item that was only just not chosen."""
    detail = f"{_scored_label(item)}: others fit the question better"
    return LeftOut(what=item.item, reason="ranked_lower", detail=detail)


def _scored_label(item: SelectedItem) -> str:
    score = f" ({item.score:.2f})" if item.score is not None else ""
    return f"{label_of(item.item)}{score}"


def _weigh(attachment: Attachment, score: float | None) -> Attachment:
    if score is None:
        return attachment
    priority = max(1, attachment.priority + round(SLOPE * (PIVOT - score)))
    before = attachment.priority if attachment.priority != priority else None
    provenance = replace(attachment.provenance, score=score, priority_before=before)
    return replace(attachment, priority=priority, provenance=provenance)

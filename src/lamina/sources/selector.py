"""What applies to a question besides what was attached to it: rules, references and tools.

Laws: a search that fails costs its finds and nothing else: what the session holds is still sent.
What is chosen, and what only just was not, is said with its score.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.assembly.inclusion import (
    Inclusion,
    find_member,
    find_mentions,
    sort_by_include,
    sort_guides,
)
from lamina.errors import LaminaError
from lamina.journal import State
from lamina.ports import Corpus, GuideSource, Index, Progress
from lamina.sources.candidates import (
    guide_document,
    matching_guides,
    recent_questions,
    recent_results,
    tool_document,
    vanished_guides,
)
from lamina.sources.expansion import expand_chosen
from lamina.text import label_of
from lamina.values.agent import Guide, Guides, Problem
from lamina.values.item import Attachment, Item, ItemId, key_of, kind_of
from lamina.values.request import LeftOut
from lamina.values.selection import Document, SearchSettings, SelectedItem
from lamina.values.tool import OfferedTool

# How many of the next best are reported.
RUNNERS_UP = 3
# Of what is wrong with an agent's files, so much is told with a request.
PROBLEMS_SHOWN = 5
# Of the room that is left, what chosen items may take.
ROOM_SHARE = 0.5
# What an attachment with this likeness to the question is worth stays; each tenth more or less
# moves it by 0.6.
PIVOT, SLOPE = 0.3, 6.0


class SearchChoice(Struct, frozen=True, kw_only=True):
    """What a search found: the best first, and the best of what was not taken."""

    items: tuple[SelectedItem, ...] = ()
    next_best: tuple[SelectedItem, ...] = ()
    warnings: tuple[str, ...] = ()


class Guidance(Struct, frozen=True, kw_only=True):
    """The rules and references of a turn."""

    attachments: tuple[Attachment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()


class Selector:
    """Chooses for the questions of one session. Without a source there are no rules and references
    but those attached; without an index nothing is searched for."""

    def __init__(
        self,
        index: Index | None = None,
        source: GuideSource | None = None,
        *,
        relations: Mapping[str, Sequence[str]] | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._index = index
        self._source = source
        # Whether there is an agent, whose rules and references may apply.
        self.guides_turns = source is not None
        self._relations = dict(relations or {})
        self.progress = progress
        # What was said once is not news on every turn.
        self._said: set[str] = set()

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
        found = (find_member(mention, guides.guides) or mention for mention in find_mentions(text))
        return tuple(dict.fromkeys(found))

    async def guide(
        self,
        state: State,
        question: str,
        attached: Sequence[Attachment],
        guides: Guides,
        room: Callable[[Item], int],
        room_left: int,
    ) -> Guidance:
        """The rules and references that apply to a question. `room` says what an item adds to the
        request."""
        inclusion = sort_by_include(guides.guides, state.members, "rule", "reference")
        taken = {attachment.item.id for attachment in attached}
        by_id = {each.id: each for each in guides.guides}
        found: dict[ItemId, Attachment] = {}
        for each in sort_guides(inclusion.always):
            found[each.id] = _attach(each, "always")
        for each in inclusion.manual:
            found[each.id] = _attach(each, "manual")
        for each, path in matching_guides(guides.guides, state, attached):
            found.setdefault(each.id, replace(_attach(each, "agent"), origin="glob", source=path))
        searched = tuple(
            each for each in inclusion.agent if each.id not in found and each.id not in taken
        )
        documents = [guide_document(each) for each in searched]
        chosen = await self._search(
            state, question, documents, state.settings.guide_search,
            {item: each for item, each in by_id.items() if state.members.get(item) != "removed"},
            {*found, *taken},
        )  # fmt: skip
        # What is in by somebody's word has its room first.
        room_left -= sum(
            room(attachment.item) for item, attachment in found.items() if item not in taken
        )
        chosen, too_large = take_while_room(
            chosen, room_left, lambda hit: room(by_id[hit.item].item())
        )
        for hit in chosen.items:
            found[hit.item] = replace(
                _attach(by_id[hit.item], "agent"),
                score=hit.score,
                origin=hit.origin,
                source=hit.source,
            )
        missing = (_missing(item) for item in (*inclusion.missing, *vanished_guides(state, by_id)))
        lower = map(runner_up, chosen.next_best)
        return Guidance(
            attachments=tuple(
                attachment for item, attachment in found.items() if item not in taken
            ),
            left_out=(*missing, *too_large, *lower),
            warnings=self._news(describe_problems(guides.problems)) + chosen.warnings,
        )

    async def choose_tools(
        self, state: State, question: str, inclusion: Inclusion[OfferedTool]
    ) -> SearchChoice:
        """The tools that fit a question, of those that are chosen by search."""
        if state.settings.tool_policy == "all" or not inclusion.agent:
            return SearchChoice()
        by_id = {tool.id: tool for tool in (*inclusion.present, *inclusion.agent)}
        documents = [tool_document(tool) for tool in inclusion.agent]
        present = {tool.id for tool in inclusion.present}
        return await self._search(
            state, question, documents, state.settings.tool_search, by_id, present
        )

    async def weigh(
        self, question: str, attachments: Sequence[Attachment], state: State
    ) -> tuple[tuple[Attachment, ...], tuple[str, ...]]:
        """The attachments, each worth more or less by what it has to do with the question; and what
        is in the way of that."""
        from lamina.selection.chunks import chunk_item

        weighed = [
            a for a in attachments
            if not a.is_essential and a.item.id not in state.pinned and a.item.content.strip()
        ]  # fmt: skip
        if not state.settings.relevance_priority or not weighed:
            return tuple(attachments), ()
        documents = [
            Document(a.item.id, chunk_item(label_of(a.item.id), a.item.title, a.item.content))
            for a in weighed
        ]
        try:
            scores, told = await self._likeness(question, documents)
        # What an attachment is worth stays as it was said.
        except Exception as error:  # noqa: BLE001
            scores, told = {}, [f"{type(error).__name__}: {error}"]
        moved = tuple(
            _weighed(a, scores[a.item.id]) if a.item.id in scores else a for a in attachments
        )
        return moved, self._news(f"relevance moves no priority: {each}" for each in told)

    # -- inside ----------------------------------------------------------------------------------

    async def _search(
        self,
        state: State,
        question: str,
        documents: Sequence[Document],
        settings: SearchSettings,
        known: Mapping[ItemId, Guide] | Mapping[ItemId, OfferedTool],
        taken: set[ItemId],
    ) -> SearchChoice:
        if not documents:
            return SearchChoice()
        chosen = SearchChoice()
        if settings.search:
            if self._index is None:
                told = f"{len(documents)} items are chosen by search, and there is no index"
                return SearchChoice(warnings=self._news([told]))
            try:
                chosen = await self._find(state, question, documents, settings)
            # Whatever goes wrong in a search, a question can be asked without its finds.
            except Exception as error:  # noqa: BLE001
                said = f"{type(error).__name__}: {error}"
                told = f"search failed, so nothing was chosen by it: {said}"
                return SearchChoice(warnings=(told,))
        return self._relate(chosen, known, taken)

    async def _find(
        self,
        state: State,
        question: str,
        documents: Sequence[Document],
        settings: SearchSettings,
    ) -> SearchChoice:
        from lamina.selection.fits import measure_fits, rank_documents
        from lamina.selection.items import choose_items
        from lamina.selection.question import split_question

        assert self._index is not None
        query = split_question(question, recent=recent_questions(state))
        if not query.parts:
            return SearchChoice()
        corpus = await self._index.load(documents, self.progress)
        scores = await corpus.score([part.text for part in query.parts])
        fits = measure_fits(documents, scores, query)
        chosen = choose_items(documents, scores, query, settings, fits=fits)
        chosen += await expand_chosen(corpus, chosen, settings)
        if state.settings.expand_results:
            chosen += await self._expand_results(corpus, state, chosen, settings)
        taken = {item.item for item in chosen}
        most = len(taken) + RUNNERS_UP
        ranked = rank_documents(documents, scores, query, settings, most=most, fits=fits)
        next_best = tuple(item for item in ranked if item.item not in taken)[:RUNNERS_UP]
        return SearchChoice(items=chosen, next_best=next_best, warnings=self._news(_told(corpus)))

    async def _expand_results(
        self,
        corpus: Corpus,
        state: State,
        chosen: tuple[SelectedItem, ...],
        settings: SearchSettings,
    ) -> tuple[SelectedItem, ...]:
        """What is like the results that tools gave in the last turn."""
        from lamina.selection.expansion import expand_by_search, result_query

        query = result_query(recent_results(state), settings)
        if not query.parts:
            return ()
        scores = await corpus.score([part.text for part in query.parts])
        return expand_by_search(corpus.documents, scores, query, chosen, settings, origin="result")

    def _relate(
        self,
        chosen: SearchChoice,
        known: Mapping[ItemId, Guide] | Mapping[ItemId, OfferedTool],
        taken: set[ItemId],
    ) -> SearchChoice:
        """What is said to come along with what was chosen."""
        from lamina.selection.expansion import find_related

        if not self._relations:
            return chosen
        added = find_related(chosen.items, self._relations, known.keys(), taken)
        names = {item.item for item in added}
        return replace(
            chosen,
            items=chosen.items + added,
            next_best=tuple(item for item in chosen.next_best if item.item not in names),
        )

    async def _likeness(
        self, question: str, documents: Sequence[Document]
    ) -> tuple[dict[ItemId, float], list[str]]:
        """How alike each document is to a question, at its best; and why that cannot be said."""
        from lamina.selection.items import choose_items
        from lamina.selection.question import split_question

        if self._index is None:
            return {}, ["there is no index"]
        query = split_question(question)
        if not query.parts:
            return {}, []
        every = SearchSettings(top_k=10**6, top_n=len(documents), floor=-1.0, include_score=1.0)
        corpus = await self._index.load(documents, self.progress)
        scores = await corpus.score([part.text for part in query.parts])
        found = choose_items(documents, scores, query, every)
        likeness = {item.item: item.score for item in found if item.score is not None}
        return likeness, [corpus.lexical] if corpus.lexical else []

    def _news(self, said: Iterable[str]) -> tuple[str, ...]:
        fresh = tuple(fromkey for fromkey in dict.fromkeys(said) if fromkey not in self._said)
        self._said.update(fresh)
        return fresh


def _told(corpus: Corpus) -> list[str]:
    """What a corpus says of itself, once it was searched."""
    told = [f"search by words alone: {corpus.lexical}"] if corpus.lexical else []
    told += [f"not embedded: {each}" for each in corpus.failed]
    return told + [f"index: {warning}" for warning in corpus.warnings]


def describe_problems(problems: Sequence[Problem]) -> list[str]:
    """What is wrong with an agent's files; of what is only odd, how much there is."""
    errors = [str(problem) for problem in problems if problem.level == "error"]
    said = errors[:PROBLEMS_SHOWN]
    left = len(problems) - len(said)
    if left:
        what = "problems" if len(errors) > len(said) else "oddities"
        noun = what if left > 1 else {"problems": "problem", "oddities": "oddity"}[what]
        said.append(f"{left} {noun} in the files of the agent; `lamina agent check` names them")
    return said


def _attach(guide: Guide, include: str) -> Attachment:
    return Attachment(item=guide.item(), include=include, level=guide.level)  # type: ignore[arg-type]


def _missing(item: ItemId) -> LeftOut:
    detail = f"{kind_of(item)} {key_of(item)!r} is not there any more; it was deleted or renamed"
    return LeftOut(what=item, reason="missing", detail=detail)


def take_while_room(
    chosen: SearchChoice, room_left: int, cost_of: Callable[[SelectedItem], int]
) -> tuple[SearchChoice, tuple[LeftOut, ...]]:
    """What was chosen, less what would take too much of the room that is left; smaller ones behind
    it still may come."""
    taken: list[SelectedItem] = []
    too_large: list[LeftOut] = []
    for item in chosen.items:
        cost = cost_of(item)
        if cost and cost > room_left * ROOM_SHARE:
            detail = f"{label_of(item.item)}{_scored(item)} was chosen, and {cost:,} tokens are"
            detail = f"{detail} too many for the room left"
            too_large.append(
                LeftOut(what=item.item, reason="room_left", detail=detail, tokens=cost)
            )
        else:
            room_left -= cost
            taken.append(item)
    return replace(chosen, items=tuple(taken)), tuple(too_large)


def runner_up(each: SelectedItem) -> LeftOut:
    """What only just was not chosen."""
    detail = f"{label_of(each.item)}{_scored(each)}: others fit the question better"
    return LeftOut(what=each.item, reason="ranked_lower", detail=detail)


def _scored(each: SelectedItem) -> str:
    return f" ({each.score:.2f})" if each.score is not None else ""


def _weighed(attachment: Attachment, score: float) -> Attachment:
    moved = max(1, attachment.priority + round(SLOPE * (PIVOT - score)))
    if moved == attachment.priority:
        return replace(attachment, score=score)
    return replace(attachment, score=score, priority=moved, priority_before=attachment.priority)

"""Finds the items that fit a question, and why.

Laws: items are chosen by the same functions as in a session. For each item, the result includes the
part of the question that found it, and the text by which it was found.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy
from msgspec import Struct
from msgspec.structs import replace

from lamina.core.assembly.inclusion import find_member, find_mentions, missing_member_error
from lamina.core.ports import Corpus, Index, Progress
from lamina.core.selection.chosen_items import judge_items
from lamina.core.selection.expansion import find_related
from lamina.core.selection.question import split_question
from lamina.core.selection.scores import Matrix, Scores, best_of, lay_out_chunks, rank_documents
from lamina.core.text.excerpt import brief
from lamina.core.values.item import ItemId
from lamina.core.values.request import WHOLE_POOL
from lamina.core.values.selection import (
    Document,
    Evidence,
    Preset,
    Query,
    SearchSettings,
    SelectedItem,
)
from lamina.core.values.selection import preset as preset_named
from lamina.engine.sources.candidates import Candidate, Candidates
from lamina.engine.sources.related_items import ChosenFrom, expand_all

PART_WIDTH = 60


class SearchResult(Struct, frozen=True, kw_only=True):
    """An item that was found. `part` is the part of the question that it fits best, `chunk` the
    matching text in it; `lexical_rank` is its rank by words alone, None if it shares none.
    """

    name: str
    server: str
    score: float | None
    why: str
    kind: str
    id: str
    origin: str
    include: str = ""
    source: str = ""
    part: str = ""
    chunk: str = ""
    rank: int = 0
    lexical_rank: int | None = None


class SelectOptions(Struct, frozen=True, kw_only=True):
    """How much is taken: exactly the `top` best of the ranking, or as much as a preset or the
    agent's own settings allow, expanded `expand` times.
    """

    top: int | None = None
    preset: Preset | None = None
    expand: int | None = None
    graph: bool = False
    lexical: bool = False

    def settings(self, own: SearchSettings) -> SearchSettings:
        settings = preset_named(self.preset) if self.preset else own
        if self.expand is not None:
            settings = replace(settings, expansion_depth=self.expand)
        return replace(settings, expansion_graph=True) if self.graph else settings


class ScoredQuestion(Struct, frozen=True, kw_only=True):
    """A question scored against candidates."""

    candidates: Candidates
    corpus: Corpus
    query: Query
    scores: Scores


class IndexSearch:
    """An open index that candidates are loaded into; `warn` receives warnings. `notes` returns the
    index's problems since the last call.
    """

    def __init__(
        self,
        index: Index,
        warn: Callable[[str], None],
        progress: Progress | None = None,
        notes: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._index = index
        self._warn = warn
        self._notes = notes
        self.progress = progress
        # Nothing is reported twice, however many searches it concerns.
        self._warned: set[str] = set()

    def warn_of(self, problems: Iterable[str]) -> None:
        for problem in problems:
            if problem not in self._warned:
                self._warned.add(problem)
                self._warn(problem)

    def warn_of_index(self) -> None:
        self.warn_of(self._notes())

    async def score(self, question: str, candidates: Candidates) -> ScoredQuestion:
        """Score a question against the available candidates."""
        query = split_question(question, recent=candidates.recent)
        corpus = await self._index.load(candidates.documents, self.progress)
        self.warn_of((*candidates.problems, *corpus.warnings, *corpus.failed))
        failures = len(corpus.failed)
        scores = await corpus.score([part.text for part in query.parts])
        self.warn_of(describe_lexical(corpus))
        self.warn_of(corpus.failed[failures:])
        return ScoredQuestion(candidates=candidates, corpus=corpus, query=query, scores=scores)


def describe_lexical(corpus: Corpus) -> tuple[str, ...]:
    """Return why items are found by their words alone; empty if they are not."""
    return (f"found by words alone: {corpus.lexical}",) if corpus.lexical else ()


async def select_candidates(
    question: str, candidates: Candidates, how: SelectOptions, search: IndexSearch
) -> tuple[SearchResult, ...]:
    """Return the items that a question needs at the beginning of a session: first the items that
    are always included, then those that the question names, then the results of search, with rules
    and references first, the best of each first, and the items these bring along. With `top`,
    return just the best of all, by score as always.
    """
    if how.top is not None:
        best = await rank_candidates(question, candidates, how.top, search)
        return tuple(sorted(best, key=lambda r: -2.0 if r.score is None else r.score, reverse=True))
    search.warn_of(candidates.problems)
    always = {c.document.id for c in candidates.candidates if c.include == "always"}
    there = always | candidates.added | _find_named(question, candidates, search)
    answers: list[ScoredQuestion] = []
    choices: list[ChosenFrom] = []
    lacking: list[str] = []
    for pool, own_settings in candidates.searched(there):
        if not (settings := how.settings(own_settings)).search:
            continue
        answer = await search.score(question, replace(candidates, candidates=pool, problems=()))
        documents = answer.candidates.documents
        choice = judge_items(documents, answer.scores, answer.query, settings)
        answers.append(answer)
        choices.append(ChosenFrom(settings=settings, corpus=answer.corpus, items=choice.items))
        if choice.lacking and not candidates.whole_pool.intersection(d.id for d in documents):
            lacking.append(choice.lacking.judge(f"the best, {choice.best},"))
    additions = await expand_all(choices)
    found = [choice.items + new for choice, new in zip(choices, additions, strict=True)]
    ids = [document.id for document in candidates.documents]
    chosen = [item for items in found for item in items]
    related = find_related(chosen, candidates.relations, ids, there)
    search.warn_of_index()
    # Choices from one pool may have brought along some of the other.
    search.warn_of(lacking if not any(found) else ())
    by_id = candidates.by_id()
    why = dict.fromkeys(there, "named in the question")
    why |= dict.fromkeys(candidates.added, "added by hand") | dict.fromkeys(
        always, "always included"
    )
    results = [_included(by_id[item], why[item]) for item in by_id if item in there]
    for answer, items in zip(answers, found, strict=True):
        results += _describe(answer, items, by_id)
    results += [_result(item, by_id[item.item], "") for item in related]
    return _with_whole_pool(results, candidates)


def _with_whole_pool(
    results: Sequence[SearchResult], candidates: Candidates
) -> tuple[SearchResult, ...]:
    """Return the results, followed by the other tools of a pool that is offered as a whole."""
    pool = candidates.whole_pool
    why = f"one of a small pool ({len(pool)}), which is offered whole"
    rest = pool - {result.id for result in results}
    others = [_included(c, why) for c in candidates.candidates if c.document.id in rest]
    return (*results, *(replace(other, origin=WHOLE_POOL) for other in others))


def _find_named(question: str, candidates: Candidates, search: IndexSearch) -> set[ItemId]:
    """Return the rules and references that the question itself adds, as `@rule:name`."""
    named: set[ItemId] = set()
    for mention in find_mentions(question) if candidates.guides else ():
        if (item := find_member(mention, candidates.guides)) is not None:
            named.add(item)
        else:
            search.warn_of([str(missing_member_error(mention, candidates.guides))])
    return named


async def find_lacking(
    question: str, candidates: Candidates, settings: SearchSettings, search: IndexSearch
) -> Evidence | None:
    """Return why none of these candidates is chosen for a question, if nothing stands out."""
    answer = await search.score(question, candidates)
    documents = answer.candidates.documents
    return judge_items(documents, answer.scores, answer.query, settings).lacking


async def rank_candidates(
    question: str, candidates: Candidates, top: int, search: IndexSearch
) -> tuple[SearchResult, ...]:
    """Return the `top` best of all candidates, whatever their scores."""
    answer = await search.score(question, candidates)
    ranking = rank_documents(candidates.documents, answer.scores, answer.query, most=top)
    search.warn_of_index()
    return _describe(answer, ranking, candidates.by_id())


def _included(candidate: Candidate, why: str) -> SearchResult:
    return SearchResult(
        name=candidate.name, server=candidate.server, score=None, why=why,
        kind=candidate.kind, id=candidate.document.id, origin="", include=candidate.include,
    )  # fmt: skip


def _describe(
    answer: ScoredQuestion, items: Sequence[SelectedItem], by_id: Mapping[ItemId, Candidate]
) -> tuple[SearchResult, ...]:
    ranks = _lexical_ranks(answer)
    columns = _columns(answer.candidates.documents)
    results = []
    for rank, item in enumerate(items, 1):
        part = _best_part(answer, columns.get(item.item, slice(0, 0)))
        result = _result(item, by_id[item.item], part)
        results.append(replace(result, rank=rank, lexical_rank=ranks.get(item.item)))
    return tuple(results)


def _result(item: SelectedItem, candidate: Candidate, part: str) -> SearchResult:
    words = repr(brief(part, PART_WIDTH))
    reasons = {
        "expansion": f"is like a text of {item.source}",
        "relation": f"comes along with {item.source}",
        "lexical": f"shares words with {words}",
    }
    why = reasons.get(item.origin, f"fits {words}")
    if item.chunk:
        why = f"{why}: {item.chunk}"
    return SearchResult(
        name=candidate.name,
        server=candidate.server,
        score=None if item.score is None else round(item.score, 4),
        why=" ".join(why.split()),
        kind=candidate.kind,
        id=item.item,
        origin=item.origin,
        include=candidate.include,
        source=item.source,
        part=part,
        chunk=item.chunk,
    )


def _columns(documents: Sequence[Document]) -> dict[ItemId, slice]:
    """Return the positions of each document's chunks among the scores."""
    columns: dict[ItemId, slice] = {}
    start = 0
    for document in documents:
        columns[document.id] = slice(start, start + len(document.chunks))
        start += len(document.chunks)
    return columns


def _best_part(answer: ScoredQuestion, columns: slice) -> str:
    """Return the part of the question that the chunks fit best, and the whole only if it has no
    parts; by words where there is no vector.
    """
    parts, scores = answer.query.parts, answer.scores
    rows = [row for row, part in enumerate(parts) if not part.whole] or list(range(len(parts)))
    matrix: Matrix = scores.lexical[rows, columns]
    if not matrix.size:
        return ""
    if scores.cosine is not None and not numpy.isnan(scores.cosine[rows, columns]).all():
        matrix = numpy.nan_to_num(scores.cosine[rows, columns], nan=-1.0)
    return parts[rows[int(matrix.max(axis=1).argmax())]].text


def _lexical_ranks(answer: ScoredQuestion) -> dict[ItemId, int]:
    """Return the ranks of items by words alone; items without shared words have none."""
    documents = answer.candidates.documents
    most = answer.scores.lexical.max(axis=0, initial=0.0).astype(numpy.float64)
    best = numpy.nan_to_num(best_of(answer.scores.layout or lay_out_chunks(documents), most))
    shared = [place for place in numpy.argsort(-best, kind="stable").tolist() if best[place] > 0]
    return {documents[place].id: number for number, place in enumerate(shared, 1)}

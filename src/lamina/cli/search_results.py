"""What `lamina select` and `search` found, and why.

Law: an answer says of each item which part of the question brought it, and which text of it.
"""

import shutil
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy
from msgspec import Struct
from msgspec.structs import asdict, replace
from rich.console import Console

from lamina.cli.search_candidates import (
    Candidate,
    Candidates,
    CandidateSources,
    gather_candidates,
    load_corpus,
    open_ready_index,
    print_line,
    to_json,
)
from lamina.cli.terminal_text import one_line
from lamina.embed.index.corpus import IndexedCorpus
from lamina.selection.expansion import find_related
from lamina.selection.fits import rank_documents
from lamina.selection.items import choose_items
from lamina.selection.presets import preset as preset_named
from lamina.selection.question import split_question
from lamina.selection.scores import Matrix, Scores, best_of, lay_out_chunks
from lamina.sources.expansion import expand_chosen
from lamina.values.item import ItemId
from lamina.values.selection import Document, Preset, Query, SearchSettings, SelectedItem

# How much of a text is shown where there is no terminal whose width would say.
WIDTH = 160
PART_WIDTH = 60


class SearchResult(Struct, frozen=True, kw_only=True):
    """An item that was found. `part` is the part of the question that it fits best, `chunk` the
    text of it that does; `lexical_rank` its place by words alone, None if it shares none."""

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
    """How much is taken: exactly the `top` best of the ranking, or what a preset or the agent's own
    settings say, expanded as often as `expand` says."""

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
    """A question put to candidates."""

    candidates: Candidates
    corpus: IndexedCorpus
    query: Query
    scores: Scores


async def select_candidates(
    question: str, sources: CandidateSources, how: SelectOptions, console: Console
) -> tuple[SearchResult, ...]:
    """What a question needs, the best first."""
    async with _ask(question, sources, how.lexical, console) as answer:
        documents = answer.candidates.documents
        if how.top is not None:
            chosen = rank_documents(documents, answer.scores, answer.query, most=how.top)
        else:
            settings = how.settings(answer.candidates.settings)
            chosen = choose_items(documents, answer.scores, answer.query, settings)
            chosen += await expand_chosen(answer.corpus, chosen, settings)
            relations = answer.candidates.relations
            chosen += find_related(
                chosen, relations, [document.id for document in documents], set()
            )
    if not chosen:
        print_line(console, "nothing fits the question; `lamina search` shows how everything ranks")
    return _describe(answer, chosen)


async def rank_candidates(
    question: str, sources: CandidateSources, top: int, lexical: bool, console: Console
) -> tuple[SearchResult, ...]:
    """The `top` best of all candidates, whatever their scores."""
    async with _ask(question, sources, lexical, console) as answer:
        ranked = rank_documents(answer.candidates.documents, answer.scores, answer.query, most=top)
    return _describe(answer, ranked)


@asynccontextmanager
async def _ask(
    question: str, sources: CandidateSources, lexical: bool, console: Console
) -> AsyncIterator[ScoredQuestion]:
    """The question put to what there is; all that is odd is said at the end."""
    candidates = gather_candidates(sources)
    query = split_question(question)
    index = await open_ready_index(lexical, console)
    try:
        corpus = await load_corpus(index, candidates, console)
        known = len(corpus.failed)
        scores = await corpus.score([part.text for part in query.parts])
        if corpus.lexical:
            print_line(console, f"warning: found by words alone: {corpus.lexical}")
        for problem in corpus.failed[known:]:
            print_line(console, f"warning: {problem}")
        yield ScoredQuestion(candidates=candidates, corpus=corpus, query=query, scores=scores)
        for note in index.notes():
            print_line(console, f"warning: {note}")
    finally:
        index.close()


# -- why -----------------------------------------------------------------------------------------


def _describe(answer: ScoredQuestion, chosen: Sequence[SelectedItem]) -> tuple[SearchResult, ...]:
    by_id = answer.candidates.by_id()
    ranks = _lexical_ranks(answer)
    columns = _columns(answer.candidates.documents)
    return tuple(
        replace(
            _found(item, by_id[item.item], _best_part(answer, columns[item.item])),
            rank=number,
            lexical_rank=ranks.get(item.item),
        )
        for number, item in enumerate(chosen, 1)
    )


def _found(each: SelectedItem, candidate: Candidate, part: str) -> SearchResult:
    said = repr(one_line(part, PART_WIDTH))
    match each.origin:
        case "expansion":
            why = f"is like a text of {each.source}"
        case "relation":
            why = f"comes along with {each.source}"
        case "lexical":
            why = f"shares words with {said}"
        case _:
            why = f"fits {said}"
    if each.chunk:
        why = f"{why}: {each.chunk}"
    return SearchResult(
        name=candidate.name,
        server=candidate.server,
        score=None if each.score is None else round(each.score, 4),
        why=" ".join(why.split()),
        kind=candidate.kind,
        id=each.item,
        origin=each.origin,
        include=candidate.include,
        source=each.source,
        part=part,
        chunk=each.chunk,
    )


def _columns(documents: Sequence[Document]) -> dict[ItemId, slice]:
    """Where the chunks of each document stand among the scores."""
    found: dict[ItemId, slice] = {}
    start = 0
    for document in documents:
        found[document.id] = slice(start, start + len(document.chunks))
        start += len(document.chunks)
    return found


def _best_part(answer: ScoredQuestion, columns: slice) -> str:
    """The part of the question that the chunks fit best, the whole of it only if it has no parts;
    by words where there is no vector."""
    parts, scores = answer.query.parts, answer.scores
    rows = [row for row, part in enumerate(parts) if not part.whole] or list(range(len(parts)))
    matrix: Matrix = scores.lexical[rows, columns]
    if not matrix.size:
        return ""
    if scores.cosine is not None and not numpy.isnan(scores.cosine[rows, columns]).all():
        matrix = numpy.nan_to_num(scores.cosine[rows, columns], nan=-1.0)
    return parts[rows[int(matrix.max(axis=1).argmax())]].text


def _lexical_ranks(answer: ScoredQuestion) -> dict[ItemId, int]:
    """The places of items by words alone; those that share none have none."""
    documents = answer.candidates.documents
    most = answer.scores.lexical.max(axis=0, initial=0.0).astype(numpy.float64)
    best = numpy.nan_to_num(best_of(answer.scores.layout or lay_out_chunks(documents), most))
    shared = [place for place in numpy.argsort(-best, kind="stable").tolist() if best[place] > 0]
    return {documents[place].id: number for number, place in enumerate(shared, 1)}


# -- showing -------------------------------------------------------------------------------------


def show_chosen(found: Sequence[SearchResult], as_json: bool) -> str:
    """Each item with its score, and under it why."""
    if as_json:
        return to_json([_row(result, ("rank", "lexical_rank")) for result in found])
    width = _width()
    lines: list[str] = []
    for result in found:
        lines.append(f"{_score(result)}  {_label(result)}{_mark(result)}")
        lines.append(f"      {one_line(result.why, width - 6)}")
    return "\n".join(lines)


def show_ranked(found: Sequence[SearchResult], as_json: bool) -> str:
    """Each item with its place, its score and its place by words, and under it the best text."""
    if as_json:
        return to_json([_row(result, ("origin", "source")) for result in found])
    width = _width()
    lines: list[str] = []
    for result in found:
        words = "no words" if result.lexical_rank is None else f"by words {result.lexical_rank}"
        lines.append(
            f"{result.rank:>3}  {_score(result)}  {_label(result)}{_mark(result)}, {words}"
        )
        lines.append(f"           {one_line(result.chunk, width - 11)}")
    return "\n".join(lines)


def _row(each: SearchResult, without: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in asdict(each).items() if key not in without}


def _score(each: SearchResult) -> str:
    return "   -" if each.score is None else f"{each.score:4.2f}"


def _label(each: SearchResult) -> str:
    return one_line(f"{each.server} · {each.name}" if each.server else each.name)


def _mark(each: SearchResult) -> str:
    return f" ({each.kind}, {each.include})" if each.include else ""


def _width() -> int:
    if not sys.stdout.isatty():
        return WIDTH
    return max(40, shutil.get_terminal_size().columns)

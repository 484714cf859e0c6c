"""The hits of a search in notes: passages that follow one another joined, each text once."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from msgspec import Struct

from lamina.values.item import Excerpt, note_id
from lamina.values.note import Hit, Note, NoteSearchResult, Passage

if TYPE_CHECKING:
    from lamina.selection.passages import ChosenPassage


class Stretch(Struct, frozen=True, kw_only=True):
    """Passages of one note that follow one another, in the order of its lines."""

    note: Note
    chosen: "tuple[ChosenPassage, ...]"

    @property
    def fit(self) -> float:
        return max(passage.fit for passage in self.chosen)

    @property
    def score(self) -> float | None:
        scores = (passage.score for passage in self.chosen)
        return max((score for score in scores if score is not None), default=None)

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(self.note.passages[passage.place] for passage in self.chosen)


def take_distinct(
    chosen: Sequence["ChosenPassage"], texts: "Mapping[ChosenPassage, Excerpt]"
) -> "list[ChosenPassage]":
    """The chosen passages that could be read, one for every text: notes that quote one another
    would fill a search with one passage."""
    by_text: dict[str, ChosenPassage] = {}
    for passage in chosen:
        if passage in texts:
            by_text.setdefault(" ".join(texts[passage].text.split()), passage)
    return list(by_text.values())


def join_neighbours(
    chosen: Sequence["ChosenPassage"], notes: Sequence[Note]
) -> tuple[Stretch, ...]:
    """Passages that follow one another under one heading become one stretch, which stands where
    the best of them stood."""
    runs: list[list[ChosenPassage]] = []
    for passage in sorted(chosen, key=lambda passage: (passage.document, passage.place)):
        last = runs[-1][-1] if runs else None
        if last and _follows(last, passage, notes[passage.document]):
            runs[-1].append(passage)
        else:
            runs.append([passage])
    rank = {passage: at for at, passage in enumerate(chosen)}
    runs.sort(key=lambda run: min(rank[passage] for passage in run))
    return tuple(Stretch(note=notes[run[0].document], chosen=tuple(run)) for run in runs)


def _follows(before: "ChosenPassage", after: "ChosenPassage", note: Note) -> bool:
    if (before.document, before.place + 1) != (after.document, after.place):
        return False
    return note.passages[before.place].heading == note.passages[after.place].heading


def make_hit(stretch: Stretch, texts: "Mapping[ChosenPassage, Excerpt]") -> Hit:
    first = last = stretch.passages[0]
    whole = texts[stretch.chosen[0]]
    for passage, choice in zip(stretch.passages[1:], stretch.chosen[1:], strict=True):
        whole = _join(whole, _between(last, passage), texts[choice])
        last = passage
    note = stretch.note
    return Hit(
        item=note_id(note.path),
        path=note.path,
        title=note.title,
        text=whole.text,
        start=first.start,
        end=last.end,
        heading=first.heading,
        anchor=first.anchor,
        score=stretch.score,
        mtime=note.mtime,
        safe=whole.safe,
        secrets=whole.secrets,
    )


def _join(before: Excerpt, joint: str, after: Excerpt) -> Excerpt:
    secrets = before.secrets + after.secrets
    return Excerpt(
        text=before.text + joint + after.text,
        safe=(before.safe or before.text) + joint + (after.safe or after.text) if secrets else "",
        secrets=secrets,
    )


def _between(before: Passage, after: Passage) -> str:
    """What stands between two passages that follow one another: blank lines, or white space where
    they are parts of one line."""
    if before.part and after.part and before.end == after.start:
        return " " * (after.part[0] - before.part[1])
    return "\n" * (after.start - before.end)


def merge_results(results: Sequence[NoteSearchResult]) -> NoteSearchResult:
    """Several results as one: the best hits, then the second best, and so on; a hit of more than
    one search stands once."""
    if len(results) == 1:
        return results[0]
    hits: dict[tuple[str, int, int, str], Hit] = {}
    for row in zip_longest(*(result.hits for result in results)):
        for hit in row:
            if hit is not None:
                hits.setdefault((hit.path, hit.start, hit.end, hit.text), hit)
    return NoteSearchResult(
        hits=tuple(hits.values()),
        searched=max((result.searched for result in results), default=0),
        warnings=tuple(dict.fromkeys(line for result in results for line in result.warnings)),
        late=max((result.late for result in results), default=0),
    )

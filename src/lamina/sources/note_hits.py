"""The hits of a search in notes: passages that follow one another joined, each text once."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from msgspec import Struct

from lamina.values.item import note_id
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
        return max(
            (passage.score for passage in self.chosen if passage.score is not None), default=None
        )

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(self.note.passages[passage.place] for passage in self.chosen)


def take_distinct(
    chosen: Sequence["ChosenPassage"], texts: "Mapping[ChosenPassage, str]"
) -> "list[ChosenPassage]":
    """What was chosen and could be read, each text once: notes that quote one another would fill a
    search with one passage."""
    said: dict[str, ChosenPassage] = {}
    for passage in chosen:
        if passage in texts:
            said.setdefault(" ".join(texts[passage].split()), passage)
    return list(said.values())


def join_neighbours(
    chosen: Sequence["ChosenPassage"], notes: Sequence[Note]
) -> tuple[Stretch, ...]:
    """What was chosen, with passages that follow one another under one heading as one stretch. It
    stands where the best of them stood."""
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


def make_hit(stretch: Stretch, texts: "Mapping[ChosenPassage, str]") -> Hit:
    first = last = stretch.passages[0]
    text = texts[stretch.chosen[0]]
    for passage, each in zip(stretch.passages[1:], stretch.chosen[1:], strict=True):
        text += _between(last, passage) + texts[each]
        last = passage
    note = stretch.note
    return Hit(
        item=note_id(note.path),
        path=note.path,
        title=note.title,
        text=text,
        start=first.start,
        end=last.end,
        heading=first.heading,
        anchor=first.anchor,
        score=stretch.score,
        mtime=note.mtime,
    )


def _between(before: Passage, after: Passage) -> str:
    """What stands between two passages that follow one another: blank lines, or white space where
    they are parts of one line."""
    if before.part and after.part and before.end == after.start:
        return " " * (after.part[0] - before.part[1])
    return "\n" * (after.start - before.end)


def merge_found(founds: Sequence[NoteSearchResult]) -> NoteSearchResult:
    """What several searches came to as one: the best of each, then the second best of each, and so
    on; what more than one found stands once."""
    if len(founds) == 1:
        return founds[0]
    hits: dict[tuple[str, int, int, str], Hit] = {}
    for row in zip_longest(*(found.hits for found in founds)):
        for hit in row:
            if hit is not None:
                hits.setdefault((hit.path, hit.start, hit.end, hit.text), hit)
    return NoteSearchResult(
        hits=tuple(hits.values()),
        searched=max((found.searched for found in founds), default=0),
        warnings=tuple(dict.fromkeys(told for found in founds for told in found.warnings)),
        late=max((found.late for found in founds), default=0),
    )

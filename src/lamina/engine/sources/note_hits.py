"""The hits of searches in notes: passages that follow one another joined, each text once."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.values.item import Excerpt, note_id
from lamina.core.values.note import Hit, Note, NoteSearchResult, Passage

if TYPE_CHECKING:
    from lamina.core.selection.passages import ChosenPassage

# Fewer characters at the end of one text and the beginning of another may be the same by chance.
_LEAST_OVERLAP = 16
# Several searches were made as the least of them was.
_TIERS = ("words", "candidates", "meaning")


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


def make_hit(stretch: Stretch, texts: "Mapping[ChosenPassage, Excerpt]", question: str) -> Hit:
    """A stretch as what a question found."""
    from lamina.core.selection.shared_words import find_shared_words

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
        redacted=whole.safe,
        secrets=whole.secrets,
        words=find_shared_words(question, f"{note.title}\n{first.heading}\n{whole.text}"),
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
    """Several results as one: the best hits, then the second best, and so on. A passage of more
    than one search stands once; hits of one note that overlap are one, at the place of the
    better."""
    if len(results) == 1:
        return results[0]
    times = dict.fromkeys(result.time_range for result in results)
    hits: list[Hit] = []
    for row in zip_longest(*(result.hits for result in results)):
        for hit in filter(None, row):
            _add_hit(hits, hit)
    return NoteSearchResult(
        hits=tuple(hits),
        searched=max((result.searched for result in results), default=0),
        warnings=tuple(dict.fromkeys(line for result in results for line in result.warnings)),
        late=max((result.late for result in results), default=0),
        time_range="; ".join(times) if all(times) else "",
        tier=min(
            (result.tier for result in results if result.tier),
            key=lambda tier: (_TIERS.index(tier.by), tier.indexed),
            default=None,
        ),
    )


def _add_hit(hits: list[Hit], hit: Hit) -> None:
    """Adds a hit behind the others, unless its text stands there or can be joined to one of
    them; what was joined may then reach a third."""
    words = hit.text.split()
    for at, other in enumerate(hits):
        if other.text.split() == words:
            return
        if (whole := _unite(other, hit)) is not None:
            rest = [each for place, each in enumerate(hits) if place > at]
            del hits[at:]
            _add_hit(hits, whole)
            for each in rest:
                _add_hit(hits, each)
            return
    hits.append(hit)


def _unite(one: Hit, other: Hit) -> Hit | None:
    """Two hits that share passages as one; None if they do not."""
    if one.path != other.path or one.start > other.end or other.start > one.end:
        return None
    before, after = sorted((one, other), key=lambda hit: (hit.start, -hit.end))
    text = _overlay(before.text, after.text)
    if text is None and (before.start, before.end) == (after.start, after.end):
        # Parts of one line do not say which of them comes first.
        before, after = after, before
        text = _overlay(before.text, after.text)
    secrets = tuple(dict.fromkeys((*one.secrets, *other.secrets)))
    redacted = _overlay(before.safe, after.safe) if secrets else ""
    if text is None or redacted is None:
        return None
    scores = [hit.score for hit in (one, other) if hit.score is not None]
    return replace(
        before,
        text=text,
        end=max(one.end, other.end),
        score=max(scores, default=None),
        redacted=redacted,
        secrets=secrets,
        words=tuple(dict.fromkeys((*one.words, *other.words))),
    )


def _overlay(before: str, after: str) -> str | None:
    """Both texts, where the second begins within the first; None if they have nothing in
    common."""
    if after in before:
        return before
    if after.startswith(before):
        return after
    for size in range(min(len(before), len(after)) - 1, _LEAST_OVERLAP - 1, -1):
        if before.endswith(after[:size]):
            return before + after[size:]
    return None

"""What is wrong with the links of a note, and which of several files a name was taken for."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from lamina.core.notes.names import NOTE_SUFFIX, NoteNames, ResolvedName, list_paths
from lamina.core.notes.sections import is_heading_anchor
from lamina.core.values.note import Note

_MOST_LISTED = 3


class NoteProblem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that is wrong with a note; or, where `meaning` is set, a link that was decided: a
    name that several files have, and `meaning` is the nearest. `candidates` are all of them."""

    path: str
    what: str
    detail: str
    meaning: str = ""
    nearness: str = ""
    candidates: tuple[str, ...] = ()

    @property
    def is_decided(self) -> bool:
        return bool(self.meaning)


def check_links(
    note: Note, names: NoteNames, headings: Mapping[str, frozenset[str]]
) -> Iterator[NoteProblem]:
    """The links, embeds and pictures of a note that lead nowhere or may lead to several files."""
    for link in dict.fromkeys((*note.links, *note.embeds)):
        target = names.resolve_link(link, note.labels.get(link, ()), note.path)
        if problem := _judge(note.path, "link", link, target):
            yield problem
        own = headings.get(target.path or "")
        if own is not None and not is_heading_anchor(target.anchor, own):
            detail = f"{link!r}: {target.path} has no heading {target.anchor!r}"
            yield NoteProblem(path=note.path, what="broken heading", detail=detail)
    for picture in note.pictures:
        target = names.resolve(picture, note.path)
        # A picture that names its folder is nowhere else.
        is_elsewhere = target.how == "stem" and bool(target.warning)
        if is_elsewhere:
            target = ResolvedName(name=picture, warning=f"{picture!r} is not in the workspace")
        if problem := _judge(note.path, "picture", picture, target):
            yield problem


def count_nearness(problems: Iterable[NoteProblem]) -> dict[str, int]:
    """How many links were decided, by what made them the nearest."""
    counts: dict[str, int] = {}
    for problem in problems:
        if problem.is_decided:
            counts[problem.nearness] = counts.get(problem.nearness, 0) + 1
    return counts


def _judge(path: str, kind: str, link: str, target: ResolvedName) -> NoteProblem | None:
    if target.path is None:
        what = "ambiguous" if target.how == "ambiguous" else "broken"
        detail = target.warning.replace("; it is left out", "")
        return NoteProblem(
            path=path, what=f"{what} {kind}", detail=detail, candidates=target.matches
        )
    # Under its full path, or from the note's folder with a suffix, nothing else was meant.
    is_exact = target.how in ("path", "relative") and link.lower().endswith(NOTE_SUFFIX)
    if not target.nearness or is_exact:
        return None
    others = [match for match in target.matches if match != target.path]
    where = _WHERE[target.nearness]
    detail = f"{link!r} is {target.path} ({where}), not {list_paths(others, _MOST_LISTED)}"
    return NoteProblem(
        path=path,
        what=f"decided {kind}",
        detail=detail,
        meaning=target.path,
        nearness=target.nearness,
        candidates=target.matches,
    )


_WHERE = {
    "root": "in the root",
    "same folder": "in the same folder",
    "below": "below its folder",
    "same top folder": "in the same top folder",
    "fewest folders": "in the fewest folders",
}

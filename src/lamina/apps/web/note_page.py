"""Notes as a page shows them: one with its text and links, what a search found, what is wrong."""

from msgspec import Struct

from lamina.apps.views.link_check import NoteProblem


class NoteHeading(Struct, frozen=True, kw_only=True):
    """A heading; `line` counts from 1."""

    level: int
    text: str
    line: int


class NoteLink(Struct, frozen=True, kw_only=True):
    """A link as it is written, and the file it leads to; without `path` it leads nowhere, and
    `problem` says why."""

    link: str
    path: str
    anchor: str
    is_embed: bool
    problem: str


class BackLink(Struct, frozen=True, kw_only=True):
    """A note that leads to another one."""

    path: str
    title: str


class NotePage(Struct, frozen=True, kw_only=True):
    """A note with its text as the file has it; `is_note` is False for another file of text."""

    path: str
    title: str
    text: str
    etag: str
    bytes: int
    mtime: float
    tags: tuple[str, ...]
    aliases: tuple[str, ...]
    headings: tuple[NoteHeading, ...]
    links: tuple[NoteLink, ...]
    backlinks: tuple[BackLink, ...]
    problems: tuple[str, ...]
    is_note: bool


class NoteHit(Struct, frozen=True, kw_only=True):
    """A passage that a search found. `place` attaches just these lines; `score` is None where it
    was found by its words."""

    path: str
    title: str
    heading: str
    place: str
    start: int
    end: int
    text: str
    score: float | None
    mtime: float


class NoteHits(Struct, frozen=True, kw_only=True):
    """What a search found. `method` is how: by meaning and words, or by words alone and why."""

    query: str
    method: str
    by_meaning: bool
    searched: int
    late: int
    hits: tuple[NoteHit, ...]
    warnings: tuple[str, ...]


class NoteCheck(Struct, frozen=True, kw_only=True):
    """What is wrong with the notes of a workspace; `decided` are links whose name several files
    have, and which the nearest was taken for."""

    notes: int
    problems: tuple[NoteProblem, ...]
    decided: tuple[NoteProblem, ...]
    counts: dict[str, int]

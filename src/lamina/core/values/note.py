"""Defines metadata of notes, the passages that are searched, and search results."""

from typing import Any, Literal

from msgspec import Struct, field

from lamina.core.values.item import ItemId


class Passage(Struct, frozen=True, array_like=True, gc=False):
    """A part of a note that is searched separately: the lines from `start` to `end`, counted from
    1, both included. `heading` is the path of headings above it, such as `Setup > Linux`; `anchor`
    is the innermost of them, as spelled in the note. `digest` is the sha256 of the searched text,
    which starts with the note's title and the heading path. A line too long for one passage is
    split into several: `part` is then the start and end in that line, in characters."""

    start: int
    end: int
    heading: str
    anchor: str
    digest: bytes
    part: tuple[int, int] | None = None


class ListItem(Struct, frozen=True, array_like=True, gc=False):
    """A list item, on a line counted from 0, as Dataview counts. `parent` is the line of its parent
    item, or -1; `status` is the text between a task's brackets, None if it is not a task; `heading`
    is the one above it; `block` is its name after `^`."""

    line: int
    line_count: int
    parent: int
    marker: str
    status: str | None
    text: str
    heading: str = ""
    block: str = ""


class NoteQuery(Struct, frozen=True, array_like=True, gc=False):
    """A query in a note: a block of the query language, a search block, all queries within the text
    (one per line), or a script, which is never run."""

    kind: Literal["block", "search", "inline", "script"]
    text: str

    @property
    def key(self) -> str:
        """The key that distinguishes it from the note's other queries."""
        return self.text if self.kind in ("block", "inline") else f"{self.kind}: {self.text}"


class Note(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The metadata of a note. `digest` is the sha256 of its bytes; times are seconds since the
    epoch; tags are without `#`, in the note's order; `links` and `embeds` are targets as spelled;
    `properties` is its frontmatter as JSON values; `fields` are the `name:: value` pairs outside of
    lists, `items` its list items, `queries` its queries."""

    path: str
    title: str
    digest: str
    ctime: float = 0.0
    mtime: float = 0.0
    size: int = 0
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    embeds: tuple[str, ...] = ()
    # Link labels by target: in Dendron, the label comes first.
    labels: dict[str, tuple[str, ...]] = {}
    # The pictures that are files, as spelled.
    pictures: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    queries: tuple[NoteQuery, ...] = ()
    properties: dict[str, Any] = {}
    fields: tuple[tuple[str, str], ...] = ()
    items: tuple[ListItem, ...] = ()
    passages: tuple[Passage, ...] = ()
    # Versions without secrets of the fields above that contain some.
    safe: dict[str, Any] = {}
    # Problems, such as frontmatter that is not YAML, with the line.
    problems: tuple[str, ...] = ()


class Catalogue(Struct, frozen=True, kw_only=True):
    """All notes of a workspace at one point in time, by path. Unchanged notes are the same objects.
    `unreadable` are files that exist but could not be read, and why."""

    notes: tuple[Note, ...] = ()
    unreadable: tuple[str, ...] = ()


class TimeRange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A time range from `start` up to but excluding `end`, in seconds since the epoch; None is
    open. `words` is the range as requested, such as `last week`."""

    start: float | None = None
    end: float | None = None
    words: str = ""

    def holds(self, moment: float) -> bool:
        """Return whether the range contains a time."""
        return (self.start is None or moment >= self.start) and (
            self.end is None or moment < self.end
        )


class Scope(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The scope of a search: in any of `folders` (and below), under any of `tags` (and nested
    ones), changed from `since` until just before `until`, and within `time`: changed in that range,
    or with a date from it in the name or the frontmatter. Empty or None means no limit."""

    folders: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    time: TimeRange | None = None


class Hit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passage found by a search, with its current text in the note: the lines from `start` to
    `end`. `words` are those it shares with the question. `secrets` are the kinds of secrets in it,
    judged in the whole note, and `redacted` is the text without them, empty if there are none."""

    item: ItemId
    path: str
    title: str
    text: str
    start: int
    end: int
    heading: str = ""
    anchor: str = ""
    # Cosine similarity; None if only words were searched.
    score: float | None = None
    mtime: float = 0.0
    # Stored under its earlier name, `safe`.
    redacted: str = field(default="", name="safe")
    secrets: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def safe(self) -> str:
        """The text without secrets, or the plain text if it contains none."""
        return self.redacted or self.text

    @property
    def place(self) -> str:
        """Its location as an attachable reference: the lines of a note."""
        return f"{self.path}#L{self.start}-L{self.end}"

    @property
    def why(self) -> str:
        """The reason for the hit, in words: its similarity in meaning, and the words shared."""
        likeness = "" if self.score is None else f"is {self.score:.2f} like the question"
        sharing = f"shares {', '.join(map(repr, self.words))}" if self.words else ""
        return " and ".join(filter(None, (likeness, sharing)))


class SearchTier(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The search method for passages. `by` is `words`; `candidates`, if words and a rough estimate
    of meaning selected the `compared` ones, which were then ranked by meaning; or `meaning`, with
    words. `indexed` of the searched `passages` have a vector."""

    by: Literal["words", "candidates", "meaning"]
    passages: int = 0
    indexed: int = 0
    compared: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether everything was searched by meaning."""
        return self.by == "meaning" and self.indexed >= self.passages

    @property
    def words(self) -> str:
        """The search method as text for a person."""
        indexed = f"{self.indexed:,} of {self.passages:,} passages are indexed"
        match self.by:
            case "words":
                is_partly_indexed = 0 < self.indexed < self.passages
                return f"by words; {indexed}" if is_partly_indexed else "by words"
            case "candidates":
                return f"by words, the best {self.compared:,} re-ranked by meaning; {indexed}"
            case "meaning":
                return f"by meaning and words{'' if self.is_complete else f'; {indexed}'}"


class NoteSearchResult(Struct, frozen=True, kw_only=True):
    """The outcome of a search of the workspace: the hits, best first, the number of notes searched
    and the `method` used; problems are in `warnings`."""

    hits: tuple[Hit, ...] = ()
    # The number of searched notes, and warnings for a person.
    searched: int = 0
    warnings: tuple[str, ...] = ()
    # The reason why nothing was searched; also for the model.
    unsearched: str = ""
    # The number of passages searched by words only, because there was no time to embed them.
    late: int = 0
    # The number of passages indexed in memory only, because writing to disk failed.
    unkept: int = 0
    # The number of further hits that did not fit in the request.
    without_room: int = 0
    # The time range searched, in words; empty for all time.
    time_range: str = ""
    # The search method; None if nothing was searched.
    tier: SearchTier | None = None

    @property
    def method(self) -> str:
        """The search method in words; empty if nothing was searched."""
        return self.tier.words if self.tier else ""

"""Notes: what is known of one without its text, and the passages of it that are searched."""

from typing import Any, Literal

from msgspec import Struct, field

from lamina.core.values.item import ItemId


class Passage(Struct, frozen=True, array_like=True, gc=False):
    """A stretch of a note that is searched by itself: its lines from `start` to `end`, counted from
    1, both included. `heading` is the trail it stands under, as `Setup > Linux`; `anchor` the
    innermost of these headings, as the note spells it. `digest` is the sha256 of the text that is
    searched, which begins with the note's title and the trail. A line that is too long for one
    passage is several: `part` is where such a one begins and ends in its line, in characters."""

    start: int
    end: int
    heading: str
    anchor: str
    digest: bytes
    part: tuple[int, int] | None = None


class ListItem(Struct, frozen=True, array_like=True, gc=False):
    """An item of a list, on a line counted from 0, as Dataview counts. `parent` is the line of the
    item it stands below, -1 without one; `status` what stands between the brackets of a task, None
    if it is no task; `heading` the one it stands under; `block` its name behind `^`."""

    line: int
    line_count: int
    parent: int
    marker: str
    status: str | None
    text: str
    heading: str = ""
    block: str = ""


class NoteQuery(Struct, frozen=True, array_like=True, gc=False):
    """A query in a note: a block of the query language, a block that searches, all queries within
    its text (one to a line), or a script, which is never run."""

    kind: Literal["block", "search", "inline", "script"]
    text: str

    @property
    def key(self) -> str:
        """What tells it from the other queries of its note."""
        return self.text if self.kind in ("block", "inline") else f"{self.kind}: {self.text}"


class Note(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What is known of a note. `digest` is the sha256 of its bytes; times are seconds since the
    epoch; tags are without `#`, in the order of the note; `links` and `embeds` are targets as they
    are spelled; `properties` is its frontmatter as JSON values; `fields` are the `name:: value` of
    its text outside of lists, `items` the items of its lists, `queries` its queries."""

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
    # The labels of links by their target: in Dendron, the label stands first.
    labels: dict[str, tuple[str, ...]] = {}
    # The files among its pictures, as they are spelled.
    pictures: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    queries: tuple[NoteQuery, ...] = ()
    properties: dict[str, Any] = {}
    fields: tuple[tuple[str, str], ...] = ()
    items: tuple[ListItem, ...] = ()
    passages: tuple[Passage, ...] = ()
    # The fields above that hold secrets, without these.
    safe: dict[str, Any] = {}
    # What is wrong with it, as frontmatter that is not YAML; with its line.
    problems: tuple[str, ...] = ()


class Catalogue(Struct, frozen=True, kw_only=True):
    """All notes of a workspace as they were at one moment, by path. One that did not change is the
    same value. `unreadable` are files that are there and could not be read, and why."""

    notes: tuple[Note, ...] = ()
    unreadable: tuple[str, ...] = ()


class TimeRange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A time from `start` up to before `end`, in seconds since the epoch; None is open. `words` are
    what it was asked for by, as `last week`."""

    start: float | None = None
    end: float | None = None
    words: str = ""

    def holds(self, moment: float) -> bool:
        """Whether a moment is in it."""
        return (self.start is None or moment >= self.start) and (
            self.end is None or moment < self.end
        )


class Scope(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where to search: in any of `folders` (and below), under any of `tags` (and nested ones),
    changed from `since` up to before `until`, and of the time `time`: changed then, or with a date
    of then in the name or the frontmatter. What is empty or None does not limit."""

    folders: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    time: TimeRange | None = None


class Hit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A passage that a search found, with its text as the note holds it now: the lines from `start`
    to `end`. `words` are those of the question that it shares. `secrets` are the kinds of those in
    it, judged in the whole note, and `redacted` is the text without them, empty if there are
    none."""

    item: ItemId
    path: str
    title: str
    text: str
    start: int
    end: int
    heading: str = ""
    anchor: str = ""
    # Cosine similarity; None where it was found by its words alone.
    score: float | None = None
    mtime: float = 0.0
    # It was called `safe` where it is read and written.
    redacted: str = field(default="", name="safe")
    secrets: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def safe(self) -> str:
        """The text without secrets, whether it holds any or not."""
        return self.redacted or self.text

    @property
    def place(self) -> str:
        """Where it stands, as it can be attached: the lines of a note."""
        return f"{self.path}#L{self.start}-L{self.end}"

    @property
    def why(self) -> str:
        """Why it was found, in words: how alike it is in meaning, and which words it shares."""
        likeness = "" if self.score is None else f"is {self.score:.2f} like the question"
        sharing = f"shares {', '.join(map(repr, self.words))}" if self.words else ""
        return " and ".join(filter(None, (likeness, sharing)))


class SearchTier(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How passages were searched. `by` is `words`; `candidates`, where words and a first guess at
    their meaning named the `compared` ones, which were then ranked by meaning; or `meaning`, with
    words. `indexed` of the `passages` that were searched have their vector."""

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
        """The same for a person."""
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
    """The outcome of a search of the workspace: what was found, the best first, in how many notes
    and by which `method`; what went wrong is in `warnings`."""

    hits: tuple[Hit, ...] = ()
    # How many notes were searched, and what a person should know of it.
    searched: int = 0
    warnings: tuple[str, ...] = ()
    # Why nothing was searched at all, which a model should know as well.
    unsearched: str = ""
    # How many passages were searched by their words alone, as there was no time to embed them.
    late: int = 0
    # How many passages are indexed in memory only, as the disk refused them.
    unkept: int = 0
    # How many more hits there were, for which a request had no room.
    without_room: int = 0
    # The time that was searched, in words; empty for all of it.
    time_range: str = ""
    # How it was searched; None if nothing was.
    tier: SearchTier | None = None

    @property
    def method(self) -> str:
        """How it was searched, in words; empty if nothing was."""
        return self.tier.words if self.tier else ""

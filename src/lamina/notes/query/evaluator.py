"""A query over notes: which of them it selects, and what it shows of them.

Laws: the same query over the same notes gives the same result; there is no clock. What a note does
not have is null, not an error. Ties are ordered by path. A query is compiled to functions once, and
these are called for each note, so the time is in proportion to the notes.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from operator import ge, gt, le, lt
from typing import Any, assert_never

from lamina.notes.names import NOTE_SUFFIX, NoteNames, is_in_folder, split_link, tag_matches
from lamina.notes.query.result import QueryGroup, QueryResult, QueryRow
from lamina.notes.query.syntax import (
    Comparison,
    Conjunction,
    Disjunction,
    Expression,
    FileField,
    FileProperty,
    FolderSource,
    FunctionName,
    LinkSource,
    ListLiteral,
    Negation,
    ParsedQuery,
    Property,
    QueryCall,
    SortKey,
    TagSource,
    Value,
)
from lamina.notes.query.value_order import (
    NULL_KEY,
    ValueKey,
    find_property,
    fold_case,
    is_truthy,
    key_of,
    moment_of,
    normalize_text,
    same_kind,
)
from lamina.values.note import Note

# How many notes are shown if the query does not say.
MOST_SHOWN = 200
_Ask = Callable[[Note], Any]
_Test = Callable[[Note], bool]


def run_query(query: ParsedQuery, notes: Sequence[Note], *, at: str) -> QueryResult:
    """The result of the query in the note `at`."""
    context = _QueryContext(notes, at)
    matches: Iterable[Note] = sorted(notes, key=lambda note: note.path)
    for condition in (query.source, query.where):
        if condition is not None:
            matches = filter(context.test(condition), matches)
    ordered_notes = list(matches)
    for sort_key in reversed(query.sort):
        ordered_notes = _sort(ordered_notes, sort_key, context)
    groups = _group(ordered_notes, query, context)
    columns = tuple(context.ask(column.shown) for column in query.columns)
    return QueryResult(
        shape=query.shape,
        with_id=query.with_id,
        heads=tuple(column.head for column in query.columns),
        group_head=None if query.group is None else query.group.head,
        groups=_fill(groups, columns, MOST_SHOWN if query.limit is None else query.limit),
        fits=len(ordered_notes),
        warnings=tuple(dict.fromkeys(context.warnings)),
    )


def _sort(notes: list[Note], sort_key: SortKey, context: "_QueryContext") -> list[Note]:
    """Sorts by one key and keeps the order of equal ones; null comes last in both directions."""
    key_of_note = context.key(sort_key.by)
    pairs = [(key_of_note(note), note) for note in notes]
    some = [pair for pair in pairs if pair[0] != NULL_KEY]
    # A reversed sort also keeps the order of equal ones.
    some.sort(key=lambda pair: pair[0], reverse=sort_key.descending)
    return [note for _, note in some] + [note for key, note in pairs if key == NULL_KEY]


def _group(
    notes: list[Note], query: ParsedQuery, context: "_QueryContext"
) -> list[tuple[Any, list[Note]]]:
    """Notes by their common value, spelled as in the first of them."""
    if query.group is None:
        return [(None, notes)]
    ask = context.ask(query.group.shown)
    groups: dict[ValueKey, tuple[Any, list[Note]]] = {}
    for note in notes:
        value = ask(note)
        groups.setdefault(key_of(value), (value, []))[1].append(note)
    return [groups[key] for key in sorted(groups, key=lambda key: (key == NULL_KEY, key))]


def _fill(
    note_groups: list[tuple[Any, list[Note]]], columns: tuple[_Ask, ...], most: int
) -> tuple[QueryGroup, ...]:
    groups = []
    for key, notes in note_groups:
        shown_notes = notes[: max(most, 0)]
        most -= len(shown_notes)
        if shown_notes:
            rows = tuple(
                QueryRow(note.path, tuple(ask(note) for ask in columns)) for note in shown_notes
            )
            groups.append(QueryGroup(key=key, size=len(notes), rows=rows))
    return tuple(groups)


class _QueryContext:
    """The note that holds a query and the notes it is about; turns the query's parts into functions
    of a note."""

    def __init__(self, notes: Sequence[Note], at: str) -> None:
        self._notes = notes
        self._at = at
        self.warnings: list[str] = []

    @cached_property
    def _this(self) -> Note | None:
        return next((note for note in self._notes if note.path == self._at), None)

    @cached_property
    def _names(self) -> NoteNames:
        aliases = {note.path: note.aliases for note in self._notes if note.aliases}
        return NoteNames((note.path for note in self._notes), aliases)

    def _links_to(self, name: str) -> _Test:
        """By the note that a link means. A name that means no note is compared as it is spelled."""
        resolution = self._names.resolve(name, beside=self._at) if name.strip() else None
        path = self._at if resolution is None else resolution.path
        if path is None:
            if resolution is not None and resolution.how == "ambiguous":
                dots = ("…",) if len(resolution.matches) > 5 else ()
                listing = ", ".join((*resolution.matches[:5], *dots))
                self.warnings.append(
                    f"[[{name}]] may mean any of {listing}; links spelled like it were taken"
                )
            stems = _stems(name)
            return lambda note: any(
                not stems.isdisjoint(_stems(link)) for link in _links_near(note, stems)
            )
        target = next((note for note in self._notes if note.path == path), None)
        # Only a link that holds the note's name or an alias can mean it; others need not be
        # resolved.
        names = {
            *_stems(path),
            *(fold_case(alias.strip()) for alias in (target.aliases if target else ())),
        }
        return lambda note: any(
            self._names.resolve(link, beside=note.path).path == path
            for link in _links_near(note, names)
        )

    def ask(self, expression: Expression) -> _Ask:
        """A function that gives the expression's value for a note."""
        match expression:
            case Value(value):
                return lambda _: value
            case ListLiteral(members):
                asks = tuple(map(self.ask, members))
                return lambda note: tuple(ask(note) for ask in asks)
            case Property() | FileProperty():
                return self._ask_field(expression)
            case QueryCall(function, arguments):
                call = _FUNCTIONS[function]
                asks = tuple(map(self.ask, arguments))
                return lambda note: call(*(ask(note) for ask in asks))
            case Comparison():
                return self._ask_comparison(expression)
            case TagSource(tag):
                # There are few tags and many notes.
                matches = lru_cache(maxsize=10_000)(lambda own_tag: tag_matches(own_tag, tag))
                return lambda note: any(map(matches, note.tags))
            case FolderSource(folder):
                paths = (folder, folder + NOTE_SUFFIX)
                return lambda note: is_in_folder(note.path, folder) or note.path in paths
            case LinkSource(name):
                return self._links_to(name)
            case Negation(part):
                test_part = self.test(part)
                return lambda note: not test_part(note)
            case Conjunction(parts):
                tests = tuple(map(self.test, parts))
                return lambda note: all(test(note) for test in tests)
            case Disjunction(parts):
                tests = tuple(map(self.test, parts))
                return lambda note: any(test(note) for test in tests)
            case _:
                assert_never(expression)

    def test(self, expression: Expression) -> _Test:
        """A function that says whether the expression's value for a note counts as true."""
        ask = self.ask(expression)
        return lambda note: is_truthy(ask(note))

    def key(self, expression: Expression) -> Callable[[Note], ValueKey]:
        """Like `ask`, but gives the key that values are compared by."""
        if isinstance(expression, Value):
            always = key_of(expression.value)
            return lambda _: always
        ask = self.ask(expression)
        return lambda note: key_of(ask(note))

    def _ask_field(self, field: Property | FileProperty) -> _Ask:
        ask = (
            _FILE_FIELDS[field.field] if isinstance(field, FileProperty) else _property(field.names)
        )
        if not field.of_this:
            return ask
        always = None if self._this is None else ask(self._this)
        return lambda _: always

    def _ask_comparison(self, comparison: Comparison) -> _Ask:
        left, right = self.key(comparison.left), self.key(comparison.right)
        match comparison.operator:
            case "=":
                return lambda note: left(note) == right(note)
            case "!=":
                return lambda note: left(note) != right(note)
            case "in":
                member, whole = self.ask(comparison.left), self.ask(comparison.right)
                return lambda note: _contains(whole(note), member(note))
            case operator:
                order = {"<": lt, "<=": le, ">": gt, ">=": ge}[operator]

        def compare(note: Note) -> bool:
            first, second = left(note), right(note)
            return same_kind(first, second) and order(first, second)

        return compare


# -- fields --------------------------------------------------------------------------------------

_FILE_FIELDS: dict[FileField, _Ask] = {
    "name": lambda note: note.path.rsplit("/", 1)[-1].removesuffix(NOTE_SUFFIX),
    "path": lambda note: note.path,
    "folder": lambda note: note.path.rpartition("/")[0],
    "tags": lambda note: note.tags,
    "aliases": lambda note: note.aliases,
    "links": lambda note: note.links,
    "embeds": lambda note: note.embeds,
    "headings": lambda note: note.headings,
    "ctime": lambda note: moment_of(note.ctime),
    "mtime": lambda note: moment_of(note.mtime),
    "size": lambda note: note.size,
}


def _property(names: tuple[str, ...]) -> _Ask:
    steps = tuple((name, fold_case(name)) for name in names)
    return lambda note: _follow(note.properties, steps)


def _follow(value: Any, steps: tuple[tuple[str, str], ...]) -> Any:
    """The value under a chain of names. For a list: the values of its objects."""
    for name, folded in steps:
        if isinstance(value, dict):
            value = find_property(value, name, folded)
        elif isinstance(value, list | tuple):
            objects = (member for member in value if isinstance(member, dict))
            values = (find_property(member, name, folded) for member in objects)
            value = tuple(inner for inner in values if inner is not None)
        else:
            return None
    return value


def _links_near(note: Note, names: set[str]) -> Iterable[str]:
    """Targets of links and embeds that hold one of the names; not links within the note."""
    for link in note.links + note.embeds:
        spelling = fold_case(link)
        if not spelling.startswith("#") and any(name in spelling for name in names):
            yield link


def _stems(link: str) -> set[str]:
    """The last part of a link's target, with `#` as part of the name and without."""
    return {
        fold_case(spelling).rsplit("/", 1)[-1].removesuffix(NOTE_SUFFIX).strip()
        for spelling in (link, split_link(link).name)
    }


# -- functions -----------------------------------------------------------------------------------


def _contains(whole: Any, part: Any) -> bool:
    match whole:
        case str():
            return isinstance(part, str) and normalize_text(part) in normalize_text(whole)
        case list() | tuple() | dict():
            key = key_of(part)
            return any(key_of(member) == key for member in whole)
    return False


def _contains_folded(whole: Any, part: Any) -> bool:
    return _contains(_fold_texts(whole, fold_case), _fold_texts(part, fold_case))


def _fold_texts(value: Any, change: Callable[[str], str]) -> Any:
    """A text changed, or the texts among a list's members or an object's names."""
    match value:
        case str():
            return change(value)
        case list() | tuple() | dict():
            return tuple(change(member) if isinstance(member, str) else member for member in value)
    return value


def _change_case(change: Callable[[str], str]) -> Callable[[Any], Any]:
    return lambda value: value if isinstance(value, dict) else _fold_texts(value, change)


def _length(value: Any) -> int | None:
    if value is None:
        return 0
    return len(value) if isinstance(value, str | list | tuple | dict) else None


def _compare_texts(test: Callable[[str, str], bool]) -> Callable[[Any, Any], bool]:
    return lambda whole, part: (
        isinstance(whole, str)
        and isinstance(part, str)
        and test(normalize_text(whole), normalize_text(part))
    )


_FUNCTIONS: dict[FunctionName, Callable[..., Any]] = {
    "contains": _contains,
    "icontains": _contains_folded,
    "startswith": _compare_texts(str.startswith),
    "endswith": _compare_texts(str.endswith),
    "length": _length,
    "lower": _change_case(str.lower),
    "upper": _change_case(str.upper),
    "default": lambda value, otherwise: otherwise if value is None else value,
}

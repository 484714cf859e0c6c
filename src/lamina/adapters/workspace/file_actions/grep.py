"""Searching the files of a workspace line by line.

Law: what was not searched and what is not shown is reported; finding nothing is not an error.
"""

import contextlib
import stat
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lamina.adapters.files.paths import PathRefused, clean_path
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_actions.line_finder import (
    LineMatches,
    PatternFinder,
    PlainFinder,
)
from lamina.adapters.workspace.file_actions.view import (
    MOST_CHARACTERS,
    Hide,
    as_it_is,
    cut_around,
    is_text,
    plural,
    show_name,
)
from lamina.core.selection.globs import first_match
from lamina.errors import UsageError

LONGEST_PATTERN = 1000
MOST_CONTEXT = 20
# The most that goes to a finder at once, in characters and in files.
_BATCH, _BATCH_FILES = 1_000_000, 256
_NAMED = 5


class FileText(NamedTuple):
    path: str
    text: str


class GrepSearch(NamedTuple):
    """What to search for, and how much to show."""

    pattern: str
    regex: bool
    ignore_case: bool
    context: int
    limit: int
    seconds: float


def grep_files(
    root: Root, search: GrepSearch, folder: str, glob: str, hide: Hide = as_it_is
) -> str:
    """Searches a folder, or one file. What `hide` takes out of a text is not found either: who may
    not see it could otherwise guess it, letter by letter.

    Raises:
        PathRefused: there is no such file or folder.
        UsageError: the search is not valid.
    """
    _check(search)
    problems: list[str] = []
    texts = _texts(root, folder, glob, problems)
    pattern, ignore_case = search.pattern, search.ignore_case
    report = _Report(search)
    with contextlib.closing(
        PatternFinder(pattern, ignore_case=ignore_case, seconds=search.seconds)
        if search.regex
        else PlainFinder(pattern, ignore_case=ignore_case)
    ) as finder:
        for batch in _batches(texts):
            for file, places in _find(finder, batch, hide):
                report.add(file, places)
    return report.text(problems)


def _find(
    finder: PatternFinder | PlainFinder, batch: list[FileText], hide: Hide
) -> Iterator[tuple[FileText, LineMatches]]:
    """The files of a batch with the places in them. Only those with a match are searched for what
    is to be hidden, and then once more without it."""
    places = dict(zip(batch, finder.find([text for _, text in batch]), strict=True))
    safe_files = {
        file: FileText(file.path, safe)
        for file, matches in places.items()
        if matches and (safe := hide(file.text)) != file.text
    }
    matches_again = finder.find([file.text for file in safe_files.values()]) if safe_files else ()
    safe_places = dict(zip(safe_files, matches_again, strict=True))
    for file in batch:
        yield safe_files.get(file, file), safe_places.get(file, places[file])


def _check(search: GrepSearch) -> None:
    if not search.pattern:
        raise UsageError("grep needs something to search for; the pattern is empty")
    if len(search.pattern) > LONGEST_PATTERN:
        raise UsageError(
            f"the pattern has {len(search.pattern):,} characters; give up to {LONGEST_PATTERN:,}"
        )
    if not search.regex and "\n" in search.pattern:
        raise UsageError("grep searches line by line; give a pattern without a line break")
    if search.limit < 1 or not 0 <= search.context <= MOST_CONTEXT:
        raise UsageError(
            f"limit has to be 1 or more (not {search.limit}), and context 0 to {MOST_CONTEXT} "
            f"(not {search.context})"
        )


def _texts(root: Root, folder: str, glob: str, problems: list[str]) -> Iterator[FileText]:
    if stat.S_ISDIR(root.stat(folder).st_mode):
        paths: Iterable[str] = (entry.path for entry in root.walk(folder, problems))
    else:
        paths = [str(clean_path(folder))]
    for path in paths:
        if glob and not first_match([glob], [path]):
            continue
        try:
            data, _ = root.read(path)
        except PathRefused as refusal:
            problems.append(refusal.detail)
            continue
        if is_text(data):
            yield FileText(path, data.decode("utf-8", "replace").removeprefix("\ufeff"))
        else:
            problems.append(f"{path} is not text")


def _batches(texts: Iterator[FileText]) -> Iterator[list[FileText]]:
    batch: list[FileText] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text.text)
        if size >= _BATCH or len(batch) >= _BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Report:
    """Collects matches; those above the limit are only counted."""

    def __init__(self, search: GrepSearch) -> None:
        self._search = search
        self._lines: list[str] = []
        self._room = MOST_CHARACTERS
        self._files = self._matches = self._shown_lines = self._total = 0

    def add(self, file: FileText, places: LineMatches) -> None:
        self._files += 1
        self._matches += bool(places)
        self._total += len(places)
        room = self._search.limit - self._shown_lines
        if not places or room <= 0 or self._room <= 0:
            return
        hits = places[:room]
        lines = file.text.split("\n")
        name = show_name(file.path)
        columns = dict(hits)
        last = -1
        for number in _with_context([line for line, _ in hits], self._search.context, len(lines)):
            if self._room <= 0:
                return
            if self._search.context and self._lines and number != last + 1:
                self._say("--")
            mark = ":" if number in columns else "-"
            text = cut_around(lines[number].removesuffix("\r"), columns.get(number, 0))
            self._say(f"{name}{mark}{number + 1}{mark} {text}")
            self._shown_lines += number in columns
            last = number

    def text(self, problems: list[str]) -> str:
        if not self._total:
            self._say(f"(no matches in {plural(self._files, 'file')})")
        elif self._shown_lines < self._total:
            rest = self._total - self._shown_lines
            self._say(
                f"[{rest:,} more of {self._total:,} lines in {plural(self._matches, 'file')} that "
                f"match; narrow the search by path or glob, or raise the limit]"
            )
        if problems:
            names = "; ".join(show_name(problem) for problem in problems[:_NAMED])
            more = f"; and {len(problems) - _NAMED:,} more" if len(problems) > _NAMED else ""
            self._say(f"[not searched: {names}{more}]")
        return "\n".join(self._lines)

    def _say(self, line: str) -> None:
        self._lines.append(line)
        self._room -= len(line) + 1


def _with_context(lines: list[int], context: int, total: int) -> list[int]:
    if not context:
        return lines
    numbers: set[int] = set()
    for line in lines:
        numbers.update(range(max(0, line - context), min(total, line + context + 1)))
    return sorted(numbers)

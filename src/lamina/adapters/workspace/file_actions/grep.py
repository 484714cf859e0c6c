"""Searches the files of a workspace line by line, for a text or a regular expression.

Laws: files not searched and lines not shown are reported; finding nothing is not an error. It
always ends: a regular expression can take forever, and Python cannot interrupt one, so it runs in
its own process (`line_finder_child`), which is killed when its time is up. Plain text needs no
process.
"""

import contextlib
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lamina.adapters.files.paths import PathRefused, clean_path
from lamina.adapters.files.root import Root
from lamina.adapters.workspace.file_actions.view import (
    MAX_CHARACTERS,
    Hide,
    as_it_is,
    cut_around,
    is_text,
    plural,
    show_name,
)
from lamina.core.selection.globs import first_match
from lamina.errors import UsageError

PATTERN_SECONDS = 10.0

# The matching lines of a text, counted from 0, each with the column of its first match.
LineMatches = list[tuple[int, int]]


class PlainFinder:
    def __init__(self, text_to_find: str, *, ignore_case: bool) -> None:
        self._ignore_case = ignore_case
        self._text_to_find = text_to_find.casefold() if ignore_case else text_to_find

    def find(self, texts: Sequence[str]) -> list[LineMatches]:
        return [self._places(text) for text in texts]

    def _places(self, text: str) -> LineMatches:
        content = text.casefold() if self._ignore_case else text
        if self._text_to_find not in content:
            return []
        columns = (line.find(self._text_to_find) for line in content.split("\n"))
        return [(number, column) for number, column in enumerate(columns) if column >= 0]

    def close(self) -> None:
        pass


class PatternFinder:
    """Finds a regular expression in its own process, until it is closed; each call may take
    `seconds`.

    Raises:
        UsageError: the pattern is not a regular expression, or it took too long.
    """

    def __init__(
        self, pattern: str, *, ignore_case: bool, seconds: float = PATTERN_SECONDS
    ) -> None:
        self._pattern = pattern
        self._seconds = seconds
        child = Path(__file__).with_name("line_finder_child.py")
        try:
            # Isolated from the environment and the current folder.
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-W", "ignore", str(child)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise UsageError(
                f"regular expressions cannot be run here ({error}); search for plain text instead"
            ) from error
        try:
            answer = self._ask({"pattern": pattern, "ignore_case": ignore_case})
            if "wrong" in answer:
                raise UsageError(
                    f"{pattern!r} is no regular expression: {answer['wrong']}; mend it, or search "
                    f"for plain text"
                )
        except BaseException:
            self.close()
            raise

    def find(self, texts: Sequence[str]) -> list[LineMatches]:
        return [[(line, column) for line, column in matches] for matches in self._ask(texts)]

    def close(self) -> None:
        self._process.kill()
        # Closes the pipes and waits for the process to end; unsent output does not matter.
        with contextlib.suppress(OSError):
            self._process.communicate()

    def _ask(self, question: object) -> Any:
        is_over = threading.Event()
        timer = threading.Timer(self._seconds, self._give_up, (is_over,))
        timer.start()
        try:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(msgspec.json.encode(question) + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except OSError:
            answer = b""
        finally:
            timer.cancel()
            timer.join()
        if is_over.is_set():
            raise UsageError(
                f"the regular expression {self._pattern!r} took longer than {self._seconds:g} s "
                f"and was ended; make it simpler (no repetition inside a repetition), search in "
                f"fewer files, or search for plain text"
            )
        if not answer:
            raise UsageError(
                f"the regular expression {self._pattern!r} could not be run to its end: it needs "
                f"too much memory; make it simpler, or search for plain text"
            )
        return msgspec.json.decode(answer)

    def _give_up(self, is_over: threading.Event) -> None:
        is_over.set()
        self._process.kill()


LONGEST_PATTERN = 1000
MAX_CONTEXT = 20
# The most sent to a finder at once, in characters and in files.
_BATCH, _BATCH_FILES = 1_000_000, 256
_NAMED = 5


class FileText(NamedTuple):
    path: str
    text: str


class GrepSearch(NamedTuple):
    """The pattern to search for, and how much to show."""

    pattern: str
    regex: bool
    ignore_case: bool
    context: int
    limit: int
    seconds: float


def grep_files(
    root: Root, search: GrepSearch, folder: str, glob: str, hide: Hide = as_it_is
) -> str:
    """Search a folder, or one file. Text that `hide` removes is not found either: otherwise a
    caller could guess it letter by letter.

    Raises:
        PathRefused: the file or folder does not exist.
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
    """Yield the files of a batch with the places of matches. Only files with a match are checked
    for text to hide, and then searched again without it."""
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
    if search.limit < 1 or not 0 <= search.context <= MAX_CONTEXT:
        raise UsageError(
            f"limit has to be 1 or more (not {search.limit}), and context 0 to {MAX_CONTEXT} "
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
    """Collects matches; those over the limit are only counted."""

    def __init__(self, search: GrepSearch) -> None:
        self._search = search
        self._lines: list[str] = []
        self._room = MAX_CHARACTERS
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

"""Lines that hold a text, or that a regular expression matches.

Law: it ends. A regular expression can take forever, and Python cannot interrupt one; so it runs in
its own process, which is killed when its time is up. Plain text needs none of that.
"""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

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
    """Runs until it is closed; each call may take `seconds`.

    Raises:
        UsageError: it is not a regular expression, or it took too long.
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
        # Closes the pipes and waits for it to end; unsent output does not matter.
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

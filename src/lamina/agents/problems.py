"""What is odd about files, collected while they are read."""

from collections import Counter
from typing import Literal

from lamina.values.agent import Problem

# Of one file; nobody reads more, and a hostile one has them by the thousand.
MOST_PROBLEMS = 200


class ProblemList:
    """Problems in the order in which they were found; the same one is noted once."""

    def __init__(self) -> None:
        self._problems: dict[Problem, None] = {}
        self._counts: Counter[str] = Counter()

    def error(self, path: str, problem: str, line: int | None = None) -> None:
        self.note(path, problem, line, "error")

    def warn(self, path: str, problem: str, line: int | None = None) -> None:
        self.note(path, problem, line, "warning")

    def note(
        self, path: str, problem: str, line: int | None, level: Literal["error", "warning"]
    ) -> None:
        found = Problem(path=path, problem=problem, line=line, level=level)
        if found in self._problems or self._counts[path] > MOST_PROBLEMS:
            return
        self._counts[path] += 1
        if self._counts[path] > MOST_PROBLEMS:
            more = f"has more than {MOST_PROBLEMS} problems; the others are not shown"
            found = Problem(path=path, problem=more)
        self._problems[found] = None

    @property
    def problems(self) -> tuple[Problem, ...]:
        return tuple(self._problems)

"""Problems with files, collected while they are read."""

from collections import Counter
from typing import Literal

from lamina.core.values.agent import Problem

# Per file; no one reads more, and a hostile file may have thousands.
MOST_PROBLEMS = 200


class ProblemList:
    """Problems in the order they were found, each only once."""

    def __init__(self) -> None:
        self._problems: dict[Problem, None] = {}
        self._counts: Counter[str] = Counter()

    def error(self, path: str, problem: str, line: int | None = None) -> None:
        self.add(path, problem, line, "error")

    def warn(self, path: str, problem: str, line: int | None = None) -> None:
        self.add(path, problem, line, "warning")

    def add(
        self, path: str, problem: str, line: int | None, level: Literal["error", "warning"]
    ) -> None:
        entry = Problem(path=path, problem=problem, line=line, level=level)
        if entry in self._problems or self._counts[path] > MOST_PROBLEMS:
            return
        self._counts[path] += 1
        if self._counts[path] > MOST_PROBLEMS:
            more = f"has more than {MOST_PROBLEMS} problems; the others are not shown"
            entry = Problem(path=path, problem=more)
        self._problems[entry] = None

    @property
    def all(self) -> tuple[Problem, ...]:
        return tuple(self._problems)

"""What a seed decides.

Law: the same seed draws the same on every machine and for every version of Python. Of `Random` only
`random()` is promised to stay as it is, so everything is drawn with that.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

VOCABULARY = (
    "harbour", "ferry", "berth", "quay", "tide", "crane", "pilot", "anchor", "lantern", "rope",
    "señal", "größe", "naïve", "日本", "ok.", "(see", "below)", "—", "100%", "a/b",
)  # fmt: skip


class Draw:
    """Choices, one after the other."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def number(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.number(0, len(choices) - 1)]

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        """Different ones, at most so many, in an order of their own."""
        left = list(choices)
        count = min(len(left), self.number(0, most))
        return [left.pop(self.number(0, len(left) - 1)) for _ in range(count)]

    def words(self, count: int, first: str = "") -> str:
        """Text of so many words; `first` tells it from others."""
        drawn = [self.pick(VOCABULARY) for _ in range(count)]
        if first and drawn:
            drawn[0] = first
        return " ".join(drawn)

"""A book of small targets whose tokens are words, so that budgets can be written by hand."""

from collections.abc import Mapping
from types import ModuleType
from typing import cast

from msgspec.structs import replace

from lamina.adapters.providers.wires import anthropic, gemini, llamacpp, llamacpp_tools, openai
from lamina.core.ports import TokenCounter, Wire
from lamina.core.values.settings import CacheRules, Target
from lamina.errors import UnknownTarget

SMALL = Target(
    provider="fake",
    model="small",
    wire="openai",
    window=10_000,
    max_output=1_000,
    cache=CacheRules(minimum=0, step=1, lifetime_s=300.0),
)
# Another model of the same provider, and one whose wire carries signed thinking.
OTHER = replace(SMALL, model="other")
THINKER = replace(SMALL, model="thinker", wire="anthropic")

_WIRES: Mapping[str, ModuleType] = {
    "openai": openai, "anthropic": anthropic, "gemini": gemini, "llamacpp": llamacpp,
    "llamacpp_tools": llamacpp_tools,
}  # fmt: skip


class FakeCounter:
    """One token a word. It counts how often it was asked, too."""

    name = "words"
    exact = False

    def __init__(self) -> None:
        self.asked = 0

    def count(self, text: str) -> int:
        self.asked += 1
        return len(text.split())


class FakeBook:
    """Knows the targets it was given; `put` changes one, as an edited models file would."""

    def __init__(self, *targets: Target) -> None:
        self._targets = {target.name: target for target in targets or (SMALL, OTHER, THINKER)}
        self.words = FakeCounter()

    def put(self, target: Target) -> None:
        self._targets[target.name] = target

    def find(self, name: str) -> Target:
        if name not in self._targets:
            raise UnknownTarget(name, tuple(self._targets))
        return self._targets[name]

    def counter(self, target: Target) -> TokenCounter:
        return self.words

    def wire(self, target: Target) -> Wire:
        return cast(Wire, _WIRES[target.wire])

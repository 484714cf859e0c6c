"""What a question would choose of an agent's rules, references and tools, and what it only
just would not."""

from typing import Literal

from msgspec import Struct


class ChosenItem(Struct, frozen=True, kw_only=True):
    """Something that a question would bring. `part` is the part of the question that it fits best,
    `chunk` the text of it that does."""

    item: str
    kind: str
    name: str
    server: str
    include: str
    score: float | None
    origin: str
    source: str
    part: str
    chunk: str
    why: str
    tokens: int


class NearMiss(Struct, frozen=True, kw_only=True):
    """What only just was not chosen. `score` is its likeness to the question, None where it was
    searched by words alone or not recorded; up to `floor` nothing is chosen, from `threshold` on
    everything; in between the best `most` are."""

    item: str
    kind: str
    name: str
    server: str
    score: float | None
    floor: float
    threshold: float
    most: int
    why: str
    # Whether that was recorded with the request, or is how it would be now.
    as_of: Literal["request", "now"]


class AgentChoice(Struct, frozen=True, kw_only=True):
    """The choice. `tokens` are those of what search chose; `always` of what is in anyway. `method`
    says whether meaning was looked at or words alone."""

    question: str
    preset: str
    method: str
    items: tuple[ChosenItem, ...]
    near: tuple[NearMiss, ...]
    tokens: int
    always: int
    warnings: tuple[str, ...]

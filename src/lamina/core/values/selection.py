"""Describes searches and their results, and the rules, references and tools of an agent that a
question would choose or narrowly miss."""

from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import asdict, force_setattr

from lamina.core.values.item import ItemId, Provenance
from lamina.errors import InvalidSetting

Preset = Literal["conservative", "normal", "aggressive"]
# How an item became part of a request, unless it was always or manually included.
Origin = Literal["search", "lexical", "expansion", "relation", "glob", "result", "model"]

# Unrelated texts score up to about 0.15, and hardly any tool that a question needs scores less when
# search finds it.
FLOOR = 0.15


class SearchSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The settings of a search. Scores are cosine similarities."""

    search: bool = True
    """Whether to search at all."""
    top_k: int = 20
    """The number of best-matching chunks considered for items below `include_score`."""
    top_n: int = 5
    """The maximum number of items to choose, unless more of them reach `include_score`."""
    include_score: float = 0.7
    """The score from which an item is always chosen, regardless of `top_k` and `top_n`."""
    floor: float = FLOOR
    """The score up to which an item is never chosen."""
    gate: bool = True
    """Whether nothing is chosen if nothing stands out for the question. A custom `floor` replaces
    this."""
    expansion_depth: int = 0
    """The number of times to search again, starting from the chosen items."""
    expansion_threshold: float = 0.75
    """The minimum similarity of items found by such a search."""
    expansion_top_n: int = 3
    """The maximum number of items that each such search may add."""
    expansion_chunks: int = 5
    """The number of an item's chunks to search from."""
    expansion_graph: bool = False
    """Whether a stored graph of all items, built once, replaces those searches."""

    def __post_init__(self) -> None:
        for name in ("search", "gate", "expansion_graph"):
            if not isinstance(flag := getattr(self, name), bool):
                raise InvalidSetting(name, flag, "must be true or false")
        for name in ("top_k", "top_n", "expansion_depth", "expansion_top_n", "expansion_chunks"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise InvalidSetting(name, value, "must be a whole number from 0 on")
        for name in ("include_score", "floor", "expansion_threshold"):
            value = getattr(self, name)
            if (
                not isinstance(value, int | float)
                or isinstance(value, bool)
                or not -1 <= value <= 1
            ):
                raise InvalidSetting(name, value, "is a cosine similarity: from -1 to 1")
            # Stored as it is read back: one format per value.
            force_setattr(self, name, float(value))

    @property
    def is_gated(self) -> bool:
        """Whether the gate applies: a custom floor replaces it."""
        return self.gate and self.floor == FLOOR


# Law: for one question, the more eager preset chooses everything that the less eager one does. This
# works because they share the floor, the gate and the threshold for certainty: with a lower floor,
# parts of the question would claim other items and push out those that match it as a whole.
_PRESETS: dict[str, SearchSettings] = {
    "conservative": SearchSettings(top_k=10, top_n=3),
    "normal": SearchSettings(),
    "aggressive": SearchSettings(
        top_k=50,
        top_n=10,
        expansion_depth=1,
        expansion_threshold=0.65,
        expansion_top_n=5,
    ),
}


def preset(name: Preset) -> SearchSettings:
    """Return the settings of a preset.

    Raises:
        InvalidSetting: there is no such preset.
    """
    if name not in _PRESETS:
        raise InvalidSetting("preset", name, f"is not one of {', '.join(get_args(Preset))}")
    return _PRESETS[name]


def read_search(
    name: str, value: object, standing: SearchSettings = _PRESETS["normal"]
) -> SearchSettings:
    """Return search settings from a preset name, from the parts that differ from `standing`, or
    from a flag that turns search on or off. `name` is the name of the setting.

    Raises:
        InvalidSetting: the value is none of these, or a part is wrong.
    """
    if isinstance(value, SearchSettings):
        return value
    if isinstance(value, str) and value in _PRESETS:
        return _PRESETS[value]
    if isinstance(value, bool):
        value = {"search": value}
    if not isinstance(value, Mapping):
        problem = f"must be one of {', '.join(_PRESETS)}, its parts, or whether to search"
        raise InvalidSetting(name, value, problem)
    parts = asdict(standing)
    for part in value:
        if part not in parts:
            raise InvalidSetting(f"{name}.{part}", value[part], f"there are {', '.join(parts)}")
    return SearchSettings(**{**parts, **value})


class Document(Struct, frozen=True, gc=False):
    """An item prepared for search as chunks of its text, the first of which names it. If the chunks
    are stored elsewhere, `digests` (sha256 of their UTF-8) replace them, and `chunks` is empty."""

    id: ItemId
    chunks: tuple[str, ...] = ()
    digests: tuple[bytes, ...] = ()

    @property
    def size(self) -> int:
        """The number of its chunks."""
        return len(self.chunks) or len(self.digests)

    def chunk(self, place: int) -> str:
        """Return the text of a chunk; empty if it is not available."""
        return self.chunks[place] if self.chunks else ""


class QueryPart(Struct, frozen=True, kw_only=True):
    """One part of a query; parts from `recent` turns weigh less and claim no place. The `whole` is
    the question itself, which contains the others. A part that `claims` is guaranteed an item.
    `source` is the item or result that the text is from."""

    text: str
    weight: float = 1.0
    recent: bool = False
    whole: bool = False
    claims: bool = True
    source: str = ""


class Query(Struct, frozen=True, kw_only=True):
    parts: tuple[QueryPart, ...] = ()


class Evidence(Struct, frozen=True, kw_only=True):
    """The evidence for a question's best match, and how much is needed."""

    found: float
    needed: float

    @property
    def suffices(self) -> bool:
        """Whether anything may be chosen."""
        return self.found >= self.needed

    @property
    def verdict(self) -> str:
        """The reason why nothing is chosen; empty if the evidence suffices."""
        return self.judge("the best")

    def judge(self, best: str) -> str:
        """Return the evidence with the name of the best match."""
        return (
            f"nothing stood out for this question: the evidence for {best} is "
            f"{self.found:.2f}, and {self.needed:.2f} is needed"
        )


class SelectedItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chosen item. `score` is its cosine similarity, None if no embedding was available; `chunk`
    is the best matching text, if available, and `place` its position in the document; `source` is
    the item or result that led to it."""

    item: ItemId
    score: float | None = None
    origin: Origin = "search"
    source: str = ""
    chunk: str = ""
    place: int = 0

    @property
    def provenance(self) -> Provenance:
        return Provenance(include="agent", score=self.score, origin=self.origin, source=self.source)


class ChosenItem(Struct, frozen=True, kw_only=True):
    """An item that a question would bring. `part` is the best-matching part of the question,
    `chunk` the matching text."""

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
    """A narrowly missed item. `score` is its similarity to the question, None if only words were
    searched or no score was recorded. Nothing is chosen up to `floor`, everything from `threshold`
    on, and the best `most` in between."""

    item: str
    kind: str
    name: str
    server: str
    score: float | None
    floor: float
    threshold: float
    most: int
    why: str
    # Whether this was recorded with the request, or is computed now.
    as_of: Literal["request", "now"]


class AgentChoice(Struct, frozen=True, kw_only=True):
    """An agent's choice for a question. `tokens` counts the items that search chose, `always` those
    included anyway. `method` says whether meaning or only words were compared."""

    question: str
    preset: str
    method: str
    items: tuple[ChosenItem, ...]
    near: tuple[NearMiss, ...]
    tokens: int
    always: int
    warnings: tuple[str, ...]

"""What is searched, how, and the result; and which of an agent's rules, references and tools a
question would choose or narrowly miss."""

from collections.abc import Mapping
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import asdict, force_setattr

from lamina.core.values.item import ItemId, Provenance
from lamina.errors import InvalidSetting

Preset = Literal["conservative", "normal", "aggressive"]
# How an item came to be part of a request, apart from being always or manually included.
Origin = Literal["search", "lexical", "expansion", "relation", "glob", "result", "model"]

# Unrelated texts score up to about 0.15, and hardly any tool that a question needs and search finds
# scores less.
FLOOR = 0.15


class SearchSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How items are chosen for a question. Scores are cosine similarities."""

    search: bool = True
    """Whether anything is searched for at all."""
    top_k: int = 20
    """How many of the chunks that fit best are looked at for items below `include_score`."""
    top_n: int = 5
    """How many items are taken, if those that are sure to be are not more by themselves."""
    include_score: float = 0.7
    """From this score on an item is taken, however many there are and whatever `top_k` says."""
    floor: float = FLOOR
    """At or below this score an item is not taken, however few there are."""
    gate: bool = True
    """Whether nothing is taken if nothing stands out for the question. A `floor` of one's own takes
    its place."""
    expansion_depth: int = 0
    """How often what was taken is searched from again."""
    expansion_threshold: float = 0.75
    """How alike what such a search finds has to be."""
    expansion_top_n: int = 3
    """How many items each such search may add."""
    expansion_chunks: int = 5
    """How many chunks of an item are searched from."""
    expansion_graph: bool = False
    """Whether a graph of all items, built once and kept, takes the place of those searches."""

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
            # As it is read back: one value, one form.
            force_setattr(self, name, float(value))

    @property
    def is_gated(self) -> bool:
        """Whether the gate counts: a custom floor replaces it."""
        return self.gate and self.floor == FLOOR


# Law: for one question, the more eager preset takes everything that the less eager one takes. This
# works because they agree on the floor, the gate and the threshold for certainty: with a lower
# floor, parts of the question would claim other items and push out those that match it as a whole.
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
    """Return the settings of this preset.

    Raises:
        InvalidSetting: there is no such preset.
    """
    if name not in _PRESETS:
        raise InvalidSetting("preset", name, f"is not one of {', '.join(get_args(Preset))}")
    return _PRESETS[name]


def read_search(
    name: str, value: object, standing: SearchSettings = _PRESETS["normal"]
) -> SearchSettings:
    """Return the search settings given by a preset's name, by the parts that differ from
    `standing`, or by whether to search at all. `name` is the name of the setting.

    Raises:
        InvalidSetting: it is none of these, or a part is wrong.
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
    """An item as it is searched: by chunks of its text, the first of which names it. If the texts
    are stored elsewhere, `digests` (sha256 of their UTF-8) stand for them, and `chunks` is empty.
    """

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
    """One thing that is asked; parts of `recent` turns weigh less and claim no place. The `whole`
    is the question itself, which contains the others. A part that `claims` gets an item. `source`
    is the item or result that the text comes from."""

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
        """Why nothing is chosen, if the evidence does not suffice."""
        return self.judge("the best")

    def judge(self, best: str) -> str:
        """Return the same, with the name of the best match."""
        return (
            f"nothing stood out for this question: the evidence for {best} is "
            f"{self.found:.2f}, and {self.needed:.2f} is needed"
        )


class SelectedItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A chosen item. `score` is its cosine, None if no embedding was available; `chunk` is the best
    matching text, if available, and `place` its position in the document; `source` is the item or
    result that led to it."""

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
    """Something that a question would bring. `part` is the part of the question that it matches
    best, `chunk` the matching text."""

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
    """An item that was narrowly missed. `score` is its similarity to the question, None if it was
    searched by words only or not recorded; up to `floor` nothing is chosen, from `threshold` on
    everything; in between, the best `most` are."""

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
    """The choice. `tokens` are those of the items that search chose; `always` those of items
    included anyway. `method` says whether meaning was compared or only words."""

    question: str
    preset: str
    method: str
    items: tuple[ChosenItem, ...]
    near: tuple[NearMiss, ...]
    tokens: int
    always: int
    warnings: tuple[str, ...]

"""What we and a person know of models beyond prices and limits: models.toml, and the file that
LAMINA_MODELS names, merged over it.

Law: what a person's file says counts before what any table says.
"""

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from lamina.core.values.prices import NO_CHARGE, PROMPT_STEPS, Prices, PriceTier
from lamina.core.values.settings import WireName
from lamina.errors import InvalidSetting

_Dollars = Annotated[float, Meta(ge=0)]
_Factor = Annotated[float, Meta(ge=0)]
OWN_FILE = "your models file"
COMMON = "*"


class LongPromptPrice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What prompts of more than `above` tokens cost instead."""

    above: int
    input: _Dollars
    output: _Dollars


class ModelFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the file says of the models that match `match`; the file explains the fields."""

    match: str
    wire: WireName
    encoding: str
    window: Annotated[int, Meta(gt=0)]
    max_output: Annotated[int, Meta(gt=0)]
    max_input: Annotated[int, Meta(gt=0)] | None = None
    minimum: Annotated[int, Meta(ge=0)]
    step: Annotated[int, Meta(gt=0)]
    input: _Dollars | None = None
    output: _Dollars | None = None
    long_prompts: tuple[LongPromptPrice, ...] = ()
    read: _Factor = 1.0
    write: _Factor = 1.0
    long_write: _Factor = 1.0
    storage: _Dollars = 0.0
    exact_tokens: bool = False
    token_factor: Annotated[float, Meta(gt=0)] = 1.0
    lifetime_s: float | None = None
    long_lifetime_s: float | None = None
    explicit: bool = False
    keeps_answers: bool = False
    restricts_tools: bool = False
    enforces_citations: bool = False
    loads_tools: bool = False
    takes_sampling: bool = True
    binds_thinking: bool = False
    reads_thinking: tuple[str, ...] = ()
    sees_pictures: bool = True
    efforts: tuple[str, ...] | None = None
    max_tools: Annotated[int, Meta(ge=0)] = 0
    base_url: str = ""
    key_env: str = ""

    def __post_init__(self) -> None:
        if (self.input is None) != (self.output is None):
            raise ValueError("a price needs both `input` and `output`")
        for price in self.long_prompts:
            if price.above not in PROMPT_STEPS:
                steps = ", ".join(map(str, PROMPT_STEPS))
                raise ValueError(f"`above` is {price.above}, and has to be one of {steps}")

    def prices(self, date: str) -> Prices | None:
        """The prices that the file gives; None if it gives none."""
        if self.input is None or self.output is None:
            return None
        first = LongPromptPrice(above=0, input=self.input, output=self.output)
        longer = sorted(self.long_prompts, key=lambda price: price.above)
        tiers = tuple(
            self.tier(price.above, price.input, price.output) for price in (first, *longer)
        )
        source = OWN_FILE if any((self.input, self.output)) else NO_CHARGE
        return Prices(tiers=tiers, storage=self.storage, source=source, date=date)

    def tier(self, above: int, fresh: float, output: float) -> PriceTier:
        """Prices by the factors for what is cached."""
        return PriceTier(
            above=above,
            input=fresh,
            output=output,
            read=fresh * self.read,
            write=fresh * self.write,
            write_long=fresh * self.long_write,
        )


class ModelRule(Struct, frozen=True, kw_only=True):
    """Facts, and the names of those that a person's own file gives."""

    facts: ModelFacts
    own: frozenset[str]


class ModelRules(Struct, frozen=True, kw_only=True):
    """The rules of every provider: the first that a model matches holds, and the last is for any
    model."""

    by_provider: dict[str, tuple[ModelRule, ...]]
    date: str
    # The date that a person's own file has, if it has one.
    own_date: str = ""


class _File(Struct):
    """A file as it is written, before a model's gaps are filled in from its provider."""

    providers: dict[str, dict[str, Any]] = {}
    date: str = ""


def read_rules(path: str = "") -> ModelRules:
    """Our rules, with the user's file merged over them.

    Raises:
        InvalidSetting: the user's file cannot be read, or holds something invalid.
    """
    text = files("lamina.adapters.providers").joinpath("models.toml").read_text("utf-8")
    book = msgspec.convert(tomllib.loads(text), _File)
    try:
        over = _read(path) if path else _File()
        names = dict.fromkeys((*book.providers, *over.providers))
        rules = {name: _fill_in(name, book.providers, over.providers) for name in names}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting("LAMINA_MODELS", path, f"cannot be read: {error}") from error
    except msgspec.ValidationError as error:
        raise InvalidSetting("LAMINA_MODELS", path, str(error)) from error
    return ModelRules(by_provider=rules, date=over.date or book.date, own_date=over.date)


def _read(path: str) -> _File:
    return msgspec.convert(tomllib.loads(Path(path).read_text("utf-8")), _File)


def _fill_in(
    name: str, base: dict[str, dict[str, Any]], over: dict[str, dict[str, Any]]
) -> tuple[ModelRule, ...]:
    """The rules of a provider in order: those of the user's models, of ours, of any other model."""
    # A provider that only the user's file names speaks OpenAI's wire unless it says otherwise.
    packaged, given = base.get(name) or base["compatible"], over.get(name, {})
    models = [(model, True) for model in _models(name, given)]
    models += [(model, False) for model in (*_models(name, packaged), {"match": COMMON})]
    common = {key: value for key, value in (packaged | given).items() if key != "models"}
    return tuple(
        ModelRule(
            facts=_facts(name, common | model),
            own=frozenset(given) | frozenset(model)
            if is_own
            else frozenset(given) - frozenset(model),
        )
        for model, is_own in models
    )


def _facts(provider: str, fields: dict[str, Any]) -> ModelFacts:
    try:
        return msgspec.convert(fields, ModelFacts)
    except msgspec.ValidationError as error:
        where = f"providers.{provider}, model {fields.get('match')!r}"
        raise msgspec.ValidationError(f"{where}: {error}") from error


def _models(name: str, fields: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return msgspec.convert(fields.get("models", []), list[dict[str, Any]])
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"providers.{name}.models: {error}") from error

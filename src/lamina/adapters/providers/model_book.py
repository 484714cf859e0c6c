"""Combines the model data: models.toml, a person's own file (LAMINA_MODELS) merged over it, and the
generated table of prices and limits.

Law: a person's file takes precedence over the table, and the table over a provider's defaults. A
model in none of them has no price.
"""

import os
import tomllib
from collections.abc import Callable
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from lamina.adapters.providers.price_table import (
    LIMITS,
    ListedModel,
    PricePeriod,
    PriceTable,
    load_prices,
)
from lamina.adapters.providers.tokens import counter_for
from lamina.core.values.prices import NO_CHARGE, PROMPT_STEPS, Prices, PriceTier
from lamina.core.values.settings import LOCAL_WIRES, CacheRules, Target, WireName
from lamina.errors import InvalidSetting, ModelMissing, UnknownModel, UnknownTarget

if TYPE_CHECKING:
    from lamina.core.ports import TokenCounter, Wire


_Dollars = Annotated[float, Meta(ge=0)]
_Factor = Annotated[float, Meta(ge=0)]
OWN_FILE = "your models file"
COMMON = "*"


class LongPromptPrice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Different prices for prompts of more than `above` tokens."""

    above: int
    input: _Dollars
    output: _Dollars


class ModelFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about the models that match `match`; the file explains the fields."""

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
        """Return the prices that the file sets; None if it sets none."""
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
        """Return prices with the factors for cached tokens applied."""
        return PriceTier(
            above=above,
            input=fresh,
            output=output,
            read=fresh * self.read,
            write=fresh * self.write,
            write_long=fresh * self.long_write,
        )


class ModelRule(Struct, frozen=True, kw_only=True):
    """Facts, and the names of those set in a person's own file."""

    facts: ModelFacts
    own: frozenset[str]


class ModelRules(Struct, frozen=True, kw_only=True):
    """The rules for every provider: the first match applies, and the last rule matches any
    model."""

    by_provider: dict[str, tuple[ModelRule, ...]]
    date: str
    # The date in a person's own file, if any.
    own_date: str = ""


class _File(Struct):
    """A file as written, before a model's gaps are filled in from its provider."""

    providers: dict[str, dict[str, Any]] = {}
    date: str = ""


def read_rules(path: str = "") -> ModelRules:
    """Read our rules, with the user's file merged over them.

    Raises:
        InvalidSetting: the user's file cannot be read, or contains an invalid value.
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
    """Return a provider's rules in order: for the user's models, for ours, for any other model."""
    # A provider that only the user's file names uses OpenAI's wire unless specified otherwise.
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


DEFAULT_TARGET = "local:smollm2-135m"
LOCAL = "local"
# The source of the limits for a model on this machine.
BUNDLED = "Lamina"
# Price names in a person's file that are factors of another price, and the price each one sets.
FACTORS = {"read": "read", "write": "write", "long_write": "write_long"}


class _ModelFile(Struct, frozen=True, kw_only=True):
    """A model file on this machine, with its target and counter."""

    path: Path
    stamp: tuple[int, int]
    target: Target
    counter: Any


class ModelBook:
    """Finds targets by name, `provider:model`. An unknown model gets its provider's defaults, and
    no price."""

    def __init__(
        self, rules: ModelRules, table: PriceTable, today: Callable[[], date] = date.today
    ) -> None:
        self.date, self._own_date = rules.date, rules.own_date
        self._rules = rules.by_provider
        self._table = table
        self._vendors = {listed.provider for listed in table.models}
        self._today = today
        # Prices may change from one day to the next.
        self._day = ""
        self._targets: dict[str, Target] = {}
        # By model, and by the folder searched for models.
        self._model_files: dict[tuple[str, str | None], _ModelFile] = {}

    def find(self, name: str) -> Target:
        """Return the target with that name.

        A model whose file is gone still has a target: journals refer to it.

        Raises:
            UnknownTarget: no such provider, or no model given.
        """
        if (day := self._today().isoformat()) != self._day:
            self._day = day
            self._targets.clear()
        if target := self._targets.get(name):
            return self._adapt_to_file(target) if target.provider == LOCAL else target
        provider, _, model = name.partition(":")
        if provider not in self._rules or not model.strip():
            raise UnknownTarget(name, tuple(self._rules), self._guess_target(name))
        # A pattern can be requested by its own name, as `names` lists it.
        rule = next(
            rule
            for rule in self._rules[provider]
            if model == rule.facts.match or fnmatchcase(model, rule.facts.match)
        )
        if provider == LOCAL and rule.facts.match == COMMON != model:
            _check_local(name, model)
        target = self._targets[name] = self._make_target(provider, model, rule)
        return self._adapt_to_file(target) if provider == LOCAL else target

    def knows(self, name: str) -> bool:
        """Return whether the table or a person's file lists the model, and not only its
        provider."""
        provider, _, model = name.partition(":")
        own = (rule.facts.match for rule in self._rules.get(provider, ()) if "match" in rule.own)
        is_listed = self._table.find(provider, model) is not None
        return is_listed or any(fnmatchcase(model, pattern) for pattern in own)

    def later_prices(self, name: str) -> tuple[PricePeriod, ...]:
        """Return a target's known future prices."""
        listed = self._table.find(*name.split(":", 1))
        if (
            listed is None
            or (prices := self.find(name).prices) is None
            or prices.source == OWN_FILE
        ):
            return ()
        return tuple(period for period in listed.periods if period.since > self._day)

    def _make_target(self, provider: str, model: str, rule: ModelRule) -> Target:
        facts = asdict(rule.facts)
        listed = self._table.find(provider, model)
        limits, sources = self._find_limits(rule, listed)
        rules = CacheRules(**{key: facts[key] for key in CacheRules.__struct_fields__})
        common = {key: facts[key] for key in Target.__struct_fields__ if key in facts}
        return Target(
            provider=provider,
            model=model,
            cache=rules,
            prices=self._find_prices(rule, listed),
            limits_source=", ".join(sources),
            **common | limits,
        )

    def _find_limits(
        self, rule: ModelRule, listed: ListedModel | None
    ) -> tuple[dict[str, int | None], list[str]]:
        """Return the limits on prompts and answers, and their source."""
        sources = [OWN_FILE] if rule.own.intersection(LIMITS) else []
        if rule.facts.wire in LOCAL_WIRES:
            sources.append(BUNDLED)
        limits = {name: getattr(rule.facts, name) for name in LIMITS}
        # A window from a person's file is not combined with the table's longest prompt.
        kept = rule.own | ({"max_input"} if "window" in rule.own else frozenset())
        for name in LIMITS:
            if listed and name not in kept and (figure := getattr(listed, name)) is not None:
                limits[name] = figure
                sources.append(self._table.name_source(listed.sources[name]))
        return limits, list(dict.fromkeys(sources))

    def _find_prices(self, rule: ModelRule, listed: ListedModel | None) -> Prices | None:
        facts = rule.facts
        if own := facts.prices(self._own_date):
            return own
        if listed is None:
            return None
        prices = self._table.prices_of(listed, self._day, facts.storage)
        if not (changed := rule.own.intersection(FACTORS)):
            return prices
        tiers = tuple(
            replace(
                tier,
                **{
                    field: getattr(facts.tier(tier.above, tier.input, tier.output), field)
                    for name, field in FACTORS.items()
                    if name in changed
                },
            )
            for tier in prices.tiers
        )
        return replace(prices, tiers=tiers, source=f"{prices.source}, {OWN_FILE}")

    def _guess_target(self, model: str) -> str:
        """Guess the target from a model name alone."""
        from lamina.adapters.providers.local.model_catalogue import LOCAL_MODELS

        if model in LOCAL_MODELS:
            return f"{LOCAL}:{model}"
        for provider, rules in self._rules.items():
            patterns = (rule.facts.match for rule in rules if rule.facts.match != COMMON)
            is_listed = bool(model) and self._table.find(provider, model) is not None
            if is_listed or any(fnmatchcase(model, pattern) for pattern in patterns):
                return f"{provider}:{model}"
        return ""

    def names(self) -> list[str]:
        """Return every provider, and every model and pattern in the book, as targets."""
        found: list[str] = []
        for provider, rules in self._rules.items():
            own = [
                rule.facts.match
                for rule in rules
                if "match" in rule.own or provider not in self._vendors
            ]
            listed = sorted(m.model for m in self._table.models if m.provider == provider)
            found += [f"{provider}:{name}" for name in dict.fromkeys((COMMON, *own, *listed))]
        return found

    def counter(self, target: Target) -> "TokenCounter":
        """Return a target's counter: an exact one if its vocabulary is on this machine."""
        if target.provider != LOCAL:
            return counter_for(target)
        file = self._find_known_file(target)
        # The file of a target that counted exactly may be gone by now.
        counter = file.counter if file else _file_counter(_find_file(target.model))
        return counter or counter_for(replace(target, exact_tokens=False))

    def _adapt_to_file(self, target: Target) -> Target:
        file = self._find_known_file(target)
        return file.target if file else _adapt_to_file(target)

    def _find_known_file(self, target: Target) -> "_ModelFile | None":
        """Return the model's file, cached while unchanged: a turn asks several times, and one check
        of the disk is enough. None if it is not on this machine."""
        key = (target.model, os.environ.get("LAMINA_CACHE"))
        from lamina.adapters.providers.local.gguf import file_stamp

        known_file = self._model_files.get(key)
        if known_file and file_stamp(known_file.path) == known_file.stamp:
            return known_file
        self._model_files.pop(key, None)
        path = _find_file(target.model)
        stamp = file_stamp(path) if path else None
        if path is None or stamp is None:
            return None
        file = self._model_files[key] = _ModelFile(
            path=path, stamp=stamp, target=_adapt_to_file(target), counter=_file_counter(path)
        )
        return file

    def wire(self, target: Target) -> "Wire":
        """Return the encoder for the target's wire, imported when first needed."""
        return _wire(target.wire)


@cache
def _wire(name: str) -> "Wire":
    return cast("Wire", import_module(f"lamina.adapters.providers.wires.{name}"))


def _check_local(name: str, model: str) -> None:
    from lamina.adapters.providers.local.model_catalogue import LOCAL_MODELS, is_model_path

    if model not in LOCAL_MODELS and not is_model_path(model):
        raise UnknownModel(name, tuple(LOCAL_MODELS))


def _adapt_to_file(target: Target) -> Target:
    """Return the target with the facts in the model's own file, if that is on this machine."""
    from lamina.adapters.providers.local.gguf import context_length, thinks_first
    from lamina.adapters.providers.local.model_catalogue import LOCAL_MODELS

    path = _find_file(target.model)
    model = LOCAL_MODELS.get(target.model)
    context = (context_length(path) if path else None) or (model.context if model else None)
    window = min(target.window, context or target.window)
    return replace(
        target,
        window=window,
        max_output=min(target.max_output, max(1, window // 2)),
        # Encoding and factor remain those of the estimate, in case the file disappears.
        exact_tokens=_file_counter(path) is not None,
        # A grammar would take its thoughts for the answer.
        enforces_citations=target.enforces_citations and not (path and thinks_first(path)),
    )


def _find_file(model: str) -> Path | None:
    from lamina.adapters.providers.local.model_catalogue import find_model_file

    try:
        return find_model_file(model)
    except ModelMissing:
        return None


def _file_counter(path: Path | None) -> "TokenCounter | None":
    from lamina.adapters.providers.local.gguf import counter_for_model

    return counter_for_model(path) if path else None


def load_book(override: str | None = None) -> ModelBook:
    """Load the packaged book, with the user's file (LAMINA_MODELS) merged over it.

    Raises:
        InvalidSetting: the user's file cannot be read, or contains an invalid value.
    """
    return _load(override or os.environ.get("LAMINA_MODELS") or "")


@cache
def _load(path: str) -> ModelBook:
    return ModelBook(read_rules(path), load_prices())

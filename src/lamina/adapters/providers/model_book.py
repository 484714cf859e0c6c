"""The book of providers and models: what models.toml says of their caches and wires, the generated
table of their prices and limits, and a person's own file.

Law: a person's file counts before the table, and the table before what a provider's models have in
common. What none of them knows has no price.
"""

import os
from collections.abc import Callable
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from lamina.adapters.providers.models_file import (
    COMMON,
    OWN_FILE,
    ModelRule,
    ModelRules,
    read_rules,
)
from lamina.adapters.providers.price_table import (
    LIMITS,
    ListedModel,
    PricePeriod,
    PriceTable,
    load_prices,
)
from lamina.adapters.providers.tokens import counter_for
from lamina.core.values.prices import Prices
from lamina.core.values.settings import LOCAL_WIRES, CacheRules, Target
from lamina.errors import ModelMissing, UnknownModel, UnknownTarget

if TYPE_CHECKING:
    from lamina.core.ports import TokenCounter, Wire

DEFAULT_TARGET = "local:smollm2-135m"
LOCAL = "local"
# Who says what a model on this machine takes.
BUNDLED = "Lamina"
# What a person's file calls the prices that are factors on another, and what they are the price of.
FACTORS = {"read": "read", "write": "write", "long_write": "write_long"}


class _ModelFile(Struct, frozen=True, kw_only=True):
    """A model file on this machine, with the target and the counter it gives."""

    path: Path
    stamp: tuple[int, int]
    target: Target
    counter: Any


class ModelBook:
    """Targets by name, `provider:model`. A model that nobody knows gets what its provider's models
    have in common, and no price."""

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
        # By model, and by the folder where models are looked for.
        self._model_files: dict[tuple[str, str | None], _ModelFile] = {}

    def find(self, name: str) -> Target:
        """The target of that name.

        A model whose file is gone still has a target: journals name it.

        Raises:
            UnknownTarget: no such provider, or no model named.
        """
        if (day := self._today().isoformat()) != self._day:
            self._day = day
            self._targets.clear()
        if target := self._targets.get(name):
            return self._adapt_to_file(target) if target.provider == LOCAL else target
        provider, _, model = name.partition(":")
        if provider not in self._rules or not model.strip():
            raise UnknownTarget(name, tuple(self._rules), self._guess_target(name))
        # A pattern can be asked for by its own name, as `names` lists it.
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
        """Whether the table or a person's file knows a model, and not only its provider."""
        provider, _, model = name.partition(":")
        own = (rule.facts.match for rule in self._rules.get(provider, ()) if "match" in rule.own)
        is_listed = self._table.find(provider, model) is not None
        return is_listed or any(fnmatchcase(model, pattern) for pattern in own)

    def later_prices(self, name: str) -> tuple[PricePeriod, ...]:
        """The prices that a target is going to have, as far as they are known."""
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
        """How long prompts and answers may be, and who says so."""
        sources = [OWN_FILE] if rule.own.intersection(LIMITS) else []
        if rule.facts.wire in LOCAL_WIRES:
            sources.append(BUNDLED)
        limits = {name: getattr(rule.facts, name) for name in LIMITS}
        # A window of one's own has nothing to do with the longest prompt of another.
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
        """The target that somebody who gives just the name of a model probably means."""
        from lamina.adapters.providers.local.models import LOCAL_MODELS

        if model in LOCAL_MODELS:
            return f"{LOCAL}:{model}"
        for provider, rules in self._rules.items():
            patterns = (rule.facts.match for rule in rules if rule.facts.match != COMMON)
            is_listed = bool(model) and self._table.find(provider, model) is not None
            if is_listed or any(fnmatchcase(model, pattern) for pattern in patterns):
                return f"{provider}:{model}"
        return ""

    def names(self) -> list[str]:
        """Every provider, and every model and pattern in the book, as targets."""
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
        """The counter of a target: an exact one if its vocabulary is on this machine."""
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
        """The model's file, remembered while it stays the same: a turn asks several times, and one
        look at the disk is enough. None if it is not on this machine."""
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
        """The encoder for the target's wire, imported when it is first needed."""
        return _wire(target.wire)


@cache
def _wire(name: str) -> "Wire":
    return cast("Wire", import_module(f"lamina.adapters.providers.wires.{name}"))


def _check_local(name: str, model: str) -> None:
    from lamina.adapters.providers.local.models import LOCAL_MODELS, is_model_path

    if model not in LOCAL_MODELS and not is_model_path(model):
        raise UnknownModel(name, tuple(LOCAL_MODELS))


def _adapt_to_file(target: Target) -> Target:
    """The target with what the model's own file says, if that is on this machine."""
    from lamina.adapters.providers.local.gguf import context_length, thinks_first
    from lamina.adapters.providers.local.models import LOCAL_MODELS

    path = _find_file(target.model)
    model = LOCAL_MODELS.get(target.model)
    context = (context_length(path) if path else None) or (model.context if model else None)
    window = min(target.window, context or target.window)
    return replace(
        target,
        window=window,
        max_output=min(target.max_output, max(1, window // 2)),
        # Encoding and factor stay those of the estimate, in case the file disappears.
        exact_tokens=_file_counter(path) is not None,
        # A grammar would take its thoughts for the answer.
        enforces_citations=target.enforces_citations and not (path and thinks_first(path)),
    )


def _find_file(model: str) -> Path | None:
    from lamina.adapters.providers.local.models import find_model_file

    try:
        return find_model_file(model)
    except ModelMissing:
        return None


def _file_counter(path: Path | None) -> "TokenCounter | None":
    from lamina.adapters.providers.local.vocabulary import counter_for_model

    return counter_for_model(path) if path else None


def load_book(override: str | None = None) -> ModelBook:
    """The packaged book, with the user's file (LAMINA_MODELS) merged over it.

    Raises:
        InvalidSetting: the user's file cannot be read, or holds something invalid.
    """
    return _load(override or os.environ.get("LAMINA_MODELS") or "")


@cache
def _load(path: str) -> ModelBook:
    return ModelBook(read_rules(path), load_prices())

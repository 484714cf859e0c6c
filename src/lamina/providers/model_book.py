"""The book of providers and models, read once from a data file."""

import os
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from lamina.errors import InvalidSetting, ModelMissing, UnknownModel, UnknownTarget
from lamina.ports import TokenCounter, Wire
from lamina.providers.tokens import counter_for
from lamina.values.settings import CacheRules, Target

DEFAULT_TARGET = "local:smollm2-135m"
LOCAL = "local"


# Prices of `ModelFacts` and what the file calls them.
_FILE_NAMES = {
    f"{name}_price": name for name in ("read", "write", "long_write", "storage", "input", "output")
}


class ModelFacts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename=_FILE_NAMES):
    """What the book knows of the models that match `match`; the file explains the fields."""

    match: str
    wire: Literal["openai", "anthropic", "gemini", "llamacpp"]
    encoding: str
    window: Annotated[int, Meta(gt=0)]
    max_output: Annotated[int, Meta(gt=0)]
    minimum: Annotated[int, Meta(ge=0)]
    step: Annotated[int, Meta(gt=0)]
    read_price: float
    write_price: float
    input_price: float
    output_price: float
    exact_tokens: bool = False
    token_factor: Annotated[float, Meta(gt=0)] = 1.0
    lifetime_s: float | None = None
    long_lifetime_s: float | None = None
    long_write_price: float = 1.0
    explicit: bool = False
    storage_price: Annotated[float, Meta(ge=0)] = 0.0
    keeps_answers: bool = False
    restricts_tools: bool = False
    max_tools: Annotated[int, Meta(ge=0)] = 0
    base_url: str = ""
    key_env: str = ""


class _File(Struct):
    """A file as it is written, before a model's gaps are filled in from its provider."""

    providers: dict[str, dict[str, Any]] = {}
    date: str = ""


class _ModelFile(Struct, frozen=True, kw_only=True):
    """A model file on this machine, with the target and the counter it gives."""

    path: Path
    stamp: tuple[int, int]
    target: Target
    counter: Any


class ModelBook:
    """Targets by name, `provider:model`; an unknown model gets its provider's common facts."""

    def __init__(self, facts: Mapping[str, tuple[ModelFacts, ...]], date: str = "") -> None:
        self.date = date
        self._facts = facts
        self._targets: dict[str, Target] = {}
        # By model, and by the folder where models are looked for.
        self._model_files: dict[tuple[str, str | None], _ModelFile] = {}

    def find(self, name: str) -> Target:
        """The target of that name.

        A model whose file is gone still has a target: journals name it.

        Raises:
            UnknownTarget: no such provider, or no model named.
        """
        if target := self._targets.get(name):
            return self._adapt_to_file(target) if target.provider == LOCAL else target
        provider, _, model = name.partition(":")
        if provider not in self._facts or not model.strip():
            raise UnknownTarget(name, tuple(self._facts), self._guess_target(name))
        # A pattern can be asked for by its own name, as `names` lists it.
        facts = next(
            fact
            for fact in self._facts[provider]
            if model == fact.match or fnmatchcase(model, fact.match)
        )
        if provider == LOCAL and facts.match == "*" != model:
            _check_local(name, model)
        fields = asdict(facts)
        rules = CacheRules(**{key: fields[key] for key in CacheRules.__struct_fields__})
        common = {key: fields[key] for key in Target.__struct_fields__ if key in fields}
        target = Target(provider=provider, model=model, cache=rules, **common)
        self._targets[name] = target
        return self._adapt_to_file(target) if provider == LOCAL else target

    def _guess_target(self, model: str) -> str:
        """The target that somebody who gives just the name of a model probably means."""
        from lamina.providers.local.models import LOCAL_MODELS

        if model in LOCAL_MODELS:
            return f"{LOCAL}:{model}"
        for provider, facts in self._facts.items():
            if any(fact.match != "*" and fnmatchcase(model, fact.match) for fact in facts):
                return f"{provider}:{model}"
        return ""

    def names(self) -> list[str]:
        """Every provider and model pattern in the book, as targets."""
        return [
            f"{provider}:{fact.match}"
            for provider, facts in self._facts.items()
            for fact in (facts[-1], *facts[:-1])
        ]

    def counter(self, target: Target) -> TokenCounter:
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
        from lamina.providers.local.gguf import file_stamp

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

    def wire(self, target: Target) -> Wire:
        """The encoder for the target's wire, imported when it is first needed."""
        return _wire(target.wire)


@cache
def _wire(name: str) -> Wire:
    return cast(Wire, import_module(f"lamina.providers.wires.{name}"))


def _check_local(name: str, model: str) -> None:
    from lamina.providers.local.models import LOCAL_MODELS, is_model_path

    if model not in LOCAL_MODELS and not is_model_path(model):
        raise UnknownModel(name, tuple(LOCAL_MODELS))


def _adapt_to_file(target: Target) -> Target:
    """The target with what the model's own file says, if that is on this machine."""
    from lamina.providers.local.gguf import context_length
    from lamina.providers.local.models import LOCAL_MODELS

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
    )


def _find_file(model: str) -> Path | None:
    from lamina.providers.local.models import find_model_file

    try:
        return find_model_file(model)
    except ModelMissing:
        return None


def _file_counter(path: Path | None) -> TokenCounter | None:
    from lamina.providers.local.vocabulary import counter_for_model

    return counter_for_model(path) if path else None


def load_book(override: str | None = None) -> ModelBook:
    """The packaged book, with the user's file (LAMINA_MODELS) merged over it.

    Raises:
        InvalidSetting: the user's file cannot be read, or holds something invalid.
    """
    return _load(override or os.environ.get("LAMINA_MODELS") or "")


@cache
def _load(path: str) -> ModelBook:
    text = files("lamina.providers").joinpath("models.toml").read_text("utf-8")
    book = msgspec.convert(tomllib.loads(text), _File)
    try:
        over = _read(path) if path else _File()
        providers = _merge(book.providers, over.providers)
        facts = {name: _fill_in(name, fields) for name, fields in providers.items()}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting("LAMINA_MODELS", path, f"cannot be read: {error}") from error
    except msgspec.ValidationError as error:
        raise InvalidSetting("LAMINA_MODELS", path, str(error)) from error
    return ModelBook(facts, over.date or book.date)


def _read(path: str) -> _File:
    return msgspec.convert(tomllib.loads(Path(path).read_text("utf-8")), _File)


def _merge(
    base: dict[str, dict[str, Any]], over: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    providers = dict(base)
    for name, fields in over.items():
        # A provider that only the user's file names speaks OpenAI's wire unless it says otherwise.
        base_fields = base.get(name) or base["compatible"]
        # The user's models are tried first.
        models = [*_models(name, fields), *_models(name, base_fields)]
        providers[name] = base_fields | fields | {"models": models}
    return providers


def _fill_in(name: str, fields: dict[str, Any]) -> tuple[ModelFacts, ...]:
    """The facts of a provider's models in order, and finally those of any other model."""
    common = {key: value for key, value in fields.items() if key != "models"}
    facts = []
    for model in [*_models(name, fields), {"match": "*"}]:
        try:
            facts.append(msgspec.convert(common | model, ModelFacts))
        except msgspec.ValidationError as error:
            where = f"providers.{name}, model {model.get('match')!r}"
            raise msgspec.ValidationError(f"{where}: {error}") from error
    return tuple(facts)


def _models(name: str, fields: dict[str, Any]) -> list[dict[str, Any]]:
    try:
        return msgspec.convert(fields.get("models", []), list[dict[str, Any]])
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(f"providers.{name}.models: {error}") from error

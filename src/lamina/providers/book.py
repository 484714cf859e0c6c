"""What is known of providers and models, read once from a data file."""

import os
import tomllib
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from lamina.errors import InvalidSetting, UnknownTarget
from lamina.ports import TokenCounter, Wire
from lamina.providers.tokens import counter_for
from lamina.values.settings import CacheRules, Target

DEFAULT_TARGET = "openai:gpt-5"


class ModelBook:
    """Targets by name, `provider:model`; an unknown model takes what its provider has in common."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.date: str = str(data.get("date", ""))
        self._providers: dict[str, dict[str, Any]] = data["providers"]

    def find(self, name: str) -> Target:
        """The target of that name.

        Raises:
            UnknownTarget: no such provider, or no model named.
        """
        provider, _, model = name.partition(":")
        known = self._providers.get(provider)
        if known is None or not model:
            raise UnknownTarget(name, tuple(self._providers))
        fields = {key: value for key, value in known.items() if key != "models"}
        for entry in known.get("models", ()):
            if fnmatchcase(model, entry["match"]):
                fields |= entry
                break
        return Target(
            provider=provider,
            model=model,
            wire=fields["wire"],
            window=fields["window"],
            max_output=fields["max_output"],
            encoding=fields["encoding"],
            exact_tokens=fields.get("exact_tokens", False),
            token_factor=fields.get("token_factor", 1.0),
            cache=CacheRules(
                minimum=fields["minimum"],
                step=fields["step"],
                lifetime_s=fields.get("lifetime_s"),
                explicit=fields.get("explicit", False),
                read_price=fields["read"],
                write_price=fields["write"],
            ),
        )

    def counter(self, target: Target) -> TokenCounter:
        return counter_for(target)

    def wire(self, target: Target) -> Wire:
        """The encoder of the target's wire, imported when it is first needed."""
        return cast(Wire, import_module(f"lamina.providers.{target.wire}"))


@cache
def load_book(override: str | None = None) -> ModelBook:
    """The packaged book, with the user's file merged over it."""
    data = tomllib.loads(files("lamina.providers").joinpath("models.toml").read_text("utf-8"))
    path = override or os.environ.get("LAMINA_MODELS")
    if path:
        _merge(data, _read(Path(path)))
    return ModelBook(data)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSetting("LAMINA_MODELS", str(path), f"cannot be read: {error}") from error


def _merge(base: dict[str, Any], over: dict[str, Any]) -> None:
    for name, fields in over.get("providers", {}).items():
        known = base["providers"].setdefault(
            name, {**base["providers"]["compatible"], "models": []}
        )
        # The user's models are tried first.
        models = [*fields.get("models", ()), *known.get("models", ())]
        known |= fields | {"models": models}

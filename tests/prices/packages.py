"""What two packages say of models, in one form: `genai-prices`, which is installed for tests, and
LiteLLM's table, which is taken out of its wheel (the package itself would bring a server along).
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from genai_prices.data import providers
from genai_prices.types import (
    ClauseAnd,
    ClauseContains,
    ClauseEndsWith,
    ClauseEquals,
    ClauseOr,
    ClauseRegex,
    ClauseStartsWith,
    MatchLogic,
    ModelInfo,
    ModelPrice,
    TieredPrices,
)
from msgspec import Struct

GENAI, LITELLM = "genai-prices", "litellm"
ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
TABLE = "litellm/model_prices_and_context_window_backup.json"
# Ours, and what the packages call them.
PROVIDERS = {"openai": ("openai", "openai"), "anthropic": ("anthropic", "anthropic"),
             "gemini": ("google", "gemini")}  # fmt: skip
# No models to talk to, or not sold by the vendor itself.
OTHERS = re.compile(
    r"image|tts|audio|realtime|transcri|whisper|embedding|moderation|-live|dall-e|video|omni|lyria"
    r"|banana|instruct|^ada|babbage|curie|davinci|gpt-oss|gemma|learnlm|container"
)
_GENAI_FIELDS = {
    "input": "input_mtok", "output": "output_mtok", "read": "cache_read_mtok",
    "write": "cache_write_mtok", "write_long": "cache_write_1h_mtok",
}  # fmt: skip
_LITELLM_FIELDS = {
    "input": "input_cost_per_token", "output": "output_cost_per_token",
    "read": "cache_read_input_token_cost", "write": "cache_creation_input_token_cost",
    "write_long": "cache_creation_input_token_cost_above_1hr",
}  # fmt: skip


class Figures(Struct, frozen=True, kw_only=True):
    """What one package says of one model. Prices are dollars for a million tokens, by the prompt
    length above which they hold and by field; a field that is not there is not known."""

    window: int | None = None
    max_output: int | None = None
    tiers: Mapping[int, Mapping[str, float]]


class GenaiModel(Struct, frozen=True, kw_only=True):
    """A model of `genai-prices`: the patterns of its names, and its prices from day to day."""

    model: str
    match: tuple[str, ...]
    periods: Mapping[str, Figures]

    def on(self, day: str) -> Figures:
        return self.periods[max(since for since in self.periods if since <= day)]


def is_chat(name: str) -> bool:
    """Whether it is a model to talk to."""
    return not OTHERS.search(name)


def genai_version() -> str:
    return version("genai-prices")


@cache
def genai_models(provider: str) -> Mapping[str, GenaiModel]:
    """The models of a vendor with prices for input and output, in the order in which they match."""
    (vendor,) = [found for found in providers if found.id == PROVIDERS[provider][0]]
    found = {}
    for info in vendor.models:
        is_own = provider != "gemini" or "claude" not in info.id
        if is_own and is_chat(info.id) and (periods := _periods(info)):
            match = tuple(dict.fromkeys(_patterns(info.match)))
            found[info.id] = GenaiModel(model=info.id, match=match, periods=periods)
    return found


def genai_name(provider: str, name: str) -> str | None:
    """The model that the package itself finds for a name, whatever it is for."""
    (vendor,) = [found for found in providers if found.id == PROVIDERS[provider][0]]
    return next((info.id for info in vendor.models if info.is_match(name)), None)


def _periods(info: ModelInfo) -> dict[str, Figures]:
    if isinstance(info.prices, ModelPrice):
        dated = {"": info.prices}
    else:
        dated = {}
        for conditional in info.prices:
            since = conditional.constraint
            # Prices by the hour of the day have no date, and no model here has them.
            dated[str(since.start_date) if since else ""] = conditional.prices  # type: ignore[union-attr]
    return {
        since: Figures(window=info.context_window, tiers=_genai_tiers(prices))
        for since, prices in sorted(dated.items())
        if prices.input_mtok is not None and prices.output_mtok is not None
    }


def _genai_tiers(prices: ModelPrice) -> dict[int, dict[str, float]]:
    tiers: dict[int, dict[str, float]] = {0: {}}
    for field, key in _GENAI_FIELDS.items():
        price = getattr(prices, key)
        if isinstance(price, TieredPrices):
            tiers[0][field] = float(price.base)
            for tier in price.tiers:
                tiers.setdefault(tier.start, {})[field] = float(tier.price)
        elif price is not None:
            tiers[0][field] = float(price)
    return tiers


def _patterns(match: MatchLogic) -> Iterator[str]:
    """The shell patterns of a rule; one with `!` in front keeps names out."""
    match match:
        case ClauseEquals():
            yield match.equals
        case ClauseStartsWith():
            yield f"{match.starts_with}*"
        case ClauseEndsWith():
            yield f"*{match.ends_with}"
        case ClauseContains():
            yield f"*{match.contains}*"
        case ClauseOr() | ClauseAnd():
            # The only rules that hold together are a beginning and an ending that is none.
            for part in match.or_ if isinstance(match, ClauseOr) else match.and_:
                yield from _patterns(part)
        case ClauseRegex():
            yield from _regex_patterns(match.regex)
        case _:
            raise AssertionError(f"no pattern for {match!r}")


def _regex_patterns(regex: str) -> Iterator[str]:
    if regex == r"^(?!.*-[tT][tT][sS](?:$|-))":
        yield from ("!*-tts", "!*-tts-*")
        return
    pattern = re.sub(r"\\d\{(\d)\}", lambda found: "[0-9]" * int(found[1]), regex)
    pattern = pattern.replace(r"\d", "[0-9]").replace(r"\.", ".")
    if not re.fullmatch(r"\^[\w.@\[\]-]+\$?", pattern):
        raise AssertionError(f"no pattern for {regex!r}")
    yield pattern[1:-1] if pattern.endswith("$") else f"{pattern[1:]}*"


def litellm_version() -> str:
    (pin,) = re.findall(r"^litellm==(\S+)$", CONSTRAINTS.read_text("utf-8"), re.MULTILINE)
    return str(pin)


@cache
def litellm_models(provider: str) -> Mapping[str, Figures]:
    """The models of a vendor to talk to, by the name that its own interface takes."""
    found: dict[str, Figures] = {}
    for key, facts in _litellm_table().items():
        if facts.get("litellm_provider") != PROVIDERS[provider][1]:
            continue
        # The same model may stand there without the name of its vendor, and with other figures.
        name = key.removeprefix(f"{provider}/")
        if provider == "gemini" and name == key:
            continue
        tiers = _litellm_tiers(facts)
        first = tiers[0]
        is_priced = first.get("input") or first.get("output")
        if facts.get("mode") in ("chat", "responses") and is_chat(name) and is_priced:
            found[name] = Figures(
                window=facts.get("max_input_tokens"),
                max_output=facts.get("max_output_tokens"),
                tiers=tiers,
            )
    return found


def litellm_names(provider: str) -> set[str]:
    """The names of all models of a vendor, whatever they are for."""
    own = PROVIDERS[provider][1]
    table = _litellm_table().items()
    return {k.removeprefix(f"{provider}/") for k, v in table if v.get("litellm_provider") == own}


def _litellm_tiers(facts: Mapping[str, Any]) -> dict[int, dict[str, float]]:
    tiers: dict[int, dict[str, float]] = {0: {}}
    for field, key in _LITELLM_FIELDS.items():
        for name, price in facts.items():
            found = re.fullmatch(rf"{key}(?:_above_(\d+)k_tokens)?", name)
            if found and price is not None:
                above = int(found[1] or 0) * 1_000
                tiers.setdefault(above, {})[field] = round(float(price) * 1_000_000, 9)
    if tiers[0].get("write", 0.0) < tiers[0].get("input", 0.0):
        # Nobody writes to a cache for less than reading: it is the price of something else.
        tiers[0].pop("write", None)
    return tiers


@cache
def _litellm_table() -> dict[str, dict[str, Any]]:
    """The table, fetched once and kept with the environment."""
    folder = Path(sys.prefix) / "litellm-table"
    wanted = litellm_version()
    file = folder / f"{wanted}.json"
    if not file.exists():
        folder.mkdir(exist_ok=True)
        quiet = ["--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:"]
        command = [sys.executable, "-m", "pip", "download", *quiet, "--dest", str(folder)]
        subprocess.run([*command, f"litellm=={wanted}"], check=True)
        (wheel,) = folder.glob(f"litellm-{wanted}-*.whl")
        with ZipFile(wheel) as archive:
            part = folder / f"{wanted}.part"
            part.write_bytes(archive.read(TABLE))
        part.replace(file)
        wheel.unlink()
    table: dict[str, dict[str, Any]] = json.loads(file.read_bytes())
    return table


def today() -> str:
    return datetime.now().date().isoformat()

"""The table of prices and limits that Lamina comes with, made from two packages.

    python -m tests.prices.table --show
    python -m tests.prices.table --write

Laws: prices are those of `genai-prices`, and LiteLLM's where that has none; windows likewise;
limits of answers are LiteLLM's. Where the packages differ by more than a hundredth,
`settlements.toml` says whom to believe and why. `--show` lists what nothing settles, and what
settles nothing.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from tests.prices.packages import (
    GENAI,
    LITELLM,
    PROVIDERS,
    ROOT,
    Figures,
    GenaiModel,
    genai_models,
    genai_version,
    litellm_models,
    litellm_version,
    today,
)

from lamina.adapters.providers.price_table import (
    FILE,
    ListedModel,
    PricePeriod,
    PriceTable,
    TableSource,
)
from lamina.core.values.prices import PriceTier

PATH = ROOT / "src/lamina/adapters/providers" / FILE
SETTLEMENTS = Path(__file__).with_name("settlements.toml")
FIELDS = ("input", "output", "read", "write", "write_long")
MAX = 0.01
# A version of a model by its day: `-2026-04-23`, `-20251001`, `-0125`, `-09-2025`.
DATED = re.compile(r"\d{4}")
Package = Literal["genai-prices", "litellm"]


class Settlement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom to believe where the packages differ: in these figures of these models, for prompts of
    more than `above` tokens. Each figure stands there as both packages have it, so that a new one
    is looked at anew."""

    provider: str
    models: tuple[str, ...]
    above: int = 0
    figures: dict[str, tuple[float, float]]
    take: Package
    why: str


class Difference(Struct, frozen=True, kw_only=True):
    """A figure of which the packages say different things."""

    provider: str
    model: str
    field: str
    above: int
    genai: float
    litellm: float

    def __str__(self) -> str:
        length = f" above {self.above:,}" if self.above else ""
        return (
            f"{self.provider}:{self.model}: {self.field}{length}: "
            f"{GENAI} {self.genai:,}, {LITELLM} {self.litellm:,}"
        )


class Settled(Struct, frozen=True, kw_only=True):
    """The settlements by what they settle."""

    by_figure: Mapping[tuple[str, str, str, int], tuple[Settlement, tuple[float, float]]]

    def find(self, difference: Difference) -> Settlement | None:
        key = (difference.provider, difference.model, difference.field, difference.above)
        settlement, figures = self.by_figure.get(key, (None, (0.0, 0.0)))
        return settlement if figures == (difference.genai, difference.litellm) else None


def read_settlements() -> Settled:
    rows = tomllib.loads(SETTLEMENTS.read_text("utf-8"))["settlements"]
    return Settled(
        by_figure={
            (settlement.provider, model, field, settlement.above): (settlement, figures)
            for settlement in msgspec.convert(rows, list[Settlement])
            for model in settlement.models
            for field, figures in settlement.figures.items()
        }
    )


def differ(one: float, other: float) -> bool:
    return abs(one - other) > MAX * max(abs(one), abs(other))


def price_at(figures: Figures | None, field: str, above: int) -> float | None:
    """The price of a field for prompts just longer than `above`."""
    if figures is None:
        return None
    lengths = (at for at in figures.tiers if at <= above and field in figures.tiers[at])
    longest = max(lengths, default=None)
    return None if longest is None else figures.tiers[longest][field]


def compare(provider: str, name: str, genai: Figures, litellm: Figures) -> Iterator[Difference]:
    """What the packages say differently of a model."""
    for above in sorted({*genai.tiers, *litellm.tiers}):
        for field in FIELDS:
            one, other = price_at(genai, field, above), price_at(litellm, field, above)
            if one is not None and other is not None and differ(one, other):
                yield Difference(
                    provider=provider, model=name, field=field, above=above,
                    genai=one, litellm=other,
                )  # fmt: skip
    if genai.window and litellm.window and not _is_same_window(genai.window, litellm):
        yield Difference(
            provider=provider, model=name, field="window", above=0,
            genai=genai.window, litellm=litellm.window,
        )  # fmt: skip


def _is_same_window(window: int, litellm: Figures) -> bool:
    """LiteLLM has the longest prompt. With some models that is the window, with others what the
    longest answer leaves of it."""
    prompt = litellm.window or 0
    return not differ(window, prompt) or not differ(window, prompt + (litellm.max_output or 0))


def all_differences(day: str) -> Iterator[Difference]:
    """Everything that the packages say differently of the models in the table."""
    for provider in PROVIDERS:
        for name, figures in litellm_models(provider).items():
            if model := find_genai(provider, name):
                yield from compare(provider, name, model.on(day), figures)


def find_genai(provider: str, name: str) -> GenaiModel | None:
    return next(
        (model for model in genai_models(provider).values() if _listed(model).fits(name)), None
    )


def _listed(model: GenaiModel) -> ListedModel:
    return ListedModel(provider="", model=model.model, match=model.match, periods=(), sources={})


def stale_settlements(differences: Sequence[Difference]) -> list[str]:
    """Settlements of figures in which the packages agree, or which they give otherwise now."""
    settled = read_settlements()
    used = {(d.provider, d.model, d.field, d.above) for d in differences if settled.find(d)}
    return [f"{key[0]}:{key[1]}: {key[2]}" for key in settled.by_figure if key not in used]


class _Entry:
    """One model while it is put together from what both packages say."""

    def __init__(
        self, provider: str, name: str, genai: GenaiModel | None, litellm: Figures | None,
        day: str, settled: Settled,
    ) -> None:  # fmt: skip
        self.name = name
        self.sources: dict[str, str] = {"prices": GENAI if genai else LITELLM}
        self._genai, self._litellm, self._day = genai, litellm, day
        own = genai.on(day) if genai else None
        self._taken = {
            (difference.field, difference.above): settlement.take
            for difference in (compare(provider, name, own, litellm) if own and litellm else ())
            if (settlement := settled.find(difference))
        }
        self.window = self._choose_window(own)
        self.max_output = litellm.max_output if litellm else None
        if self.max_output:
            self.sources["max_output"] = LITELLM
        self.max_input = self._find_max_input()
        self.periods = tuple(self._periods())

    def _choose_window(self, own: Figures | None) -> int | None:
        first = own.window if own else None
        second = self._litellm.window if self._litellm else None
        if first and self._taken.get(("window", 0)) != LITELLM:
            self.sources["window"] = GENAI
            return first
        if second:
            self.sources["window"] = LITELLM
        return second

    def _find_max_input(self) -> int | None:
        prompt = self._litellm.window if self._litellm else None
        if not (prompt and self.window and self.max_output) or not differ(prompt, self.window):
            return None
        if differ(prompt + self.max_output, self.window):
            return None
        self.sources["max_input"] = LITELLM
        return prompt

    def _periods(self) -> Iterator[PricePeriod]:
        if self._genai is None:
            yield PricePeriod(tiers=self._tiers(None, self._litellm))
            return
        begun = max(since for since in self._genai.periods if since <= self._day)
        yield PricePeriod(tiers=self._tiers(self._genai.periods[begun], self._litellm))
        for since, figures in self._genai.periods.items():
            if since > begun:
                # LiteLLM knows no dates: what it says is true of today.
                yield PricePeriod(since=since, tiers=self._tiers(figures, None))

    def _tiers(self, own: Figures | None, other: Figures | None) -> tuple[PriceTier, ...]:
        lengths = sorted({*(own.tiers if own else ()), *(other.tiers if other else ())})
        tiers: list[PriceTier] = []
        for above in lengths:
            prices = {field: self._price(own, other, field, above) for field in FIELDS}
            fresh = prices["input"] or 0.0
            write = fresh if prices["write"] is None else prices["write"]
            tier = PriceTier(
                above=above,
                input=fresh,
                output=prices["output"] or 0.0,
                read=fresh if prices["read"] is None else prices["read"],
                write=write,
                write_long=write if prices["write_long"] is None else prices["write_long"],
            )
            if not tiers or msgspec.structs.replace(tier, above=tiers[-1].above) != tiers[-1]:
                tiers.append(tier)
        return tuple(tiers)

    def _price(
        self, own: Figures | None, other: Figures | None, field: str, above: int
    ) -> float | None:
        first, second = price_at(own, field, above), price_at(other, field, above)
        if own is None:
            return second
        if second is not None and (first is None or self._taken.get((field, above)) == LITELLM):
            self.sources[field] = LITELLM
            return second
        return first


def make_table(day: str) -> PriceTable:
    """The table as the packages have it on a day."""
    settled = read_settlements()
    models: list[ListedModel] = []
    for provider in PROVIDERS:
        models += _list_models(provider, day, settled)
    return PriceTable(
        sources={
            GENAI: TableSource(version=genai_version(), date=day),
            LITELLM: TableSource(version=litellm_version(), date=day),
        },
        models=tuple(models),
    )


def _list_models(provider: str, day: str, settled: Settled) -> Iterator[ListedModel]:
    known = litellm_models(provider)
    by_model: dict[str, list[str]] = {model: [] for model in genai_models(provider)}
    alone: list[str] = []
    for name in known:
        model = find_genai(provider, name)
        (by_model[model.model] if model else alone).append(name)
    for genai in genai_models(provider).values():
        names = by_model[genai.model]
        main = next((n for n in (genai.model, *genai.match) if n in names), (names or [""])[0])
        entry = _Entry(provider, main, genai, known.get(main), day, settled)
        apart = list(_list_apart(provider, genai, names, entry, day, settled))
        yield from apart
        taken = {name for listed in apart for name in listed.match}
        rest = tuple(pattern for pattern in genai.match if pattern not in taken)
        yield _list(provider, _name(genai, main), rest, entry)
    for name in alone:
        entry = _Entry(provider, name, None, known[name], day, settled)
        yield _list(provider, name, (name,), entry)


def _name(genai: GenaiModel, main: str) -> str:
    """The name to list a model by: the package's own may be no name that a vendor takes."""
    if genai.model in genai.match or (not main and _listed(genai).fits(genai.model)):
        return genai.model
    return main or genai.match[0]


def _list_apart(
    provider: str, genai: GenaiModel, names: Sequence[str], main: _Entry, day: str, settled: Settled
) -> Iterator[ListedModel]:
    """Names of a model for which LiteLLM has other figures, and those that are no version of it, as
    `gpt-5.6` for `gpt-5.6-sol`: they stand before it."""
    apart: dict[tuple[object, ...], tuple[list[str], _Entry]] = {}
    for name in names:
        entry = _Entry(provider, name, genai, litellm_models(provider)[name], day, settled)
        facts = (entry.window, entry.max_input, entry.max_output, entry.periods)
        is_version = name == main.name or DATED.search(name) is not None
        if not is_version or facts != (main.window, main.max_input, main.max_output, main.periods):
            key = facts if is_version else (name,)
            apart.setdefault(key, ([], entry))[0].append(name)
    for own, entry in apart.values():
        yield _list(provider, own[0], tuple(own), entry)


def _list(provider: str, model: str, match: tuple[str, ...], entry: _Entry) -> ListedModel:
    return ListedModel(
        provider=provider,
        model=model,
        match=match,
        window=entry.window,
        max_input=entry.max_input,
        max_output=entry.max_output,
        periods=entry.periods,
        sources=entry.sources,
    )


def encode_table(table: PriceTable) -> bytes:
    """One model a line, so that changes can be read."""
    lines = ",\n".join(msgspec.json.encode(model).decode() for model in table.models)
    sources = msgspec.json.encode(table.sources).decode()
    return f'{{"sources":{sources},\n"models":[\n{lines}\n]}}\n'.encode()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.prices.table")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--show", action="store_true", help="list what is not settled")
    action.add_argument("--write", action="store_true", help="write the table anew")
    options = parser.parse_args(arguments)
    day = today()
    differences, settled = list(all_differences(day)), read_settlements()
    unexplained = [str(difference) for difference in differences if not settled.find(difference)]
    stale = [f"settles nothing: {line}" for line in stale_settlements(differences)]
    sys.stdout.writelines(f"{line}\n" for line in (*unexplained, *stale))
    if options.write and not unexplained and not stale:
        PATH.write_bytes(encode_table(make_table(day)))
    return bool(unexplained or stale)


if __name__ == "__main__":
    sys.exit(main())

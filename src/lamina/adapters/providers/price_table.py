"""Reads model prices and limits from a generated file, model_prices.json.

Law: each figure names its source package. `make prices` writes the file; nobody edits it.
"""

from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct

from lamina.core.values.prices import Prices, PriceTier

FILE = "model_prices.json"
# A pattern with this prefix excludes models that another one includes.
EXCEPT = "!"


class TableSource(Struct, frozen=True, kw_only=True):
    """A package with prices: its version, and the date its figures were imported."""

    version: str
    date: str


class PricePeriod(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A model's prices from a given day on; the first period has no start."""

    since: str = ""
    tiers: tuple[PriceTier, ...]


class ListedModel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts about the models whose names match `match`. `sources` names the package for each
    figure: `prices`, single prices if from another package, and limits."""

    provider: str
    model: str
    match: tuple[str, ...]
    window: int | None = None
    # The longest prompt, if shorter than the window.
    max_input: int | None = None
    max_output: int | None = None
    periods: tuple[PricePeriod, ...]
    sources: dict[str, str]

    def fits(self, name: str) -> bool:
        """Return whether this entry applies to a model name."""
        if name in self.match:
            return True
        exceptions = (pattern[1:] for pattern in self.match if pattern.startswith(EXCEPT))
        return any(fnmatchcase(name, pattern) for pattern in self.match) and not any(
            fnmatchcase(name, pattern) for pattern in exceptions
        )

    def tiers_on(self, day: str) -> tuple[PriceTier, ...]:
        """Return the prices on a day, such as `2026-11-17`."""
        return next(p.tiers for p in reversed(self.periods) if p.since <= day or not p.since)


class PriceTable(Struct, frozen=True, kw_only=True):
    """All known models, those with narrower patterns first."""

    sources: dict[str, TableSource]
    models: tuple[ListedModel, ...]

    def find(self, provider: str, model: str) -> ListedModel | None:
        """Return the first model that matches a name."""
        return next(
            (
                listed
                for listed in self.models
                if listed.provider == provider and listed.fits(model)
            ),
            None,
        )

    def prices_of(self, listed: ListedModel, day: str, storage: float) -> Prices:
        """Return a model's prices on a day; the price of storage is in neither package."""
        names = sorted(
            {name for field, name in listed.sources.items() if field not in LIMITS},
            key=lambda name: name != listed.sources["prices"],
        )
        return Prices(
            tiers=listed.tiers_on(day),
            storage=storage,
            source=", ".join(self.name_source(name) for name in names),
            date=min(self.sources[name].date for name in names),
        )

    def name_source(self, name: str) -> str:
        """Return a package's name with its version."""
        return f"{name} {self.sources[name].version}"


# A model's figures other than prices.
LIMITS = ("window", "max_input", "max_output")


@cache
def load_prices() -> PriceTable:
    """Load the table that comes with Lamina."""
    data = files("lamina.adapters.providers").joinpath(FILE).read_bytes()
    return msgspec.json.decode(data, type=PriceTable)

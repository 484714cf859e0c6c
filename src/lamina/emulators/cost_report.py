"""Reports the cost of an application's requests: one row per request, and the total."""

from collections.abc import Sequence
from functools import reduce

import msgspec
from msgspec import Struct

from lamina.core.ledger import cost_of
from lamina.core.values.prices import CostSum
from lamina.core.values.settings import Target
from lamina.core.values.usage import Usage

_TOKENS = ("input", "cached", "written", "output")


class CostRow(Struct, frozen=True, kw_only=True):
    """One request. `uncached_cost` is its cost without a cache; `missed` says why no more was read
    from the cache. Costs are None if the model's price is unknown."""

    number: int
    at: float
    model: str
    usage: Usage
    cost: float | None
    uncached_cost: float | None
    status: int = 200
    missed: str = ""


class CostTotal(Struct, frozen=True, kw_only=True):
    """All requests together; costs exclude the `unpriced` ones, and are None if all are
    unpriced."""

    requests: int
    input: int
    cached: int
    written: int
    output: int
    cost: float | None
    uncached_cost: float | None
    unpriced: int


class CostReport:
    """The rows so far."""

    def __init__(self) -> None:
        self.rows: list[CostRow] = []

    def add(
        self, at: float, target: Target, usage: Usage, *, status: int = 200, missed: str = ""
    ) -> CostRow:
        bare = Usage(input=usage.input, output=usage.output)
        row = CostRow(
            number=len(self.rows) + 1,
            at=at,
            model=target.model,
            usage=usage,
            cost=cost_of(usage, target),
            uncached_cost=cost_of(bare, target),
            status=status,
            missed=missed,
        )
        self.rows.append(row)
        return row

    def as_json(self) -> bytes:
        return msgspec.json.encode({"rows": self.rows, "total": self._total()})

    def _total(self) -> CostTotal:
        cost = reduce(CostSum.plus, (row.cost for row in self.rows), CostSum())
        bare = reduce(CostSum.plus, (row.uncached_cost for row in self.rows), CostSum())
        return CostTotal(
            requests=len(self.rows),
            **{name: sum(getattr(row.usage, name) for row in self.rows) for name in _TOKENS},
            cost=cost.known,
            uncached_cost=bare.known,
            unpriced=cost.unpriced,
        )

    def as_text(self) -> str:
        """Return a human-readable table."""
        heads = ("#", "model", *_TOKENS, "$", "why not more")
        lines: list[Sequence[str]] = [heads]
        for row in self.rows:
            counts = [f"{getattr(row.usage, name):,}" for name in _TOKENS]
            reason = f"status {row.status}" if row.status != 200 else row.missed
            lines.append((str(row.number), row.model, *counts, _dollars(row.cost), reason))
        total = self._total()
        sums = [f"{getattr(total, name):,}" for name in _TOKENS]
        lines.append(("", "all", *sums, _dollars(total.cost), ""))
        widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
        table = [
            "  ".join(
                cell.ljust(width) if at in (1, 7) else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        share = total.cached / total.input if total.input else 0.0
        note = f"\n{share:.0%} of the input was read from the cache"
        if total.uncached_cost is not None:
            note += f"; without a cache it would have cost {total.uncached_cost:.6f}"
        table.append(f"{note}.")
        if total.unpriced:
            count = f"{total.unpriced} request{'s' * (total.unpriced > 1)}"
            table.append(f"Totals exclude {count} of unknown price.")
        return "\n".join(table)


def _dollars(cost: float | None) -> str:
    return "unknown" if cost is None else f"{cost:.6f}"

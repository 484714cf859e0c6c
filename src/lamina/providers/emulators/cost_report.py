"""What an application would have paid: one row per request, and the total."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from lamina.ledger import cost_of
from lamina.values.settings import Target
from lamina.values.usage import Usage

_TOKENS = ("input", "cached", "written", "output")


class CostRow(Struct, frozen=True, kw_only=True):
    """One request. `uncached_cost` is the cost without a cache; `missed` says why no more was read
    from it."""

    number: int
    at: float
    model: str
    usage: Usage
    cost: float
    uncached_cost: float
    status: int = 200
    missed: str = ""


class CostReport:
    """The rows up to now."""

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

    def _total(self) -> dict[str, float]:
        return {
            "requests": len(self.rows),
            **{name: sum(getattr(row.usage, name) for row in self.rows) for name in _TOKENS},
            "cost": sum(row.cost for row in self.rows),
            "uncached_cost": sum(row.uncached_cost for row in self.rows),
        }

    def as_text(self) -> str:
        """A table, for people."""
        heads = ("#", "model", *_TOKENS, "$", "why not more")
        lines: list[Sequence[str]] = [heads]
        for row in self.rows:
            counts = [f"{getattr(row.usage, name):,}" for name in _TOKENS]
            reason = f"status {row.status}" if row.status != 200 else row.missed
            lines.append((str(row.number), row.model, *counts, f"{row.cost:.6f}", reason))
        total = self._total()
        sums = [f"{int(total[name]):,}" for name in _TOKENS]
        lines.append(("", "all", *sums, f"{total['cost']:.6f}", ""))
        widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
        table = [
            "  ".join(
                cell.ljust(width) if at in (1, 7) else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        share = total["cached"] / total["input"] if total["input"] else 0.0
        table.append(
            f"\n{share:.0%} of the input was read from the cache; without a cache it would have "
            f"cost {total['uncached_cost']:.6f}."
        )
        return "\n".join(table)

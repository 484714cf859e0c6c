"""What an application would have paid: one row a request, and the sum."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from lamina.ledger import cost_of
from lamina.values.settings import Target
from lamina.values.usage import Usage


class CostRow(Struct, frozen=True, kw_only=True):
    """One request. `uncached_cost` is what it would have cost without any cache; `missed` says why
    less was read than might have been."""

    number: int
    at: float
    model: str
    usage: Usage
    cost: float
    uncached_cost: float
    status: int = 200
    missed: str = ""


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

    def _total(self) -> dict[str, float]:
        cost = sum(row.cost for row in self.rows)
        bare = sum(row.uncached_cost for row in self.rows)
        return {
            "requests": len(self.rows),
            "input": sum(row.usage.input for row in self.rows),
            "cached": sum(row.usage.cached for row in self.rows),
            "written": sum(row.usage.written for row in self.rows),
            "output": sum(row.usage.output for row in self.rows),
            "cost": cost,
            "uncached_cost": bare,
        }

    def as_text(self) -> str:
        """A table, for people."""
        heads = ("#", "model", "input", "cached", "written", "output", "$", "why not more")
        lines: list[Sequence[str]] = [heads]
        for row in self.rows:
            usage = row.usage
            counts = (usage.input, usage.cached, usage.written, usage.output)
            reason = f"status {row.status}" if row.status != 200 else row.missed
            lines.append(
                (str(row.number), row.model, *(f"{n:,}" for n in counts), f"{row.cost:.6f}", reason)
            )
        total = self._total()
        names = ("input", "cached", "written", "output")
        sums = [f"{int(total[name]):,}" for name in names]
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

"""What any pruning policy could reach where the window binds, with the future known.

    python bench/bound.py --data FOLDER [--json FILE]

For every conversation of `cache.py` that lazy has to prune: the best hit rate of any plan, over that
of the same session without a window, next to what lazy reaches. A dynamic programme over the size of
the prompt, one token a step, minimises missed tokens over sent tokens (a ratio, so it is solved
again with the last ratio as the price of a sent token until that holds still: Dinkelbach).

Assumed of every plan:
- The sizes are those of the session without a window: what each request adds, and what only passes
  through (planned tools, and what stands behind them).
- All that is new is sent, whole. Only what is larger than the window leaves room for beside the
  system prompt is shortened to that room. Plans that cut results which would fit are not covered.
- What is found in the cache is a prefix of the request before, if the lifetime has not passed.
- Messages may be cut anywhere: real plans have to cut between them, and reach a little less.

`ANY` keeps any prefix and any tail, without a summary, and may bring back what it dropped: nothing
that keeps the assumptions does better. `OURS` has the rules that Lamina prunes by: the latest tenth
of the room stays, at least half of the room is full afterwards, a summary stands in the gap, and
what was dropped stays dropped. It is no bound for lazy, only the best use of such rules.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accounting import account
from conversations import LIFETIME_S, Conversation, recorded, scenarios
from rows import LaminaPlayer, Sent

TARGET = 0.97
WINDOWS = (32_000, 200_000)
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Need:
    """What one request has to send: new tokens that stay, others that only pass through. Cold says
    that nothing sent before is in the cache any more."""

    new: int
    passing: int
    cold: bool


@dataclass(frozen=True, slots=True)
class Policy:
    """`recent` and `least` are shares of the room: what a prune keeps of the latest messages, and
    all that it keeps. `recall` says that dropped messages may come back."""

    recent: float = 0.0
    least: float = 0.0
    summary: int = 0
    recall: bool = False


ANY = Policy(recall=True)
OURS = Policy(recent=0.1, least=0.5, summary=250)


def needs(requests: Sequence[Sent]) -> list[Need]:
    found: list[Need] = []
    kept, at = 0, float("-inf")
    for sent in requests:
        before = kept
        total = sum(atom.tokens for atom in sent.atoms)
        passes = next((i for i, atom in enumerate(sent.atoms) if not atom.kept), None)
        kept = sum(atom.tokens for atom in sent.atoms[:passes])
        # While cold, lazy may lay out less than before. Plans are free to drop it too.
        found.append(Need(max(0, kept - before), total - kept, sent.at - at > LIFETIME_S))
        at = sent.at
    return found


def best_hit_rate(series: Sequence[Need], system: int, window: int, policy: Policy) -> float:
    """The highest share of cached tokens that a plan of this policy reaches."""
    price = 1.0
    while True:
        missed, sent = cheapest_plan(series, system, window, policy, price)
        if missed / sent >= price - 1e-9:
            return 1 - missed / sent
        price = missed / sent


def cheapest_plan(
    series: Sequence[Need], system: int, window: int, policy: Policy, price: float
) -> tuple[float, float]:
    """Missed and sent tokens of the plan with the least `missed - price * sent`. `cost[size]` and
    `sent[size]` are those of the best plan so far whose last request kept `size` tokens."""
    first = min(series[0].new, window - series[0].passing)
    total = first + series[0].passing
    sizes = np.arange(window + 1, dtype=np.float64)
    cost, sent = np.full(window + 1, np.inf), np.zeros(window + 1)
    cost[first], sent[first] = (1 - price) * total, total
    history = first
    for need in series[1:]:
        room = window - system - need.passing
        new = min(need.new, room - policy.summary)
        history += new
        tail = max(new, int(policy.recent * room))
        least = system + max(policy.summary + tail, int(policy.least * room))
        most = min(window - need.passing, history + policy.summary)
        after, after_sent = np.full(window + 1, np.inf), np.zeros(window + 1)

        def offer(
            at: slice, misses: Floats | float, costs: Floats, sents: Floats, need: Need = need,
            after: Floats = after, after_sent: Floats = after_sent,
        ) -> None:  # fmt: skip
            """A way to end up at the sizes `at`, taken where it is the cheapest so far."""
            totals = sizes[at] + need.passing
            costs = costs + (totals if need.cold else misses + need.passing) - price * totals
            better = costs < after[at]
            after[at][better] = costs[better]
            after_sent[at][better] = (sents + totals)[better]

        # All stays.
        fitting = max(0, window - need.passing - new + 1)
        offer(slice(new, new + fitting), float(new), cost[:fitting], sent[:fitting])
        # A prefix and a tail stay: the request before kept at least what is kept of it now.
        if least <= most:
            pruned = slice(least, most + 1)
            drop = new + policy.summary
            sources = np.clip(np.arange(least, most + 1) - drop, 0, window)
            upward = _running_best(cost[::-1], sent[::-1])
            larger = tuple(each[::-1][sources] for each in upward)
            offer(pruned, float(tail + policy.summary), *larger)
            if policy.recall:
                # All of the request before stays, and more than what is new comes with it; while
                # cold, it does not matter what the request before was.
                from_size = np.zeros(window + 1) if need.cold else sizes
                smaller = _running_best(cost - from_size, sent)
                reach = np.full(len(sources), window) if need.cold else sources
                offer(pruned, sizes[pruned], *(each[reach] for each in smaller))
        cost, sent = after, after_sent
    end = int(np.argmin(cost))
    return float(cost[end] + price * sent[end]), float(sent[end])


def _running_best(cost: Floats, sent: Floats) -> tuple[Floats, Floats]:
    """At every index the least cost up to it, and what the plan with that cost has sent."""
    least = np.minimum.accumulate(cost)
    where = np.maximum.accumulate(np.where(cost <= least, np.arange(len(cost)), 0))
    return least, sent[where]


def judge(conversation: Conversation, group: str) -> list[dict[str, Any]]:
    """One record for each window that binds."""
    lazy = LaminaPlayer("lazy")
    unbounded = list(lazy.play(conversation, None))
    free = account(unbounded, None).hit_rate
    series = needs(unbounded)
    system = unbounded[0].atoms[0].tokens
    records: list[dict[str, Any]] = []
    for window in WINDOWS:
        result = account(lazy.play(conversation, window), window)
        if result.pruned:
            rates = {
                "any": best_hit_rate(series, system, window, ANY),
                "ours": best_hit_rate(series, system, window, OURS),
                "lazy": result.hit_rate,
            }
            shares = {name: round(rate / free, 4) for name, rate in rates.items()}
            records.append({"group": f"{group}, {window:,}", "conversation": conversation.name}
                           | {"free": round(free, 4)} | shares)  # fmt: skip
    return records


def report(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield f"{'hit rate over that without a window':<46}{TARGET} met{'mean':>11}{'worst':>9}"
    for group in sorted({record["group"] for record in records}):
        mine = [record for record in records if record["group"] == group]
        for key, label in (("any", "any plan"), ("ours", "rules like ours"), ("lazy", "lazy")):
            shares = [record[key] for record in mine]
            met = f"{sum(share >= TARGET for share in shares)} of {len(shares)}"
            yield f"{group + ': ' + label:<46}{met:>8}{np.mean(shares):>11.3f}{min(shares):>9.3f}"
    yield f"\nno plan reaches {TARGET}:"
    for record in records:
        if record["any"] < TARGET:
            shares = [f"{key} {record[key]:.3f}" for key in ("any", "ours", "lazy")]
            yield f"  {record['group']:<20}{record['conversation']:<28}" + "  ".join(shares)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="holds sessions/shapes.jsonl")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    args = parser.parse_args()
    started = time.monotonic()
    records: list[dict[str, Any]] = []
    with Pool() as pool:
        for group, conversations in (
            ("scenarios", scenarios()),
            ("shapes", recorded(args.data / "sessions" / "shapes.jsonl")),
        ):
            for found in pool.imap(partial(judge, group=group), conversations):
                records += found
    print("\n".join(report(records)), f"\n\n{time.monotonic() - started:.0f} s")
    if args.json:
        args.json.write_text(json.dumps(records, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

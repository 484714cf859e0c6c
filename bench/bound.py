"""What any pruning policy could reach where the window binds, with the future known.

    python bench/bound.py --data FOLDER [--json FILE]

For every conversation of `cache.py` that lazy has to prune: the best hit rate of any plan, over
that of the same session without a window, next to what lazy reaches in the same run. A dynamic
programme over the size of the prompt, in steps of one token, minimises missed over sent tokens. As
that is a ratio, it is solved again with the last one as the price of a token until it stands still.

Assumed of every plan:
- The sizes are those of the session without a window: what each request adds, and what only passes
  through (planned tools, and what stands behind them).
- All that is new is sent, whole. Only what is larger than the room that the window leaves beside
  the system prompt is shortened to it. Plans that cut results which would fit are not covered.
- What is found in the cache is a prefix of the request before, if the lifetime has not passed. An
  older one is of more use only if the size of what passes through varies: in the shapes nothing
  passes through, in the scenarios with tools its size varies by a token or two.
- Messages may be cut anywhere: real plans have to cut between them, and reach a little less.

`ANY` keeps any prefix and any tail, without a summary, and may bring back what it dropped: nothing
that keeps the assumptions does better. `LEAVING` may also leave out what is larger than the room,
all of it or a part. `OURS` has rules like Lamina's: the latest tenth of the room stays, at least
half of the room is full afterwards, a summary stands in the gap, what was dropped stays dropped.
It is no bound for lazy, only the best use of such rules.

`FIXED` are plans that do not know the future: over the window they go down to a share of the room
and keep a share of the latest, always the same. They may cut anywhere, too. Of all of these shares
the pair is reported that meets the target most often in a group, which nobody knows beforehand.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from multiprocessing import Pool
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from accounting import account
from played import LIFETIME_S, Conversation, recorded, scenarios
from rows import LaminaPlayer, Sent

TARGET = 0.97
WINDOWS = (32_000, 200_000)
Floats: TypeAlias = Any  # an array of float64; numpy comes with the peers


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
    all that it keeps. `recall`: dropped messages may come back. `leave`: what is larger than the
    room need not be sent."""

    recent: float = 0.0
    least: float = 0.0
    summary: int = 0
    recall: bool = False
    leave: bool = False


ANY = Policy(recall=True)
LEAVING = Policy(recall=True, leave=True)
OURS = Policy(recent=0.1, least=0.5, summary=250)
# Shares of the room: what a prune goes down to, and what of the latest it keeps.
FIXED = tuple(product((0.5, 0.6, 0.7, 0.8, 0.9), (0.02, 0.05, 0.1)))
# Above this share a plan that does not know the future prunes while the cache is cold.
COLD_ABOVE = 0.7
POLICIES = {"any plan": ANY, "any, leaving out": LEAVING, "rules like ours": OURS}


def needs(requests: Sequence[Sent]) -> list[Need]:
    result: list[Need] = []
    size, at = 0, float("-inf")
    for request in requests:
        before = size
        total = sum(atom.tokens for atom in request.atoms)
        passes = next((i for i, atom in enumerate(request.atoms) if not atom.kept), None)
        size = sum(atom.tokens for atom in request.atoms[:passes])
        # While cold, lazy may lay out less than before. Plans are free to drop it too.
        result.append(Need(max(0, size - before), total - size, request.at - at > LIFETIME_S))
        at = request.at
    return result


class Plans:
    """The cheapest plan so far for every size that its last request can have kept: what it costs
    (missed tokens, less `price` for each token sent) and how many tokens it sent."""

    def __init__(self, window: int) -> None:
        self.cost = np.full(window + 1, np.inf)
        self.sent = np.zeros(window + 1)

    def offer(self, first: int, cost: Floats, sent: Floats) -> None:
        """Plans for the sizes from `first` on, taken where they are cheaper."""
        at = slice(first, first + len(cost))
        better = cost < self.cost[at]
        self.cost[at] = np.where(better, cost, self.cost[at])
        self.sent[at] = np.where(better, sent, self.sent[at])


def best_hit_rate(series: Sequence[Need], system: int, window: int, policy: Policy) -> float:
    """The highest share of cached tokens that a plan of this policy reaches."""
    price, better = np.inf, 1.0
    while better < price - 1e-9:
        price = better
        plans = Plans(window)
        size = min(series[0].new, window - series[0].passing)
        total = np.array([float(size + series[0].passing)])
        plans.offer(size, (1 - price) * total, total)
        history = size
        for need in series[1:]:
            history += need.new
            plans = advance(plans, need, system, history, policy, price)
        best = int(np.argmin(plans.cost))
        better = plans.cost[best] / plans.sent[best] + price
    return 1 - better


def advance(
    plans: Plans, need: Need, system: int, history: int, policy: Policy, price: float
) -> Plans:
    """Every plan gone on with by one request. `history` is all that there is to send by now."""
    window = len(plans.cost) - 1
    limit = window - need.passing
    room = limit - system - policy.summary
    new = need.new if need.new <= room else 0 if policy.leave else room
    after = Plans(window)

    def offer(first: int, cost: Floats, sent: Floats, missed: Floats | int) -> None:
        total = np.arange(first, first + len(cost)) + float(need.passing)
        fresh = total if need.cold else missed + need.passing
        after.offer(first, cost + fresh - price * total, sent + total)

    # All stays, and what is new comes behind it.
    offer(new, plans.cost[: limit - new + 1], plans.sent[: limit - new + 1], new)
    # A prefix and a tail stay: the request before kept at least what is kept of it now.
    tail = max(new, int(policy.recent * (limit - system)))
    least = system + max(policy.summary + tail, int(policy.least * (limit - system)))
    sizes = np.arange(least, (min(limit, history) if policy.recall else limit) + 1)
    before = np.clip(sizes - new - policy.summary, 0, window)
    if len(sizes):
        cost, sent = _running_best(plans.cost[::-1], plans.sent[::-1])
        offer(least, cost[::-1][before], sent[::-1][before], tail + policy.summary)
    # More than what is new comes behind all that stays; while cold, anything may come.
    if len(sizes) and policy.recall:
        reach = np.full(len(sizes), window) if need.cold else before
        kept = 0.0 if need.cold else np.arange(window + 1.0)
        cost, sent = _running_best(plans.cost - kept, plans.sent)
        offer(least, cost[reach], sent[reach], sizes.astype(float))
    return after


def _running_best(cost: Floats, sent: Floats) -> tuple[Floats, Floats]:
    """At every index the least cost up to it, and what the plan with that cost sent."""
    least = np.minimum.accumulate(cost)
    where = np.maximum.accumulate(np.where(cost <= least, np.arange(len(cost)), 0))
    return least, sent[where]


def fixed_hit_rate(
    series: Sequence[Need], system: int, window: int, shares: tuple[float, float]
) -> float:
    """The share of cached tokens of a plan that knows nothing of what comes."""
    goal, recent = shares
    kept = sent = missed = 0
    for number, need in enumerate(series):
        limit = window - need.passing
        room = limit - system
        fresh = new = min(need.new, room - OURS.summary)
        size = kept + new
        most = system + COLD_ABOVE * room if need.cold else limit
        if number and size > most:
            tail = max(new, int((goal - recent if need.cold else recent) * room))
            least = min(room, tail + OURS.summary)
            size = min(size, system + max(int(goal * room), least))
            fresh = min(tail + OURS.summary, size - system)
        kept = size
        sent += size + need.passing
        missed += need.passing + (size if need.cold else fresh)
    return 1 - missed / sent


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
                name: best_hit_rate(series, system, window, policy)
                for name, policy in POLICIES.items()
            }
            rates |= {
                f"fixed {shares}": fixed_hit_rate(series, system, window, shares)
                for shares in FIXED
            }
            rates["lazy"] = result.hit_rate
            shares = {name: round(rate / free, 4) for name, rate in rates.items()}
            records.append({"group": f"{group}, {window:,}", "conversation": conversation.name}
                           | {"free": round(free, 4)} | shares)  # fmt: skip
    return records


def report(records: Sequence[dict[str, Any]]) -> Iterator[str]:
    names = (*POLICIES, "best fixed", "lazy")
    yield f"{'hit rate over that without a window':<46}{TARGET} met{'mean':>11}{'worst':>9}"
    for group in sorted({record["group"] for record in records}):
        own = [record for record in records if record["group"] == group]
        best = max(
            (f"fixed {shares}" for shares in FIXED),
            key=lambda name: sum((record[name] >= TARGET) + record[name] / 1e3 for record in own),
        )
        for record in own:
            record["best fixed"] = record[best]
        for name in names:
            shares = [record[name] for record in records if record["group"] == group]
            score = f"{sum(share >= TARGET for share in shares)} of {len(shares)}"
            yield f"{group + ': ' + name:<46}{score:>8}{np.mean(shares):>11.3f}{min(shares):>9.3f}"
    yield f"\nno plan reaches {TARGET}:"
    for record in records:
        if record["any plan"] < TARGET:
            figures = "  ".join(f"{name} {record[name]:.3f}" for name in names)
            yield f"  {record['group']:<19}{record['conversation']:<20}{figures}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="holds sessions/shapes.jsonl")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    args = parser.parse_args()
    start = time.monotonic()
    records: list[dict[str, Any]] = []
    with Pool() as pool:
        for group, conversations in (
            ("scenarios", scenarios()),
            ("shapes", recorded(args.data / "sessions" / "shapes.jsonl")),
        ):
            for record in pool.imap(partial(judge, group=group), conversations):
                records += record
    print("\n".join(report(records)), f"\n\n{time.monotonic() - start:.0f} s")
    if args.json:
        args.json.write_text(json.dumps(records, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

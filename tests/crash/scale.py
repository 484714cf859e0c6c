"""How much of the crash suite is run, and the count of what was.

`make test` runs a deterministic sample; LAMINA_CRASH=long runs all of it, with a seed that is
printed (LAMINA_CRASH_SEED gives it again).
"""

import os
from collections import Counter
from random import Random, SystemRandom

LONG = os.environ.get("LAMINA_CRASH") == "long"
SEED = int(os.environ.get("LAMINA_CRASH_SEED") or (SystemRandom().getrandbits(32) if LONG else 1))
# One seed for all processes that share the tests of a run.
os.environ["LAMINA_CRASH_SEED"] = str(SEED)

# What was tried, and what must be zero; printed at the end of a long run.
tally: Counter[str] = Counter()
MUST_BE_ZERO = ("lost", "crashes", "silent drops", "doubled", "rewritten")


def much(small: int, long: int) -> int:
    return long if LONG else small


def luck(name: str) -> Random:
    """Chance of its own for every test, from one seed."""
    return Random(f"{SEED}:{name}")

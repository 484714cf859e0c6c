"""What a turn costs to prepare, by the length of the session, against other libraries.

    python bench/assembly.py [--json FILE] [--quick]
    python bench/assembly.py --beside CHECKOUT [--json FILE]

In memory, no hooks, a window large enough. Lamina's figure for `prepare` is the whole of it:
attachments, planning, budget, prefix check, and the journal entries encoded and appended; `request`
is the plain dict for OpenAI's client, made from nothing. The others' `assemble` and `request` are
the corresponding steps of their own (see assembly_peers.py). With `--beside`, Lamina as it is in
another checkout is measured instead, each in a process of its own and both in turns, so that a slow
minute of the machine meets both.
"""

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles

import anyio

import lamina
from played import Writer
from versions import version

PEERS = ("langchain-core", "pydantic-ai-slim", "pydantic-ai-harness")
SIZES = (100, 1_000, 10_000, 100_000)
SETTINGS = lamina.Settings(window=1_000_000_000, output_reserve=0)
# Two checkouts in turns: how often, at which size, and how many turns are prepared each time.
TURNS, BESIDE_SIZE, BESIDE_ROUNDS = 8, 1_000, 400


def reply(text: str) -> dict[str, object]:
    message = {"role": "assistant", "content": text}
    return {"choices": [{"message": message, "finish_reason": "stop"}]}


async def grow(messages: int) -> lamina.Session:
    """A session of so many messages, made by preparing and committing every turn of it."""
    writer = Writer("assembly")
    session = await lamina.open_session(
        system="You are a careful assistant. Answer from the conversation.",
        target="openai:gpt-4o",
        settings=SETTINGS,
        store=lamina.MemoryStore(),
    )
    for _ in range(messages // 2):
        turn = await session.prepare(writer.text(60))
        await turn.commit(reply(writer.text(60)))
    return session


async def measure_lamina(size: int, rounds: int) -> dict[str, list[float]]:
    session = await grow(size)
    prepares, requests = [], []
    turn = await session.prepare("warm up")
    turn.request()
    gc.collect()
    # Apart from one another: making a large request empties the processor's caches. Requests first:
    # every turn that is prepared makes the session longer.
    for _ in range(max(5, rounds // 10)):
        start = time.perf_counter()
        turn.request()
        requests.append(time.perf_counter() - start)
    await turn.commit(reply("warm"))
    for index in range(rounds):
        start = time.perf_counter()
        turn = await session.prepare(f"And what follows from that for release {index}?")
        prepares.append(time.perf_counter() - start)
        await turn.commit(reply("ok"))
    return {"prepare": prepares, "request": requests}


def run_worker(checkout: Path) -> dict[str, list[float]]:
    """What `measure_lamina` gives for the package of a checkout, in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--worker"],
        env={**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    times: dict[str, list[float]] = json.loads(done.stdout)
    return times


def compare_checkouts(other: Path, file: Path | None) -> int:
    """Measures this checkout and another one in turns, and prints the ratios."""
    here = Path(__file__).parent.parent
    times: dict[str, dict[str, list[float]]] = {
        name: {"prepare": [], "request": []} for name in ("there", "here")
    }
    for _ in range(TURNS):
        for name, checkout in (("there", other), ("here", here)):
            for step, seconds in run_worker(checkout).items():
                times[name][step] += seconds
    figures = {
        f"{step}, {label}": {
            name: pick(steps[step]) * 1e3 for name, steps in times.items()
        }
        for step in ("prepare", "request")
        for label, pick in (
            ("10th percentile", lambda values: quantiles(values, n=10)[0]),
            ("median", median),
        )
    }  # fmt: skip
    print(f"Python {platform.python_version()}; {BESIDE_SIZE:,} messages, {TURNS} times in turns\n")
    print(f"{'milliseconds':<26}{'there':>10}{'here':>10}{'here over there':>18}")
    for label, pair in figures.items():
        ratio = pair["here"] / pair["there"]
        print(f"{label:<26}{pair['there']:>10.4f}{pair['here']:>10.4f}{ratio:>17.3f}x")
    if file:
        file.write_text(json.dumps({"ms": figures}, indent=1) + "\n")
    return 0


def measure(build: Callable[[int], Callable[[], object]], size: int, rounds: int) -> float:
    run = build(size)
    run()
    gc.collect()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="up to 1,000 messages only")
    parser.add_argument("--beside", type=Path, metavar="CHECKOUT", help="measure this one in turns")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(anyio.run(measure_lamina, BESIDE_SIZE, BESIDE_ROUNDS)))
        return 0
    if args.beside:
        return compare_checkouts(args.beside, args.json)
    # The peers are an extra of their own.
    from assembly_peers import (
        langchain_assemble,
        langchain_request,
        pydantic_ai_assemble,
        pydantic_ai_request,
    )

    sizes = SIZES[:2] if args.quick else SIZES
    versions = [f"{name} {version(name)}" for name in ("lamina", *PEERS)]
    print(f"Python {platform.python_version()}; {'; '.join(versions)}\n")
    print("milliseconds, median; each row's two figures do not overlap\n")
    print(f"{'messages':>9}{'Lamina prepare':>16}{'request':>10}{'LangChain':>12}{'request':>10}"
          f"{'Pydantic AI':>13}{'request':>10}")  # fmt: skip
    figures: dict[str, dict[str, float]] = {}
    for size in sizes:
        rounds = 200
        row: Callable[..., Awaitable[dict[str, list[float]]]] = measure_lamina
        times = anyio.run(row, size, rounds)
        few = max(5, rounds // 10)
        figures[str(size)] = {
            **{step: median(seconds) * 1e3 for step, seconds in times.items()},
            "langchain": measure(langchain_assemble, size, few),
            "langchain_request": measure(langchain_request, size, few),
            "pydantic_ai": measure(pydantic_ai_assemble, size, few),
            "pydantic_ai_request": measure(pydantic_ai_request, size, few),
        }
        f = figures[str(size)]
        print(f"{size:>9,}{f['prepare']:>16.3f}{f['request']:>10.3f}{f['langchain']:>12.3f}"
              f"{f['langchain_request']:>10.3f}{f['pydantic_ai']:>13.3f}{f['pydantic_ai_request']:>10.3f}",
              flush=True)  # fmt: skip
    at = figures["1000"]
    ratios = {
        "prepare at the largest size up to 10,000 over 100": figures[
            str(sizes[min(2, len(sizes) - 1)])
        ]["prepare"]
        / figures["100"]["prepare"],
        "LangChain over Lamina at 1,000": at["langchain"] / at["prepare"],
        "Pydantic AI over Lamina at 1,000": at["pydantic_ai"] / at["prepare"],
    }
    print()
    for name, value in ratios.items():
        print(f"{name}: {value:.2f}x")
    if args.json:
        args.json.write_text(
            json.dumps({"versions": versions, "ms": figures, "ratios": ratios}, indent=1) + "\n"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

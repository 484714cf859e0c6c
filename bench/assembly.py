"""What a turn costs to prepare, by the length of the session, against other libraries.

    python bench/assembly.py [--json FILE] [--quick]

In memory, no hooks, a window large enough. Lamina's figure for `prepare` is the whole of it:
hydration, planning, budget, prefix check, and the journal entries encoded and appended; `request`
is the plain dict for OpenAI's client, made from nothing. The others' `assemble` and `request` are
the corresponding steps of their own (see assembly_peers.py).
"""

import argparse
import gc
import json
import platform
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from statistics import median

import anyio

import lamina
from assembly_peers import (
    langchain_assemble,
    langchain_request,
    pydantic_ai_assemble,
    pydantic_ai_request,
)
from lamina.values.settings import Settings
from played import Writer

SIZES = (100, 1_000, 10_000, 100_000)
SETTINGS = Settings(window=1_000_000_000, output_reserve=0)


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


async def measure_lamina(size: int, rounds: int) -> dict[str, float]:
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
    return {"prepare": median(prepares) * 1e3, "request": median(requests) * 1e3}


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
    args = parser.parse_args()
    sizes = SIZES[:2] if args.quick else SIZES
    versions = [
        f"{name} {version(name)}" for name in ("lamina", "langchain-core", "pydantic-ai-slim")
    ]
    print(f"Python {platform.python_version()}; {'; '.join(versions)}\n")
    print("milliseconds, median; each row's two figures do not overlap\n")
    print(f"{'messages':>9}{'Lamina prepare':>16}{'request':>10}{'LangChain':>12}{'request':>10}"
          f"{'Pydantic AI':>13}{'request':>10}")  # fmt: skip
    figures: dict[str, dict[str, float]] = {}
    for size in sizes:
        rounds = 200
        row: Callable[..., Awaitable[dict[str, float]]] = measure_lamina
        own = anyio.run(row, size, rounds)
        few = max(5, rounds // 10)
        figures[str(size)] = {
            **own,
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

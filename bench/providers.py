"""What thirty turns cost at emulated vendors: Lamina against LangChain and Pydantic AI.

    python bench/providers.py [--peers PYTHON] [--target NAME]... [--json FILE]

One conversation with notes, edits, tools, one compaction and pauses (`thirty_turns.py`) on an
emulator of each vendor, which accounts for its prefix cache by that vendor's own rules: first by
Lamina, then by the others through their own adapters, in the same run, with the same answers.
`of allowed` is what was read from the cache over what the vendor's rules allow for the requests
that were sent (`allowed.py`). `off by` is what Lamina's ledger predicted against what the emulator
reported: all differences, in either direction, over what was read.

The others' adapters want versions of SDKs that Lamina does not: `--peers` is the Python of an
environment that has them (the list is PEERS). Without it one is made in a temporary folder.
"""

import argparse
import json
import platform
import subprocess
import sys
import venv
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio

import lamina
from lamina.adapters.providers.model_book import load_book
from lamina.core.values.settings import Settings
from lamina.emulators.emulator import serve_emulator
from thirty_turns import (
    COMPACTED_AFTER,
    KEPT_TURNS,
    Outcome,
    Plan,
    make_emulator,
    make_plan,
    outcome,
    play_lamina,
    rendered_notes,
)

PEERS = (
    "langchain==1.4.7",
    "langchain-core==1.7.2",
    "langchain-openai==1.7.3",
    "langchain-anthropic==1.7.7",
    "langchain-google-genai==4.4.2",
    "pydantic-ai-slim[openai,anthropic,google]==2.66.0",
)
TARGETS = (
    "openai:gpt-4o",
    "openai:gpt-5.6",
    "anthropic:claude-sonnet-5",
    "gemini:gemini-2.5-flash",
    "gemini:gemini-3.1-pro-preview",
)
WAYS = {"lazy": Settings(), "eager": Settings(promotion="eager")}
IDIOMS = (
    ("langchain", "inlined"),
    ("langchain", "kept"),
    ("pydantic-ai", "instructions"),
    ("pydantic-ai", "kept"),
)
INSTRUCTION = (
    "Summarise the conversation so far in at most 200 words, for somebody who goes on with it: "
    "what was asked, what was found, and what is still open."
)
LEAST_OF_ALLOWED, MAX_MARKERS, MAX_OFF = 0.95, 4, 0.01


def has_switch(library: str, target: str) -> bool:
    """Whether a library documents a switch for caching there. LangChain has none for OpenAI; the
    automatic caches of others have nothing to be switched."""
    explicit = load_book().find(target).cache.explicit
    return explicit and (library == "pydantic-ai" or target.startswith("anthropic:"))


async def play_peer(
    python: str, name: str, plan: Plan, library: str, idiom: str, caching: str
) -> tuple[Outcome, str]:
    """A library's way through the conversation, and which versions it is of."""
    target = load_book().find(name)
    emulator, requests = make_emulator(target, plan)
    notes = await rendered_notes(plan)
    script = Path(__file__).with_name("providers_peers.py")
    async with serve_emulator(emulator) as url:
        plan_fields: dict[str, Any] = {
            "vendor": target.wire,
            "model": target.model,
            "url": url,
            "system": plan.system,
            "tool": "What the archive has under an entry.",
            "entries": plan.entries,
            "instruction": INSTRUCTION,
            "compacted_after": COMPACTED_AFTER,
            "kept_turns": KEPT_TURNS,
            "turns": [
                {"number": turn.number, "idle": turn.idle, "question": turn.question, "notes": note}
                for turn, note in zip(plan.turns, notes, strict=True)
            ],
        }
        process = await anyio.run_process(
            [python, str(script), library, idiom, caching],
            input=json.dumps(plan_fields).encode(),
            stderr=sys.stderr,
        )
    report = json.loads(process.stdout)
    answers = [turn.answers[-1].text for turn in plan.turns]
    assert report["answers"] == answers, f"{library} lost an answer"
    way = f"{library} {idiom}" + (f", caching {caching}" if has_switch(library, name) else "")
    return outcome(emulator, requests, target, way, Settings()), report["version"]


async def play_all(python: str, targets: Sequence[str]) -> tuple[list[Outcome], list[str]]:
    plan = make_plan()
    outcomes: list[Outcome] = []
    versions: list[str] = []
    for name in targets:
        for way, settings in WAYS.items():
            outcomes.append(await play_lamina(name, settings, plan, f"Lamina {way}"))
        for library, idiom in IDIOMS:
            for caching in ("on", "off") if has_switch(library, name) else ("off",):
                peer_outcome, version = await play_peer(python, name, plan, library, idiom, caching)
                outcomes.append(peer_outcome)
                versions.append(version)
        report(name, [other for other in outcomes if other.target == name])
    return outcomes, sorted(set(versions))


def report(name: str, outcomes: Sequence[Outcome]) -> None:
    lazy = outcomes[0]
    print(f"\n{name}\n")
    print(f"{'':<40}{'requests':>9}{'input':>11}{'cached':>9}{'of allowed':>12}{'markers':>9}"
          f"{'off by':>9}{'$':>9}{'against':>9}")  # fmt: skip
    for row in outcomes:
        off = f"{row.error:.2%}" if row.verdicts else ""
        print(f"{row.way:<40}{len(row.rows):>9}{row.total('input'):>11,}{row.share:>9.1%}"
              f"{row.of_allowed:>12.3f}{row.markers:>9}{off:>9}{row.cost:>9.4f}"
              f"{row.cost / lazy.cost:>8.2f}x", flush=True)  # fmt: skip


def verdict(outcomes: Sequence[Outcome]) -> dict[str, bool]:
    """The claims, for Lamina's default."""
    lazy = [row for row in outcomes if row.way == "Lamina lazy"]
    claims = {
        f"at least {LEAST_OF_ALLOWED:g} of what the rules allow is read": all(
            row.of_allowed >= LEAST_OF_ALLOWED for row in lazy
        ),
        f"never more than {MAX_MARKERS} markers": all(row.markers <= MAX_MARKERS for row in lazy),
        f"predictions within {MAX_OFF:.0%}": all(row.error <= MAX_OFF for row in lazy),
    }
    print()
    for claim, is_kept in claims.items():
        print(f"{'kept' if is_kept else 'MISSED'}: {claim}")
    return claims


def make_environment(folder: Path) -> str:
    """An environment with the others' adapters; its Python."""
    print(f"installing {', '.join(PEERS)}", file=sys.stderr)
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS], check=True)
    return str(python)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--peers", help="Python of an environment with the others' adapters")
    parser.add_argument("--target", action="append", help="play these only")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    args = parser.parse_args()
    with ExitStack() as stack:
        python = args.peers
        if python is None:
            python = make_environment(Path(stack.enter_context(TemporaryDirectory())))
        outcomes, versions = anyio.run(play_all, python, args.target or TARGETS)
    print(f"\nPython {platform.python_version()}; lamina {lamina.__version__}; "
          f"{'; '.join(versions)}")  # fmt: skip
    claims = verdict(outcomes)
    if args.json:
        results = [row.as_dict() for row in outcomes]
        figures = {"versions": versions, "claims": claims, "results": results}
        args.json.write_text(json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

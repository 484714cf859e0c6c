"""What a real model reads again: lazy, eager and naive on the embedded model, by its own counters.

The demo's conversation, or one of --turns turns (a new note on every third, all stay attached);
with --sessions also as many conversations at once on one model, whose answers can be told apart and
whose cached tokens the ledger predicts. What is fair is said in lamina.apps.cli.demo_ways.
"""

import argparse
import json
import platform
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from lamina.adapters.providers.model_book import DEFAULT_TARGET, load_book
from lamina.adapters.stores.memory import MemoryStore
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.demo_command import SAMPLE_WRITTEN, sample_folder, sample_script
from lamina.apps.cli.demo_ways import MAX_TOKENS, SampleWorkspace, open_ways, physical_limit
from lamina.apps.cli.script import EditedWorkspace, Script, ScriptTurn, read_script
from lamina.apps.wiring.runners import Clients, open_chat
from lamina.core.ports import WorkspaceSource
from lamina.core.values.envelope import Options
from lamina.core.values.event import Event
from lamina.core.values.item import Item, note_id
from lamina.core.values.settings import Settings
from versions import version

# A slot's memory is its window's: ten small ones are as large as two and a half whole ones.
SESSION_WINDOW = 2_048
WORDS = (
    "walnut", "copper", "meadow", "lantern", "falcon", "velvet", "pepper", "island", "marble",
    "thunder", "basket", "silver", "garden", "window", "tiger", "orange",
)  # fmt: skip
COLOURS = ("red", "green", "blue", "white", "yellow", "black", "brown", "grey")
QUESTIONS = (
    "What is the code word?",
    "Which code word opens the gate?",
    "Say the code word again.",
)


def silent(event: Event) -> None:
    """Nobody watches."""


async def measure(script: Script, source: WorkspaceSource, name: str) -> dict[str, Any]:
    """One conversation in three ways, turn by turn."""
    target = load_book().find(DEFAULT_TARGET)
    counter = load_book().counter(target)
    limit = await physical_limit(script, source, counter.count)
    folder = EditedWorkspace(source)
    ways = await open_ways(script, folder, target, Clients(slots=3), counter)
    turns: dict[str, list[dict[str, Any]]] = {way.name: [] for way in ways}
    for number, turn in enumerate(script.turns, 1):
        folder.edit(turn.edit)
        for way in ways:
            got = await way.ask(turn, silent)
            row = {
                "ask": turn.ask, "answer": got.answer, "input": got.usage.input,
                "cached": got.usage.cached, "output": got.usage.output, "first_s": got.first_s,
            }  # fmt: skip
            if got.verdict:
                row |= {"expected": got.verdict.expected, "verdict": got.verdict.meaning}
            turns[way.name].append(row)
        again = (
            f"{way} {rows[-1]['input'] - rows[-1]['cached']:>6,}" for way, rows in turns.items()
        )
        print(f"  turn {number:>2}: {'  '.join(again)}", flush=True)
    return {"name": name, "limit": limit, "exact": counter.exact, "ways": turns}


def report(result: dict[str, Any]) -> None:
    sums = {
        way: (
            sum(row["input"] for row in rows),
            sum(row["input"] - row["cached"] for row in rows),
            sum(row["first_s"] for row in rows),
        )
        for way, rows in result["ways"].items()
    }
    _, least, soonest = sums["lazy"]
    print(f"\n{result['name']}: limit {result['limit']:,} tokens")
    heads = ("way", "prompt", "re-processed", "over limit", "vs lazy", "first words", "vs lazy")
    print("".join(f"{head:>14}" for head in heads))
    for way, (prompt, again, waited) in sums.items():
        cells = (
            way, f"{prompt:,}", f"{again:,}", f"{again / result['limit']:.3f}x",
            f"{again / least:.2f}x", f"{waited:.1f} s", f"{waited / soonest:.2f}x",
        )  # fmt: skip
        print("".join(f"{cell:>14}" for cell in cells))


def long_script(turns: int, folder: Path) -> Script:
    """A new note on every third turn, of some 300 tokens; what is attached stays attached."""
    script: list[ScriptTurn] = []
    notes: list[str] = []
    for number in range(turns):
        if number % 3 == 0:
            shed = len(notes) + 1
            lines = [f"# Shed {shed}\n", f"The door of shed {shed} is {COLOURS[shed % 8]}.\n"]
            lines += [
                f"Shelf {shelf} holds {shelf * shed + 3} boxes of screws and {shelf + 20 * shed} "
                f"tins of paint, to be counted in week {shelf + shed}."
                for shelf in range(1, 11)
            ]
            notes.append(f"shed-{shed}.md")
            (folder / notes[-1]).write_text("\n".join(lines) + "\n", "utf-8")
        number_asked = (number * 2) % len(notes) + 1
        script.append(
            ScriptTurn(ask=f"What colour is the door of shed {number_asked}?", attach=tuple(notes))
        )
    return Script(
        system="You keep the stores of a boat yard. Answer from the notes, in one short sentence.",
        turns=tuple(script),
    )


async def talk(number: int, folder: Path, clients: Clients) -> list[dict[str, Any]]:
    """One of many conversations: what it was told, and what the cache did."""
    word = WORDS[number]
    # Short, and without a number: this model takes a longer note's other names for the word.
    note = Item(id=note_id(f"{word}.md"), content=f"# The gate\n\nThe code word is {word}.\n")
    rows: list[dict[str, Any]] = []
    async with await open_chat(
        system="Answer from the attached note, in one short sentence.", target=DEFAULT_TARGET,
        workspace=folder, store=MemoryStore(), settings=Settings(window=SESSION_WINDOW),
        options=Options(max_tokens=24), providers=clients,
    ) as chat:  # fmt: skip
        for question in QUESTIONS:
            answer = await chat.run(question, attach=[note])
            assert answer.turn
            assert answer.turn.verdict
            reply = answer.text.lower()
            rows.append(
                {
                    "session": number, "word": word, "ask": question, "answer": answer.text,
                    "own": word in reply,
                    "others": [other for other in WORDS if other != word and other in reply],
                    "input": answer.usage.input, "expected": answer.turn.verdict.expected,
                    "reported": answer.turn.verdict.reported,
                    "verdict": answer.turn.verdict.meaning,
                }
            )  # fmt: skip
    return rows


async def many_sessions(count: int, folder: Path) -> list[dict[str, Any]]:
    """All at once on one model, a slot each."""
    clients = Clients(slots=count, window=SESSION_WINDOW)
    rows: list[dict[str, Any]] = []

    async def one(number: int) -> None:
        rows.extend(await talk(number, folder, clients))

    async with anyio.create_task_group() as group:
        for number in range(count):
            group.start_soon(one, number)
    return sorted(rows, key=lambda row: row["session"])


def report_sessions(rows: Sequence[dict[str, Any]]) -> bool:
    """Prints what came of them; whether nothing was mixed up and the caches did as predicted."""
    print(
        f"\n{'session':>8}{'turn':>6}{'prompt':>8}{'expected':>10}{'cached':>8}{'diff':>6}  verdict"
    )
    right = mix_ups = 0
    for index, row in enumerate(rows):
        turn = index % len(QUESTIONS) + 1
        off = row["reported"] - row["expected"]
        print(
            f"{row['session']:>8}{turn:>6}{row['input']:>8}{row['expected']:>10}{row['reported']:>8}"
            f"{off:>6}  {row['verdict']}: {' '.join(row['answer'].split())[:60]}"
        )
        verdict = "nothing_sent_before" if turn == 1 else "as_expected"
        right += row["verdict"] == verdict
        mix_ups += bool(row["others"])
    exact = sum(row["reported"] == row["expected"] for row in rows)
    own = sum(row["own"] for row in rows)
    print(
        f"{len(rows)} answers: {own} with their own code word, {mix_ups} with another session's; "
        f"cache as predicted {right}, to the token {exact}"
    )
    return right == len(rows) and not mix_ups


async def run(args: argparse.Namespace, folder: Path) -> tuple[dict[str, Any], bool]:
    results: dict[str, Any] = {
        "python": platform.python_version(),
        **{name: version(name) for name in ("lamina", "xllamacpp")},
        "target": DEFAULT_TARGET,
        "max_tokens": MAX_TOKENS,
    }
    facts = ("python", "lamina", "xllamacpp", "target", "max_tokens")
    print(", ".join(f"{name} {results[name]}" for name in facts), flush=True)
    if not args.only_sessions:
        notes = folder if args.turns else sample_folder()
        script = long_script(args.turns, folder) if args.turns else read_script(sample_script())
        source = SampleWorkspace(FolderWorkspace(notes), SAMPLE_WRITTEN)
        name = f"{args.turns} turns" if args.turns else "the demo's conversation"
        results["conversation"] = await measure(script, source, name)
        report(results["conversation"])
    sound = True
    if args.sessions:
        results["sessions"] = await many_sessions(args.sessions, folder)
        sound = report_sessions(results["sessions"])
    return results, sound


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=0, help="0: the demo's conversation")
    parser.add_argument("--sessions", type=int, default=0, help=f"at once, up to {len(WORDS)}")
    parser.add_argument(
        "--only-sessions", action="store_true", help="no conversation in three ways"
    )
    parser.add_argument("--json", type=Path, help="write everything to this file")
    args = parser.parse_args()
    if not 0 <= args.sessions <= len(WORDS):
        parser.error(f"--sessions is a number up to {len(WORDS)}")
    with tempfile.TemporaryDirectory() as folder:
        results, sound = anyio.run(run, args, Path(folder))
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    return 0 if sound else 1


if __name__ == "__main__":
    raise SystemExit(main())

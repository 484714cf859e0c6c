"""How fast a folder of notes is loaded and searched, next to reading and indexing it each time.

    python bench/workspace.py [--json FILE] [--sizes 1000 10000 100000] [--vault FOLDER]
                              [--rounds 3] [--quick]

Notes are generated: 1.5 kB each, always the same. Every task runs in a process of its own, Lamina
and the peer in turns, and counts with the median of its rounds; from 50,000 notes on there is one.
The files were written just before, so that they are in the system's memory: what is measured is
what the program does, not the disk.

catalogue:  what is known of all notes (titles, tags, links, properties, passages). *Cold*: nothing
            is kept; *warm*: the next process.
unchanged:  looking whether something changed, by a walk over all files and as the system tells it
            (`watched`); *edit*: the same after one note was edited.
search:     by words alone, from the start of the process to the first result. *Cold*: catalogue and
            index have to be made; *warm*: both are there. *Again*: the next questions, each of
            which looks for changes first. *Edit*: a note is written, and the next question finds a
            word that it did not have before.
peer:       bm25s, with stemming and stop words: all files are read, cut and indexed at each start.
            It does not look for changes, so an edit is a new start.
memory:     the most that a process had, everything included.

--vault: a copy of a real folder, with embeddings: how many passages are embedded the first time, in
the next process and after an edit. The peer comes with pip install -c constraints.txt '.[bench]'.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from versions import version
from workspace_notes import make_notes

HERE = Path(__file__).parent
LAMINA, PEER = "Lamina", "bm25s"
SCRIPTS = {LAMINA: HERE / "workspace_lamina.py", PEER: HERE / "workspace_peer.py"}
SIZES = (1_000, 10_000, 100_000)
QUICK = (120,)
# From here on one round has to do.
LARGE = 50_000
# What the figures are called on the screen.
ROWS = (
    ("catalogue, cold", "cold", "catalogue_ms"),
    ("catalogue, warm", "warm", "catalogue_ms"),
    ("unchanged, walked", "refresh", "walked_ms"),
    ("unchanged, watched", "refresh", "watched_ms"),
    ("edit, walked", "refresh", "walked_edit_ms"),
    ("edit, watched", "refresh", "watched_edit_ms"),
)
SEARCHES = (
    ("first result, cold", "first search", "until_ms"),
    ("first result, warm", "next search", "until_ms"),
    ("again", "next search", "again_ms"),
    ("edit to result", "next search", "edit_ms"),
    ("peak MB, cold", "first search", "peak_mb"),
    ("peak MB, warm", "next search", "peak_mb"),
)

Figures = dict[str, Any]


def run(row: str, task: str, notes: Path, kept: Path, number: int) -> Figures:
    """One task in a process of its own, and what it said."""
    command = [sys.executable, str(SCRIPTS[row]), task, str(notes), str(kept), str(number)]
    start = time.perf_counter()
    with (
        tempfile.TemporaryFile("w+") as problems,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=problems, text=True) as process,
    ):
        assert process.stdout
        first = process.stdout.readline()
        until = (time.perf_counter() - start) * 1e3
        rest = process.stdout.read()
        if process.wait():
            problems.seek(0)
            raise SystemExit(f"{row}, {task} of {number}: {process.returncode}\n{problems.read()}")
    figures: Figures = json.loads((first + rest).splitlines()[-1])
    return figures | ({"until_ms": until} if first.startswith("found") else {})


def measure_size(work: Path, number: int, rounds: int, *, with_peer: bool) -> Figures:
    """All tasks on so many notes: medians by row and task."""
    notes = work / f"notes-{number}"
    notes.mkdir()
    size = make_notes(notes, number)
    figures: dict[str, dict[str, list[Figures]]] = {LAMINA: {}, PEER: {}}

    def note(row: str, name: str, task: str, kept: Path) -> None:
        figures[row].setdefault(name, []).append(run(row, task, notes, kept, number))

    for turn in range(rounds if number < LARGE else 1):
        print(f"{number:,} notes, round {turn + 1}", file=sys.stderr)
        kept = work / f"kept-{number}-{turn}"
        kept.mkdir()
        note(LAMINA, "cold", "catalogue", kept)
        note(LAMINA, "warm", "catalogue", kept)
        note(LAMINA, "refresh", "refresh", kept)
        search_folder = work / f"searched-{number}-{turn}"
        search_folder.mkdir()
        note(LAMINA, "first search", "search", search_folder)
        if with_peer:
            note(PEER, "first search", "search", search_folder)
        note(LAMINA, "next search", "search", search_folder)
        if with_peer:
            note(PEER, "next search", "search", search_folder)
        for folder in (kept, search_folder):
            shutil.rmtree(folder)
    shutil.rmtree(notes)
    medians = {
        row: {name: _medians(runs) for name, runs in tasks.items()}
        for row, tasks in figures.items()
    }
    return {"notes": number, "bytes": size, "medians": medians, "runs": figures}


def _medians(runs: Sequence[Figures]) -> Figures:
    return {figure: median(run[figure] for run in runs) for figure in runs[0]}


def measure_vault(work: Path, vault: Path) -> dict[str, Figures]:
    """A copy of a real folder with embeddings: a first process, and the next one."""
    notes, kept = work / "vault", work / "kept-vault"
    shutil.copytree(vault, notes, ignore=shutil.ignore_patterns(".*"))
    kept.mkdir()
    return {name: run(LAMINA, "embed", notes, kept, 0) for name in ("cold", "warm")}


def show_size(figures: Figures) -> None:
    ours, theirs = figures["medians"][LAMINA], figures["medians"][PEER]
    passages = ours["warm"]["passages"]
    print(
        f"\n{figures['notes']:,} notes, {figures['bytes'] / 1e6:,.1f} MB, {passages:,.0f} passages"
    )
    print(f"  {'':<24}{LAMINA:>12}{PEER:>12}{'ratio':>8}")
    for title, task, figure in ROWS:
        print(f"  {title + ', ms':<24}{ours[task][figure]:>12,.2f}")
    for task in ("cold", "warm"):
        print(f"  {f'catalogue, {task}, MB':<24}{ours[task]['peak_mb']:>12,.0f}")
    for title, task, figure in SEARCHES:
        unit = "" if "MB" in title else ", ms"
        line = f"  {title + unit:<24}{ours[task][figure]:>12,.1f}"
        if theirs:
            other = theirs[task][figure]
            line += f"{other:>12,.1f}{other / ours[task][figure]:>7.1f}x"
        print(line)
    hits = [f"{row} {tasks['next search']['found']:.0f}" for row, tasks in _rows(figures) if tasks]
    print(f"  found, of {ours['next search']['asked']:.0f}: {', '.join(hits)}", flush=True)


def _rows(figures: Figures) -> Sequence[tuple[str, dict[str, Figures]]]:
    return tuple(figures["medians"].items())


def show_vault(figures: dict[str, Figures]) -> None:
    cold, warm = figures["cold"], figures["warm"]
    print(
        f"\nA vault of {cold['notes']:,} notes, {cold['passages']:,} different passages, with "
        f"embeddings\n  embedded: {cold['embedded']:,} cold, {warm['embedded']:,} in the next "
        f"process, {cold['embedded_after_edit']:,} after an edit of a note of "
        f"{cold['edited_passages']:,} passages"
    )
    for name, row in figures.items():
        print(
            f"  {name}: first result {row['until_ms']:,.0f} ms, again {row['again_ms']:,.1f} ms, "
            f"edit to result {row['edit_ms']:,.1f} ms, peak {row['peak_mb']:,.0f} MB"
        )
    for warning in cold["warnings"]:
        print(f"  {warning}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--vault", type=Path, help="a real folder of notes, which is copied")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="few notes, one round, no peer")
    args = parser.parse_args(arguments)
    sizes, rounds = (QUICK, 1) if args.quick else (args.sizes, args.rounds)
    packages = ("lamina", "msgspec", "numpy", *(() if args.quick else (PEER,)))
    versions = {
        "Python": platform.python_version(),
        "processor threads": os.cpu_count(),
        **{name: version(name) for name in packages},
    }
    print(", ".join(f"{name} {value}" for name, value in versions.items()), flush=True)
    load = [os.getloadavg()[0]]
    record: dict[str, Any] = {"versions": versions, "sizes": []}
    with tempfile.TemporaryDirectory(prefix="bench-workspace-") as name:
        for number in sizes:
            figures = measure_size(Path(name), number, rounds, with_peer=not args.quick)
            record["sizes"].append(figures)
            show_size(figures)
        if args.vault:
            record["vault"] = measure_vault(Path(name), args.vault)
            show_vault(record["vault"])
    load.append(os.getloadavg()[0])
    # Milliseconds of a machine that does something else, too, are worth little.
    print(f"\nLoad of the machine before and after: {load[0]:.1f}, {load[1]:.1f}")
    if args.json:
        args.json.write_text(json.dumps(record | {"load": load}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

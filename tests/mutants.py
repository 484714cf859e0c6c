"""Small faults made on purpose: does the suite notice them?

    python -m tests.mutants [--root PATH] [--only NAME] [--json FILE]

Every mutant in `mutants.toml` is a fault that somebody could make: a flipped condition, a dropped
item, a forgotten check. One after the other they are put into a copy of the tree at `--root` (this
one, if none is named), and the tests most likely to notice run there. A mutant is

    killed      if a test fails or nothing is heard of them for too long
    survivor    if all of them pass
    lost        if its text is not in the package, or is there more than once
    untested    if none of its tests are in the tree

A mutant is text without module paths and its tests are bare names, so that trees with another
layout can be compared. Before the first mutant all tests run without one, since a test that fails
anyway kills nothing. The exit code is 0 if every mutant was killed or survived, 1 if one was lost
or untested, and 2 if the tests fail without any. The tree itself is never written to.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib.util import cache_from_source
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import msgspec
from msgspec import Struct

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".toml")
# What is copied, since it is written to or has to be imported from there; the rest is linked.
COPIED = ("src", "tests", "bench")
# How many seconds the tests of one mutant may take, and all of them without a mutant.
TIMEOUT_S, BASELINE_S = 180, 3_600

FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)
# Exit codes of pytest: all passed; nothing was run, which says nothing of a mutant.
PASSED, NOT_RUN = 0, (3, 4, 5)

State = Literal["killed", "survivor", "lost", "untested"]


class Mutant(Struct, frozen=True, kw_only=True):
    """A fault: text of one module, and what stands there instead."""

    name: str
    find: str
    replace: str
    tests: tuple[str, ...]


class MutantList(Struct, frozen=True, kw_only=True):
    mutant: tuple[Mutant, ...]


class Outcome(Struct, frozen=True, kw_only=True):
    """How a mutant fared; `by` is the first test that failed, or what else killed it."""

    name: str
    state: State
    file: str = ""
    by: str = ""
    seconds: float = 0.0


class Report(Struct, frozen=True, kw_only=True):
    root: str
    seconds: float
    counts: dict[State, int]
    mutants: tuple[Outcome, ...]


class Copy:
    """A copy of a tree that can be changed, and whose package its tests import."""

    def __init__(self, root: Path, place: Path) -> None:
        self._place = place
        self._package = place / "src" / "lamina"
        for entry in root.iterdir():
            if entry.name in COPIED:
                shutil.copytree(entry, place / entry.name, symlinks=True)
            elif not entry.name.startswith("."):
                (place / entry.name).symlink_to(entry.resolve())
        self._texts = {
            path: path.read_text("utf-8") for path in sorted(self._package.rglob("*.py"))
        }
        self._require_import()

    def _require_import(self) -> None:
        """
        Raises:
            SystemExit: another package than the copy would be tested.
        """
        code, output = self._run(["-c", "import lamina; print(lamina.__file__)"], TIMEOUT_S)
        if code or not Path(output.strip()).is_relative_to(self._package):
            raise SystemExit(f"the copy in {self._place} is not what is imported: {output.strip()}")

    def find_module(self, text: str) -> Path | None:
        """The one module that holds this text, once; None if there is none."""
        modules = [path for path, own in self._texts.items() for _ in range(own.count(text))]
        return modules[0] if len(modules) == 1 else None

    def find_tests(self, names: Sequence[str]) -> list[str]:
        """The files and folders of tests with these names, wherever they are."""
        found = [path for name in names for path in self._find_tests(name)]
        return list(dict.fromkeys(str(path.relative_to(self._place)) for path in found))

    def _find_tests(self, name: str) -> list[Path]:
        tests = self._place / "tests"
        if name.endswith(".py"):
            return sorted(tests.rglob(name))
        folders = [tests / name, *sorted(tests.rglob(name.rpartition("/")[2]))]
        return [folder for folder in folders if folder.is_dir()][:1]

    def test(self, paths: Sequence[str], *options: str, limit: float) -> tuple[int | None, str]:
        """The exit code of pytest, None if it took longer than `limit` seconds; and its output."""
        arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", *options, *paths]
        return self._run(arguments, limit)

    def change(self, path: Path, mutant: Mutant) -> None:
        self._write(path, self._texts[path].replace(mutant.find, mutant.replace))

    def restore(self, path: Path) -> None:
        self._write(path, self._texts[path])

    def name_of(self, path: Path) -> str:
        return str(path.relative_to(self._package))

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, "utf-8")
        # Python tells sources apart by size and second: neither need be another one.
        Path(cache_from_source(str(path))).unlink(missing_ok=True)

    def _run(self, arguments: Sequence[str], limit: float) -> tuple[int | None, str]:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self._place,
            env=os.environ | {"PYTHONPATH": str(self._place / "src")},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return None, ""
        finally:
            # What the tests started ends with them.
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        return process.returncode, output


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def read_mutants(only: str) -> tuple[Mutant, ...]:
    """The mutants whose name has `only` in it.

    Raises:
        SystemExit: there are none.
    """
    mutants = msgspec.toml.decode(LIST.read_bytes(), type=MutantList).mutant
    chosen = tuple(mutant for mutant in mutants if only in mutant.name)
    if not chosen:
        raise SystemExit(f"no mutant has {only!r} in its name")
    return chosen


def require_sound_tests(copy: Copy, mutants: Sequence[Mutant]) -> None:
    """
    Raises:
        SystemExit: tests fail without any mutant.
    """
    paths = copy.find_tests([name for mutant in mutants for name in mutant.tests])
    if not paths:
        return
    begun = time.monotonic()
    code, output = copy.test(paths, limit=BASELINE_S)
    if code != PASSED:
        problem = "take too long" if code is None else "fail"
        lines = FAILED.findall(output) or [output]
        say("\n".join([f"the tests {problem} without any mutant:", *lines]))
        raise SystemExit(2)
    say(f"without a mutant all tests pass ({time.monotonic() - begun:.0f} s)")


def try_mutant(copy: Copy, mutant: Mutant) -> Outcome:
    """Whether the tests notice a mutant."""
    module = copy.find_module(mutant.find)
    if module is None:
        return Outcome(name=mutant.name, state="lost")
    file, paths = copy.name_of(module), copy.find_tests(mutant.tests)
    if not paths:
        return Outcome(name=mutant.name, state="untested", file=file)
    begun = time.monotonic()
    copy.change(module, mutant)
    try:
        code, output = copy.test(paths, "-x", limit=TIMEOUT_S)
    finally:
        copy.restore(module)
    state, by = judge(code, output)
    seconds = round(time.monotonic() - begun, 1)
    return Outcome(name=mutant.name, state=state, file=file, by=by, seconds=seconds)


def judge(code: int | None, output: str) -> tuple[State, str]:
    """What an exit code of pytest and its output say of a mutant, and what killed it."""
    if code is None:
        return "killed", "timeout"
    if code == PASSED:
        return "survivor", ""
    if code in NOT_RUN:
        return "untested", ""
    failed = FAILED.search(output)
    return "killed", failed[1] if failed else f"exit code {code}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Makes faults that the tests have to notice."
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the tree to test (this one)")
    parser.add_argument("--only", metavar="NAME", default="", help="those with NAME in their name")
    parser.add_argument("--json", metavar="FILE", type=Path, help="where the outcome is written")
    given = parser.parse_args()
    mutants, root, begun = read_mutants(given.only), given.root.resolve(), time.monotonic()
    outcomes: list[Outcome] = []
    with TemporaryDirectory(prefix="mutants-") as place:
        copy = Copy(root, Path(place).resolve())
        require_sound_tests(copy, mutants)
        for mutant in mutants:
            outcomes.append(outcome := try_mutant(copy, mutant))
            by = f" by {outcome.by}" if outcome.by else ""
            say(f"{outcome.state:8}  {outcome.name} ({outcome.seconds:.1f} s{by})")
    counts = Counter(outcome.state for outcome in outcomes)
    seconds = round(time.monotonic() - begun, 1)
    others = "".join(f", {count} {state}" for state, count in counts.items() if state != "killed")
    say(f"{counts['killed']} of {len(outcomes)} killed{others}; {seconds:.0f} s")
    if given.json:
        report = Report(
            root=str(root), seconds=seconds, counts=dict(counts), mutants=tuple(outcomes)
        )
        given.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    return 1 if counts["lost"] or counts["untested"] else 0


if __name__ == "__main__":
    sys.exit(main())

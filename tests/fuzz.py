"""Draws anew, for as long as one likes: every property of the suite, in rounds with fresh seeds.

    python -m tests.fuzz [--minutes N] [--rounds N] [--jobs N] [--times N] [PATH ...]

A file of tests is one process, as many at once as there are cores, so that a crash or a hang says
where it was and the printed command draws the same again. What fails is shown at once, is kept in
`.fuzz/` with its example, its seed and that command, and is left out of later rounds. Whether the
time is over or Ctrl-C was pressed, what was found until then counts: the exit code says so.
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random, SystemRandom

from msgspec import Struct

KEPT = Path(".fuzz")
# A file that still draws after so many seconds hangs.
PATIENCE = 1_800
# What a process gets to end in, once it was asked to: pytest tells what it found until then.
FAREWELL = 15

PROPERTY = re.compile(r"^(\S+\.py)::", re.MULTILINE)
EXAMPLES = re.compile(r"^ +- (\d+) passing, (\d+) failing", re.MULTILINE)
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+\.py(?:::.+?)?)(?: - .*)?$", re.MULTILINE)
# Exit codes of pytest: all passed, some failed, nothing left to run.
ENDINGS = (0, 1, 5)


class Options(Struct, frozen=True, kw_only=True):
    minutes: float
    rounds: int | None
    jobs: int
    times: int


class Drawing(Struct, frozen=True, kw_only=True):
    """One file of tests, drawn with one seed."""

    file: str
    seed: int
    times: int

    @property
    def variables(self) -> dict[str, str]:
        return {"LAMINA_FUZZ": str(self.times), "PYTHONHASHSEED": "0"}

    @property
    def arguments(self) -> list[str]:
        seed = f"--hypothesis-seed={self.seed}"
        return ["-m", "pytest", self.file, "-m", "hypothesis", seed]

    @property
    def command(self) -> str:
        """What a person types to draw it again."""
        variables = [f"{name}={value}" for name, value in self.variables.items()]
        return shlex.join([*variables, os.path.relpath(sys.executable), *self.arguments])


class Process:
    """A file of tests that is being drawn. All that it starts ends with it."""

    def __init__(self, drawing: Drawing, aside: Sequence[str]) -> None:
        self.drawing = drawing
        self._log = KEPT / f"{os.getpid()}-{drawing.file.replace('/', '-')}.log"
        self._ends = time.monotonic() + PATIENCE
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, *drawing.arguments, "--hypothesis-show-statistics"),
                    *(f"--deselect={test}" for test in aside),
                ],
                env=os.environ | drawing.variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None or time.monotonic() > self._ends

    def end(self) -> tuple[bool, str]:
        """Whether it ended of itself and as pytest ends, or was stopped in time; and all that it
        printed."""
        sane = self._process.poll() in (None, *ENDINGS) and time.monotonic() < self._ends
        for number in (signal.SIGINT, signal.SIGKILL):
            if self._process.poll() is None:
                os.killpg(self._process.pid, number)
                try:
                    self._process.wait(FAREWELL)
                except subprocess.TimeoutExpired:
                    continue
        output = self._log.read_text(errors="replace")
        self._log.unlink()
        return sane, output


class Fuzz:
    """Rounds over files of tests, and what they came to."""

    def __init__(self, properties: dict[str, int], options: Options) -> None:
        self.failed: list[str] = []
        self.examples = 0
        self._properties = properties
        self._options = options
        self._begun = time.monotonic()
        self._processes: list[Process] = []

    def go_on(self) -> None:
        """Round after round, until there were enough, Ctrl-C, or every file failed."""
        try:
            for number in count(1):
                if not self._files or self._over or number - 1 == self._options.rounds:
                    break
                self._round(number, SystemRandom().getrandbits(32))
        except KeyboardInterrupt:
            say("stopped")

    @property
    def minutes(self) -> float:
        return (time.monotonic() - self._begun) / 60

    @property
    def _over(self) -> bool:
        return self.minutes >= self._options.minutes

    @property
    def _files(self) -> list[str]:
        return [file for file in self._properties if file not in self.failed]

    def _round(self, number: int, seed: int) -> None:
        files = self._files
        # In another order each time, so that short runs get to everything in the end.
        Random(seed).shuffle(files)
        drawings = [Drawing(file=file, seed=seed, times=self._options.times) for file in files]
        before, spoken = self.examples, self.minutes
        try:
            while (drawings or self._processes) and not self._over:
                while drawings and len(self._processes) < self._options.jobs:
                    self._processes.append(Process(drawings.pop(), self.failed))
                time.sleep(0.1)
                self._harvest([process for process in self._processes if process.ended])
                if self.minutes >= spoken + 1:
                    spoken = self.minutes
                    ended = len(files) - len(drawings) - len(self._processes)
                    say(f"round {number}: {ended} of {len(files)} files; so far {self.summary}")
        finally:
            self._harvest(list(self._processes))
            drawn_files = files[len(drawings) :]
            say(
                f"round {number}, seed {seed}: {len(drawn_files)} files, "
                f"{sum(self._properties[file] for file in drawn_files)} properties, "
                f"{self.examples - before:,} examples; so far {self.summary}"
            )

    def _harvest(self, processes: Sequence[Process]) -> None:
        for process in processes:
            self._processes.remove(process)
            sane, output = process.end()
            self.examples += sum(map(int, sum(EXAMPLES.findall(output), ())))
            failed = list(dict.fromkeys(FAILED.findall(output)))
            if not failed and not sane:
                failed = [process.drawing.file]
            self.failed += failed
            for test in failed:
                file = (
                    KEPT / f"{re.sub(r'[^a-z0-9_]+', '-', test)[:100]}-{process.drawing.seed}.txt"
                )
                file.write_text(f"{test}\n{process.drawing.command}\n\n{output}")
                say(f"FOUND {test}\n  example: {file}\n  again: {process.drawing.command}")

    @property
    def summary(self) -> str:
        return f"{self.examples:,} examples, {len(self.failed)} found, {self.minutes:.1f} min"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def properties_of(paths: Sequence[str]) -> dict[str, int]:
    """How many properties each file of tests has.

    Raises:
        SystemExit: there are none, or pytest could not collect them.
    """
    collection = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-m", "hypothesis", *paths],
        capture_output=True,
        text=True,
    )
    found = Counter(PROPERTY.findall(collection.stdout))
    if collection.returncode or not found:
        raise SystemExit(f"no properties to draw\n{collection.stdout}{collection.stderr}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Draws anew.")
    parser.add_argument("--minutes", type=float, default=10, help="how long (10)")
    parser.add_argument("--rounds", type=int, help="how often at the most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="files at once (cores)")
    parser.add_argument("--times", type=int, default=20, help="examples, times the usual (20)")
    parser.add_argument("paths", nargs="*", help="files or folders of tests (all)")
    given = parser.parse_args()
    KEPT.mkdir(exist_ok=True)
    properties = properties_of(given.paths)
    say(f"{sum(properties.values())} properties in {len(properties)} files; Ctrl-C ends it")
    options = Options(
        minutes=given.minutes, rounds=given.rounds, jobs=given.jobs, times=given.times
    )
    fuzz = Fuzz(properties, options)
    fuzz.go_on()
    say(f"{fuzz.summary}" + "".join(f"\n  {test}" for test in fuzz.failed))
    return 1 if fuzz.failed else 0


if __name__ == "__main__":
    sys.exit(main())

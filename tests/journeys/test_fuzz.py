"""`make test` draws the same everywhere, `make fuzz` draws anew (issue 16, B.15)."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

DRAWS = """
import {module}
from hypothesis import given, strategies as st

drawn = []

@given(st.text(), st.integers(), st.sampled_from(["a", "b", "c"]))
def test_draw(text, number, letter):
    drawn.append((text, number, letter))

def test_tell():
    open("drawn", "w").write(repr(drawn))
"""

PROPERTIES = """
from hypothesis import given, strategies as st

@given(st.integers())
def test_right(number):
    assert number == number

@given(st.integers())
def test_wrong(number):
    assert number < 1000
"""


def draws(folder: Path, module: str, **variables: str) -> str:
    (folder / "test_draws.py").write_text(DRAWS.format(module=module))
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.conftest", "test_draws.py"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return (folder / "drawn").read_text()


def test_what_else_is_loaded_and_where_it_runs_do_not_change_what_is_drawn(tmp_path: Path) -> None:
    first = draws(tmp_path, "lamina.core.values.item", PYTHONHASHSEED="1")
    assert len(first) > 1_000
    other = draws(tmp_path, "lamina.apps.cli.app", PYTHONHASHSEED="2", CI="true")
    assert other == first


def test_fuzz_draws_other_and_more_examples(tmp_path: Path) -> None:
    usual = draws(tmp_path, "lamina")
    one = draws(tmp_path, "lamina", LAMINA_FUZZ="3")
    other = draws(tmp_path, "lamina", LAMINA_FUZZ="3")
    assert one != other
    assert min(len(one), len(other)) > 2 * len(usual)


@pytest.fixture
def fuzzed(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """One round over a property that holds and one that does not."""
    (tmp_path / "test_two.py").write_text(PROPERTIES)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -q -p no:cacheprovider\n")
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "--minutes", "60", "--rounds", "1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def test_fuzz_keeps_what_fails_with_the_command_that_draws_it_again(
    fuzzed: subprocess.CompletedProcess[str], tmp_path: Path
) -> None:
    assert fuzzed.returncode == 1, fuzzed.stdout + fuzzed.stderr
    lines = fuzzed.stdout.splitlines()
    assert lines[0] == "2 properties in 1 files; Ctrl-C ends it"
    assert lines[1] == "FOUND test_two.py::test_wrong"
    assert re.match(r"round 1, seed \d+: 1 files, 2 properties, \d+ examples; so far", lines[4])
    assert lines[-1] == "  test_two.py::test_wrong"
    (kept,) = (tmp_path / ".fuzz").iterdir()
    test, command, *_ = kept.read_text().splitlines()
    assert test == "test_two.py::test_wrong"
    assert command == lines[3].removeprefix("  again: ")
    assert "number=1000" in kept.read_text()
    again = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 1
    assert "number=1000" in again.stdout
    assert "1 failed, 1 passed" in again.stdout

"""Says the seed of every failure, and what a long run has tried."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.crash.nursery import Nursery
from tests.crash.scale import LONG, MUST_BE_ZERO, SEED, tally


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    """Forks children that have imported everything already."""
    with Nursery() as running:
        yield running


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist hands in what it has tried."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["crash_tally"] = dict(tally)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker is done: what it has tried is added up. One that died has said nothing, and that is
    a failure of its test."""
    tally.update(getattr(node, "workeroutput", {}).get("crash_tally", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    failed = terminalreporter.getreports("failed")
    if any("tests/crash/" in report.nodeid for report in failed):
        terminalreporter.write_line(f"crash suite: LAMINA_CRASH_SEED={SEED}")
    if LONG:
        terminalreporter.section("crash suite")
        terminalreporter.write_line(f"seed: {SEED}")
        for what, count in sorted(tally.items()):
            if what not in MUST_BE_ZERO:
                terminalreporter.write_line(f"{what}: {count:,}")
        for what in MUST_BE_ZERO:
            terminalreporter.write_line(f"{what}: {tally[what]:,}")

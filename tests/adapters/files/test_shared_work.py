"""Work that is shared with a second process: what comes out is as if it were done here."""

import os
import sys
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from tests.fakes.second_process import act_up, name_process

from lamina.adapters.files import second_process
from lamina.adapters.files.second_process import share_work
from lamina.core.notes.note_reader import NoteBytes, NoteWithTerms, read_notes, read_searched_notes

PACKAGES = ("lamina", "msgspec", "yaml", "numpy", "Stemmer", "tests")
Read = Callable[[list[NoteBytes]], list[NoteWithTerms | None]]
HAS_SECOND = len(os.sched_getaffinity(0)) > 1 if hasattr(os, "sched_getaffinity") else True
# A second process is there long before so many batches are done.
MOST = 3_000_000
needs_second = pytest.mark.skipif(not HAS_SECOND, reason="this machine has one processor")


def test_every_batch_comes_back_once_with_its_result() -> None:
    pairs = list(share_work(act_up, [(f"say {n}", 0) for n in range(200)], PACKAGES))
    assert sorted(batch for batch, _ in pairs) == sorted((f"say {n}", 0) for n in range(200))
    assert all(result[0] == batch[0] for batch, result in pairs)


@needs_second
def test_another_process_does_some_of_the_work() -> None:
    done = False

    def batches() -> Iterator[int]:
        # Until it has done one: it takes its time to start.
        for number in range(MOST):
            if done:
                return
            yield number

    seen: list[int] = []
    for batch, process in share_work(name_process, batches(), PACKAGES):
        seen.append(batch)
        done = done or process != os.getpid()
    assert done
    assert sorted(seen) == list(range(len(seen)))


@needs_second
@pytest.mark.parametrize("deed", ["die", "raise", "print", "babble", "hang"])
def test_whatever_happens_in_the_other_process_nothing_is_lost(
    deed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(second_process, "PATIENCE", 0.5)
    begun = False

    def batches() -> Iterator[tuple[str, int]]:
        number = 0
        while not begun and number < MOST:
            number += 1
            yield f"say {number}", os.getpid()
        yield from [(deed, os.getpid())] * 20

    deeds: list[str] = []
    for batch, result in share_work(act_up, batches(), PACKAGES):
        assert result[0] == batch[0]
        begun = begun or result[1] == "there"
        deeds.append(batch[0])
    assert deeds.count(deed) == 20
    assert sorted(d for d in deeds if d != deed) == sorted(
        f"say {n}" for n in range(1, len(deeds) - 19)
    )


def test_without_a_python_to_start_everything_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for executable in ("", "/no/such/python3", "/usr/bin/some-app"):
        monkeypatch.setattr(sys, "executable", executable)
        pairs = list(share_work(name_process, range(50), PACKAGES))
        assert pairs == [(number, os.getpid()) for number in range(50)]


def test_a_caller_that_stops_early_leaves_nothing_running() -> None:
    work = share_work(name_process, count(), PACKAGES)
    assert next(work)[0] == 0
    work.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("read", [read_notes, read_searched_notes])
def test_notes_arrive_as_they_were_read(read: Read) -> None:
    files = [
        (f"n{n}.md", f"---\ntags: [a]\nn: {n}\n---\n# T\n\n[[x]] #t\n- [ ] do\n".encode(), 1.5, 2.5)
        for n in range(50)
    ] + [
        ("big.md", b"---\nn: 123456789012345678901234567890\n---\ntext\n", 0.0, 0.0),
        ("secret.md", b"# K\n\n- token: ghp_abcdefghijklmnopqrstuvwxyz0123456789\n", 0.0, 0.0),
        ("bad.md", b"\xef\xbb\xbf# \xff\r\n\r\ntext\0\r\n", 0.0, 0.0),
    ]  # fmt: skip
    batches = [files] * 60
    for batch, notes in share_work(read, batches, PACKAGES):
        assert notes == read(batch)


def test_a_batch_of_any_size_comes_through() -> None:
    # More than what is under way at a time.
    long = "x" * 5_000_000
    pairs = list(share_work(act_up, [(long + str(n), 0) for n in range(12)], PACKAGES))
    assert {result[0] for _, result in pairs} == {long + str(n) for n in range(12)}

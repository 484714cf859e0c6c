"""What a model read of a session outlives its slot and its process."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lamina
from lamina.adapters.providers.local.slots import SlotFiles, trim_slot_files
from lamina.apps.wiring.runners import Clients, open_chat

SYSTEM = "You keep the berths. " + " ".join(f"Berth {n} is {n} metres long." for n in range(40))
ASK = """
import anyio, sys
from lamina.apps.wiring.runners import Clients, open_chat

async def main():
    clients = Clients(slots=1, window=2048, remember=True)
    options = dict(system=sys.argv[1], providers=clients, workspace=".")
    async with await open_chat("pier", **options) as chat:
        answer = await chat.run(sys.argv[2])
        print(answer.usage.input, answer.usage.cached, answer.turn.verdict.meaning)

anyio.run(main)
"""


@pytest.fixture
def folder(tmp_path: Path, model_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LAMINA_MODELS", str(tmp_path / "models.toml"))
    # Short answers: they are not what this is about.
    (tmp_path / "models.toml").write_text("[providers.local]\nmax_output = 8\n")
    return tmp_path


def ask(question: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", ASK, SYSTEM, question],
        cwd=folder, capture_output=True, text=True, check=True, env=dict(os.environ),
    )  # fmt: skip
    return done.stdout.split()


def test_another_process_finds_what_was_read(folder: Path, model_cache: Path) -> None:
    first = ask("Which is the longest?", folder)
    assert first[1:] == ["0", "nothing_sent_before"]
    second = ask("And the shortest?", folder)
    assert int(second[1]) > int(first[0])
    assert second[2] == "as_expected"
    (kept,) = (model_cache / "slots").iterdir()
    assert stat.S_IMODE((model_cache / "slots").stat().st_mode) == 0o700
    # A file that is no use is no harm.
    kept.write_bytes(b"rubbish")
    third = ask("Which is the longest?", folder)
    assert third[1:] == ["0", "lifetime_passed"]


@pytest.mark.anyio
async def test_sessions_that_share_a_slot_do_not_read_everything_again(folder: Path) -> None:
    clients = Clients(slots=1, window=2048, remember=True)
    options: dict[str, Any] = {"providers": clients, "store": lamina.MemoryStore()}
    async with (
        await open_chat("a", system=f"A. {SYSTEM}", **options) as one,
        await open_chat("b", system=f"B. {SYSTEM}", **options) as two,
    ):
        turns = (one, two, one, two)
        said = [(await chat.run("Which is the longest?")).usage for chat in turns]
        assert said[0].cached < 20
        assert said[1].cached < 20
        assert said[2].cached > said[0].input
        assert said[3].cached > said[1].input


def test_what_was_used_least_goes_first(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF")
    memory = SlotFiles(tmp_path / "slots", model)
    for number in range(5):
        path = memory.folder / memory.file_name(str(number))
        path.write_bytes(b"x" * 10)
        os.utime(path, (number, number))
    assert trim_slot_files(memory.folder, max_bytes=1_000, max_files=3) == 2
    assert [memory.has(str(number)) for number in range(5)] == [False, False, True, True, True]
    assert trim_slot_files(memory.folder, max_bytes=15, max_files=9) == 2
    assert [memory.has(str(number)) for number in range(5)] == [False] * 4 + [True]
    memory.drop("4")
    memory.drop("4")
    assert not memory.has("4")


def test_another_model_file_has_another_memory(tmp_path: Path) -> None:
    model = tmp_path / "m.gguf"
    model.write_bytes(b"GGUF")
    before = SlotFiles(tmp_path / "slots", model).file_name("a")
    model.write_bytes(b"GGUF another")
    assert SlotFiles(tmp_path / "slots", model).file_name("a") != before

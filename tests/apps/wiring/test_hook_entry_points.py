"""Hooks that installed packages bring: real distributions, found by importlib.metadata."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

LAMINA = Path(sys.executable).parent / "lamina"
ASK = """
import anyio, sys, lamina
from lamina.adapters.stores.memory import MemoryStore

async def main():
    hooks = lamina.Hooks()
    @hooks.context
    def given(event):
        names = ",".join(part.name for part in event.envelope.system)
        return {"op": "system_part_set", "name": "seen", "text": "seen: " + names,
                "reason": "to see"}
    try:
        session = await lamina.open_session(store=MemoryStore(), hooks=hooks, target="openai:gpt-5")
        turn = await session.prepare("Q")
    except lamina.LaminaError as error:
        print(f"{error.code}: {error}")
    else:
        print(turn.request()["messages"][0]["content"].replace(chr(10), "/"))

anyio.run(main)
"""
REGISTER = """
    def register(hooks):
        @hooks.context(name="{name}")
        def hook(event):
            return {{"op": "system_part_set", "name": "{name}", "text": "I am {name}.",
                    "reason": "{name} says so"}}
"""


def install(folder: Path, name: str, module: str | None, points: str) -> None:
    """A distribution as pip would leave it: its module and its metadata."""
    if module is not None:
        (folder / f"{name}.py").write_text(textwrap.dedent(module), "utf-8")
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(f"[lamina.hooks]\n{points}\n", "utf-8")


def install_named(folder: Path, package: str, name: str) -> None:
    install(folder, package, REGISTER.format(name=name), f"{name} = {package}:register")


def python(folder: Path, script: str = ASK, **settings: str) -> str:
    """What a script prints with the packages of `folder` installed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=_environment(folder, settings),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.strip()


def _environment(folder: Path, settings: dict[str, str]) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LAMINA_")}
    data = {"LAMINA_DATA": str(folder / "data"), "NO_COLOR": "1", "COLUMNS": "100"}
    return clean | data | {"PYTHONPATH": str(folder)} | settings


def command(folder: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(LAMINA), *arguments],
        env=_environment(folder, settings),
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_hooks_of_packages_run_sorted_by_name_and_before_those_that_were_given(
    tmp_path: Path,
) -> None:
    install_named(tmp_path, "first_package", "zebra")
    install_named(tmp_path, "second_package", "apple")
    assert python(tmp_path) == "I am apple.//I am zebra.//seen: apple,zebra"


def test_without_packages_there_are_only_the_hooks_that_were_given(tmp_path: Path) -> None:
    assert python(tmp_path, LAMINA_HOOKS="on") == "seen:"


@pytest.mark.parametrize("off", ["off", "OFF", "0", "no", "false"])
def test_the_hooks_of_packages_can_be_switched_off(tmp_path: Path, off: str) -> None:
    install_named(tmp_path, "package", "apple")
    assert python(tmp_path, LAMINA_HOOKS=off) == "seen:"


@pytest.mark.parametrize("on", ["on", "1", "yes", ""])
def test_they_are_on_by_default(tmp_path: Path, on: str) -> None:
    install_named(tmp_path, "package", "apple")
    assert python(tmp_path, LAMINA_HOOKS=on) == "I am apple.//seen: apple"


BROKEN = {
    "no such module": (None, "broken:register", "ModuleNotFoundError"),
    "no such function": ("x = 1", "broken:register", "AttributeError"),
    "fails to import": ("1 / 0", "broken:register", "ZeroDivisionError"),
    "is no function": ("register = 7", "broken:register", "TypeError"),
    "takes nothing": ("def register(): ...", "broken:register", "TypeError"),
    "fails": ("def register(hooks): raise LookupError('no row')", "broken:register", "no row"),
    "is a module": ("x = 1", "broken", "TypeError"),
    "is async": ("async def register(hooks): ...", "broken:register", "await"),
    "wrong reason": (
        "def register(hooks): hooks.context(reason='soon')", "broken:register", "before_request",
    ),
    "is no reference": ("x = 1", "what is this?", "what is this?"),
}  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_entry_point_is_a_hook_error_that_says_how_to_go_on(
    tmp_path: Path, broken: str
) -> None:
    module, value, said = BROKEN[broken]
    install(tmp_path, "broken", module, f"mine = {value}")
    printed = python(tmp_path)
    assert printed.startswith("hook: hook ")
    assert value in printed
    assert said in printed
    assert "LAMINA_HOOKS=off" in printed
    assert python(tmp_path, LAMINA_HOOKS="off") == "seen:"


def test_a_broken_entry_point_is_named_with_its_distribution(tmp_path: Path) -> None:
    install(tmp_path, "acme_policies", None, "mine = elsewhere:register")
    assert "acme_policies" in python(tmp_path)


OPEN = """
import anyio, os, lamina

async def main():
    store = lamina.JsonlStore("sessions")
    session = await lamina.open_session("mine", store=store, target="openai:gpt-5")
    await session.close()
    os.environ["LAMINA_HOOKS"] = "on"
    # Errors are kept, as a log or a debugger keeps them.
    errors = []
    for name in ("mine", "new"):
        try:
            await lamina.open_session(name, store=store, target="openai:gpt-5")
        except lamina.LaminaError as error:
            errors.append(error)
    print(",".join(error.code for error in errors))
    print(",".join(await store.sessions()))
    os.environ["LAMINA_HOOKS"] = "off"
    try:
        async with await lamina.open_session("mine", store=store) as session:
            print("open again")
    except lamina.LaminaError as error:
        print(error.code)

anyio.run(main)
"""


def test_a_broken_entry_point_does_not_hold_the_session(tmp_path: Path) -> None:
    install(tmp_path, "broken", None, "mine = broken:register")
    errors, _, opened = python(tmp_path, OPEN, LAMINA_HOOKS="off").splitlines()
    assert errors == "hook,hook"
    assert opened == "open again"


def test_a_broken_entry_point_does_not_leave_a_new_session_behind(tmp_path: Path) -> None:
    install(tmp_path, "broken", None, "mine = broken:register")
    _, sessions, _ = python(tmp_path, OPEN, LAMINA_HOOKS="off").splitlines()
    assert sessions == "mine"


SHOWN = """
    from lamina.core.values.patch import Display, Patch, SystemPartSet

    def register(hooks):
        @hooks.context(name="acme.tone")
        def hook(event):
            op = SystemPartSet(name="tone", text="Be brief.", reason="people are busy")
            display = Display(
                title="Tone set", summary="Answers are brief now.", markdown="See the *policy*."
            )
            return Patch(ops=(op,), display=display)
"""


def test_a_patch_of_a_package_is_shown_by_the_context_command(tmp_path: Path) -> None:
    install(tmp_path, "shown", SHOWN, "shown = shown:register")
    done = command(tmp_path, "context", "What now?", "--target", "openai:gpt-4o")
    assert (done.returncode, done.stderr) == (0, "")
    assert "### Tone set" in done.stdout
    assert "`acme.tone`" in done.stdout
    assert "See the *policy*." in done.stdout
    assert "Be brief." in done.stdout


def test_the_summary_of_a_patch_is_shown_by_the_context_command(tmp_path: Path) -> None:
    install(tmp_path, "shown", SHOWN, "shown = shown:register")
    done = command(tmp_path, "context", "What now?", "--target", "openai:gpt-4o")
    assert "Answers are brief now." in done.stdout


def test_the_context_command_says_in_one_line_that_a_package_is_broken(tmp_path: Path) -> None:
    install(tmp_path, "broken", None, "mine = broken:register")
    done = command(tmp_path, "context", "What now?", "--target", "openai:gpt-4o")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: hook 'broken:register of broken': cannot be loaded: ")
    assert done.stderr.count("\n") == 1
    done = command(tmp_path, "context", "Q", "--target", "openai:gpt-4o", LAMINA_HOOKS="off")
    assert done.returncode == 0


def test_importing_lamina_loads_no_package_of_hooks(tmp_path: Path) -> None:
    install(tmp_path, "eager", "1 / 0", "mine = eager:register")
    assert python(tmp_path, "import lamina, lamina.apps.wiring; print('fine')") == "fine"

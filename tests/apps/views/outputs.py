"""What commands print and what `lamina rpc` answers, as digests: to the byte, key by key.

`python -m tests.apps.views.outputs --check` compares all, `--write` writes them anew, `--show NAME`
prints one.
"""

import argparse
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
from msgspec.structs import replace
from tests.adapters.agents.files import write
from tests.apps.cli.inside import lamina
from tests.apps.cli.questions import Desk
from tests.apps.cli.rpc_client import serving
from tests.apps.cli.test_agent_commands import HARBOUR
from tests.apps.cli.test_search_commands import QUESTION, TOOLS
from tests.fakes.providers import calling, saying
from tests.fakes.selection import SelectorFake, guide
from tests.fakes.tools import tool
from tests.golden.journals import FOLDER, names

from lamina.engine.session.session import core_of

EXPECTED = Path(__file__).with_name("outputs.json")
# What is asked of every golden journal.
LOOKS = (
    "log", "log --json", "log --full", "log --tree", "log --dropped --full",
    "log --requests", "log --requests --json", "log --request 1", "log --request 1 --json",
    "log --request 2 --full", "log --request 2 --json", "log --request 2 --wire",
    "why", "why --json", "why 1", "verify", "verify --json",
    "export --format json", "export --format markdown",
)  # fmt: skip
# What is asked of a workspace with notes, agents and tools in it.
COMMANDS = (
    "sessions --json", "sessions", "sessions --all --json", "targets claude-sonnet", "models list",
    "models list --json", "agent list", "agent list --json", "agent show harbour",
    "agent show harbour --json", "agent check", "agent check --json",
    "agent usage --json", "agent usage nobody", "notes tags", "notes tags --json", "notes check",
    "notes check --json", "notes search pier --lexical", "notes search pier --lexical --json",
    "notes search nothing --lexical", "index tools.json --lexical", "index --stats --json",
    "search QUESTION --tools tools.json --lexical", "select QUESTION --tools tools.json --lexical",
    "search QUESTION --tools tools.json --lexical --json", "search QUESTION --tools twice.json",
    "select QUESTION --tools tools.json --lexical --json",
    "select tides --agent harbour --lexical --json", "search tides --lexical",
    "index --clear --yes",
    "import chat.md --session one --json", "import chat.md --session one", "import gone.md",
    "repair damaged-torn", "repair agent", "log nobody", "log da",
)  # fmt: skip
NOTES = {
    "pier.md": "---\ntags: [sea, Draft]\n---\n# Pier\n\nThe pier opens in May. [[gone]]\n",
    "tide.md": "---\ntags: [draft]\naliases: [flow]\n---\n# Tide\n\nHigh at noon. [[pier#No]]\n",
    "bad.md": "---\n: [\n---\n\n```dataview\nNOT A QUERY\n```\n",
    "chat.md": "# Chat\n\n**user**: When?\n\n**assistant**: In May.\n",
    "tools.json": json.dumps({"tools": TOOLS}),
    "twice.json": json.dumps({"tools": [TOOLS[0], TOOLS[0]]}),
}


def outputs(place: Path, journals: list[str]) -> Iterator[tuple[str, str]]:
    """Everything that is compared, by name; `place` is an empty folder to work in."""
    with _environment(place):
        yield from _journals(place, journals)
        yield from _workspace(place)
    yield from anyio.run(_rpc)
    yield from anyio.run(_answers)


@contextmanager
def _environment(place: Path) -> Iterator[None]:
    """A machine of its own: its home, its clock, its terminal, and no models."""
    before = dict(os.environ)
    own = {"LAMINA_DATA": str(place / "data"), "LAMINA_CACHE": str(place / "cache"), "TZ": "UTC",
           "HOME": str(place), "COLUMNS": "100", "NO_COLOR": "1"}  # fmt: skip
    for name in (*filter(lambda name: name.startswith("LAMINA_"), before), "XDG_DATA_HOME"):
        os.environ.pop(name, None)
    os.environ.update(own)
    time.tzset()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        time.tzset()


def _journals(place: Path, journals: list[str]) -> Iterator[tuple[str, str]]:
    for name in journals:
        for look in LOOKS:
            command, *options = look.split()
            path = str(FOLDER / "sessions" / f"{name}.jsonl")
            yield f"{name}: {look}", _run(place, command, path, *options)


def _workspace(place: Path) -> Iterator[tuple[str, str]]:
    work = write(place / "work", NOTES)
    write(work / ".lamina/agents/harbour", HARBOUR)
    write(work / ".lamina/agents/odd", {"agent.yaml": "model: x", "rules/a.md": "A"})
    lamina("sessions", cwd=work)
    from lamina.apps.wiring.folders import workspace_folder

    kept = workspace_folder(work)
    shutil.copytree(FOLDER, kept, dirs_exist_ok=True)
    for path in (*kept.glob("sessions/*"), *work.glob("*.*")):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    for command in COMMANDS:
        words = [QUESTION if word == "QUESTION" else word for word in command.split()]
        printed = _run(work, *words).replace(str(place), "PLACE").replace(kept.name, "KEPT")
        # How large an index is depends on the database.
        yield command, re.sub(r"\d+ kB|\"bytes\": \d+", "SIZE", printed)


def _run(folder: Path, *words: str) -> str:
    code, out, err = lamina(*words, cwd=folder)
    return f"{code}\n{out}\n{err}".replace(str(FOLDER), "FOLDER")


async def _rpc() -> list[tuple[str, str]]:
    results: list[tuple[str, Any]] = []
    scripts = (calling(("c1", "look", '{"at": "pier"}')), saying("In May."), saying("Again."))
    tools = [tool("look"), replace(tool("wipe"), include="manual")]
    async with serving(*scripts, tools=tools, notes={"plan.md": "In May."}) as client:
        assert client.runner is not None
        core_of(client.runner.session).turns.tools.selector = SelectorFake(
            guide("rule", "style"),
            guide("reference", "tides", "agent", description="High. " * 30),
        )
        for method, params in (
            ("get_context", {"full": True}),
            ("items", {}),
            ("settings", {}),
            ("prompt", {"text": "When?", "attach": ["plan.md", "gone.md"]}),
            ("get_context", {"full": True}),
            ("update_settings", {"window": 5_000, "guide_search": "normal"}),
            ("update_settings", {"guide_search": {"top": 1}}),
            ("prompt", {"text": "And then?"}),
            ("get_context", {}),
            ("tree", {}),
            ("items", {}),
        ):
            number = await client.send(method, **params)
            results.append((f"rpc {len(results)} {method}", await client.answer(number)))
    return [(name, json.dumps(result)) for name, result in results]


async def _answers() -> list[tuple[str, str]]:
    desk = Desk(saying("In May."), saying("Again."), notes={"plan.md": "In May."})
    results = []
    for number in (1, 2):
        code = await desk.ask("When?", attach=("plan.md", "gone.md"), as_json=True)
        results.append((f"ask {number} --json", f"{code}\n{desk.said}\n{desk.err}"))
    return results


def digest(output: str) -> str:
    return sha256(output.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def read_expected() -> dict[str, str]:
    expected: dict[str, str] = json.loads(EXPECTED.read_text("utf-8"))
    return expected


def main() -> None:
    parser = argparse.ArgumentParser()
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--check", action="store_true")
    choice.add_argument("--write", action="store_true")
    choice.add_argument("--show", metavar="NAME")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = dict(outputs(Path(folder), names()))
    digests = {name: digest(output) for name, output in found.items()}
    if chosen.show:
        print(found[chosen.show])  # noqa: T201
    elif chosen.write:
        EXPECTED.write_text(json.dumps(digests, indent=0) + "\n", "utf-8")
    elif differ := [name for name, known in read_expected().items() if digests.get(name) != known]:
        raise SystemExit(f"not as they were: {', '.join(differ)}")


if __name__ == "__main__":
    main()

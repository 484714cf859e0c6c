"""What the functions that open sessions take: a word that nobody knows is an error, for a type
checker and at run time."""

import inspect
import re
import subprocess
import sys
import typing
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from tests.docs.test_readme import code_blocks
from tests.public.faces import ROOT

import lamina
from lamina import Settings
from lamina.apps.wiring.opening_arguments import OpeningArguments
from lamina.types import AgentOpening, SessionOpening

OPENERS: dict[str, Any] = {
    f"{door.__name__}.{name}": getattr(door, name)
    for door in (lamina, lamina.sync)
    for name in ("open_session", "open_chat", "open_qa", "open_plan", "open_agent")
}
SNIPPET = """
import lamina
import lamina.sync
from lamina import Settings
from lamina.types import SearchSettings


async def main() -> None:
    await lamina.open_session(sytem="x")  # wrong
    await lamina.open_chat(sytem="x")  # wrong
    await lamina.open_qa(sytem="x")  # wrong
    await lamina.open_plan(sytem="x")  # wrong
    await lamina.open_agent(sytem="x")  # wrong
    await lamina.open_agent(system=1)  # wrong
    await lamina.open_chat(mcp="mcp.json")  # wrong
    lamina.sync.open_session(sytem="x")  # wrong
    lamina.sync.open_agent(sytem="x")  # wrong
    await lamina.open_session("a", system="x", memory=None, trust="digest")
    await lamina.open_chat(system=[("persona", "x")], workspace="notes", target="openai:gpt-5")
    await lamina.open_qa(scope=lamina.Scope(folders=("a",)), top=3, store=lamina.MemoryStore())
    await lamina.open_plan(tools=[print], system="x", hooks=lamina.Hooks())
    await lamina.open_agent(tools=[print], mcp="mcp.json", files=True, agent="me", project="it")
    Settings(guide_search="conservative", tool_search={"top_n": 3}, window=4_000)
    Settings(guide_search=SearchSettings(top_k=3)).guide_search.top_k + 1
    Settings(guide_search="loud")  # wrong
    Settings(tool_search=3)  # wrong
    Settings(windw=3)  # wrong
    async with await lamina.open_session() as session:
        await session.update_settings(windw=3)  # wrong
        await session.update_settings(history="some")  # wrong
        await session.update_settings(window=4_000, guide_search="conservative")
    with lamina.sync.open_session() as waiting:
        waiting.update_settings(windw=3)  # wrong
        waiting.update_settings(history="some")  # wrong
        waiting.update_settings(window=4_000, guide_search="conservative").window
    lamina.opem_session  # wrong
    lamina.types.Mesage  # wrong
"""


def test_a_type_checker_finds_what_is_misspelt_and_nothing_else(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET, "utf-8")
    problems = check_types(snippet)
    found = {int(line) for line in re.findall(r"snippet\.py:(\d+): error", problems)}
    lines = SNIPPET.splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    assert found == wrong, problems


def test_a_type_checker_finds_nothing_in_what_the_pages_show(tmp_path: Path) -> None:
    snippets = []
    for number, code in enumerate(code_blocks("python")):
        snippets.append(tmp_path / f"shown_{number}.py")
        snippets[-1].write_text(code, "utf-8")
    assert len(snippets) > 5
    # Examples need not say the types of their own functions.
    assert check_types(*snippets, options=("--allow-untyped-defs",)) == ""


def check_types(*files: Path, options: Sequence[str] = ()) -> str:
    """What mypy has to say, with the project's own settings and cache, as the package is checked
    anyway."""
    command = [sys.executable, "-m", "mypy", "--no-pretty", "--no-error-summary", *options]
    done = subprocess.run(
        [*command, *map(str, files)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", OPENERS)
def test_a_misspelt_word_is_refused_with_the_one_that_is_meant(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    function = name.rsplit(".", 1)[1]
    problem = f"^{function}\\(\\) got an unexpected keyword argument 'sytem'; did you mean 'system'"
    words = {"sytem": "x", "agent": "nobody", "workspace": tmp_path / "nowhere"}

    async def body() -> None:
        await OPENERS[name](**words)

    with pytest.raises(TypeError, match=problem):
        anyio.run(body)
    assert list(tmp_path.iterdir()) == []


async def _refused(words: dict[str, Any]) -> str:
    with pytest.raises(TypeError) as caught:
        await lamina.open_session(**words)
    return str(caught.value)


@pytest.mark.anyio
async def test_a_word_that_is_like_no_other_is_refused_with_all_that_there_are() -> None:
    problem = await _refused({"xyzzy": 1})
    assert problem.startswith("open_session() got an unexpected keyword argument 'xyzzy'; it takes")
    assert all(word in problem for word in SessionOpening.__annotations__)


@pytest.mark.anyio
async def test_words_of_a_runner_are_none_of_a_session() -> None:
    assert "did you mean" not in await _refused({"mcp": "mcp.json"})


@pytest.mark.parametrize("name", OPENERS)
def test_help_shows_every_word_with_its_default(name: str) -> None:
    parameters = inspect.signature(OPENERS[name]).parameters
    words = SessionOpening if name.split("_")[-1] in ("session", "chat", "qa") else AgentOpening
    assert set(words.__annotations__) <= set(parameters)
    for parameter in parameters.values():
        assert parameter.kind is not inspect.Parameter.VAR_KEYWORD
        assert parameter.default is not inspect.Parameter.empty
    assert (parameters["system"].default, parameters["trust"].default) == ("", False)


def test_the_record_of_what_was_given_has_the_words_and_their_types() -> None:
    assert typing.get_type_hints(OpeningArguments) == typing.get_type_hints(SessionOpening)


@pytest.mark.parametrize("session", [lamina.Session, lamina.sync.Session])
def test_whatever_is_a_setting_can_be_changed_by_that_name_with_that_type(session: Any) -> None:
    _, *changes = inspect.signature(session.update_settings).parameters.values()
    assert {change.name: change.annotation for change in changes} == typing.get_type_hints(Settings)
    assert {(change.kind, change.default) for change in changes} == {
        (inspect.Parameter.KEYWORD_ONLY, msgspec.UNSET)
    }


def test_every_word_is_explained_where_it_is_taken() -> None:
    text = (inspect.getdoc(lamina.open_session) or "").split("\nArgs:\n")[1].split("\nRaises:")[0]
    told = [word for words in re.findall(r"^    ([a-z_, ]+): ", text, re.MULTILINE)
            for word in words.split(", ")]  # fmt: skip
    assert sorted(told) == sorted([*SessionOpening.__annotations__, "session"])


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"

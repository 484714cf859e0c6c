"""What counts of what a caller gave and what an agent brings: one row per word."""

from pathlib import Path
from typing import Any

import pytest
from tests.adapters.agents.files import write

from lamina.apps.wiring.agent_defaults import read_agent_defaults
from lamina.apps.wiring.opening_arguments import OpeningArguments
from lamina.apps.wiring.session_contents import PRECEDENCE, SessionContents, merge_contents
from lamina.core.values.envelope import Options
from lamina.core.values.settings import Settings

pytestmark = pytest.mark.anyio
YAML = """
name: pilot
model: local:smollm2-135m
settings:
  window: 9000
  ask_before_tools: always
  temperature: 0.5
"""
FILES = {
    "agent.yaml": YAML,
    "persona.md": "I am the pilot.",
    "memory.md": "The tide turns at nine.",
    "projects/pier/prompt.md": "Build the pier.",
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("LAMINA_TARGET", raising=False)
    return write(tmp_path / "pilot", FILES)


async def merged(place: Path | None, **words: Any) -> SessionContents:
    arguments = OpeningArguments(**words)
    if place is None:
        return merge_contents(arguments, None)
    return merge_contents(
        arguments, await read_agent_defaults(place, None, project=arguments.project)
    )


def texts(contents: SessionContents) -> dict[str, str]:
    return {part.name: part.text for part in contents.system}


async def test_without_an_agent_everything_is_as_it_was_given() -> None:
    contents = await merged(None, system="Be brief.", project="P", memory="M")
    assert list(texts(contents)) == ["system", "project", "memory"]
    assert (contents.settings, contents.options, contents.tools, contents.always) == (None,) * 4
    assert contents.first_settings == Settings()
    assert contents.first_target == "local:smollm2-135m"


async def test_an_agent_brings_what_was_not_given(place: Path) -> None:
    contents = await merged(place)
    assert texts(contents)["persona"] == "I am the pilot."
    assert "The tide turns at nine." in texts(contents)["memory"]
    assert contents.settings == Settings(window=9_000, ask_before_tools="always")
    assert contents.options == Options(temperature=0.5)
    assert contents.first_target == "local:smollm2-135m"


async def test_what_was_given_counts_before_what_an_agent_brings(place: Path) -> None:
    contents = await merged(
        place, system="Be brief.", memory="It is Sunday.", options=Options(top_p=0.5),
        settings=Settings(window=5_000), target="openai:gpt-4o",
    )  # fmt: skip
    assert texts(contents)["system"] == "Be brief."
    assert "persona" not in texts(contents)
    assert "It is Sunday." in texts(contents)["memory"]
    assert contents.options == Options(top_p=0.5)
    # One word on the window undoes nothing that the agent is strict about.
    assert contents.settings == Settings(window=5_000, ask_before_tools="always")
    assert contents.first_target == "openai:gpt-4o"


async def test_an_empty_memory_that_was_given_is_none(place: Path) -> None:
    assert "memory" not in texts(await merged(place, memory=""))


async def test_the_name_of_a_project_stands_for_its_text(place: Path) -> None:
    assert "Build the pier." in texts(await merged(place, project="pier"))["project"]


@pytest.mark.parametrize(
    ("words", "target"),
    [
        ({"target": "openai:gpt-4o", "settings": Settings(target="openai:gpt-5")}, "openai:gpt-4o"),
        ({"settings": Settings(target="openai:gpt-5")}, "openai:gpt-5"),
    ],
)
async def test_a_target_that_is_named_outright_comes_first(
    place: Path, words: dict[str, Any], target: str
) -> None:
    assert (await merged(place, **words)).first_target == target
    assert OpeningArguments(**words).named_target == target


def test_every_row_of_the_table_is_a_word_that_can_be_given() -> None:
    assert set(PRECEDENCE) < set(OpeningArguments.__struct_fields__)

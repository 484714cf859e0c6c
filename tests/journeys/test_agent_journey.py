"""An agent on disk, with its servers, over several openings: as an application meets it."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.agents.files import write
from tests.fakes.book import SMALL, FakeBook
from tests.fakes.index import IndexFake
from tests.fakes.providers import ProviderFake, ProvidersFake, calling, saying
from tests.fakes.replies import openai_reply
from tests.fakes.store import FakeStore

import lamina
from lamina.core.audit.verification import verify
from lamina.engine.runners.runner import AgentRunner
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import UsageError

ODD = str(Path(__file__).parents[1] / "adapters" / "tools" / "odd_server.py")
TONE = "---\nname: tone\ndescription: How answers sound\ninclude: always\n---\nBe brief.\n"
BOATS = "---\nname: boats\ndescription: What boats carry\ninclude: agent\n---\nBoats carry fish.\n"
FILES = {
    "agent.yaml": f"name: pilot\nmodel: {SMALL.name}\n",
    "persona.md": "You are a pilot.",
    "rules/tone.md": TONE,
    "references/boats.md": BOATS,
}
ALIKE = {"boat": {"reference:boats": 0.8}, "echo": {"tool:odd/echo": 0.8}}


class House:
    """One folder, one store, one model."""

    def __init__(self, folder: Path, files: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.agent = write(folder / "pilot", FILES | (files or {}))
        self.store, self.book = FakeStore(), FakeBook()
        self.provider = ProviderFake()
        self.index = IndexFake(ALIKE)

    @property
    def given(self) -> dict[str, Any]:
        return {
            "store": self.store, "book": self.book, "index": self.index, "workspace": self.folder,
            "trust": True,
        }  # fmt: skip

    async def open(self, **given: Any) -> Session:
        return await lamina.open_session("talk", **self.given, **given)

    async def run(self, **given: Any) -> AgentRunner:
        providers = ProvidersFake(self.provider)
        return await lamina.open_agent("talk", providers=providers, **self.given, **given)

    async def require_sound(self) -> None:
        verdict = verify(await self.store.read("talk"), self.book)
        assert verdict.sound, verdict


async def ask(session: Session, text: str) -> Turn:
    turn = await session.prepare(text)
    return await turn.commit(openai_reply("Done."))


def items(turn: Turn) -> dict[str, str]:
    return {str(item.item): item.include for item in turn.context.items}


def left(turn: Turn) -> list[tuple[str, str]]:
    return [(omission.what, omission.reason) for omission in turn.context.left_out]


def servers(**terms: Any) -> dict[str, str]:
    entry = {"command": sys.executable, "args": [ODD], **terms}
    return {"mcp.json": json.dumps({"mcpServers": {"odd": entry}})}


@pytest.mark.parametrize(
    ("terms", "include", "permission"),
    [
        ({}, "always", "required"),
        ({"include": "agent", "permission": "free"}, "agent", "free"),
        ({"include": "agent", "tools": {"echo": {"include": "manual"}}}, "manual", "required"),
        (
            {"permission": "free", "tools": {"echo": {"permission": "required"}}},
            "always", "required",
        ),
        ({"tools": {"echo": {"permission": "free", "include": "agent"}}}, "agent", "free"),
        ({"tools": {"big": {"permission": "free", "include": "agent"}}}, "always", "required"),
        (
            {"serverToolDefaults": {"include": "manual", "permissionRequired": False}},
            "manual", "free",
        ),
    ],
)  # fmt: skip
def test_a_tool_says_before_its_server_and_its_server_before_the_default(
    tmp_path: Path, terms: dict[str, Any], include: str, permission: str
) -> None:
    async def body() -> None:
        house = House(tmp_path, servers(**terms))
        async with await house.run(agent=house.agent) as runner:
            (echo,) = [t for t in (await runner.toolset()).tools if t.id == "tool:odd/echo"]
            assert (echo.include, echo.permission) == (include, permission)
            await runner.run("Hello")
            listed = house.provider.bodies[-1].get("tools", ())
            offered = [each["function"]["name"] for each in listed]
            # What search may choose is a small pool, which is offered whole.
            assert ("odd__echo" in offered) == (include != "manual")

    anyio.run(body)


def test_a_server_of_an_agent_serves_what_is_chosen_and_what_is_described(tmp_path: Path) -> None:
    async def body() -> None:
        terms = {"include": "manual", "permission": "free", "tools": {"echo": {"include": "agent"}}}
        house = House(tmp_path, servers(**terms))
        async with await house.run(agent=house.agent) as runner:
            await runner.session.update_settings(tool_joins=0, whole_pool_tokens=0)
            await runner.run("Hello")
            # As the model reads it: its name in the block, or the one it is called by.
            for number, name in enumerate(("odd__echo", "odd/echo")):
                house.provider.scripts += [
                    calling((f"c{number}", "use_tool", {"name": name, "arguments": {"a": 1}})),
                    saying("It said so."),
                ]
                answer = await runner.run("Let it echo.")
                assert answer.text == "It said so."
                results = [m for m in house.provider.bodies[-1]["messages"] if m["role"] == "tool"]
                assert results[-1]["content"] == '{"a": 1}'
        await house.require_sound()

    anyio.run(body)


def test_a_session_goes_on_with_its_agent_without_naming_it(tmp_path: Path) -> None:
    async def body() -> None:
        house = House(tmp_path, servers(include="agent", permission="free"))
        session = await house.open(agent=house.agent)
        assert items(await ask(session, "Where is the boat?")) == {
            "reference:boats": "agent", "rule:tone": "always",
        }  # fmt: skip
        await session.close()
        async with await house.run() as runner:
            answer = await runner.run("Let the boat echo.")
            assert answer.turn is not None
            assert items(answer.turn) == {"reference:boats": "agent", "rule:tone": "always"}
            offered = [tool.item for tool in answer.turn.context.tools]
            own = ["tool:/use_tool", "tool:/find_tools", "tool:/read_result"]
            assert offered == [*own, "tool:odd/echo"]
        await house.require_sound()

    anyio.run(body)


def test_what_an_agent_has_no_more_leaves_the_system_prompt_when_it_is_named_again(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        house = House(tmp_path, {"memory.md": "The boat is called Ada."})
        async with await house.open(agent=house.agent) as session:
            await ask(session, "Hello?")
            assert "memory" in {part.name for part in session.envelope.system}
        (house.agent / "memory.md").unlink()
        async with await house.open(agent=house.agent) as session:
            turn = await ask(session, "Hello again?")
            assert "memory" not in {part.name for part in session.envelope.system}
            assert turn.context.agreement.broke is not None
            assert "no memory came with the agent this time" in turn.context.agreement.broke.reason
        await house.require_sound()

    anyio.run(body)


def test_files_that_are_edited_deleted_and_renamed_between_questions_are_seen(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        house = House(tmp_path)
        session = await house.open(agent=house.agent)
        await ask(session, "Where is the boat?")
        write(house.agent, {"rules/tone.md": TONE.replace("brief", "kind")})
        turn = await ask(session, "And now?")
        assert "Be kind." in str(turn.request())
        assert "replaces the one above" in str(turn.request()["messages"][-1])
        assert turn.context.agreement.broke is None
        (house.agent / "rules" / "tone.md").unlink()
        write(house.agent, {"rules/voice.md": TONE.replace("tone", "voice")})
        turn = await ask(session, "And now?")
        # What is new waits for a person.
        assert items(turn) == {"reference:boats": "agent"}
        assert ("rule:tone", "missing") in left(turn)
        await session.adopt_agent()
        turn = await ask(session, "And now?")
        assert items(turn)["rule:voice"] == "always"
        assert left(turn) == []
        with pytest.raises(UsageError, match="there is no rule 'tone'"):
            await session.add("rule:tone")
        await session.close()
        await house.require_sound()

    anyio.run(body)


def test_an_agent_whose_folder_vanishes_costs_its_items_and_nothing_else(tmp_path: Path) -> None:
    async def body() -> None:
        house = House(tmp_path)
        session = await house.open(agent=house.agent)
        await session.add("ref:boats")
        await ask(session, "Q1")
        shutil.move(house.agent, tmp_path / "elsewhere")
        turn = await ask(session, "Q2")
        assert items(turn) == {}
        assert sorted(left(turn)) == [("reference:boats", "missing"), ("rule:tone", "missing")]
        assert any("the agent is gone" in warning for warning in turn.context.warnings)
        await session.close()
        # Also when it was gone before the session was opened.
        session = await house.open()
        turn = await ask(session, "Q3")
        assert (items(turn), left(turn)) == ({}, [("reference:boats", "missing")])
        assert len(turn.context.warnings) == 1
        shutil.move(tmp_path / "elsewhere", house.agent)
        turn = await ask(session, "Q4")
        assert items(turn) == {"rule:tone": "always", "reference:boats": "manual"}
        assert left(turn) == []
        await session.close()
        async with await house.run() as runner:
            assert (await runner.run("Q5")).ending == "answered"
        await house.require_sound()

    anyio.run(body)


def test_a_rule_with_globs_joins_for_a_file_of_the_workspace(tmp_path: Path) -> None:
    async def body() -> None:
        python = '---\nname: py\ninclude: manual\nglobs: ["src/**/*.py"]\n---\nUse type hints.\n'
        house = House(tmp_path, {"rules/py.md": python})
        write(tmp_path, {"src/deep/a.py": "x = 1\n"})
        session = await house.open(agent=house.agent)
        turn = await session.prepare("What is this?", attach=["src/deep/a.py"])
        assert items(turn) == {
            "file:src/deep/a.py": "manual", "rule:py": "agent", "rule:tone": "always",
        }  # fmt: skip
        (rule,) = [item for item in turn.context.items if item.item == "rule:py"]
        assert (rule.origin, rule.source) == ("glob", "src/deep/a.py")
        assert rule.reason == "applies to src/deep/a.py"
        await session.close()

    anyio.run(body)


def test_an_agent_that_is_not_there_is_no_session(tmp_path: Path) -> None:
    async def body() -> None:
        house = House(tmp_path)
        with pytest.raises(UsageError):
            await house.open(agent=tmp_path / "nowhere")
        assert not await house.store.has("talk")

    anyio.run(body)

"""What changed in an agent's files since a session began: shown by commands, and taken over."""

import json
import re
from pathlib import Path

import anyio
import pytest
from tests.adapters.agents.files import write
from tests.apps.cli.chats import talk
from tests.apps.cli.inside import lamina, output
from tests.fakes.replies import openai_reply

from lamina import open_session
from lamina.apps.wiring import default_store


def rule(name: str, include: str) -> dict[str, str]:
    text = f"---\nname: {name}\ninclude: {include}\n---\nBe {name}.\n"
    return {f".lamina/agents/pilot/rules/{name}.md": text}


@pytest.fixture
def changed(notes: Path) -> Path:
    """A session whose agent has another rule by now."""

    async def body() -> None:
        files = {".lamina/agents/pilot/agent.yaml": "name: pilot\n"}
        write(notes, files | rule("brief", "always"))
        session = await open_session(
            "pier", agent="pilot", workspace=notes, store=default_store(notes),
            target="openai:gpt-4o",
        )  # fmt: skip
        async with session:
            turn = await session.prepare("Hello")
            await turn.commit(openai_reply("Hi."))
        write(notes, rule("brief", "manual") | rule("kind", "always"))

    anyio.run(body)
    return notes


def test_why_shows_what_differs_and_sessions_adopt_takes_it_over(changed: Path) -> None:
    shown = output("why", "pier", cwd=changed)
    assert "rule:brief is manual in the agent's files, and always in this session" in shown
    assert "rule:kind is new in the agent's files (include: always)" in shown
    assert "lamina sessions adopt pier" in shown
    machine = json.loads(output("why", "pier", "--json", cwd=changed))["agent_changes"]
    assert [(row["item"], row["here"], row["now"]) for row in machine] == [
        ("rule:brief", "always", "manual"),
        ("rule:kind", None, "always"),
    ]
    taken = json.loads(output("sessions", "adopt", "pier", "--json", cwd=changed))
    assert taken["changes"] == machine
    assert "Nothing to apply" in output("sessions", "adopt", "pier", cwd=changed)
    assert json.loads(output("why", "pier", "--json", cwd=changed))["agent_changes"] == []
    assert "adopt" in output("log", "pier", cwd=changed)


def test_a_session_that_is_not_there_cannot_take_anything_over(notes: Path) -> None:
    code, _, err = lamina("sessions", "adopt", "nobody", cwd=notes)
    assert code == 1
    assert "no session 'nobody'" in err


def test_items_of_a_chat_shows_what_differs_and_takes_it_over(changed: Path) -> None:
    talked = talk(changed, "/items", "/items adopt", "/items adopt", "/items away", session="pier")
    before, after = talked.out.split("/why shows what was used")[:2]
    assert re.search(r"^rule:brief +always in", before, re.M)
    assert "! rule:kind is new in the agent's files (include: always)" in before
    assert "/items adopt applies" in before
    assert re.search(r"^rule:kind +always in", after, re.M)
    assert "is new" not in after
    assert "applied: rule:kind is new in the agent's files" in talked.err
    assert "the session matches the agent's files" in talked.err
    assert "usage: /items [adopt]" in talked.err

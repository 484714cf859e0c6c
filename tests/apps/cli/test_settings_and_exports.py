"""Settings of answers from the chat and over RPC, agents' defaults, and requests exported."""

import json
from pathlib import Path

from tests.adapters.agents.files import write
from tests.apps.cli.chats import answer, talk
from tests.apps.cli.inside import error, lamina, output
from tests.apps.cli.rpc_client import serving
from tests.fakes.providers import ProviderFake, calling, saying
from tests.fakes.sessions import run
from tests.fakes.tools import tool


def test_a_temperature_is_set_shown_and_taken_away_in_a_chat(notes: Path) -> None:
    provider = ProviderFake(answer("A1"), answer("A2"), answer("A3"))
    acts = (
        "/set temperature 0.25", "Q1", "/context", "/settings", "/set temperature none", "Q2",
        "/set max_turns 3", "/settings max_requests 3",
    )  # fmt: skip
    talked = talk(notes, *acts, provider=provider)
    first, second = provider.bodies
    assert first["temperature"] == 0.25
    # The embedded model has a temperature of its own, if nobody names one.
    assert second["temperature"] != 0.25
    assert "options: temperature 0.25" in talked.out
    assert "did you mean 'max_requests'?" in talked.err
    assert talked.session.settings.max_requests == 3


def test_a_program_sets_how_answers_are_made() -> None:
    async def body() -> None:
        scripts = calling(("a", "find", {})), saying("May.")
        async with serving(*scripts, tools=[tool("find")]) as client:
            settings = await client.call("update_settings", temperature=0.5, max_requests=1)
            assert (settings["temperature"], settings["max_requests"]) == (0.5, 1)
            result = await client.call("prompt", text="When?")
            assert result["ending"] == "limit"
            assert client.provider.bodies[0]["temperature"] == 0.5
            context = await client.call("get_context")
            assert context["options"] == {"temperature": 0.5}
            settings = await client.call("update_settings", temperature=None, max_requests=None)
            assert settings["temperature"] is None
            assert (await client.call("resume"))["answer"] == "May."
            refused = await client.refusal("update_settings", top_p=3)
            assert "top_p" in refused["message"]

    run(body())


def test_a_default_of_an_agent_is_changed_by_name(tmp_path: Path) -> None:
    write(tmp_path, {".lamina/agents/harbour/agent.yaml": "name: harbour  # ours\n"})
    said = output("agent", "set", "harbour", "temperature", "0.3", cwd=tmp_path)
    assert "temperature is 0.3 in sessions opened from now on" in said
    file = tmp_path / ".lamina/agents/harbour/agent.yaml"
    assert file.read_text("utf-8") == "name: harbour  # ours\nsettings:\n  temperature: 0.3\n"
    # Who answers needs the person's trust, where a folder says so.
    _, said, _ = lamina("agent", "set", "harbour", "model", "openai:gpt-5", cwd=tmp_path)
    assert "is not trusted" in said
    problem = error("agent", "set", "harbour", "temperature", "warm", cwd=tmp_path)
    assert "must be a number or none" in problem
    assert "there is no agent" in error("agent", "set", "x", "window", "5", cwd=tmp_path)


def test_requests_are_exported_a_line_each(notes: Path) -> None:
    talked = talk(notes, "Q1", "Q2", replies=[answer("A1"), answer("A2")])
    session = talked.session.id
    text = output("export", session, "--format", "requests", cwd=notes)
    rows = [json.loads(line) for line in text.splitlines()]
    assert [row["number"] for row in rows] == [1, 2]
    assert [row["cost"] for row in rows] == [0.0, 0.0]
    said = output("export", session, "-f", "requests", "-o", "out/", cwd=notes)
    assert said.startswith(f"out/{session}.requests.jsonl: ")
    assert (notes / f"out/{session}.requests.jsonl").read_text("utf-8") == text

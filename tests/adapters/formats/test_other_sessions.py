"""Sessions of OpenCode and of Copilot's CLI, and going on from any import."""

import json

import pytest
from tests.adapters.formats.reader import conversation, find, state_of, take, whats
from tests.adapters.formats.samples import COPILOT, OPENCODE, PNG, SAMPLES
from tests.fakes.book import SMALL
from tests.fakes.sessions import World, messages_of, run, talk

from lamina.core.values.entry import CustomEntry, InfoEntry, MessageEntry, ModelEntry, SessionEntry
from lamina.core.values.usage import Usage


def test_an_opencode_export_is_taken_step_by_step() -> None:
    session = take(OPENCODE)
    assert session.problems == ()
    assert conversation(session) == [
        ("user", "Tidy"), ("assistant", 'bash{"c":"ls"} bash{"c":"rm"}'),
        ("tool", "a The call ended with the status 'running'."), ("assistant", "Tidy now."),
    ]  # fmt: skip
    assert session.blobs == (PNG,)
    last = find(session, MessageEntry)[-1]
    assert last.usage == Usage(input=35, cached=10, written=20, output=7)
    assert last.at == 1764583202.0
    assert find(session, InfoEntry)[0].name == "Tidy up"
    assert find(session, ModelEntry)[0].target == "anthropic:claude-x"


def test_an_opencode_export_on_one_line_is_the_same() -> None:
    assert take(json.dumps(json.loads(OPENCODE)).encode()).entries == take(OPENCODE).entries


def test_an_opencode_message_of_another_role_is_kept() -> None:
    value = json.loads(OPENCODE)
    value["messages"].insert(1, {"info": {"role": "ghost"}, "parts": [1]})
    value["messages"].append("boo")
    session = take(json.dumps(value).encode())
    assert whats(session) == ["unknown_role", "unknown_role"]
    assert [entry.data for entry in find(session, CustomEntry)] == [
        {"info": {"role": "ghost"}, "parts": [1]}, "boo",
    ]  # fmt: skip


def test_a_copilot_session_is_taken_as_far_as_it_is_certain() -> None:
    session = take(COPILOT)
    assert session.problems == ()
    assert conversation(session) == [
        ("user", "Hi"), ("assistant", 'view{"path":"a"}'), ("tool", "alpha"),
        ("assistant", "It says alpha."),
    ]  # fmt: skip
    header = session.entries[0]
    assert isinstance(header, SessionEntry)
    assert (header.workspace, header.extra["copilot_cli"]["producer"]) == ("/w", "copilot-agent")
    assert find(session, ModelEntry)[0].target == "compatible:claude-sonnet-4.5"
    assert [e.kind for e in find(session, CustomEntry)] == ["copilot_cli.tool.execution_start"]


@pytest.mark.parametrize("name", SAMPLES)
def test_an_imported_session_goes_on(name: str) -> None:
    source = take(SAMPLES[name])

    async def body() -> None:
        world = World()
        await world.store.append("s", source.entries)
        for blob in source.blobs:
            await world.store.put_blob(blob)
        session = await world.open("s")
        assert len(session.envelope.cached) == len(state_of(source).envelope.cached)
        turn = await talk(session, "And now?", target=SMALL.name)
        assert [segment.text for segment in turn.prompt.asked] == ["And now?"]
        again = await world.open("s")
        assert again.envelope.cached[-1].text == "A"

    run(body())


@pytest.mark.parametrize("name", ["pi_v1", "codex", "request_log", "copilot_cli"])
def test_an_imported_session_can_be_sent(name: str) -> None:
    source = take(SAMPLES[name])

    async def body() -> None:
        world = World()
        await world.store.append("s", source.entries)
        session = await world.open("s")
        turn = await session.prepare("And now?", target=SMALL.name)
        wire_messages = [wire for wire in messages_of(turn) if wire["role"] != "system"]
        assert wire_messages[-1] == {"role": "user", "content": "And now?"}
        assert len(wire_messages) == len(conversation(source)) + 1

    run(body())

"""`lamina rpc` over a folder of notes: what a program can attach, and answers with sources."""

import io
import json
import os
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import anyio
import pytest
from rich.console import Console
from tests.fakes.providers import ProviderFake, ProvidersFake, Step, calling, saying

import lamina
from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.rpc.jsonrpc import OverlongLine
from lamina.apps.cli.rpc.rpc_server import RpcServer
from lamina.apps.views.approvers import PendingApprovals
from lamina.apps.views.session_options import PromptOptions
from lamina.engine.runners.runner import ChatRunner


@pytest.fixture
def vault(notes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_EMBED", "off")
    (notes / "sea").mkdir()
    (notes / "sea" / "log.md").write_text("# Log\n\nThe ferry sails at noon. #ferry\n", "utf-8")
    return notes


async def serve(
    runner: ChatRunner, *calls: tuple[str, dict[str, Any]], prompt: PromptOptions | None = None
) -> list[Any]:
    """The answers to calls, one after the other."""
    source, sink = os.pipe()
    answers: dict[int, Any] = {}
    turn = [anyio.Event() for _ in calls]
    notices = ConsoleNotices(Console(file=io.StringIO()))

    async def lines() -> AsyncIterator[bytes | OverlongLine]:
        for number, (method, params) in enumerate(calls):
            call = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            yield json.dumps(call).encode()
            await turn[number].wait()

    async def listen() -> None:
        async with anyio.wrap_file(os.fdopen(source, "rb")) as messages:
            async for line in messages:
                message = json.loads(line)
                if "id" in message:
                    answers[message["id"]] = message.get("result", message.get("error"))
                    turn[message["id"]].set()

    async with runner, anyio.create_task_group() as group:
        group.start_soon(listen)
        server = RpcServer(
            runner, PendingApprovals(), sink, prompt=prompt or PromptOptions(), notices=notices
        )
        await server.run(lines())
        os.close(sink)
    return [answers[number] for number in range(len(calls))]


def opened(vault: Path, *scripts: Iterable[Step]) -> tuple[ProviderFake, dict[str, Any]]:
    provider = ProviderFake(*scripts)
    return provider, {
        "workspace": vault, "store": lamina.MemoryStore(), "target": "openai:gpt-4o",
        "providers": ProvidersFake(provider),
    }  # fmt: skip


def test_an_answer_from_notes_comes_with_its_sources(vault: Path) -> None:
    async def body() -> None:
        _, given = opened(vault, saying("At noon [^1]."))
        (outcome,) = await serve(
            await lamina.open_qa(**given), ("prompt", {"text": "When does the ferry sail?"})
        )
        assert outcome["answer"] == "At noon [^1]."
        (source,) = outcome["sources"]
        assert (source["number"], source["link"]) == (1, "sea/log.md#Log")
        assert [each["path"] for each in outcome["found"]] == ["sea/log.md"]

    anyio.run(body)


def test_an_agent_that_searches_gives_its_sources(vault: Path) -> None:
    async def body() -> None:
        calls = calling(
            ("a", "localSearch", {"query": "pier"}), ("b", "localSearch", {"query": "ferry"})
        )
        _, given = opened(vault, calls, saying("At noon [^2]."))
        (outcome,) = await serve(
            await lamina.open_agent(**given, files=True), ("prompt", {"text": "When?"})
        )
        assert outcome["answer"] == "At noon [^1]."
        assert [(each["number"], each["path"]) for each in outcome["sources"]] == [
            (1, "sea/log.md")
        ]
        assert len(outcome["found"]) == 2

    anyio.run(body)


def test_whoever_answers_from_notes_runs_no_tools_and_takes_messages(vault: Path) -> None:
    async def body() -> None:
        provider, given = opened(vault, saying("At noon."))
        kept, decided, outcome = await serve(
            await lamina.open_qa(**given),
            ("send_message", {"text": "I am at the pier."}),
            ("decide", {"call_id": "c1", "decision": "deny"}),
            ("prompt", {"text": "When does the ferry sail?"}),
        )
        assert kept == {"running": False}
        assert decided["message"] == "this session answers from notes and runs no tools"
        assert outcome["answer"].startswith("At noon.")
        (body,) = provider.bodies
        assert body["messages"][-2]["content"] == "I am at the pier."

    anyio.run(body)


def test_a_program_adds_messages_and_applies_patches(vault: Path) -> None:
    async def body() -> None:
        provider, given = opened(vault, saying("Yes."))
        calm = {"op": "options_set", "scope": "cached", "options": {"maxTokens": 9},
                "invalidateCacheReason": "short answers"}  # fmt: skip
        tone = {"op": "system_part_set", "partName": "tone", "content": "Be brief.",
                "invalidateCacheReason": "asked for"}  # fmt: skip
        added, blank, one, several, wrong, _ = await serve(
            await lamina.open_chat(**given),
            ("add_message", {"text": "The build is red.", "custom_type": "ci", "shown": False}),
            ("add_message", {"text": " "}),
            ("apply", calm),
            ("apply", {"transformerName": "mood", "patch": [tone]}),
            ("apply", {**tone, "invalidateCacheReason": " "}),
            ("prompt", {"text": "Is it?"}),
        )
        assert added == {"messages": 1}
        assert "blank" in blank["message"]
        assert one == {"transformer": "rpc", "ops": 1}
        assert several == {"transformer": "mood", "ops": 1}
        assert "system_part_set" in wrong["message"]
        (body,) = provider.bodies
        assert body["max_completion_tokens"] == 9
        assert [m["content"] for m in body["messages"][-2:]] == ["The build is red.", "Is it?"]
        assert "Be brief." in body["messages"][0]["content"]

    anyio.run(body)


def test_a_prompt_attaches_whatever_a_person_can(vault: Path) -> None:
    async def body() -> None:
        provider, given = opened(vault)
        _, context = await serve(
            await lamina.open_agent(**given),
            ("prompt", {"text": "What?", "attach": ["sea/", "#ferry", "[[log#Log]]", "gone"]}),
            ("get_context", {}),
            prompt=PromptOptions(attach=("plan",)),
        )
        sent = str(provider.bodies[0])
        assert "The pier opens in May." in sent
        ids = {each["item"] for each in context["items"]}
        assert ids == {
            "note:plan.md", "folder:sea", "note:sea/log.md", "tag:ferry",
            "selection:sea/log.md#L1-L3",
        }  # fmt: skip
        assert [each["what"] for each in context["left_out"]] == ["note:gone"]

    anyio.run(body)


def test_what_may_be_fetched_is_a_setting(vault: Path) -> None:
    async def body() -> None:
        _, given = opened(vault)
        before, after, wrong = await serve(
            await lamina.open_agent(**given),
            ("settings", {}),
            ("update_settings", {"web": "listed", "allow_hosts": ["example.org"]}),
            ("update_settings", {"web": "everything"}),
        )
        assert (before["web"], list(before["allow_hosts"])) == ("off", [])
        assert (after["web"], list(after["allow_hosts"])) == ("listed", ["example.org"])
        assert "web" in wrong["message"]

    anyio.run(body)

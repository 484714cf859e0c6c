"""What faces tell of hooks: whom they wait for, what was changed, and what hooks want shown."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console
from tests.apps.cli.chats import answer as spoken_answer
from tests.apps.cli.chats import talk
from tests.apps.cli.questions import Desk, Screen
from tests.apps.cli.rpc_client import Client, serving
from tests.fakes.providers import ProviderFake, saying
from tests.fakes.sessions import World, run
from tests.fakes.sessions import talk as ask_once
from tests.fakes.tools import tool

from lamina.apps.cli.log import render_log
from lamina.apps.cli.request_view import render_request
from lamina.apps.cli.why_command import draw_why
from lamina.apps.views.answer_json import describe_context
from lamina.apps.views.journal_log import describe_entry
from lamina.apps.views.sent_requests import describe_request, journal_of, last_request
from lamina.apps.views.why import describe_why, explain_question
from lamina.core.audit.requests import list_requests
from lamina.core.values.entry import EphemeralEntry, TransformEntry
from lamina.core.values.message import Message, Text
from lamina.core.values.patch import Display, MessagesUncachedAppend, Patch, SystemPartSet
from lamina.engine.sources.hooks import ContextEvent, Hooks, MessageEvent
from lamina.errors import HookError

EVIL = "Tone\x1b[2J set"
TONE = SystemPartSet(name="tone", text="Be brief.", reason="people are busy")
SHOWN = Display(
    title=EVIL, summary="Answers are brief.", markdown="See *policy 7*.", data={"policy": 7}
)


def cleaning(*, declared: bool) -> Hooks:
    hooks = Hooks()

    @hooks.message(name="cleaner", changes_answers=declared)
    def clean(event: MessageEvent) -> Message | None:
        if event.message.role != "assistant":
            return None
        text = event.message.text.replace("dirty", "clean")
        return replace(event.message, blocks=(Text(text),))

    return hooks


def events_of(client: Client) -> list[dict[str, Any]]:
    return [message["params"] for message in client.seen if message.get("method") == "event"]


def showing(display: Any = SHOWN) -> Hooks:
    hooks = Hooks()

    @hooks.context(name="acme.tone")
    def tone(event: ContextEvent) -> Patch:
        return Patch(ops=(TONE,), display=display)

    return hooks


# -- answers that hooks change -------------------------------------------------------------------


def test_ask_says_whom_it_waits_for_and_writes_what_is_kept() -> None:
    async def body() -> None:
        desk = Desk(saying("All is dirty."), hooks=cleaning(declared=True))
        assert await desk.ask() == 0
        assert desk.said == "All is clean.\n"
        assert desk.err == "waiting for hook cleaner\n"
        assert desk.warnings == []

    run(body())


def test_ask_tells_what_is_kept_if_a_hook_changes_words_that_were_written() -> None:
    async def body() -> None:
        desk = Desk(saying("All is dirty."), hooks=cleaning(declared=False))
        assert await desk.ask() == 0
        assert desk.said == "All is dirty.\n"
        assert desk.err == (
            "warning: hook cleaner changed the answer after it was written; the new version is:\n"
            "| All is clean.\n"
        )
        assert desk.kept[-1] == ("assistant", "All is clean.")

    run(body())


def test_ask_writes_what_is_kept_where_words_wait_anyway() -> None:
    async def body() -> None:
        hooks = cleaning(declared=False)
        desk = Desk(saying("All is dirty."), tools=[tool("find")], hooks=hooks)
        assert await desk.ask() == 0
        assert (desk.said, desk.err) == ("All is clean.\n", "")

    run(body())


def test_ask_as_json_gives_what_is_kept() -> None:
    async def body() -> None:
        desk = Desk(saying("All is dirty."), hooks=cleaning(declared=False))
        assert await desk.ask(as_json=True) == 0
        assert json.loads(desk.said)["answer"] == "All is clean."
        assert json.loads(desk.said)["warnings"] == []

    run(body())


@pytest.mark.parametrize("declared", [True, False])
def test_a_chat_says_what_a_hook_does_to_an_answer(tmp_path: Path, declared: bool) -> None:
    provider = ProviderFake(spoken_answer("All is dirty."))
    talked = talk(tmp_path, "How is it?", provider=provider, hooks=cleaning(declared=declared))
    if declared:
        assert "(waiting for hook cleaner)" in talked.err
        assert talked.out == "All is clean.\n"
    else:
        assert "(hook cleaner changed the answer; the new version is:)" in talked.err
        assert talked.out == "All is dirty.\nAll is clean.\n"


@pytest.mark.parametrize("declared", [True, False])
def test_rpc_tells_what_a_hook_does_to_an_answer(declared: bool) -> None:
    async def body() -> None:
        hooks = cleaning(declared=declared)
        async with serving(saying("All is dirty."), hooks=hooks) as client:
            outcome = await client.call("prompt", text="How is it?")
            events = events_of(client)
            assert outcome["answer"] == "All is clean."
            by_type = {event["type"]: event for event in events}
            if declared:
                assert by_type["answer_held"]["hooks"] == ["cleaner"]
                assert by_type["block_delta"]["text"] == "All is clean."
            else:
                assert by_type["answer_changed"] == {
                    "type": "answer_changed", "hooks": ["cleaner"], "text": "All is clean."
                }  # fmt: skip

    run(body())


# -- what hooks want shown -----------------------------------------------------------------------


def test_ask_and_chat_show_what_a_hook_wants_shown(tmp_path: Path) -> None:
    async def body() -> None:
        desk = Desk(saying("Yes."), hooks=showing())
        await desk.ask(out=Screen())
        assert desk.err == "Tone\\x1b[2J set · Answers are brief. (by acme.tone)\n"

    run(body())
    talked = talk(tmp_path, "Q", replies=[spoken_answer("Yes.")], hooks=showing())
    assert "Tone\\x1b[2J set · Answers are brief. (by acme.tone)\n" in talked.err


def test_what_a_hook_wants_shown_is_told_over_rpc_and_printed_as_json() -> None:
    async def body() -> None:
        async with serving(saying("Yes."), hooks=showing()) as client:
            await client.call("prompt", text="Q")
            (shown,) = [event for event in events_of(client) if event["type"] == "display"]
            assert shown["hook"] == "acme.tone"
            assert shown["display"]["data"] == {"policy": 7}
            context = await client.call("get_context")
            assert context["displays"] == [{"hook": "acme.tone", "display": shown["display"]}]
        desk = Desk(saying("Yes."), hooks=showing())
        await desk.ask(as_json=True)
        (printed,) = json.loads(desk.said)["displays"]
        assert printed["display"]["markdown"] == "See *policy 7*."

    run(body())


def test_log_why_and_the_view_of_a_request_show_it_long_after() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("talk", hooks=showing())
        await ask_once(session, "Q1")
        await session.close()
        again = await world.open("talk")
        journal = journal_of(again)
        (entry,) = [e for e in again.entries if isinstance(e, TransformEntry) and e.patch.display]
        assert describe_entry(entry)[1] == f"{EVIL} · Answers are brief. (by acme.tone)"
        log = render_log(journal, tree=False, dropped=False, full=True)
        assert '{"policy":7}' in log
        why = explain_question(journal, None, world.book)
        assert describe_why(why)["displays"][0].display == SHOWN
        console = Console(width=80, record=True, file=io.StringIO())
        console.print(draw_why(why, 80))
        text = console.export_text()
        assert "Hooks (1)" in text
        assert "Answers are brief. (by acme.tone)" in text
        assert "See *policy 7*." in text
        assert "\x1b[2J" not in text
        recorded = last_request(again, world.book)
        assert recorded is not None
        requests = list_requests(journal)
        assert describe_request(recorded, requests)["displays"] == recorded.displays
        assert "Answers are brief. (by acme.tone)" in render_request(recorded, requests, full=False)
        assert describe_context(again, world.book, full=False)["displays"]

    run(body())


def test_a_display_is_told_once_and_one_at_the_end_of_a_turn_with_it() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.context(reason="turn_end", name="diary")
        def write(event: ContextEvent) -> Patch:
            op = SystemPartSet(name="diary", text=str(len(event.envelope.cached)), reason="an end")
            return Patch(ops=(op,), display=Display(title=f"Page {len(event.envelope.cached)}"))

        desk = Desk(saying("One."), saying("Two."), hooks=hooks)
        await desk.ask("Q1")
        assert desk.err == "Page 2 (by diary)\n"
        await desk.ask("Q2")
        assert desk.err == "Page 4 (by diary)\n"

    run(body())


def test_what_an_ephemeral_hook_wants_shown_is_told_and_logged() -> None:
    async def body() -> None:
        hooks = Hooks()

        @hooks.context(reason="ephemeral", name="clock")
        def say(event: ContextEvent) -> Patch:
            noon = Message(role="user", blocks=(Text("It is noon."),))
            return Patch(
                ops=(MessagesUncachedAppend(messages=(noon,)),), display=Display(title="Noon")
            )

        world = World()
        session = await world.open(hooks=hooks)
        turn = await session.prepare("Q")
        assert [(shown.hook, shown.display.title) for shown in turn.displays] == [("clock", "Noon")]
        (entry,) = [entry for entry in session.entries if isinstance(entry, EphemeralEntry)]
        assert describe_entry(entry)[1] == "for one request: user · Noon (by clock)"

    run(body())


@pytest.mark.parametrize(
    ("display", "problem"),
    [
        (Display(title="T", markdown="x" * 70_000), "has 70,0"),
        (Display(title="T", data=object()), "cannot be stored"),
        (Display(title=7), "cannot be stored"),  # type: ignore[arg-type]
        (Display(title="T", data="\ud800"), "cannot be stored"),
    ],
)
def test_a_display_that_is_too_large_or_no_json_is_refused(display: Display, problem: str) -> None:
    async def body() -> None:
        session = await World().open(hooks=showing(display))
        with pytest.raises(HookError, match=problem):
            await session.prepare("Q")
        assert not [entry for entry in session.entries if isinstance(entry, TransformEntry)]

    run(body())


def test_data_that_a_hook_changes_later_is_kept_as_it_was() -> None:
    async def body() -> None:
        data = {"rows": ["a"]}
        session = await World().open(hooks=showing(Display(title="T", data=data)))
        turn = await session.prepare("Q")
        data["rows"].append("b")
        assert turn.displays[0].display.data == {"rows": ["a"]}

    run(body())

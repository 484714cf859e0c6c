"""`lamina rpc` over a model that plays scripts: turns, tools, the session, and the end."""

import io
import os
import select
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import asdict, replace
from rich.console import Console
from tests.apps.cli.inside import error
from tests.apps.cli.rpc_client import serving
from tests.fakes.providers import ProviderFake, ProvidersFake, calling, saying, spoken
from tests.fakes.selection import SelectorFake, guide
from tests.fakes.sessions import World, run
from tests.fakes.tools import ToolHostFake, tool

from lamina import __version__
from lamina.apps.cli.console_notices import ConsoleNotices
from lamina.apps.cli.rpc.jsonrpc import OverlongLine
from lamina.apps.cli.rpc.rpc_server import RpcServer
from lamina.apps.views.approvers import PendingApprovals
from lamina.apps.views.session_options import PromptOptions
from lamina.core.values.item import ItemId
from lamina.core.values.selection import preset
from lamina.core.values.usage import Usage
from lamina.engine.runners.runner import AgentRunner
from lamina.engine.session.session import core_of
from lamina.errors import ProviderError

PLAN = {"plan.md": "The pier opens in May."}
BUSY = {
    "code": -32000,
    "message": "a turn is under way: wait for it, or abort it",
    "data": {"code": "turn_state"},
}


# -- turns --------------------------------------------------------------------------------------


def test_a_prompt_is_told_of_while_it_runs_and_answered_at_its_end() -> None:
    async def body() -> None:
        usage = Usage(input=40, cached=10, output=2)
        async with serving(saying("In May.", usage=usage), notes=PLAN) as client:
            assert await client.read() == {
                "method": "ready",
                "params": {
                    "session": "talk",
                    "target": "fake:small",
                    "version": __version__,
                    "interrupted": False,
                    "waiting": [],
                },
            }
            result = await client.call("prompt", text="When?", attach=["plan.md"])
            assert result == {
                "answer": "In May.",
                "ending": "answered",
                "stop": "stop",
                "usage": {"input": 40, "cached": 10, "output": 2},
                "session": "talk",
                "request": result["request"],
                "waiting": [],
            }
            assert client.events == [
                "request",
                "block_start",
                "block_delta",
                "block_end",
                "usage",
                "end",
            ]
            deltas = [each for each in client.seen if each.get("params", {}).get("text")]
            assert [delta["params"]["text"] for delta in deltas] == ["In", " May."]

    run(body())


def test_attachments_of_the_command_apply_to_every_prompt() -> None:
    async def body() -> None:
        async with serving(notes=PLAN, attach=("plan.md",), essential=("gone.md",)) as client:
            for _ in range(2):
                await client.call("prompt", text="When?")
                context = await client.call("get_context")
                assert [each["label"] for each in context["items"]] == ["plan.md"]
                assert [each["what"] for each in context["left_out"]] == ["note:gone.md"]

    run(body())


def test_while_a_prompt_runs_looking_is_served_and_changing_is_refused() -> None:
    async def body() -> None:
        go_on = anyio.Event()
        async with serving([*spoken("In"), go_on, *saying("In May.")[1:]]) as client:
            number = await client.send("prompt", text="When?")
            await client.provider.waits.wait()
            refused: dict[str, dict[str, Any]] = {
                "prompt": {"text": "And?"},
                "resume": {},
                "compact": {},
                "navigate": {"entry": "000000"},
                "update_settings": {"window": 500},
                "pin": {"what": "plan.md"},
            }
            for method, params in refused.items():
                assert await client.refusal(method, **params) == BUSY
            context = await client.call("get_context")
            assert (context["usage"], context["problems"]) == (None, [])
            assert context["agreement"]["first"] is True
            assert (await client.call("settings"))["window"] is None
            tree = await client.call("tree")
            assert [each["kind"] for each in tree["entries"]] == ["session", "user", "request"]
            go_on.set()
            assert (await client.answer(number))["result"]["answer"] == "In May."

    run(body())


def test_the_next_prompt_can_follow_the_answer_at_once() -> None:
    async def body() -> None:
        async with serving() as client:
            for _ in range(20):
                assert (await client.call("prompt", text="Q"))["answer"] == "Done."

    run(body())


def test_an_aborted_prompt_keeps_what_came() -> None:
    async def body() -> None:
        async with serving([*spoken("In the month"), anyio.Event()]) as client:
            number = await client.send("prompt", text="When?")
            await client.provider.waits.wait()
            assert await client.call("abort") == {"aborted": True}
            result = (await client.answer(number))["result"]
            assert (result["ending"], result["answer"]) == ("aborted", "In the month")
            assert client.kept[-1] == ("assistant", "In the month")
            assert await client.call("abort") == {"aborted": False}
            assert (await client.refusal("resume"))["data"] == {"code": "turn_state"}

    run(body())


def test_a_prompt_that_was_aborted_before_its_first_word_is_resumed() -> None:
    async def body() -> None:
        async with serving([anyio.Event()], saying("In May.")) as client:
            number = await client.send("prompt", text="When?")
            await client.provider.waits.wait()
            await client.send("abort")
            assert (await client.answer(number))["result"]["ending"] == "aborted"
            assert (await client.call("resume"))["answer"] == "In May."
            assert client.kept == [("user", "When?"), ("assistant", "In May.")]

    run(body())


def test_an_abort_right_behind_a_prompt_stops_it() -> None:
    async def body() -> None:
        async with serving([*spoken("In"), anyio.Event()]) as client:
            number = await client.send("prompt", text="When?")
            aborted = await client.send("abort")
            assert (await client.answer(aborted))["result"] == {"aborted": True}
            message = await client.answer(number)
            stopped = message.get("error", {}).get("data") or message["result"]["ending"]
            assert stopped in ({"code": "aborted"}, "aborted")
            assert (await client.call("prompt", text="And?"))["answer"] == "Done."

    run(body())


def test_what_a_provider_does_wrong_is_an_error_and_the_turn_can_be_resumed() -> None:
    async def body() -> None:
        async with serving([ProviderError("no model")], saying("In May.")) as client:
            assert await client.refusal("prompt", text="When?") == {
                "code": -32000,
                "message": "no model",
                "data": {"code": "provider"},
            }
            assert (await client.call("resume"))["answer"] == "In May."

    run(body())


def test_a_defect_is_answered_and_its_traceback_goes_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def body() -> None:
        async with serving([ZeroDivisionError("oh")]) as client:
            assert await client.refusal("prompt", text="When?") == {
                "code": -32603,
                "message": "ZeroDivisionError: oh",
            }
            assert (await client.call("prompt", text="And?"))["answer"] == "Done."

    run(body())
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "ZeroDivisionError: oh" in shown.err


# -- tools --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("decision", "called"), [("allow_once", ["wipe"]), ("deny", [])])
def test_a_call_waits_until_it_is_approved(decision: str, called: list[str]) -> None:
    async def body() -> None:
        script = calling(("c1", "wipe", {"path": "x"}))
        async with serving(script, tools=[tool("wipe", "required")]) as client:
            number = await client.send("prompt", text="Wipe it.")
            wanted = await client.event("approval")
            assert wanted["call"]["id"] == "c1"
            assert client.host.called == []
            assert (await client.refusal("decide", call_id="c9", decision="deny")) == {
                "code": -32000,
                "message": "no call 'c9' is waiting; waiting calls: ['c1']",
                "data": {"code": "turn_state"},
            }
            given = {"call_id": "c1", "decision": decision}
            assert await client.call("decide", **given) == given
            assert (await client.answer(number))["result"]["ending"] == "answered"
            assert client.host.called == called
            assert (await client.refusal("decide", **given))["data"] == {"code": "turn_state"}

    run(body())


def test_a_tool_that_is_allowed_for_the_session_is_not_asked_about_again() -> None:
    async def body() -> None:
        both = calling(("c1", "wipe", {"path": "x"}), ("c2", "wipe", {"path": "y"}))
        again = calling(("c3", "wipe", {"path": "z"}))
        async with serving(both, saying("A"), again, tools=[tool("wipe", "required")]) as client:
            number = await client.send("prompt", text="Wipe them.")
            await client.event("approval")
            await client.call("decide", call_id="c1", decision="allow_session")
            await client.answer(number)
            assert (await client.call("prompt", text="And z."))["ending"] == "answered"
            assert client.host.called == ["wipe", "wipe", "wipe"]
            assert client.events.count("approval") == 1

    run(body())


def test_calls_that_another_process_left_waiting_are_approved_and_resumed() -> None:
    async def body() -> None:
        world = World()
        wipe = tool("wipe", "required")
        session = await world.open("talk")
        provider = ProviderFake(calling(("c1", "wipe", {"path": "x"})))
        async with AgentRunner(session, ProvidersFake(provider), ToolHostFake(wipe)) as runner:
            assert (await runner.run("Wipe it.")).ending == "waiting"
        async with serving(world=world, tools=[wipe]) as client:
            ready = (await client.read())["params"]
            assert [each["id"] for each in ready["waiting"]] == ["c1"]
            await client.call("decide", call_id="c1", decision="allow_once")
            assert (await client.call("resume"))["answer"] == "Done."
            assert client.host.called == ["wipe"]

    run(body())


def test_an_abort_ends_the_waiting_for_an_approval() -> None:
    async def body() -> None:
        script = calling(("c1", "wipe", {"path": "x"}))
        async with serving(script, tools=[tool("wipe", "required")]) as client:
            number = await client.send("prompt", text="Wipe it.")
            await client.event("approval")
            await client.send("abort")
            assert (await client.answer(number))["result"]["ending"] == "aborted"
            assert client.host.called == []
            assert (await client.call("prompt", text="And?"))["answer"] == "Done."

    run(body())


def test_a_message_steers_a_turn_under_way() -> None:
    async def body() -> None:
        script = calling(("c1", "look", {}))
        async with serving(script, saying("Blue."), tools=[tool("look")]) as client:
            client.host.held["look"] = anyio.Event()
            number = await client.send("prompt", text="Which?")
            await client.host.waits.wait()
            assert await client.call("send_message", text="In blue!") == {"running": True}
            client.host.held["look"].set()
            assert (await client.answer(number))["result"]["answer"] == "Blue."
            assert client.provider.bodies[-1]["messages"][-1]["content"] == "In blue!"

    run(body())


# -- the session --------------------------------------------------------------------------------


def test_the_context_of_the_last_request_is_shown_with_its_segments() -> None:
    async def body() -> None:
        usage = Usage(input=100, cached=50, output=2)
        async with serving(saying("In May.", usage=usage), notes=PLAN) as client:
            empty = await client.call("get_context", full=True)
            assert (empty["request"], empty["segments"]) == (None, [])
            result = await client.call("prompt", text="When?", attach=["plan.md"])
            shown = await client.call("get_context", full=True)
            assert set(shown) == set(empty)
            assert (shown["request"], shown["target"]) == (result["request"], "fake:small")
            assert shown["usage"] == {"input": 100, "cached": 50, "output": 2}
            tokens = sum(each["tokens"] for each in shown["segments"])
            assert sum(each["tokens"] for each in shown["layers"]) == tokens
            assert sum(each["cached"] for each in shown["layers"]) == round(tokens / 2)
            assert shown["segments"][-1]["content"] == {"type": "text", "text": "When?"}
            assert "segments" not in await client.call("get_context")

    run(body())


def test_the_context_is_markdown_and_current() -> None:
    async def body() -> None:
        async with serving(saying("In ```May```."), notes=PLAN) as client:

            async def markdown() -> str:
                text = (await client.call("get_context"))["markdown"]
                assert isinstance(text, str)
                return text

            before = await markdown()
            assert before.startswith("# Context for fake:small\n")
            part = {"partName": "tone", "text": "Be brief.", "invalidateCacheReason": "busy"}
            await client.call("apply", op="system_part_set", scope="cached", **part)
            assert "Be brief." not in before
            assert "\n```\nBe brief.\n```\n" in await markdown()
            await client.call("add_message", text="By the way.")
            assert "By the way." in await markdown()
            await client.call("send_message", text="One more thing.")
            assert "One more thing." in await markdown()
            await client.call("prompt", text="When?", attach=["plan.md"])
            after = await markdown()
            for text in (*PLAN.values(), "When?", "By the way.", "One more thing."):
                assert after.count(text) == 1, after
            assert "\n````\nIn ```May```.\n````\n" in after

    run(body())


def test_a_question_can_be_gone_back_to_and_asked_anew() -> None:
    async def body() -> None:
        async with serving(saying("May."), saying("June.")) as client:
            await client.call("prompt", text="When?")
            tree = await client.call("tree")
            assert [each["kind"] for each in tree["entries"]][1:4] == [
                "user",
                "request",
                "assistant",
            ]
            question = tree["entries"][1]
            assert question == {
                "id": question["id"],
                "parent": "000000",
                "kind": "user",
                "summary": "When?",
                "active": True,
                "label": "",
            }
            position = await client.call("navigate", entry=question["id"])
            assert position == {"entry": "000000", "text": "When?"}
            assert (await client.call("prompt", text=position["text"]))["answer"] == "June."
            tree = await client.call("tree")
            active = {each["summary"]: each["active"] for each in tree["entries"]}
            assert (active["May."], active["June."]) == (False, True)
            refused = await client.refusal("navigate", entry="nope")
            assert refused["data"] == {"code": "unknown_entry"}

    run(body())


def test_settings_are_changed_checked_and_shown() -> None:
    async def body() -> None:
        async with serving() as client:
            shown = await client.call("update_settings", window=5000, prune_to=1)
            assert (shown["window"], shown["prune_to"]) == (5000, 1.0)
            assert (await client.call("settings")) == shown
            wrong = await client.refusal("update_settings", window="wide")
            assert wrong["code"] == -32602
            assert "$.window" in wrong["message"]
            unknown = await client.refusal("update_settings", windows=1)
            assert unknown["code"] == -32602
            assert "`windows`" in unknown["message"]
            out_of_range = await client.refusal("update_settings", promotion="eager", prune_to=7)
            assert out_of_range["data"] == {"code": "invalid_setting"}
            assert "prune_to" in out_of_range["message"]
            assert (await client.call("settings")) == shown

    run(body())


def test_settings_with_parts_keep_the_parts_that_are_not_given() -> None:
    async def body() -> None:
        async with serving() as client:
            await client.call("update_settings", guide_search={"top_k": 30})
            shown = await client.call("update_settings", guide_search={"top_n": 3})
            search = shown["guide_search"]
            assert (search["top_k"], search["top_n"], search["search"]) == (30, 3, True)
            shown = await client.call("update_settings", tool_search="aggressive")
            assert shown["tool_search"] == asdict(preset("aggressive"))
            assert shown["guide_search"] == search
            unknown = await client.refusal("update_settings", guide_search={"top": 3})
            assert (
                "no setting `guide_search.top`; its parts are search, top_k" in unknown["message"]
            )
            wrong = await client.refusal("update_settings", guide_search="loud")
            assert wrong["code"] == -32602
            assert "$.guide_search" in wrong["message"]
            out_of_range = await client.refusal("update_settings", guide_search={"floor": 2})
            assert out_of_range["data"] == {"code": "invalid_setting"}
            assert (await client.call("settings")) == shown

    run(body())


def test_items_are_listed_added_and_removed() -> None:
    async def body() -> None:
        async with serving(tools=[replace(tool("wipe"), include="manual")]) as client:
            assert client.runner is not None
            core_of(client.runner.session).turns.tools.selector = SelectorFake(
                guide("rule", "style"), guide("reference", "tides", "agent", description="High.")
            )
            listed = await client.call("items")
            assert listed["items"] == [
                {"item": "rule:style", "include": "always", "missing": False}
            ]
            assert [(each["item"], each["about"]) for each in listed["available"]] == [
                ("reference:tides", "High."), ("tool:fake/wipe", "Does wipe."),
            ]  # fmt: skip
            for what in ("ref:tides", "tool:fake/wipe"):
                assert await client.call("add", what=what) == {"changed": True}
                assert await client.call("add", what=what) == {"changed": False}
            assert await client.call("remove", what="rule:style") == {"changed": True}
            assert await client.call("remove", what="rule:style") == {"changed": False}
            await client.call("prompt", text="When?")
            context = await client.call("get_context")
            assert [each["item"] for each in context["items"]] == ["reference:tides"]
            listed = await client.call("items")
            assert [each["item"] for each in listed["items"]] == [
                "reference:tides", "tool:fake/wipe",
            ]  # fmt: skip
            assert [(each["item"], each["removed"]) for each in listed["available"]] == [
                ("rule:style", True)
            ]
            refused = await client.refusal("add", what="tides")
            assert refused["data"] == {"code": "usage"}

    run(body())


def test_what_changed_in_the_agents_files_is_listed_and_taken_over() -> None:
    async def body() -> None:
        async with serving() as client:
            assert client.runner is not None
            core = core_of(client.runner.session)
            selector = core.turns.tools.selector = SelectorFake(guide("rule", "style"))
            await core.take_over_agent({ItemId("rule:style"): "always"}, "pilot", "/pilot")
            assert (await client.call("items"))["changes"] == []
            selector.source.listed = [guide("rule", "style", "manual")]
            (change,) = (await client.call("items"))["changes"]
            assert change["detail"] == (
                "rule:style is manual in the agent's files, and always in this session"
            )
            assert await client.call("adopt_agent") == {"changes": [change]}
            assert await client.call("adopt_agent") == {"changes": []}
            assert (await client.call("items"))["items"] == []

    run(body())


def test_items_are_shown_while_a_turn_runs_and_not_changed() -> None:
    async def body() -> None:
        async with serving([*spoken("Well"), anyio.Event()]) as client:
            assert client.runner is not None
            core_of(client.runner.session).turns.tools.selector = SelectorFake(
                guide("rule", "style")
            )
            number = await client.send("prompt", text="When?")
            await client.event("block_delta")
            assert len((await client.call("items"))["items"]) == 1
            assert await client.refusal("remove", what="rule:style") == BUSY
            await client.call("abort")
            await client.answer(number)

    run(body())


def test_a_pinned_note_is_part_of_every_prompt() -> None:
    async def body() -> None:
        async with serving(notes=PLAN) as client:
            assert await client.call("pin", what="plan.md") == {"changed": True}
            assert await client.call("pin", what="plan.md") == {"changed": False}
            await client.call("prompt", text="When?")
            context = await client.call("get_context")
            assert [each["label"] for each in context["items"]] == ["plan.md"]
            assert await client.call("unpin", what="plan.md") == {"changed": True}
            assert (await client.refusal("pin", what="gone.md"))["data"] == {"code": "usage"}

    run(body())


def test_compacting_says_what_it_did() -> None:
    async def body() -> None:
        async with serving() as client:
            await client.call("prompt", text="When?")
            result = await client.call("compact")
            assert result["changed"] is False
            assert "history" in result["reason"]

    run(body())


# -- the end ------------------------------------------------------------------------------------


def test_shutdown_stops_the_turn_answers_it_and_answers_itself_last() -> None:
    async def body() -> None:
        async with serving([*spoken("In the"), anyio.Event()]) as client:
            number = await client.send("prompt", text="When?")
            await client.provider.waits.wait()
            last = await client.send("shutdown")
            assert (await client.answer(number))["result"]["ending"] == "aborted"
            assert await client.read() == {"id": last, "result": None}
            await client.ended.wait()
            assert client.kept[-1] == ("assistant", "In the")

    run(body())


def test_the_end_of_the_input_stops_the_turn_and_keeps_what_came() -> None:
    async def body() -> None:
        async with serving([*spoken("In the"), anyio.Event()]) as client:
            number = await client.send("prompt", text="When?")
            await client.provider.waits.wait()
            client.end()
            assert (await client.answer(number))["result"]["ending"] == "aborted"
            await client.ended.wait()
            assert client.kept[-1] == ("assistant", "In the")
            # Closed: somebody else can have it.
            await (await client.world.open("talk")).close()

    run(body())


def test_a_client_that_is_gone_ends_it_too() -> None:
    async def body() -> None:
        source, sink = os.pipe()
        os.close(source)
        world = World()
        provider = ProviderFake([*spoken("In the"), anyio.Event()])
        session = await world.open("talk")
        desk = PendingApprovals()
        runner = AgentRunner(session, ProvidersFake(provider), ToolHostFake(), approver=desk)
        notices = ConsoleNotices(Console(file=io.StringIO()))
        server = RpcServer(
            runner, desk, sink, prompt=PromptOptions(), notices=notices, book=world.book
        )
        send, lines = anyio.create_memory_object_stream[bytes | OverlongLine](1)
        with anyio.fail_after(20):
            async with runner, send, lines:
                await server.run(lines)
        os.close(sink)

    run(body())


def test_writing_waits_for_a_client_that_does_not_read() -> None:
    async def body() -> None:
        words = "word " * 3_000
        async with serving(saying(words)) as client:
            await client.read()
            number = await client.send("prompt", text="Go on and on.")
            with anyio.fail_after(20):
                while select.select([], [client.sink], [], 0)[1]:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            # The pipe is full, and the turn waits.
            assert client.runner is not None
            assert client.runner.running
            result = (await client.answer(number))["result"]
            assert result["answer"] == words
            told = [each for each in client.seen if each.get("params", {}).get("text")]
            assert "".join(each["params"]["text"] for each in told) == words

    run(body())


# -- the command --------------------------------------------------------------------------------


def test_without_a_session_to_be_had_nothing_is_written(tmp_path: Path) -> None:
    said = error("rpc", "--session", "abc", cwd=tmp_path)
    assert said.startswith("error: no session 'abc'")
    assert said.count("\n") == 1

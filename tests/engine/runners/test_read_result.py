"""Large results have a handle: the model gets head, tail and the handle, and reads the rest.

Issue 22: a result over a limit is kept whole, and read back through `read_result`, under the same
budget and screening. What a prune shortens keeps its handle.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene, results_in
from tests.engine.runners.test_offered_is_recorded import names_on_wire
from tests.fakes.book import SMALL
from tests.fakes.providers import calling, saying
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, run
from tests.fakes.summarizer import require_sound
from tests.fakes.tools import ApproverFake, tool

import lamina
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.adapters.tools.result_limits import cut_output
from lamina.core.assembly.shortened_results import READ_RESULT, make_handle
from lamina.core.codec import digest_bytes
from lamina.core.values.entry import RequestEntry
from lamina.core.values.message import ToolDefinition, ToolResult
from lamina.core.values.patch import ResultsReplace
from lamina.core.values.settings import Target
from lamina.core.values.tool import ToolOutput

LOG = "\n".join(f"{number:05} the tide at berth {number % 97} was low" for number in range(11_500))
assert len(LOG) > 400_000
WIDE = replace(SMALL, window=120_000, max_output=4_000)
ANTHROPIC = replace(WIDE, model="claude", wire="anthropic")
GEMINI = replace(WIDE, model="flash", wire="gemini")
LOCAL = replace(WIDE, model="local", wire="llamacpp_tools")
HANDLE = re.compile(r"handle (r[0-9a-f]{8})")


def scene(*tools: str, target: Target = WIDE, **given: Any) -> Scene:
    played = Scene(tools=[tool(name) for name in tools or ("fetch",)], target=target, **given)
    played.host.outputs["fetch"] = cut_output(LOG)
    return played


def handle_in(text: str) -> str:
    (handle,) = {match[1] for match in HANDLE.finditer(text)}
    return handle


async def fetch(played: Scene) -> str:
    """Has the model fetch the log; its handle."""
    played.plays(calling(("c1", "fetch", {})), saying("Long."))
    await played.ask("What of the tide?")
    return handle_in(played.results[-1])


def delete_blobs(folder: Path) -> None:
    blobs = [path for path in folder.rglob("blobs/**/*") if path.is_file()]
    assert blobs
    for blob in blobs:
        blob.unlink()


async def read(played: Scene, **arguments: Any) -> str:
    """What the model gets for a call of `read_result`."""
    call = f"c{len(played.provider.bodies) + 1}"
    played.plays(calling((call, READ_RESULT.name, arguments)), saying("Read."))
    await played.ask("And the rest?")
    return played.results[-1]


def test_a_result_of_400_000_characters_is_read_back_to_the_last_one_and_verified() -> None:
    async def body() -> None:
        async with scene() as played:
            handle = await fetch(played)
            cut = played.results[-1]
            assert len(cut) <= 100_000
            assert (cut[:6], cut[-3:]) == ("00000 ", "low")
            (first, last) = re.findall(r", lines (\d+)-(\d+) …", cut)[0]
            assert f"\n{int(first) - 1:05} " in cut[:80_000]
            pages, lines = [], "1-"
            while lines:
                page = await read(played, handle=handle, lines=lines)
                _, *rows, foot = page.split("\n")
                pages += [row.partition("\t")[2] for row in rows]
                lines = (
                    "" if foot == "[no more]" else json.loads(foot[foot.index("{") : -1])["lines"]
                )
            assert "\n".join(pages) == LOG
            assert int(last) <= len(pages)
            for entry in played.kept(RequestEntry):
                fit = entry.context.fit
                assert fit.tokens + fit.reserve <= fit.window
            # The tool stood there before it was needed: no byte moved for it.
            assert names_on_wire(played.provider.bodies[0], WIDE) == [READ_RESULT.name, "fetch"]
            assert played.host.calls == [("fetch", {})]
            await played.require_sound()

    run(body())


@pytest.mark.parametrize("target", [WIDE, ANTHROPIC, GEMINI])
def test_it_is_offered_on_every_wire_in_front(target: Target) -> None:
    async def body() -> None:
        async with scene("fetch", "look", target=target) as played:
            await played.ask()
            names = names_on_wire(played.provider.bodies[-1], target)
            assert names == [READ_RESULT.name, "fetch", "look"]

    run(body())


@pytest.mark.parametrize("given", [{"target": LOCAL}, {"window": 8_000}])
def test_where_it_is_not_offered_nobody_is_told_of_a_handle(given: Mapping[str, Any]) -> None:
    """The embedded model, and windows with no room to spare, do without."""

    async def body() -> None:
        async with scene(**given) as played:
            played.host.outputs["fetch"] = cut_output(LOG, 2_000)
            played.plays(calling(("c1", "fetch", {})), saying("Long."))
            await played.ask()
            assert "handle" not in played.results[-1]
            assert "characters in all" in played.results[-1]
            target = played.book.find(played.context.target)
            assert names_on_wire(played.provider.bodies[-1], target) == ["fetch"]

    run(body())


def test_a_list_that_was_sent_without_it_gets_it_at_the_next_boundary() -> None:
    async def body() -> None:
        async with scene(window=8_000) as played:
            await played.ask()
            await played.runner.session.update_settings(window=None)
            await played.ask()
            assert names_on_wire(played.provider.bodies[-1], WIDE) == ["fetch"]
            assert played.context.agreement.broke is None
            played.clock.pass_by(400)
            await played.ask()
            assert names_on_wire(played.provider.bodies[-1], WIDE) == [READ_RESULT.name, "fetch"]
            broke = played.context.agreement.broke
            assert broke is not None
            assert broke.reason.startswith("tools new: read_result (400 s since the last request")
            await fetch(played)
            await played.require_sound()

    run(body())


def test_words_are_found_in_what_was_left_out() -> None:
    async def body() -> None:
        async with scene() as played:
            handle = await fetch(played)
            page = await read(played, handle=handle, find="07777 *LOW", context=1)
            assert page.split("\n")[1:] == [
                "7777\t07776 the tide at berth 16 was low",
                "7778:\t07777 the tide at berth 17 was low",
                "7779\t07778 the tide at berth 18 was low",
                "[no more]",
            ]

    run(body())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"handle": "r00000000"}, "no result with the handle 'r00000000'; the latest are r"),
        ({"handle": "../../etc/passwd"}, "there is no result with the handle '../../etc/passwd'"),
        ({"handle": "HANDLE", "lines": "20000-"}, "there are no lines 20000-"),
        ({"handle": "HANDLE", "lines": "all"}, "lines must be "),
        ({"handle": "HANDLE", "find": " "}, "find is blank"),
        ({"handle": "HANDLE", "lines": 7}, "The arguments do not fit the tool"),
        ({}, "The arguments do not fit the tool"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_call_is_its_result(arguments: dict[str, Any], problem: str) -> None:
    async def body() -> None:
        async with scene() as played:
            handle = await fetch(played)
            if arguments.get("handle") == "HANDLE":
                arguments["handle"] = handle
            assert problem in await read(played, **arguments)
            await played.require_sound()

    run(body())


def test_data_that_is_no_text_is_refused() -> None:
    async def body() -> None:
        async with scene() as played:
            data = "\x89PNG\x00\x01\x02\x03" * 20_000
            played.host.outputs["fetch"] = cut_output(data)
            handle = await fetch(played)
            assert "is data, not text" in await read(played, handle=handle)

    run(body())


def test_what_is_no_longer_kept_is_said_plainly_and_without_a_path(tmp_path: Path) -> None:
    async def body() -> None:
        async with scene(store=JsonlStore(tmp_path)) as played:
            handle = await fetch(played)
            delete_blobs(tmp_path)
            told = await read(played, handle=handle)
            assert told == (
                f"the rest of {handle} is no longer stored: you have all that is left of it. "
                f"Call the tool again if you need the rest"
            )
            assert str(tmp_path) not in str(played.provider.bodies[-1])

    run(body())


def test_nobody_is_asked_before_something_is_read() -> None:
    async def body() -> None:
        approver = ApproverFake("allow_once")
        async with scene(approver=approver, ask_before_tools="always") as played:
            handle = await fetch(played)
            assert len(approver.asked) == 1
            assert "; lines 1-" in await read(played, handle=handle)
            assert len(approver.asked) == 1

    run(body())


def test_secrets_are_judged_in_the_whole_and_marked_alike_when_it_is_read_back() -> None:
    async def body() -> None:
        secret = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
        async with scene(secrets="off") as played:
            text = LOG.replace("06000 the", f"06000 {secret} the")
            played.host.outputs["fetch"] = cut_output(text)
            handle = await fetch(played)
            assert secret in await read(played, handle=handle, lines="6001")
            # What was kept as it was is not given as it was once settings say otherwise.
            await played.runner.session.update_settings(secrets="redact")
            page = await read(played, handle=handle, lines="6001")
            assert secret not in page
            assert "[redacted: " in page
        async with scene() as played:
            played.host.outputs["fetch"] = cut_output(text)
            handle = await fetch(played)
            page = await read(played, handle=handle, find=secret[:12])
            assert "no line has" in page
            page = await read(played, handle=handle, find="06000 ")
            assert "[redacted: " in page

    run(body())


def test_a_handle_is_good_after_a_restart_in_a_fork_and_on_its_branch_only() -> None:
    async def body() -> None:
        async with scene() as played:
            await played.ask("Hello.")
            before = played.runner.session.state.leaf
            handle = await fetch(played)
            after = played.runner.session.state.leaf
            await played.restart()
            assert "; line 7]" in await read(played, handle=handle, lines="7")
            fork = await played.runner.session.fork("fork")
            await fork.close()
            await played.runner.__aexit__()
            await played.open("fork")
            assert "; line 7]" in await read(played, handle=handle, lines="7")
            await played.runner.__aexit__()
            await played.open()
            # Another branch knows nothing of it, until the same comes along there.
            await played.runner.session.navigate(before)
            assert "there is no result with the handle" in await read(played, handle=handle)
            assert await fetch(played) == handle
            await played.runner.session.navigate(after)
            assert "; line 7]" in await read(played, handle=handle, lines="7")
            await played.require_sound()

    run(body())


def test_what_a_compaction_took_out_of_sight_is_still_read_by_its_handle() -> None:
    async def body() -> None:
        async with scene(compaction_keep=50) as played:
            handle = await fetch(played)
            for number in range(4):
                played.plays(saying(f"Answer {number}."))
                await played.ask("the tide " * 200)
            outcome = await played.runner.session.compact()
            assert outcome.changed
            texts = "".join(text for _, text in played.history)
            assert "05000 the tide" not in texts
            assert "\t05000 the tide" in await read(played, handle=handle, lines="5001")
            await played.require_sound()

    run(body())


def test_what_is_shortened_to_fit_has_a_handle_and_what_a_prune_shortens_keeps_it() -> None:
    async def body() -> None:
        async with scene(target=replace(SMALL, window=20_000)) as played:
            played.host.outputs["fetch"] = ToolOutput(text=LOG)
            digest = digest_bytes(LOG.encode())
            handle = await fetch(played)
            assert handle == make_handle(digest)
            assert (
                "tokens removed to fit the context window; read_result gives" in played.results[0]
            )
            assert "\t09000 the tide" in await read(played, handle=handle, lines="9001")
            for number in range(6):
                played.plays(saying("the tide " * 900))
                await played.ask(f"And berth {number}?")
            assert len(played.provider.bodies) > 6
            assert "\t09000 the tide" in await read(played, handle=handle, lines="9001")
            await played.require_sound()

    run(body())


def test_a_result_sent_in_full_gets_its_handle_when_a_prune_shortens_it_and_keeps_it() -> None:
    async def body() -> None:
        text = "\n".join(f"{number:04} the tide was low" for number in range(3_600))
        async with scene("fetch", "look", target=replace(SMALL, window=20_000)) as played:
            played.host.outputs["fetch"] = ToolOutput(text=text)
            played.host.outputs["look"] = ToolOutput(text="seen " * 1_500)
            looks = [calling((f"l{number}", "look", {})) for number in range(9)]
            played.plays(calling(("c1", "fetch", {})), looks[0], saying("Low."))
            await played.ask()
            assert any(text in results_in(body) for body in played.provider.bodies)
            (shortened, _) = played.results
            assert "tokens removed to fit the context window" in shortened
            handle = handle_in(shortened)
            assert handle == make_handle(digest_bytes(text.encode()))
            assert "\t1800 the tide" in await read(played, handle=handle, lines="1801")
            assert await played.runner.session.read_result(handle) == text
            # Shortened once more, or gone: it is the same handle.
            played.plays(*looks[1:], saying("Low."))
            await played.ask()
            again = [
                handle_in(r) for r in played.results if "the tide was low" in r and "[..." in r
            ]
            assert set(again) <= {handle}
            assert "\t1800 the tide" in await read(played, handle=handle, lines="1801")
            await played.require_sound()

    run(body())


def test_what_a_hook_put_in_the_place_of_a_result_takes_its_place_for_good() -> None:
    async def body() -> None:
        async with scene() as played:
            handle = await fetch(played)
            session = played.runner.session
            (message,) = [m for m in session.envelope.cached if m.role == "tool"]
            result = ToolResult(call_id="c1", name="fetch", text="(withheld)")
            op = ResultsReplace(message=message.id, results=(result,), reason="confidential")
            await session.apply("me", op)
            assert "there is no result with the handle" in await read(played, handle=handle)
            assert played.results[0] == "(withheld)"
            await played.require_sound()

    run(body())


def test_a_host_with_a_tool_of_that_name_keeps_it_for_itself() -> None:
    async def body() -> None:
        async with scene("fetch", READ_RESULT.name) as played:
            played.plays(
                calling(("c1", "fetch", {}), ("c2", READ_RESULT.name, {"x": 1})), saying("Done.")
            )
            await played.ask()
            assert ("read_result", {"x": 1}) in played.host.calls
            assert "handle" not in played.results[0]
            assert "characters in all" in played.results[0]

    run(body())


def test_it_is_called_through_use_tool_as_well_and_can_be_taken_away() -> None:
    async def body() -> None:
        async with scene() as played:
            handle = await fetch(played)
            await played.runner.session.apply(
                "me", lamina.ops.ToolsRemove(names=(READ_RESULT.name,), reason="not needed")
            )
            page = await read(played, handle=handle)
            assert page == "The tool was removed from this session; the call was not run."
            assert names_on_wire(played.provider.bodies[-1], WIDE) == ["fetch"]
            await played.require_sound()

    run(body())


OWN = ToolDefinition(name="find", description="Finds.", parameters={"type": "object"})


def test_a_client_of_ones_own_resumes_and_the_session_answers_what_is_its_own() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(window=20_000)
        await session.set_tools([OWN, lamina.READ_RESULT], reason="what this app can do")
        turn = await session.prepare("What of the tide?")
        turn = await turn.commit(openai_reply(None, calls=[("c1", "find")]))
        turn = await turn.resume({"c1": LOG})
        handle = handle_in(str(turn.request()))
        call = ("c2", "read_result", json.dumps({"handle": handle, "find": "07777"}))
        turn = await turn.commit(openai_reply(None, calls=[call, ("c3", "find")]))
        assert [pending.name for pending in turn.pending_calls] == ["read_result", "find"]
        with pytest.raises(lamina.errors.UsageError, match=r"missing \['c3'\]"):
            await turn.resume({})
        turn = await turn.resume({"c3": "nothing"})
        assert "7778:\\t07777 the tide" in json.dumps(turn.request()["messages"])
        broken = ("c4", "read_result", "not JSON")
        turn = await turn.commit(openai_reply(None, calls=[broken]))
        turn = await turn.resume({})
        assert "The arguments are not a JSON object" in str(turn.request())
        await turn.commit(openai_reply("Low."))
        await require_sound(world, session)

    run(body())

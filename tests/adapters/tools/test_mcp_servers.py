"""MCP servers that misbehave: each costs its own tools, and nothing is left of it."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import anyio
import pytest
from tests.adapters.tools.conftest import Configure, Starts, is_alive, until

from lamina.adapters.tools.mcp_client.mcp_servers import McpServers, ServerPatience
from lamina.core.values.tool import Toolset
from lamina.errors import UsageError

pytestmark = pytest.mark.anyio
LIMIT = 20


def names(toolset: Toolset) -> list[str]:
    return [tool.definition.name for tool in toolset.tools]


async def test_a_server_is_started_when_tools_are_first_asked_for(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry())) as servers:
            assert starts.pids == []
            toolset = await servers.toolset()
            assert names(toolset)[:2] == ["odd__echo", "odd__big"]
            assert toolset.withheld == ()
            await servers.toolset()
            assert len(starts.pids) == 1
            assert (await servers.call("odd__echo", {"a": "ä"})).text == '{"a": "\\u00e4"}'
            assert servers.pids == {"odd": starts.pids[0]}


async def test_calls_run_side_by_side_and_one_that_hangs_times_out_alone(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry(timeout=0.5))) as servers:
            await servers.toolset()
            texts: dict[str, str] = {}

            async def call(name: str) -> None:
                texts[name] = (await servers.call(f"odd__{name}", {"n": name})).text

            async with anyio.create_task_group() as tasks:
                for name in ("hang", "echo", "env"):
                    tasks.start_soon(call, name)
            assert list(texts)[-1] == "hang"
            assert texts["hang"] == "'hang' timed out after 0.5 s"
            assert (await servers.call("odd__echo", {})).text == "{}"
            assert len(starts.pids) == 1


async def test_a_call_that_is_cancelled_leaves_the_server_usable(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry())) as servers:
            await servers.toolset()
            with anyio.move_on_after(0.2) as scope:
                await servers.call("odd__hang", {})
            assert scope.cancelled_caught
            assert (await servers.call("odd__echo", {})).text == "{}"
            assert len(starts.pids) == 1


async def test_a_server_that_dies_in_a_call_says_so_and_is_started_again(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry())) as servers:
            await servers.toolset()
            died = await servers.call("odd__die", {})
            assert died.is_error
            assert "The server 'odd' broke off during the call: it died (exit code 3" in died.text
            assert "'the disk is on fire'" in died.text
            assert not (await servers.call("odd__echo", {})).is_error
            assert len(starts.pids) == 2


async def test_a_server_killed_in_a_call_is_started_again_by_the_next_toolset(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry())) as servers:
            before = await servers.toolset()
            async with anyio.create_task_group() as tasks:

                async def call() -> None:
                    output = await servers.call("odd__hang", {})
                    assert output.is_error
                    assert "signal 9" in output.text

                tasks.start_soon(call)
                await anyio.wait_all_tasks_blocked()
                os.kill(servers.pids["odd"], signal.SIGKILL)
            assert await servers.toolset() == before
            assert len(starts.pids) == 2


async def test_a_server_that_dies_while_nobody_calls_is_replaced_without_an_error(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry())) as servers:
            await servers.toolset()
            os.kill(servers.pids["odd"], signal.SIGKILL)
            await until(lambda: "odd" not in servers.pids)
            assert (await servers.call("odd__echo", {})).text == "{}"


async def test_a_mute_server_is_withheld_in_time_and_does_not_hold_up_the_others(
    configure: Configure, starts: Starts
) -> None:
    config = configure(mute=starts.entry("mute"), odd=starts.entry())
    with anyio.fail_after(LIMIT):
        async with McpServers(config, patience=ServerPatience(connect=1.0, grace=0.3)) as servers:
            began = time.monotonic()
            toolset = await servers.toolset()
            assert time.monotonic() - began < 10
            assert len(toolset.tools) == 10
            (held,) = toolset.withheld
            assert (held.what, held.reason) == ("mute", "unreachable")
            assert held.detail == "it did not answer within 1 s"
            began = time.monotonic()
            assert len((await servers.toolset()).withheld) == 1
            assert time.monotonic() - began < 5


async def test_the_timeout_of_a_server_holds_for_its_start(
    configure: Configure, starts: Starts
) -> None:
    config = configure(mute={**starts.entry("mute"), "timeout": 0.5})
    with anyio.fail_after(LIMIT):
        # As it is by default: a server is waited for longer than that.
        async with McpServers(config, patience=ServerPatience(grace=0.3)) as servers:
            began = time.monotonic()
            (held,) = (await servers.toolset()).withheld
            assert time.monotonic() - began < ServerPatience().connect / 2
            assert held.detail == "it did not answer within 0.5 s"


async def test_a_server_that_dies_at_once_is_not_started_over_and_over(
    configure: Configure, starts: Starts
) -> None:
    config = configure(dies=starts.entry("dies"), odd=starts.entry())
    patience = ServerPatience(rest=0.05, starts=3)
    with anyio.fail_after(LIMIT):
        async with McpServers(config, patience=patience) as servers:
            details = []
            for _ in range(40):
                toolset = await servers.toolset()
                assert len(toolset.tools) == 10
                details.append(toolset.withheld[0].detail)
                await anyio.sleep(0.02)
            assert "exit code 1, its last words: 'no token was given'" in details[0]
            assert "it is tried again in 1 s" in details[0]
            assert "failed 3 times in a row and is not started again" in details[-1]
            assert len(starts.pids) == 3 + 1
            servers.retry("dies")
            await servers.toolset()
            assert len(starts.pids) == 4 + 1
            with pytest.raises(UsageError, match="known servers: 'dies', 'odd'"):
                servers.retry("nope")


async def test_a_command_that_is_not_there_is_named(configure: Configure) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(a={"command": "no-such-command"})) as servers:
            (held,) = (await servers.toolset()).withheld
            assert "there is no command 'no-such-command'; install it" in held.detail


async def test_garbage_on_stdout_and_a_flood_on_stderr_are_passed_over(
    configure: Configure, starts: Starts, capfd: pytest.CaptureFixture[str]
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry())) as servers:
            await servers.toolset()
            assert (await servers.call("odd__noise", {})).text == "heard through the noise"
            assert (await servers.call("odd__echo", {})).text == "{}"
    assert capfd.readouterr() == ("", "")


async def test_twenty_megabytes_are_cut_with_a_note(configure: Configure, starts: Starts) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry())) as servers:
            output = await servers.call("odd__big", {"characters": 20_000_000})
            assert len(output.text) == 100_000
            assert "20,000,000 characters in all, at most 100,000 are shown" in output.text


async def test_a_message_without_end_breaks_the_connection_and_not_the_memory(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(bomb=starts.entry("bomb"))) as servers:
            (held,) = (await servers.toolset()).withheld
            assert "it sent a message of more than 67,108,864 bytes" in held.detail


async def test_what_is_not_text_is_named_and_structure_is_json(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry())) as servers:
            output = await servers.call("odd__picture", {})
            assert output.is_error
            assert output.text.splitlines() == [
                "[image image/png, 3 bytes]",
                "[resource note://a]",
                "[resource application/pdf note://b, 3 bytes]",
            ]
            assert (await servers.call("odd__shape", {})).text == '{"a":[true],"b":1}'


async def test_a_process_sees_its_own_environment_and_not_ours(
    configure: Configure, starts: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "x")
    (tmp_path / "inner").mkdir()
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry(cwd="inner"))) as servers:
            seen = json.loads((await servers.call("odd__env", {})).text)
            assert seen["cwd"] == str(tmp_path / "inner")
            assert "SECRET_OF_OURS" not in seen["env"]
            assert {"PATH", "STARTS"} <= set(seen["env"])


async def test_a_server_that_says_its_tools_changed_is_listed_again(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry())) as servers:
            before = names(await servers.toolset())
            await servers.call("odd__grow", {})
            assert names(await servers.toolset()) == [*before, "odd__grown"]


async def test_all_pages_are_listed_and_a_list_without_end_is_cut(
    configure: Configure, starts: Starts
) -> None:
    config = configure(pages=starts.entry("pages"), endless=starts.entry("endless"))
    with anyio.fail_after(LIMIT):
        async with McpServers(config) as servers:
            toolset = await servers.toolset()
            assert names(toolset)[:3] == ["pages__page0", "pages__page1", "pages__page2"]
            assert len(toolset.tools) == 3 + 1000
            assert [held.what for held in toolset.withheld] == ["endless"]
            assert "more than 1,000 tools" in toolset.withheld[0].detail


async def test_a_tool_with_a_schema_that_cannot_be_used_is_withheld_alone(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry("schemas"))) as servers:
            toolset = await servers.toolset()
            assert names(toolset) == ["odd__good", "odd__regex"]
            held = {tool.what: tool for tool in toolset.withheld}
            assert [tool.reason for tool in held.values()] == ["invalid", "invalid", "duplicate"]
            assert "`properties.a.type`: 'nonsense'" in held["odd · wrong"].detail
            assert "'http://h.invalid/s' refers to nothing" in held["odd · remote"].detail


async def test_a_tool_is_offered_with_when_it_is_included(
    configure: Configure, starts: Starts
) -> None:
    config = configure(
        a=starts.entry(include="agent", tools={"echo": {"include": "manual"}}), b=starts.entry()
    )
    with anyio.fail_after(LIMIT):
        async with McpServers(config) as servers:
            given = {tool.definition.name: tool.include for tool in (await servers.toolset()).tools}
    names = ("a__echo", "a__big", "b__echo")
    assert [given[name] for name in names] == ["manual", "agent", "always"]


async def test_permission_is_the_tools_then_the_servers_then_required(
    configure: Configure, starts: Starts
) -> None:
    permissions = {"echo": {"permission": "required"}, "hang": {"disabled": True}, "ehco": {}}
    config = configure(
        a=starts.entry(permission="free", tools=permissions),
        b=starts.entry(tools={"big": {"permission": "free"}}),
    )
    with anyio.fail_after(LIMIT):
        async with McpServers(config) as servers:
            toolset = await servers.toolset()
            given = {tool.definition.name: tool.permission for tool in toolset.tools}
            assert [given[name] for name in ("a__echo", "a__big", "b__echo", "b__big")] == [
                "required",
                "free",
                "required",
                "free",
            ]
            assert "a__hang" not in given
            assert (await servers.call("a__hang", {})).is_error
            (held,) = toolset.withheld
            assert held.what == "a · ehco"
            assert "did you mean 'echo'?" in held.detail


async def test_a_stubborn_server_is_gone_when_the_host_is_left(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        patience = ServerPatience(grace=0.3)
        async with McpServers(
            configure(odd=starts.entry("stubborn")), patience=patience
        ) as servers:
            await servers.toolset()
            (pid,) = starts.pids
            assert is_alive(pid)
        assert not is_alive(pid)


async def test_what_a_server_started_goes_with_it(configure: Configure, starts: Starts) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry())) as servers:
            await servers.toolset()
            child = int((await servers.call("odd__child", {})).text)
            assert is_alive(child)
        await until(lambda: not is_alive(child))


@pytest.mark.parametrize("mode", ["plain", "mute"])
async def test_a_cancellation_leaves_no_process_behind(
    configure: Configure, starts: Starts, mode: str
) -> None:
    with anyio.fail_after(LIMIT):
        with anyio.CancelScope() as scope:
            config = configure(odd=starts.entry(mode))
            async with McpServers(config, patience=ServerPatience(grace=0.3)) as servers:

                async def cancel() -> None:
                    await until(lambda: bool(starts.pids))
                    scope.cancel()

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(cancel)
                    await servers.call("odd__hang", {})
        assert scope.cancelled_caught
        assert not is_alive(starts.pids[0])


async def test_a_task_cancelled_from_outside_leaves_no_process_behind(
    configure: Configure, starts: Starts
) -> None:
    async def body() -> None:
        async with McpServers(configure(odd=starts.entry())) as servers:
            await servers.call("odd__hang", {})

    with anyio.fail_after(LIMIT):
        task = asyncio.ensure_future(body())
        await until(lambda: bool(starts.pids))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not is_alive(starts.pids[0])


async def test_an_error_in_the_body_comes_out_as_it_is(
    configure: Configure, starts: Starts
) -> None:
    servers = McpServers(configure(odd=starts.entry()))

    async def body() -> None:
        async with servers:
            await servers.toolset()
            raise KeyError("mine")

    with anyio.fail_after(LIMIT):
        with pytest.raises(KeyError, match="mine"):
            await body()
        with pytest.raises(UsageError, match="use `async with`"):
            await servers.toolset()


async def test_arguments_that_no_json_carries_are_refused_and_not_sent(
    configure: Configure, starts: Starts
) -> None:
    with anyio.fail_after(LIMIT):
        async with McpServers(configure(odd=starts.entry())) as servers:
            await servers.toolset()
            output = await servers.call("odd__echo", {"a": "\ud800"})
            assert output.is_error
            assert "cannot be sent" in output.text
            assert (await servers.call("odd__echo", {})).text == "{}"
            assert len(starts.pids) == 1

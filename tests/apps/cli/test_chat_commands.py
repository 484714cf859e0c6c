"""What is typed in a chat, and what comes of it."""

import re
from pathlib import Path

import anyio
import pytest
from tests.apps.cli.chats import CTRL_C, SourceFake, Talk, answer, opened, talk
from tests.fakes.providers import ProviderFake, calling
from tests.fakes.tools import ToolHostFake, tool

from lamina.apps.cli.chat.chat import how_to_go_on
from lamina.apps.cli.chat.command_table import COMMANDS
from lamina.apps.cli.chat.slash_commands import HANDLERS
from lamina.apps.cli.session_tree import questions_of
from lamina.core.values.message import Message
from lamina.core.values.selection import SearchSettings, preset
from lamina.core.values.tool import ToolOutput, WithheldTool
from lamina.core.values.usage import Usage
from lamina.errors import ProviderError


def asked(provider: ProviderFake, index: int = -1) -> str:
    """The last message that the model got."""
    return str(provider.bodies[index]["messages"][-1]["content"])


def messages(talked: Talk) -> list[Message]:
    return list(talked.session.envelope.cached)


# -- messages ------------------------------------------------------------------------------------


def test_an_answer_stands_alone_on_standard_output_and_its_cost_on_the_other(notes: Path) -> None:
    talked = talk(notes, "Hello?", replies=[answer("It is **May**.\nStill.", cached=91)])
    assert talked.out == "It is **May**.\nStill.\n"
    assert "prompt 100 · 91% cached · 9 re-processed · answer 4 · first word" in talked.err
    assert "s · free\n" in talked.err
    assert talked.code == 0


def test_a_new_session_says_who_answers_where_and_how_to_get_help(notes: Path) -> None:
    talked = talk(notes)
    expected = f"local:smollm2-135m · notes · session {talked.session.id} · /help lists commands\n"
    assert talked.err == expected


def test_blank_lines_are_not_sent_and_two_slashes_send_one(notes: Path) -> None:
    provider = ProviderFake(answer("A path."))
    talk(notes, "", "   ", "//usr/bin is what?", provider=provider)
    assert [asked(provider)] == ["/usr/bin is what?"]


def test_a_mentioned_path_is_attached_and_stays_in_the_text(notes: Path) -> None:
    (notes / "a b.md").write_text("Spaces.\n", "utf-8")
    provider = ProviderFake(answer("Yes."))
    talk(notes, 'What says @plan.md, and (@"a b.md")?', provider=provider)
    said = asked(provider)
    assert "The pier opens in May." in said
    assert "Spaces." in said
    assert said.endswith('What says @plan.md, and (@"a b.md")?')


def test_a_mention_that_cannot_be_read_is_said_and_recorded(notes: Path) -> None:
    talked = talk(notes, "@gone.md and @bob, me@x.org", replies=[answer("Hm."), answer("Hm.")])
    assert "left out: gone.md does not exist in the workspace" in talked.err
    assert "@bob is not a file here; it is sent as text" in talked.err
    assert "x.org" not in talked.err
    request = talked.session.state.requests.sent
    assert request is not None
    assert [omission.reason for omission in request.context.left_out] == ["missing"]


def test_an_error_is_one_line_and_the_turn_can_be_sent_again(notes: Path) -> None:
    down = ProviderError("the server is down; start it")
    talked = talk(notes, "Hello?", "/resume", replies=[[down], answer("Here I am.")])
    assert "error: the server is down; start it\nthe question is kept: /resume" in talked.err
    assert talked.out == "Here I am.\n"
    assert talked.code == 1
    assert [message.text for message in messages(talked)] == ["Hello?", "Here I am."]


def test_what_broke_off_is_kept_and_the_chat_goes_on(notes: Path) -> None:
    broken = answer("Half a")[:-1]
    talked = talk(notes, "Hello?", "Again?", replies=[broken, answer("Whole.")])
    assert "error: the answer broke off; what came of it is kept" in talked.err
    assert "the question is kept" not in talked.err
    assert talked.out == "Half a\nWhole.\n"


def test_a_bug_does_not_end_the_chat(notes: Path) -> None:
    talked = talk(notes, "Hello?", "Again?", replies=[[ZeroDivisionError("oh")], answer("Fine.")])
    assert "error: ZeroDivisionError: oh (a bug in Lamina; the session is kept)" in talked.err
    assert talked.out == "Fine.\n"


def test_nothing_in_an_answer_or_a_name_steers_the_terminal(notes: Path) -> None:
    evil = "\x1b[2J\x1b]0;title\x07 \x9b31m \u202egnp.exe\r\n"
    talked = talk(
        notes, f"/name {evil}", f"Say {evil}", "/tree", "/log", "/context --full",
        replies=[answer(f"{evil}done")],
    )  # fmt: skip
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", talked.out + talked.err)
    assert r"\x1b[2J\x1b]0;title\x07 \x9b31m \u202egnp.exe" in talked.out


def test_an_answer_that_was_cut_or_empty_is_said_to_be(notes: Path) -> None:
    replies = [answer("So much", stop="length"), answer(" ")]
    talked = talk(notes, "One?", "Two?", replies=replies)
    assert (
        "(cut off: the answer reached its token limit; /settings max_tokens changes it)"
        in talked.err
    )
    assert "(the model said nothing)" in talked.err


def test_the_cache_is_spoken_of_when_it_is_not_as_expected(notes: Path) -> None:
    cold = answer("B.", input=2_000)
    talked = talk(notes, "x " * 900, "Two?", replies=[cold, cold])
    said = [line for line in talked.err.splitlines() if line.startswith("cache: ")]
    assert len(said) == 1
    assert said[0] != "cache: the model was reloaded, so its cache was empty"
    again = talk(notes, "Three?", session=talked.session.id, replies=[cold])
    assert "cache: the model was reloaded, so its cache was empty\n" in again.err


# -- leaving ---------------------------------------------------------------------------------------


def test_ctrl_c_says_how_to_leave_and_a_second_one_leaves(notes: Path) -> None:
    talked = talk(notes, CTRL_C, "Hello?", CTRL_C, CTRL_C, "Never", replies=[answer("Yes.")])
    assert (
        talked.err.count(
            "press Ctrl-C again, or Ctrl-D, or type /quit to leave; the session is kept"
        )
        == 2
    )
    assert talked.out == "Yes.\n"


def test_quit_leaves_at_once(notes: Path) -> None:
    assert talk(notes, "/quit", "Never").code == 0


@pytest.mark.parametrize("word", ["exit", "quit"])
def test_a_word_that_is_meant_to_leave_is_not_sent_unless_it_is_escaped(
    notes: Path, word: str
) -> None:
    provider = ProviderFake(answer("A word."), answer("Four words."))
    talked = talk(notes, f" {word} ", f"//{word}", f"What is {word} here?", provider=provider)
    assert f"/quit leaves; //{word} sends it as a message\n" in talked.err
    assert [asked(provider, 0), asked(provider, 1)] == [word, f"What is {word} here?"]
    assert talked.code == 0


def test_the_way_back_names_the_session_and_a_workspace_that_is_elsewhere(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "a b").mkdir()
    monkeypatch.chdir(notes)
    assert how_to_go_on("x1", Path()) == "lamina chat -s x1"
    assert how_to_go_on("x1", notes) == "lamina chat -s x1"
    assert how_to_go_on("x1", Path("a b")) == "lamina chat -s x1 -w 'a b'"
    monkeypatch.chdir(notes.parent)
    assert how_to_go_on("x1", notes) == f"lamina chat -s x1 -w {notes}"


def test_a_signal_ends_the_chat_and_what_came_is_kept(notes: Path) -> None:
    waiting = anyio.Event()
    provider = ProviderFake([*answer("Half an answer")[:-1], waiting])

    async def body() -> None:
        async with (
            opened(notes, SourceFake("Hello?"), provider) as talked,
            anyio.create_task_group() as group,
        ):

            async def end() -> None:
                await provider.waits.wait()
                talked.chat.end(143)

            group.start_soon(end)
            assert await talked.chat.talk() == 143
            assert messages(talked)[-1].text == "Half an answer"

    anyio.run(body)


# -- coming back -----------------------------------------------------------------------------------


def test_a_session_that_is_opened_again_shows_where_it_stands(notes: Path) -> None:
    first = talk(notes, "/name Harbour", "One?", "Two?", replies=[answer("1"), answer("2 " * 300)])
    again = talk(notes, session=first.session.id)
    lines = again.err.splitlines()
    assert lines[0] == (f"Harbour · 2 questions · local:smollm2-135m · session {first.session.id}")
    assert lines[1] == "› Two?"
    assert lines[2].startswith("  2 2 2 ")
    assert lines[2].endswith("…")


def test_an_interrupted_turn_is_shown_and_answered_by_resume(notes: Path) -> None:
    first = talk(notes, "Hello?", replies=[[ProviderError("gone")]])
    again = talk(notes, "/resume", "/resume", session=first.session.id, replies=[answer("Hi.")])
    assert (
        "› Hello?\n! interrupted: this question was never answered. /resume sends it again"
        in again.err
    )
    assert again.out == "Hi.\n"
    assert "error: the last turn is complete: there is nothing to continue" in again.err


def test_damage_is_shown_once(notes: Path) -> None:
    first = talk(notes, "One?", "Two?", replies=[answer("1"), answer("2")])
    found = list((notes.parent / "home").rglob(f"{first.session.id}*.jsonl"))
    lines = found[0].read_bytes().splitlines(keepends=True)
    lines[2] = lines[2][: len(lines[2]) // 2] + b"\n"
    found[0].write_bytes(b"".join(lines))
    for index in found[0].parent.glob("*.index"):
        index.unlink()
    again = talk(notes, "Three?", session=first.session.id, replies=[answer("3")])
    assert again.err.count("! damaged: ") >= 1
    assert "`lamina repair" in again.err
    assert "! journal: " not in again.err


# -- what was sent ---------------------------------------------------------------------------------


def test_context_shows_layers_items_and_what_was_left_out(notes: Path) -> None:
    replies = [answer("1"), answer("2", cached=60)]
    talked = talk(notes, "/context", "One?", "@plan.md @no.md?", "/context", replies=replies)
    assert "nothing has been sent on this path yet" in talked.err
    shown = talked.out
    assert re.search(r"^request 2 to local:smollm2-135m: \d+ of [\d,]+ tokens", shown, re.M)
    assert re.search(r"^layer +tokens +cached$", shown, re.M)
    assert re.search(r"^L5 message +\d+ +0$", shown, re.M)
    assert re.search(
        r"^plan\.md +\d+ +this message, in full +manual +attached to this message", shown, re.M
    )
    assert re.search(r"^note:no\.md +missing +no\.md does not exist", shown, re.M)
    assert "The pier opens in May." not in shown


def test_context_full_shows_every_segment(notes: Path) -> None:
    talked = talk(notes, "@plan.md?", "/context --full", replies=[answer("1")])
    assert "The pier opens in May." in talked.out
    assert re.search(r"^L5 · user · .* tokens", talked.out, re.M)


def test_compact_says_what_became_of_history(notes: Path) -> None:
    small = ["/settings compaction_keep 100", "/settings compaction_summary 50"]
    lines = [f"Question {number} {'more ' * 200}" for number in range(4)]
    replies = [answer("word " * 200) for _ in lines]
    talked = talk(notes, "/compact", *small, *lines, "/compact", replies=replies)
    assert "nothing was compacted: " in talked.err
    assert re.search(r"\d+ messages \([\d,]+ tokens\) were replaced by a summary", talked.err)


def test_compact_waits_for_the_answer_to_the_last_question(notes: Path) -> None:
    down = ProviderError("the server is down; start it")
    talked = talk(
        notes, "Hello?", "/compact", "/resume", replies=[[down], answer("Here I am.")]
    )  # fmt: skip
    problem = (
        "the last question has no answer yet: /resume it, or ask something else, then /compact"
    )
    assert f"error: {problem}\n" in talked.err
    assert "summarising" not in talked.err
    assert talked.out == "Here I am.\n"
    again = talk(notes, "/compact", session=talked.session.id)
    assert "summarising …\nnothing was compacted: " in again.err


# -- attachments -----------------------------------------------------------------------------------


def test_what_is_attached_stays_until_it_is_detached(notes: Path) -> None:
    (notes / "other.txt").write_text("Other.", "utf-8")
    provider = ProviderFake(answer("1"), answer("2"), answer("3"))
    talked = talk(
        notes, "/attach --essential plan.md other.txt", "/attach", "One?", "/detach other.txt",
        "Two?", "/detach", "Three?", provider=provider,
    )  # fmt: skip
    assert "attached plan.md (31 characters, essential) until /detach" in talked.err
    assert "attached: plan.md (essential), other.txt (essential)" in talked.err
    assert "The pier opens" in asked(provider, 0)
    assert "Other." in asked(provider, 0)
    assert asked(provider, 1).startswith("Context attached to this message:\n- plan.md")
    assert asked(provider, 2) == "Three?"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("/attach gone.md", "not attached: gone.md does not exist in the workspace"),
        ("/attach ../x.md", "not attached: '../x.md' is not a path inside the workspace"),
        ("/attach .", "not attached: '.' is not a path inside the workspace"),
        ("/attach 'a", """"'a": No closing quotation; close the quote, or leave it out"""),
        ("/detach x", "x is not attached; /attach lists what is"),
        ("/pin gone.md", "cannot pin: gone.md does not exist in the workspace"),
        ("/unpin x", "x is not pinned; /pin lists what is"),
        ("/unpin", "usage: /unpin PATH..."),
        ("/context all", "usage: /context [--full]"),
        ("/branch 77", "'77' is not a question; /tree lists them"),
        ("/branch", "usage: /branch ENTRY; /tree lists the questions"),
        ("/label", "usage: /label ENTRY [TEXT]"),
        ("/log x", "usage: /log [COUNT]"),
        ("/quit now", "/quit accepts no arguments"),
        ("/resume", "the last turn is complete: there is nothing to continue"),
        ("/contxt", "no command /contxt; did you mean /context?"),
        ("/se", "no command /se; did you mean /search or /settings?"),
        ("/zzz", "no command /zzz; /help lists them. // sends a message that begins with /"),
        ("/model nope", "target 'nope' is not 'provider:model' with a known provider"),
        ("/settings window many", "setting window='many': must be a whole number or none"),
        ("/settings promotion fast", "setting promotion='fast': must be one of lazy, eager"),
        ("/settings prune_to 3", "setting prune_to=3.0: is a share: above 0 and at most 1"),
        ("/settings temperature -1", "setting temperature=-1.0: must be a number from 0 on"),
        ("/settings reasoning none", "setting reasoning='none': cannot be unset; give a value"),
        ("/settings guide_search loud", "setting guide_search='loud': must be one of conservative"),
        ("/settings guide_search.top_n -1", "setting top_n=-1: must be a whole number from 0 on"),
        ("/settings tool_search.floor 2", "setting floor=2.0: is a cosine similarity"),
        (
            "/settings tool_search.search maybe",
            "setting tool_search.search='maybe': must be true or false",
        ),
        ("/settings tool_search.size 2", "no setting 'tool_search.size'; /settings lists them"),
        ("/settings size 3", "no setting 'size'; /settings lists them"),
        ("/settings window", "what should window be? usage: /settings [NAME VALUE]"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(notes: Path, line: str, problem: str) -> None:
    talked = talk(notes, line)
    assert f"error: {problem}" in talked.err
    assert talked.code == 1


def test_pinned_notes_are_named_every_turn(notes: Path) -> None:
    provider = ProviderFake(answer("1"), answer("2"))
    talked = talk(
        notes, "/pin", "/pin plan.md", "/pin plan.md", "/pin", "One?", "/unpin plan.md", "Two?",
        provider=provider,
    )  # fmt: skip
    said = [line for line in talked.err.splitlines() if "pin" in line and "One" not in line]
    assert said[:4] == [
        "nothing is pinned; /pin PATH pins a file", "pinned plan.md", "plan.md is already pinned",
        "pinned: plan.md",
    ]  # fmt: skip
    assert "The pier opens" in str(provider.bodies[0]["messages"])
    assert asked(provider, 1) == "Two?"


# -- the tree --------------------------------------------------------------------------------------


def test_a_question_can_be_asked_anew_and_the_tree_shows_both(notes: Path) -> None:
    first = talk(notes, "One?", "Two?", replies=[answer("1"), answer("2")])
    entry = questions_of(first.session)[1].id
    source = SourceFake(f"/label {entry} draft", f"/branch {entry}", "Two, better?", "/tree")
    talked = talk(notes, source=source, session=first.session.id, replies=[answer("2b")])
    assert source.offered == ["", "", "Two?", "", ""]
    lines = talked.out.splitlines()
    assert lines[0] == "2b"
    assert [re.sub(r"[0-9a-f]{6}", "#", line) for line in lines[1:]] == [
        "* #  One?",
        "     #  Two?  «draft»",
        "* #  Two, better?",
        "* is the active branch; /branch ENTRY goes back to a question",
    ]


def test_only_questions_can_be_asked_anew(notes: Path) -> None:
    first = talk(notes, "One?", replies=[answer("1")])
    question = questions_of(first.session)[0].id
    others = [entry.id for entry in first.session.path if entry.id != question]
    talked = talk(notes, *(f"/branch {entry}" for entry in others), session=first.session.id)
    assert [line for line in talked.err.splitlines() if "error" in line] == [
        f"error: {entry!r} is not a question; /tree lists them" for entry in others
    ]
    assert talked.session.state.leaf == first.session.state.leaf


# -- settings and tools ----------------------------------------------------------------------------


def test_settings_are_shown_and_changed_with_their_types(notes: Path) -> None:
    talked = talk(
        notes, "/settings window 4000", "/settings max_tokens 7", "/settings prune_to 1",
        "/settings history strip", "/settings window none", "/settings",
    )  # fmt: skip
    settings = talked.session.settings
    assert (settings.window, settings.prune_to, settings.history) == (None, 1.0, "strip")
    assert talked.session.envelope.options.max_tokens == 7
    assert "window is 4000 from the next message on" in talked.err
    assert re.search(r"^max_tokens +7 +none$", talked.out, re.M)
    assert re.search(r"^history +strip +full$", talked.out, re.M)


def test_settings_with_parts_are_changed_part_by_part_or_by_a_preset(notes: Path) -> None:
    talked = talk(
        notes, "/settings guide_search.top_n 3", "/settings guide_search.search off",
        "/settings tool_search conservative", "/settings tool_policy exact",
        "/settings tool_joins none", "/settings expand_results yes",
        "/settings relevance_priority TRUE", "/settings",
    )  # fmt: skip
    settings = talked.session.settings
    assert settings.guide_search == SearchSettings(top_n=3, search=False)
    assert settings.tool_search == preset("conservative")
    assert (settings.tool_policy, settings.tool_joins) == ("exact", None)
    assert (settings.expand_results, settings.relevance_priority) == (True, True)
    assert "guide_search.search is false from the next message on\n" in talked.err
    assert re.search(r"^guide_search +\(custom values\) +normal$", talked.out, re.M)
    assert re.search(r"^guide_search\.top_n +3 +5$", talked.out, re.M)
    assert re.search(r"^tool_search +conservative +normal$", talked.out, re.M)
    assert re.search(r"^tool_joins +none +4$", talked.out, re.M)
    assert re.search(r"^expand_results +true +false$", talked.out, re.M)
    assert re.search(r"^tool_search\.floor +0\.15$", talked.out, re.M)


def test_that_nobody_can_answer_is_said_before_the_next_question(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    talked = talk(notes, "/model", "/model anthropic:claude-opus-5")
    assert "local:smollm2-135m · window 8,192 · free" in talked.err
    missing = "! no model can answer: there is no key for 'anthropic': set ANTHROPIC_API_KEY"
    assert missing in talked.err
    assert "or use /model local:smollm2-135m for the embedded model" in talked.err
    assert talked.session.settings.target == "anthropic:claude-opus-5"
    again = talk(notes, session=talked.session.id)
    assert missing in again.err


USAGE = Usage(input=10, output=1)


def test_a_call_is_shown_whole_and_runs_once_it_is_allowed(notes: Path) -> None:
    host = ToolHostFake(tool("wipe", "required"), tool("look"))
    host.outputs["wipe"] = ToolOutput(text="gone\nall of it " + "x" * 200)
    path = "/very/long/" + "p" * 120
    reply = calling(("c1", "wipe", {"path": path}), ("c2", "look", {}), usage=USAGE)
    source = SourceFake("Wipe it.")
    talked = talk(notes, source=source, host=host, replies=[reply, answer("Done.")], choices=["o"])
    assert source.questions == ["allow it? [o]nce, [s]ession, [d]eny "]
    assert "? fake · wipe wants to run with\n" in talked.err
    assert f'"path": "{path}"' in talked.err
    assert "  allowed once\n" in talked.err
    assert re.search(r"^→ fake · wipe \{.*…$", talked.err, re.M)
    assert re.search(r"^  ← gone all of it x+…", talked.err, re.M)
    assert sorted(host.called) == ["look", "wipe"]
    assert talked.out == "Done.\n"


@pytest.mark.parametrize("choice", ["d", None])
def test_a_call_that_nobody_allows_is_denied(notes: Path, choice: str | None) -> None:
    host = ToolHostFake(tool("wipe", "required"))
    replies = [calling(("c1", "wipe", {}), usage=USAGE), answer("As you like.")]
    talked = talk(notes, "Wipe it.", host=host, replies=replies, choices=[choice])
    assert host.called == []
    assert "← failed: Tool call denied" in talked.err
    assert talked.out == "As you like.\n"


def test_allowed_for_the_session_is_not_asked_again(notes: Path) -> None:
    host = ToolHostFake(tool("wipe", "required"))
    wipe = calling(("c1", "wipe", {}), usage=USAGE)
    source = SourceFake("Wipe it.", "Again.", "/tools")
    replies = [wipe, answer("Done."), wipe, answer("Done.")]
    talked = talk(notes, source=source, host=host, replies=replies, choices=["s"])
    assert len(source.questions) == 1
    assert host.called == ["wipe", "wipe"]
    assert re.search(r"^fake · wipe +allowed for this session +Does wipe\.", talked.out, re.M)


def test_ctrl_c_at_a_decision_stops_the_turn(notes: Path) -> None:
    host = ToolHostFake(tool("wipe", "required"))
    replies = [calling(("c1", "wipe", {}), usage=USAGE), answer("Something else.")]
    talked = talk(notes, "Wipe it.", "Hello?", host=host, replies=replies, choices=[CTRL_C])
    assert host.called == []
    assert "(stopped)" in talked.err
    assert talked.out == "Something else.\n"


def test_tools_says_what_is_offered_on_which_terms_and_what_is_withheld(notes: Path) -> None:
    host = ToolHostFake(tool("wipe", "required"), tool("look"))
    host.withheld = [WithheldTool(what="far", reason="unreachable", detail="it does not answer")]
    talked = talk(notes, "/tools", host=host)
    assert re.search(r"^fake · wipe +you are asked +Does wipe\.", talked.out, re.M)
    assert re.search(r"^fake · look +runs without asking +Does look\.", talked.out, re.M)
    assert "! withheld: far (unreachable): it does not answer" in talked.out
    assert "no tools; --mcp FILE adds those of MCP servers" in talk(notes, "/tools").out


def test_help_lists_every_command(notes: Path) -> None:
    shown = talk(notes, "/help").out
    assert all(f"/{name}" in shown for name in COMMANDS)
    assert set(HANDLERS) == set(COMMANDS)


def test_log_shows_the_last_entries(notes: Path) -> None:
    talked = talk(notes, "One?", "/log 2", "/log", replies=[answer("1")])
    first, second = talked.out.split("earlier entries", 1)[1].splitlines()[1:3]
    assert " assistant  1" in first
    assert " reply " in second

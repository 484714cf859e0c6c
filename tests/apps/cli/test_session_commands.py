"""`lamina sessions`, `log`, `verify` and `repair`, over sessions that were really kept."""

import json
import os
import subprocess
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from inline_snapshot import snapshot
from tests.apps.cli.commands import LAMINA
from tests.apps.cli.inside import error, lamina, output
from tests.fakes.clock import FakeClock
from tests.fakes.files import session_file
from tests.fakes.replies import openai_reply
from tests.golden.journals import FOLDER

from lamina import Session, Settings, ToolDefinition, open_session
from lamina.apps.cli.session_commands import show_sessions
from lamina.apps.views.stored_sessions import SessionRow
from lamina.core.journal.lines import write_line
from lamina.core.values.envelope import Options

TARGET = "openai:gpt-4o"
SEARCH = ToolDefinition(
    name="search", description="Searches.", parameters={"type": "object", "properties": {}}
)


def keep(notes: Path, name: str, talk: Callable[[Session], Awaitable[None]], **given: Any) -> Path:
    """Makes a session, and returns its file."""

    async def body() -> None:
        given.setdefault("clock", FakeClock())
        async with await open_session(name, workspace=notes, target=TARGET, **given) as session:
            await talk(session)

    anyio.run(body)
    return session_file(notes, name)


async def ask(session: Session, text: str, *attach: str, answer: str = "Noted.") -> None:
    turn = await session.prepare(text, attach=attach)
    await turn.commit(openai_reply(answer, input=turn.prompt.tokens, cached=0))


async def ask_twice(session: Session) -> None:
    await ask(session, "When does the pier open?", answer="In May.")
    await ask(session, "And the museum?", answer="In June.")


async def ask_of_all_kinds(session: Session) -> None:
    """A note, a missing one, a tool call, a label, a branch, and a question without answer."""
    turn = await session.prepare("When does\nthe pier open?", attach=["plan.md", "gone.md"])
    turn = await turn.commit(openai_reply(None, calls=[("c1", "search")], input=100, cached=0))
    turn = await turn.resume({"c1": "May\n(plan.md)"})
    await turn.commit(openai_reply("In May.", input=120, cached=0))
    answer = session.path[-2].id
    await session.label(answer, "the answer")
    await ask(session, "And [bold]the museum[/bold]?")
    await session.navigate(session.path[-4].id, summary="The museum is shut.")
    await ask(session, "And the tower?")
    await session.prepare("Are you there?")


def at(path: Path, time: float) -> None:
    os.utime(path, (time, time))


def tidy(text: str, path: Path) -> str:
    """The text without the folder that a session's file is in."""
    return text.replace(str(path.parent), "~")


# -- sessions -----------------------------------------------------------------------------------


def test_the_sessions_of_a_folder_are_listed_with_the_latest_first(notes: Path) -> None:
    at(keep(notes, "pier", ask_twice), 1_794_000_000.0)

    async def rename(session: Session) -> None:
        await ask(session, "Hm?")
        await session.rename("[b]Towers[/b] of the town")

    at(keep(notes, "tower", rename), 1_794_000_060.0)
    assert output("sessions", cwd=notes) == snapshot("""\
 session  title                              messages  in  cached  out       cost  written          \n\
 tower    [b]Towers[/b] of the town                 2   6       0    5  $0.000065  2026-11-06 21:21 \n\
 pier     When does the pier open?                  4  35       0   10  $0.000188  2026-11-06 21:20 \n\
""")
    assert output("sessions", "-w", "notes", cwd=notes.parent) == output("sessions", cwd=notes)


LONG = "2026-11-06_21-20-00_When-does-the-pier-open-and-may-dogs-be-brought-along-in-the-summer"


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("everywhere", [False, True])
def test_a_long_id_leaves_room_for_what_it_is_about_and_every_figure(
    notes: Path, monkeypatch: pytest.MonkeyPatch, width: int, everywhere: bool
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    at(keep(notes, LONG, ask_twice), 1_794_000_000.0)
    at(keep(notes, "pier", ask_twice), 1_794_000_000.0)
    shown = output("sessions", *(["--all"] if everywhere else []), cwd=notes)
    lines = shown.splitlines()
    if everywhere:
        assert lines.pop(0) == "notes"
    heading, *rows = lines
    assert all(len(line) == width for line in lines)
    assert "title" in heading
    figures = [row for row in rows if "When does the" in row]
    assert len(figures) == 2
    for row in figures:
        assert " $0.000188  " in row
        assert row.endswith("11-06 21:20 ")
    # An id is what other commands take: it is folded in its column, and not cut.
    assert "".join(row.split("  ")[0].strip() for row in rows) == f"pier{LONG}"


def test_the_bare_list_has_a_name_too(notes: Path) -> None:
    keep(notes, "pier", ask_twice)
    assert output("sessions", "list", cwd=notes) == output("sessions", cwd=notes)
    options = ("--all", "--json")
    assert output("sessions", "list", *options, cwd=notes) == output(
        "sessions", *options, cwd=notes
    )


@pytest.mark.parametrize("option", ["--all", "--json", "-wnotes"])
@pytest.mark.parametrize("command", [("list",), ("delete", "pier", "--yes")])
def test_an_option_before_a_command_about_sessions_is_not_ignored(
    notes: Path, option: str, command: tuple[str, ...]
) -> None:
    keep(notes, "pier", ask_twice)
    shown = error("sessions", option, *command, cwd=notes.parent, code=2)
    problem = " ".join(shown.replace("│", " ").split())
    assert f"options go after the command: lamina sessions {command[0]}" in problem
    assert output("log", "pier", cwd=notes)


def test_where_there_are_no_sessions_this_is_said(notes: Path) -> None:
    assert output("sessions", cwd=notes) == snapshot(
        "No sessions here yet. --all lists those of every workspace.\n"
    )
    assert json.loads(output("sessions", "--json", cwd=notes)) == []


def test_all_sessions_are_listed_with_the_workspace_each_is_of(notes: Path) -> None:
    other = notes.parent / "recipes"
    other.mkdir()
    keep(notes, "pier", ask_twice)
    keep(other, "soup", ask_twice)
    assert "soup" not in output("sessions", cwd=notes)
    rows = json.loads(output("sessions", "--all", "--json", cwd=notes))
    assert {row["session"]: row["workspace"] for row in rows} == {
        "pier": "notes",
        "soup": "recipes",
    }
    # To look into one of them a person needs its folder.
    shown = output("sessions", "--all", cwd=notes)
    assert "recipes" in shown


def test_sessions_for_machines_say_what_they_cost(notes: Path) -> None:
    path = keep(notes, "pier", ask_twice)
    at(path, 1_794_000_000.0)
    (row,) = json.loads(output("sessions", "--json", cwd=notes))
    assert row.pop("bytes") == path.stat().st_size
    assert row == snapshot(
        {
            "session": "pier",
            "workspace": "notes",
            "name": "When does the pier open?",
            "messages": 4,
            "entries": 9,
            "usage": {"input": 35, "output": 10},
            "cost": 0.0001875,
            "unpriced": 0,
            "written": 1794000000.0,
            "damage": 0,
            "open": False,
            "waits": False,
            "problem": "",
        }
    )


def test_a_session_id_stays_in_one_piece_on_a_terminal_of_80_columns(notes: Path) -> None:
    name = "0123456789abcdef"

    async def long(session: Session) -> None:
        await ask(session, "A first question that goes on and on and on until the end of the line")
        turn = await session.prepare("And the costs?")
        await turn.commit(openai_reply("Many.", input=1_234_567, cached=1_000_000))

    at(keep(notes, name, long), 1_794_000_000.0)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("LAMINA_")}
    shown = subprocess.run(
        [str(LAMINA), "sessions"], cwd=notes, env=clean | {"COLUMNS": "80"},
        capture_output=True, text=True, encoding="utf-8", check=True,
    ).stdout  # fmt: skip
    assert max(map(len, shown.splitlines())) <= 80
    assert name in shown


def test_a_damaged_session_is_listed_with_its_damage(notes: Path) -> None:
    path = keep(notes, "pier", ask_twice)
    path.write_bytes(path.read_bytes()[:-20])
    at(path, 1_794_000_000.0)
    assert output("sessions", cwd=notes) == snapshot("""\
 session  title                              messages  in  cached  out       cost  written          \n\
 pier     (damaged in 2 places) When does …         4  10       0    5  $0.000075  2026-11-06 21:20 \n\
""")


def test_a_file_under_another_sessions_name_is_listed_with_what_is_wrong(notes: Path) -> None:
    path = keep(notes, "pier", ask_twice)
    path.rename(path.with_name("pear.jsonl"))
    (row,) = json.loads(output("sessions", "--json", cwd=notes))
    assert tidy(row["problem"], path) == snapshot(
        "'~/pear.jsonl' contains session 'pier', not 'pear': it was renamed or copied. Restore its name, or import it"
    )


# -- finding ------------------------------------------------------------------------------------


def test_a_session_is_found_by_its_beginning_and_by_its_file(notes: Path) -> None:
    path = keep(notes, "pier", ask_twice)
    shown = output("log", "pier", cwd=notes)
    assert output("log", "pi", cwd=notes) == shown
    assert output("log", str(path), cwd=notes.parent) == shown
    assert output("log", "pier", "-w", str(notes), cwd=notes.parent) == shown


def test_a_name_that_means_nothing_or_too_much_is_explained(notes: Path) -> None:
    assert error("log", "pier", cwd=notes) == snapshot(
        "error: no session 'pier' in the workspace '.'; this workspace has no sessions yet. -w DIR looks in another workspace, and a path to a .jsonl file works as well\n"
    )
    keep(notes, "pier-1", ask_twice)
    keep(notes, "pier-2", ask_twice)
    assert error("verify", "pier", cwd=notes) == snapshot(
        "error: 'pier' is ambiguous: pier-1, pier-2\n"
    )
    assert error("export", "tower", cwd=notes) == snapshot(
        "error: no session 'tower' in the workspace '.'; `lamina sessions` lists them. -w DIR looks in another workspace, and a path to a .jsonl file works as well\n"
    )


def test_what_an_old_record_cannot_prove_is_told_and_is_no_failure(notes: Path) -> None:
    """Issue 16, B.8."""
    old = str(FOLDER / "sessions" / "hooks.jsonl")
    assert output("verify", old, cwd=notes) == snapshot(
        """\
15 of 15 requests rebuilt byte for byte.
- not covered: options and parameters of 15 requests: older records lack them
The covered parts are correct.
"""
    )
    report = json.loads(output("verify", old, "--json", cwd=notes))
    assert (report["state"], report["sound"]) == ("not_covered", False)
    assert report["uncovered"] == [
        {"part": "parameters", "why": "older records lack them", "requests": 15}
    ]


def test_an_edited_temperature_is_found(notes: Path) -> None:
    """Issue 16, B.8: the checksum of the line is right."""
    path = keep(notes, "pier", ask_twice, options=Options(temperature=0.5))
    assert "The session is sound." in output("verify", "pier", cwd=notes)
    header, _, rest = path.read_bytes().partition(b"\n")
    edited = header.rpartition(b',"sum":"')[0].replace(b'"temperature":0.5', b'"temperature":0.9')
    path.write_bytes(write_line(edited + b"}") + rest)
    code, told, _ = lamina("verify", "pier", cwd=notes)
    assert code == 1
    assert "its options or parameters are not those that were sent" in told


def test_a_whole_name_is_never_taken_for_the_beginning_of_another(notes: Path) -> None:
    keep(notes, "pier", ask_twice)
    keep(notes, "pier-2", ask_twice)
    assert "session pier\n" in output("log", "pier", cwd=notes)
    # Also where nothing of the file can be read.
    torn = session_file(notes, "pier")
    torn.write_bytes(torn.read_bytes()[:30])
    assert "no line of the journal can be read" in lamina("verify", "pier", cwd=notes)[1]


def test_a_copy_of_a_file_under_another_name_can_be_looked_at(notes: Path) -> None:
    keep(notes, "pier", ask_twice)
    output("export", "pier", "--format", "jsonl", "--out", "backup.jsonl", cwd=notes)
    assert "When does the pier open?" in output("log", "backup.jsonl", cwd=notes)


# -- log ----------------------------------------------------------------------------------------


def test_the_log_shows_the_active_path(notes: Path) -> None:
    keep(notes, "pier", ask_of_all_kinds, tools=[SEARCH], system="Be brief.")
    assert output("log", "pier", cwd=notes) == snapshot("""\
# When does

session pier
1 branching point; --tree shows what is not on the active path

000000  11-06 21:20:00  session    openai:gpt-4o · system
000001  11-06 21:20:00  item       note:plan.md c2893868 (31 characters)
000002  11-06 21:20:00  user       When does …(+2 lines)
000003  11-06 21:20:00  request    openai:gpt-4o · 150 tokens, 150 of them new
                                   left out: gone.md does not exist in the workspace
000004  11-06 21:20:00  assistant  calls search {}
000005  11-06 21:20:00  reply      tool_calls · in 100, cached 0, out 5 · nothing_sent_before
000006  11-06 21:20:00  tool       search: May …(+1 line)
000007  11-06 21:20:00  request    openai:gpt-4o · 181 tokens, 31 of them new
                                   left out: gone.md does not exist in the workspace
000008  11-06 21:20:00  assistant  In May.  «the answer»
000009  11-06 21:20:00  reply      stop · in 120, cached 0, out 5 · below_minimum
00000a  11-06 21:20:00  label      000008: the answer
00000f  11-06 21:20:00  branch     left 00000e: The museum is shut.
000010  11-06 21:20:00  user       And the tower?
000011  11-06 21:20:00  request    openai:gpt-4o · 219 tokens, 38 of them new
000012  11-06 21:20:00  assistant  Noted.
000013  11-06 21:20:00  reply      stop · in 219, cached 0, out 5 · below_minimum
000014  11-06 21:20:00  user       Are you there?
000015  11-06 21:20:00  request    openai:gpt-4o · 234 tokens, 15 of them new
The last request was never answered; the session can continue with it.
""")


def test_the_tree_shows_every_branch_and_stars_the_active_one(notes: Path) -> None:
    keep(notes, "pier", ask_of_all_kinds, tools=[SEARCH], system="Be brief.")
    assert output("log", "pier", "--tree", cwd=notes) == snapshot("""\
# When does

session pier

* 000000 session openai:gpt-4o · system
* 000001 item note:plan.md c2893868 (31 characters)
* 000002 user When does
* 000003 request openai:gpt-4o · 150 tokens, 150 of them new
* 000004 assistant calls search {}
* 000005 reply tool_calls · in 100, cached 0, out 5 · nothing_sent_before
* 000006 tool search: May
* 000007 request openai:gpt-4o · 181 tokens, 31 of them new
* 000008 assistant In May.  «the answer»
* 000009 reply stop · in 120, cached 0, out 5 · below_minimum
* 00000a label 000008: the answer  (continues at 00000b, 00000f)
  ├─00000b user And [bold]the museum[/bold]?
  │ 00000c request openai:gpt-4o · 201 tokens, 20 of them new
  │ 00000d assistant Noted.
  │ 00000e reply stop · in 201, cached 0, out 5 · below_minimum
* 00000f branch left 00000e: The museum is shut.
* 000010 user And the tower?
* 000011 request openai:gpt-4o · 219 tokens, 38 of them new
* 000012 assistant Noted.
* 000013 reply stop · in 219, cached 0, out 5 · below_minimum
* 000014 user Are you there?
* 000015 request openai:gpt-4o · 234 tokens, 15 of them new  <- current leaf
""")


def test_the_full_log_shows_whole_messages_and_what_was_left_out(notes: Path) -> None:
    keep(notes, "pier", ask_of_all_kinds, tools=[SEARCH], system="Be brief.")
    assert output("log", "pier", "--full", cwd=notes) == snapshot("""\
# When does

session pier
1 branching point; --tree shows what is not on the active path

000000  11-06 21:20:00  session    openai:gpt-4o · system
000001  11-06 21:20:00  item       note:plan.md c2893868 (31 characters)
000002  11-06 21:20:00  user       When does
                                   the pier open?
                                   [note:plan.md full]
000003  11-06 21:20:00  request    openai:gpt-4o · 150 tokens, 150 of them new
                                   left out: gone.md does not exist in the workspace
000004  11-06 21:20:00  assistant  calls search {}
000005  11-06 21:20:00  reply      tool_calls · in 100, cached 0, out 5 · nothing_sent_before
000006  11-06 21:20:00  tool       search: May
                                   (plan.md)
000007  11-06 21:20:00  request    openai:gpt-4o · 181 tokens, 31 of them new
                                   left out: gone.md does not exist in the workspace
000008  11-06 21:20:00  assistant  In May.  «the answer»
000009  11-06 21:20:00  reply      stop · in 120, cached 0, out 5 · below_minimum
00000a  11-06 21:20:00  label      000008: the answer
00000f  11-06 21:20:00  branch     left 00000e: The museum is shut.
000010  11-06 21:20:00  user       And the tower?
000011  11-06 21:20:00  request    openai:gpt-4o · 219 tokens, 38 of them new
000012  11-06 21:20:00  assistant  Noted.
000013  11-06 21:20:00  reply      stop · in 219, cached 0, out 5 · below_minimum
000014  11-06 21:20:00  user       Are you there?
000015  11-06 21:20:00  request    openai:gpt-4o · 234 tokens, 15 of them new
The last request was never answered; the session can continue with it.
""")


def test_the_log_for_machines_holds_every_entry(notes: Path) -> None:
    path = keep(notes, "pier", ask_of_all_kinds, tools=[SEARCH])
    shown = json.loads(output("log", "pier", "--json", cwd=notes))
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [entry["id"] for entry in shown["entries"]] == [line["id"] for line in lines]
    assert shown["leaf"] == shown["path"][-1] == lines[-1]["id"]
    assert shown["damage"] == []
    assert set(shown["path"]) < {line["id"] for line in lines}


def test_what_a_compaction_dropped_is_shown_with_its_summary(notes: Path) -> None:
    async def compact(session: Session) -> None:
        for number in range(12):
            await ask(session, f"Question {number}? " + "tide " * 150, answer="ebb " * 150)
        assert (await session.compact()).changed
        await ask(session, "And now?")

    keep(notes, "tides", compact, settings=Settings(window=6_000))
    shown = output("log", "tides", "--dropped", cwd=notes)
    head, _, rest = shown.partition("\n")
    assert head == snapshot(
        "## 000031 · 2026-11-06 21:20:00 · compaction (manual) (by lamina.compaction)"
    )
    assert "> ## Goal" in rest
    assert "- user 000001: Question 0? tide tide" in rest
    listed = [line for line in rest.splitlines() if line.startswith("- ")]
    assert max(map(len, listed)) < 130
    whole = output("log", "tides", "--dropped", "--full", cwd=notes)
    assert "Question 0? " + "tide " * 149 + "tide" in whole
    assert "The session is sound." in output("verify", "tides", cwd=notes)


def test_what_was_cut_off_a_result_is_read_back_and_missed_if_it_is_gone(notes: Path) -> None:
    """Issue 16, B.11."""
    long = "begin " + "tide " * 4_000 + "end"

    async def search(session: Session) -> None:
        turn = await session.prepare("What of the tide?")
        turn = await turn.commit(openai_reply(None, calls=[("c1", "search")], input=100, cached=0))
        turn = await turn.resume({"c1": long})
        await turn.commit(openai_reply("Low.", input=2_000, cached=0))

    path = keep(notes, "tides", search, settings=Settings(window=3_000), tools=[SEARCH])
    assert output("log", "tides", "--result", "c1", cwd=notes) == f"{long}\n"
    assert "(shortened; show all: log --result c1) search: begin tide" in output(
        "log", "tides", cwd=notes
    )
    shown = json.loads(output("log", "tides", "--result", "c1", "--json", cwd=notes))
    assert (shown["call_id"], shown["name"], shown["characters"]) == ("c1", "search", len(long))
    assert shown["text"] == long
    by_digest = output("log", "tides", "--result", shown["digest"][:12], cwd=notes)
    assert by_digest == f"{long}\n"
    assert "there is no result 'c2' here" in error("log", "tides", "--result", "c2", cwd=notes)
    assert "cannot be combined" in error(
        "log", "tides", "--result", "c1", "--tree", cwd=notes, code=2
    )
    assert "The session is sound." in output("verify", "tides", cwd=notes)
    (path.parent.parent / "blobs" / shown["digest"][:2] / shown["digest"]).unlink()
    assert "result of search (c1) is missing" in lamina("verify", "tides", cwd=notes)[1]
    assert "cannot be read" in error("log", "tides", "--result", "c1", cwd=notes)


def test_a_session_without_compactions_dropped_nothing(notes: Path) -> None:
    keep(notes, "pier", ask_twice)
    assert output("log", "pier", "--dropped", cwd=notes) == "Nothing has been dropped.\n"


def test_a_session_can_be_looked_at_while_it_is_open(notes: Path) -> None:
    async def stay(session: Session) -> None:
        await ask_twice(session)
        # The lock is for writers.
        for command in ("log", "verify", "export"):
            look = partial(output, command, "pier", cwd=notes)
            assert await anyio.to_thread.run_sync(look)

    keep(notes, "pier", stay)


@pytest.mark.parametrize("options", [(), ("--json",), ("--full",)])
def test_a_reader_that_stops_early_gets_no_traceback(notes: Path, options: tuple[str, ...]) -> None:
    async def much(session: Session) -> None:
        await ask(session, "sea\n" * 100_000)

    keep(notes, "sea", much, settings=Settings(window=400_000))
    with subprocess.Popen(
        [str(LAMINA), "log", "sea", *options], cwd=notes, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={k: v for k, v in os.environ.items() if not k.startswith("LAMINA_")},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""


# -- verify and repair --------------------------------------------------------------------------


def test_a_sound_session_is_said_to_be_sound_and_needs_no_repair(notes: Path) -> None:
    path = keep(notes, "pier", ask_of_all_kinds, tools=[SEARCH])
    assert output("verify", "pier", cwd=notes) == snapshot("""\
5 of 5 requests rebuilt byte for byte.
The session is sound.
""")
    verdict = json.loads(output("verify", "pier", "--json", cwd=notes))
    assert (verdict["sound"], verdict["problems"], verdict["damage"]) == (True, [], [])
    assert [request["problem"] for request in verdict["requests"]] == [""] * 5
    before = sorted(path.parent.iterdir())
    assert tidy(error("repair", "pier", cwd=notes), path) == snapshot(
        "error: nothing is wrong with ~/pier.jsonl: no copy was written\n"
    )
    assert sorted(path.parent.iterdir()) == before


def flip(data: bytes) -> bytes:
    return data.replace(b"In May.", b"In Mai.")


def tear(data: bytes) -> bytes:
    return data[:-30]


def convert(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def lose_header(data: bytes) -> bytes:
    return data.partition(b"\n")[2]


def lose_a_question(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(lines[:5] + lines[6:])


@pytest.mark.parametrize(
    ("harm", "said", "is_whole_again"),
    [
        (
            flip,
            snapshot("""\
1 of 2 requests rebuilt byte for byte.
- request 000006 (openai:gpt-4o): differs from what was sent at segment 1 (message:000005, L5)
- checksum: line 4, byte 1,148: the checksum does not fit; the line begins '{"at":1794000000.0,"id":"000003","message":{"blocks":[{"text'
- missing_entries: line 5, byte 1,332: in front of it is missing: 000003
- missing_parent: line 5, byte 1,332: the parent '000003' of entry '000004' is missing; put behind '000002'
`lamina repair` writes a copy of everything that can be read.
"""),
            False,
        ),
        (
            tear,
            snapshot("""\
2 of 2 requests rebuilt byte for byte.
- torn: line 9, byte 2,735: the last write was cut off; it begins '{"at":1794000000.0,"id":"000008","parent":"000007","request"'
- incomplete_write: line 8, byte 2,550: the last write is not whole: 1 more entry was to follow
`lamina repair` writes a copy of everything that can be read.
"""),
            True,
        ),
        (
            convert,
            snapshot("""\
2 of 2 requests rebuilt byte for byte.
- line_endings: line 1, byte 0: lines end in CR LF from here on: an editor or git converted the file
`lamina repair` writes a copy of everything that can be read.
"""),
            True,
        ),
        (
            lose_header,
            snapshot("""\
2 of 2 requests rebuilt byte for byte.
- bad_header: the session's header cannot be read: its system prompt, tools and settings are lost; the conversation is kept
- missing_entries: line 1, byte 0: in front of it is missing: 000000
`lamina repair` writes a copy of everything that can be read.
"""),
            True,
        ),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_damage_is_named_and_a_repaired_copy_stands_beside_it(
    notes: Path, harm: Callable[[bytes], bytes], said: str, is_whole_again: bool
) -> None:
    path = keep(notes, "pier", ask_twice)
    path.write_bytes(harmed := harm(path.read_bytes()))
    assert lamina("verify", "pier", cwd=notes) == (1, said, "")
    shown = tidy(output("repair", "pier", cwd=notes), path)
    assert shown.startswith("~/pier.repaired.jsonl: ")
    assert "~/pier.jsonl is unchanged. What was wrong with it:\n- " in shown
    assert path.read_bytes() == harmed
    code, again, _ = lamina("verify", "pier.repaired", "--json", cwd=notes)
    assert (code == 0) is is_whole_again
    # Whatever was lost, the copy itself holds no damage.
    assert json.loads(again)["damage"] == []


def test_where_nothing_can_be_read_no_copy_is_written(notes: Path) -> None:
    path = keep(notes, "pier", ask_twice)
    path.write_bytes(b"rubbish")
    code, out, error = lamina("repair", "pier", cwd=notes)
    assert (code, out) == (1, "")
    assert "no copy was written" in error
    assert [path.name for path in path.parent.glob("*.jsonl")] == ["pier.jsonl"]


def test_verify_never_advises_a_repair_that_has_nothing_to_do(notes: Path) -> None:
    path = keep(notes, "pier", ask_twice)
    path.write_bytes(lose_a_question(path.read_bytes()))
    output("repair", "pier", cwd=notes)
    shown = lamina("verify", "pier.repaired", cwd=notes)[1]
    if "`lamina repair` writes a copy" in shown:
        output("repair", "pier.repaired", cwd=notes)


def test_a_second_repair_does_not_touch_the_first(notes: Path) -> None:
    path = keep(notes, "pier", ask_twice)
    path.write_bytes(tear(path.read_bytes()))
    output("repair", "pier", cwd=notes)
    first = path.with_name("pier.repaired.jsonl").read_bytes()
    assert "pier.repaired-2.jsonl: " in output("repair", "pier", cwd=notes)
    assert path.with_name("pier.repaired.jsonl").read_bytes() == first


def test_a_session_goes_on_from_its_repaired_copy(notes: Path) -> None:
    path = keep(notes, "pier", ask_twice, system="Be brief.")
    path.write_bytes(flip(path.read_bytes()))
    output("repair", "pier", cwd=notes)

    async def go_on() -> None:
        async with await open_session("pier.repaired", workspace=notes) as session:
            assert session.damage == ()
            turn = await session.prepare("Where were we?")
            said = [message["content"] for message in turn.request()["messages"]]
            assert said[0] == "Be brief."
            assert said[-2:] == ["In June.", "Where were we?"]
            assert "In May." not in said

    anyio.run(go_on)


def test_a_full_disk_behind_the_output_is_an_error_of_one_line(notes: Path) -> None:
    keep(notes, "pier", ask_twice)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("LAMINA_")}
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [str(LAMINA), "log", "pier"], cwd=notes, env=clean, stdout=full,
            stderr=subprocess.PIPE, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr


def test_what_was_said_moves_nothing_on_a_terminal_and_stays_whole_for_machines(
    tmp_path: Path,
) -> None:
    async def make() -> None:
        async with await open_session("odd", workspace=tmp_path) as session:
            turn = await session.prepare("a\x1b[2Jb\x85c\u202ed")
            await turn.commit({"choices": [{"message": {"content": "e"}, "finish_reason": "stop"}]})

    anyio.run(make)
    shown = output("log", "odd", cwd=tmp_path)
    assert "a\\x1b[2Jb" in shown
    assert not {"\x1b", "\x85", "\u202e"} & set(shown)
    entries = json.loads(output("log", "odd", "--json", cwd=tmp_path))["entries"]
    texts = [e["message"]["blocks"][-1]["text"] for e in entries if e["type"] == "message"]
    assert texts[0] == "a\x1b[2Jb\x85c\u202ed"


def test_a_list_of_sessions_says_what_its_sums_leave_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    known = SessionRow(session="a", workspace="w", cost=0.25)
    some = SessionRow(session="b", workspace="w", cost=0.25, unpriced=2)
    none = SessionRow(session="c", workspace="w", cost=None, unpriced=1)
    show_sessions([known, some, none], as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[-1] for line in lines[1:4]] == ["$0.25", "$0.25+?", "?"]
    assert lines[4] == "?: the total excludes requests with unknown prices"
    show_sessions([known], as_json=False)
    assert "?" not in capsys.readouterr().out

"""`lamina doctor`, as a person and as a pipeline runs it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.apps.cli.commands import error, lamina, output
from tests.doctor import request_samples as samples
from tests.doctor.request_samples import asked, claude_answer, write_lines
from tests.doctor.test_request_files import make_database


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """A folder with a session of every program, each of which lost its cache once."""
    folder = tmp_path / "sessions"
    for name in ("CLAUDE", "CODEX", "PI", "COPILOT", "LOG"):
        write_lines(folder / f"{name.lower()}.jsonl", *getattr(samples, name))
    write_lines(folder / "gemini.json", samples.GEMINI)
    make_database(folder / "opencode.db")
    return folder


def report(*arguments: str, cwd: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output("doctor", *arguments, "--json", cwd=cwd))
    return found


def test_one_screen_says_totals_causes_findings_fixes_and_what_is_not_known(
    sessions: Path,
) -> None:
    shown = output("doctor", str(sessions), cwd=sessions)
    for heading in (
        "Lamina doctor: Claude Code, Codex, Copilot CLI, Gemini CLI, OpenCode, pi,\nrequest log, 2026",
        "Input at list price", "Lost to breaks", "Avoidable", "How sure", "Where it went",
        "Most expensive", "Unknown, and what would reveal it", "this is quota, not money",
    ):  # fmt: skip
        assert heading in shown
    assert max(map(len, shown.splitlines())) < 80
    assert len(shown.splitlines()) <= 60


def test_every_session_is_in_the_json_with_its_requests_and_findings(sessions: Path) -> None:
    found = report(str(sessions), cwd=sessions)
    assert found["schema"] == 1
    assert found["read"]["files"] == found["totals"]["sessions"] == 7
    assert len(found["requests"]) == found["totals"]["requests"] == 15
    assert {f["source"] for f in found["findings"]} == {
        "claude_code", "codex", "copilot_cli", "gemini_cli", "opencode", "pi", "request_log",
    }  # fmt: skip
    for finding in found["findings"]:
        assert finding["tokens"] > 0
        assert finding["fix"]
        has_bytes = finding["record"] == "bodies"
        assert has_bytes or finding["certainty"] != "proven"
        assert bool(finding["place"]["segment"]) == has_bytes
    (moved,) = [f for f in found["findings"] if f["source"] == "request_log"]
    assert (moved["cause"], moved["certainty"], moved["blame"]) == (
        "first_message", "proven", "you",
    )  # fmt: skip
    assert (moved["place"]["segment"], moved["place"]["offset"]) == ("messages[0].content", 0)


def test_prompts_are_digests_unless_text_is_asked_for(sessions: Path) -> None:
    log = str(sessions / "log.jsonl")
    (hidden,) = report(log, cwd=sessions)["findings"]
    (shown,) = report(log, "--with-text", cwd=sessions)["findings"]
    assert hidden["after"].startswith("sha256:")
    assert shown["after"].startswith("HI there HI")
    lamina("doctor", log, "--html", "hidden.html", cwd=sessions)
    lamina("doctor", log, "--html", "shown.html", "--with-text", cwd=sessions)
    assert "HI there" not in (sessions / "hidden.html").read_text("utf-8")
    assert "HI there" in (sessions / "shown.html").read_text("utf-8")


def test_the_page_brings_everything_along_and_runs_nothing(sessions: Path) -> None:
    hostile = asked("u1", None, 0), claude_answer("a1", "u1", 1, "m", 0, 20_000)
    named = [line | {"sessionId": "<script>alert(1)</script>"} for line in hostile]
    write_lines(sessions / "named.jsonl", *named)
    done = lamina("doctor", str(sessions), "--html", "page.html", cwd=sessions)
    assert (done.returncode, done.stderr) == (0, "page.html: written\n")
    page = (sessions / "page.html").read_text("utf-8")
    assert "<script" not in page
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:|//)", page)
    assert "default-src 'none'" in page
    for word in ("Where it went", "located", "proven", "blame"):
        assert word in page
    assert "exists already; nothing was written" in error(
        "doctor", str(sessions), "--html", "page.html", cwd=sessions, code=2
    )


def test_muted_findings_are_in_no_sum_and_are_counted(sessions: Path) -> None:
    everything = report(str(sessions), cwd=sessions)
    one = everything["findings"][0]
    by_id = report(str(sessions), "--mute", one["id"], cwd=sessions)
    assert by_id["totals"]["muted"] == 1
    assert by_id["totals"]["lost"] == everything["totals"]["lost"] - one["tokens"]
    by_cause = report(str(sessions), "--mute", "first_message", cwd=sessions)
    assert "first_message" not in {f["cause"] for f in by_cause["findings"]}
    assert "is neither a finding's id" in error("doctor", "--mute", "Nobody!", cwd=sessions, code=2)


def test_a_pipeline_fails_over_its_limit(sessions: Path) -> None:
    done = lamina("doctor", str(sessions), "--fail-over", "5%", cwd=sessions)
    assert done.returncode == 1
    assert re.fullmatch(r"\d+\.\d% was lost, more than --fail-over 5%\n", done.stderr)
    assert "Most expensive" in done.stdout
    assert lamina("doctor", str(sessions), "--fail-over", "100%", cwd=sessions).returncode == 0
    # 1 is a check that failed, and nothing else.
    assert "accepts a share" in error("doctor", "--fail-over", "lots", cwd=sessions, code=2)


def test_what_a_fix_saved_is_told_against_a_report_sessions_or_a_time(sessions: Path) -> None:
    earlier = sessions / "earlier.json"
    broken, mended = sessions / "claude.jsonl", sessions / "mended" / "claude.jsonl"
    write_lines(mended, *samples.CLAUDE[:-1], claude_answer("a4", "u3", 5, "m3", 20_500, 500))
    earlier.write_text(output("doctor", str(broken), "--json", cwd=sessions), "utf-8")
    for other in (str(earlier), str(broken)):
        against = report(str(mended), "--against", other, cwd=sessions)["against"]
        assert against["share_before"] > against["share_now"] == 0.0
        assert against["saved"] > 0
    shown = output("doctor", str(mended), "--against", str(earlier), cwd=sessions)
    assert "lost then, 0.0% now; saved $" in " ".join(shown.split())
    split = report(str(broken), "--against", "2026-11-01T10:03", cwd=sessions)
    assert split["against"]["earlier"] == "what came before 2026-11-01"
    assert split["totals"]["requests"] == 1
    assert "is not a report from --json, sessions, or a time" in error(
        "doctor", str(broken), "--against", "yesterday", cwd=sessions, code=2
    )


def test_only_a_time_or_a_session(sessions: Path) -> None:
    late = report(str(sessions / "claude.jsonl"), "--since", "2026-11-01T10:03", cwd=sessions)
    # What came before is still what it is compared with.
    assert (late["totals"]["requests"], late["totals"]["findings"]) == (1, 1)
    assert report(str(sessions), "--session", "g", cwd=sessions)["totals"]["sessions"] == 1
    assert "is not a time" in error("doctor", "--since", "soon", cwd=sessions, code=2)


def test_without_a_path_it_looks_where_programs_keep_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    nothing = output("doctor", cwd=tmp_path)
    assert "No sessions were found on this machine" in nothing
    write_lines(tmp_path / ".claude" / "projects" / "p" / "s.jsonl", *samples.CLAUDE)
    agent = tmp_path / ".claude" / "projects" / "p" / "s" / "subagents" / "agent-7.jsonl"
    own = [asked("x1", None, 2, agentId="7", isSidechain=True),
           claude_answer("x2", "x1", 3, "m9", 0, 9_000, agentId="7", isSidechain=True)]  # fmt: skip
    write_lines(agent, *own)
    found = report(cwd=tmp_path)
    assert (found["totals"]["sessions"], found["totals"]["requests"]) == (1, 4)
    assert {row["agent"] for row in found["requests"]} == {"", "7"}


def test_a_resumed_session_is_counted_once_and_goes_on(tmp_path: Path) -> None:
    write_lines(tmp_path / "1.jsonl", *samples.CLAUDE[:6])
    again = [line | {"sessionId": "other"} if "uuid" in line else line for line in samples.CLAUDE]
    write_lines(tmp_path / "2.jsonl", *again)
    found = report(str(tmp_path), cwd=tmp_path)
    assert (found["totals"]["sessions"], found["totals"]["requests"]) == (1, 3)
    assert found["totals"]["findings"] == 1


def test_names_from_files_cannot_steer_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b[31mred\x07\u202e"
    lines = [
        line | {"sessionId": evil, "version": evil} if "uuid" in line else line
        for line in samples.CLAUDE
    ]
    write_lines(tmp_path / "f.jsonl", *lines)
    (tmp_path / "bad\x1b[2J.jsonl").write_text("{torn", "utf-8")
    for arguments in (("doctor", str(tmp_path)), ("doctor", str(tmp_path), "--findings")):
        shown = output(*arguments, cwd=tmp_path)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)
        assert "\\x1b[31mre" in shown


def test_standard_input_and_a_path_that_is_not_there(tmp_path: Path) -> None:
    lines = "".join(json.dumps(line) + "\n" for line in samples.CLAUDE)
    assert "Claude Code" in output("doctor", "-", cwd=tmp_path, stdin=lines)
    assert "'gone' does not exist" in error("doctor", "gone", cwd=tmp_path, code=2)


def test_files_of_no_known_form_are_named(tmp_path: Path) -> None:
    (tmp_path / "notes.json").write_text('{"hello": "world"}', "utf-8")
    shown = output("doctor", str(tmp_path), cwd=tmp_path)
    assert "1 file in unknown formats" in shown
    assert "notes.json" in shown


def test_lamina_s_own_sessions_are_read_with_what_the_journal_proves(tmp_path: Path) -> None:
    script = """
import anyio, lamina

async def main():
    session = await lamina.open_session("own", target="openai:gpt-5", workspace=".")
    async with session:
        for number, read in enumerate((0, 0)):
            if number:
                await session.set_system("policy", "Another.", reason="a new policy")
            turn = await session.prepare(f"Question {number} " + "long " * 4000)
            usage = {"prompt_tokens": 4100 * (number + 1), "completion_tokens": 1,
                     "prompt_tokens_details": {"cached_tokens": read}}
            choice = {"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
            await turn.commit({"choices": [choice], "usage": usage})

anyio.run(main)
"""
    (tmp_path / "talk.py").write_text(script, "utf-8")
    data = tmp_path / "data"
    environment = os.environ | {"LAMINA_DATA": str(data)}
    subprocess.run(
        [sys.executable, "talk.py"], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    (finding,) = report(str(data), cwd=tmp_path)["findings"]
    assert (finding["source"], finding["kind"]) == ("lamina", "expected")
    assert (finding["cause"], finding["certainty"]) == ("boundary", "proven")
    assert finding["detail"] == "a new policy"


# What only some systems have is gone; everything that the base brings is loaded first.
ELSEWHERE = """
import asyncio, json, os, sqlite3, subprocess, sys, tempfile, types
import anyio, anyio._backends._asyncio, jsonschema, msgspec, platformdirs, rich.console
import rich.progress, typer, yaml
gone = ("fcntl", "grp", "pty", "pwd", "readline", "resource", "termios", "tty")
sys.modules.update(dict.fromkeys(gone))
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
sys.argv = ["lamina", "doctor", "--sample"]
from lamina.apps.cli import main
main()
"""


def test_the_doctor_needs_nothing_that_only_one_system_has(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Lamina doctor: Claude Code, request log" in done.stdout


def test_the_sample_is_what_the_pages_show(tmp_path: Path) -> None:
    shown = output("doctor", "--sample", cwd=tmp_path)
    root = Path(__file__).parents[3]
    # The book of models has a new date now and then.
    dated = r"List prices of [0-9-]+"
    whole = re.sub(dated, "", f"$ lamina doctor --sample\n{shown}")
    assert whole in re.sub(dated, "", (root / "docs" / "doctor.md").read_text("utf-8"))
    # The front page shows how it begins.
    front = re.sub(dated, "", (root / "README.md").read_text("utf-8"))
    beginning, _, _ = front.partition("$ lamina doctor --sample\n")[2].partition("```")
    assert len(beginning.splitlines()) >= 10
    assert f"$ lamina doctor --sample\n{beginning}" in whole
    assert max(map(len, shown.splitlines())) < 80

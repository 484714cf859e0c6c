"""What `lamina doctor` says where a price, a session or a file is not what was hoped for."""

import json
import os
import re
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.apps.cli.commands import LAMINA, error, lamina, output
from tests.doctor import request_samples as samples
from tests.doctor.request_samples import logged, write_lines

from lamina.doctor.doctor_report import DoctorReport
from lamina.doctor.report_page import write_page

LONG = "hi there " * 9_000


def lossy_log(model: str, session: str, requests: int = 5) -> list[Any]:
    """A log whose first message changes each time: every request but the first lost its cache."""
    lines = [
        logged(n, 20_000 + n, 0, f"{n} {LONG}", *("yes", "so") * n, session_id=session)
        for n in range(requests)
    ]
    for line in lines:
        line["request"]["body"]["model"] = model
    return lines


def report(*arguments: str, cwd: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output("doctor", *arguments, "--json", cwd=cwd))
    return found


def draw(*arguments: str, cwd: Path) -> str:
    return " ".join(output("doctor", *arguments, cwd=cwd).split())


# -- prices that nobody knows --------------------------------------------------------------------


def test_where_no_price_is_known_money_is_null_and_not_nothing(tmp_path: Path) -> None:
    write_lines(tmp_path / "f.jsonl", *lossy_log("mystery-1", "m"))
    found = report("f.jsonl", cwd=tmp_path)
    totals = found["totals"]
    for name in ("input_cost", "output_cost", "lost_cost", "avoidable_cost"):
        assert totals[name] is None
    assert totals["unpriced_findings"] == totals["findings"] == 4
    assert totals["lost_share"] > 0.5
    assert [s["lost_cost"] for s in found["sessions"]] == [None]
    assert [(c["extra"], c["avoidable"]) for c in found["causes"]] == [(None, None)]
    assert "$" not in draw("f.jsonl", cwd=tmp_path)
    lamina("doctor", "f.jsonl", "--html", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "$" not in page
    assert "The cost is not known." in page


def test_sums_say_how_many_breaks_have_no_price(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", *lossy_log("gpt-5", "a"))
    write_lines(tmp_path / "b.jsonl", *lossy_log("mystery-1", "b"))
    found = report(".", cwd=tmp_path)
    assert (found["totals"]["findings"], found["totals"]["unpriced_findings"]) == (8, 4)
    (cause,) = found["causes"]
    assert (cause["findings"], cause["unpriced"]) == (8, 4)
    assert sorted(s["lost_cost"] is None for s in found["sessions"]) == [False, True]
    shown = output("doctor", ".", cwd=tmp_path)
    without = "without 4 breaks of unknown price"
    for beginning in ("Lost to breaks", "Avoidable"):
        (line,) = [line for line in shown.splitlines() if line.startswith(beginning)]
        assert without in line
    rows = shown.splitlines()
    place = next(n for n, line in enumerate(rows) if line.startswith("Where it went"))
    assert rows[place + 2] == f"  {without}"
    assert max(map(len, rows)) < 80
    lamina("doctor", ".", "--html", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert page.count(without) == 3
    assert "of unknown price</p>" in page


def test_what_a_fix_saved_has_no_price_where_none_is_known(tmp_path: Path) -> None:
    for name in ("old", "new"):
        write_lines(tmp_path / f"{name}.jsonl", *lossy_log("mystery-1", name))
    earlier = tmp_path / "old.json"
    earlier.write_text(output("doctor", "old.jsonl", "--json", cwd=tmp_path), "utf-8")
    against = report("new.jsonl", "--against", "old.json", cwd=tmp_path)["against"]
    assert against["saved"] is None
    assert "price unknown" in draw("new.jsonl", "--against", "old.json", cwd=tmp_path)


# -- nothing that fits ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--session", "zzz"), "No session id begins with 'zzz'; the files contain 2 requests in "
                               "1 session."),
        (("--since", "2099-01-01"), "No request since 2099-01-01 (UTC): the files contain 2 "
                                    "requests in 1 session, and the newest is from 2026-11-01."),
        (("--session", "l", "--since", "2099-01-01"), "No session whose id begins with 'l' has a "
                                                      "request since 2099-01-01"),
    ],
)  # fmt: skip
def test_what_was_asked_for_and_is_not_there_is_said_and_fails_a_check(
    tmp_path: Path, arguments: Sequence[str], sentence: str
) -> None:
    write_lines(tmp_path / "f.jsonl", *samples.LOG)
    assert sentence in draw(".", *arguments, cwd=tmp_path)
    assert sentence in draw(".", *arguments, "--findings", cwd=tmp_path)
    done = lamina("doctor", ".", *arguments, "--fail-over", "5%", cwd=tmp_path)
    assert done.returncode == 2
    assert f"--fail-over 5% has nothing to judge. {sentence}" in " ".join(done.stderr.split())
    lamina("doctor", ".", *arguments, "--html", "page.html", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert sentence.replace("'", "&#x27;") in page
    assert "No breaks found" not in page


def test_a_check_of_nothing_or_of_records_without_cache_figures_does_not_pass(
    tmp_path: Path,
) -> None:
    (tmp_path / "empty").mkdir()
    done = lamina("doctor", "empty", "--fail-over", "5%", cwd=tmp_path)
    assert done.returncode == 2
    assert "No file in 'empty' ends with .jsonl" in done.stdout
    usage = {"timestamp": samples.AT.format(0), "model": "gpt-5", "usage": {"prompt_tokens": 9}}
    write_lines(tmp_path / "f.jsonl", usage)
    done = lamina("doctor", "f.jsonl", "--fail-over", "5%", cwd=tmp_path)
    assert done.returncode == 2
    assert "No record says what was read from the cache." in done.stderr


# -- files that are none -------------------------------------------------------------------------


def test_pipes_sockets_and_links_in_a_circle_are_named_and_passed_over(tmp_path: Path) -> None:
    write_lines(tmp_path / "f.jsonl", *samples.LOG)
    os.mkfifo(tmp_path / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(tmp_path / "socket.jsonl"))
    (tmp_path / "device.jsonl").symlink_to("/dev/zero")
    (tmp_path / "self.jsonl").symlink_to("self.jsonl")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    found = report(".", cwd=tmp_path)
    assert found["totals"]["requests"] == 2
    problems = {Path(p["file"]).name: p["detail"] for p in found["read"]["problems"]}
    only = "and only regular files are read"
    assert problems == {
        "pipe.jsonl": f"cannot be read: it is a named pipe, {only}",
        "socket.jsonl": f"cannot be read: it is a socket, {only}",
        "device.jsonl": f"cannot be read: it is a device, {only}",
        "self.jsonl": "cannot be read: Too many levels of symbolic links",
    }


def test_a_pipe_that_is_named_is_refused_with_why(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    write_lines(tmp_path / "f.jsonl", *samples.LOG)
    problem = "error: 'pipe.jsonl' cannot be read: it is a named pipe"
    assert problem in error("doctor", "pipe.jsonl", cwd=tmp_path, code=2)
    assert problem in error("doctor", "f.jsonl", "--against", "pipe.jsonl", cwd=tmp_path, code=2)
    (tmp_path / "self.jsonl").symlink_to("self.jsonl")
    assert "'self.jsonl' cannot be read: Too many levels" in error(
        "doctor", "self.jsonl", cwd=tmp_path, code=2
    )


def test_a_pipe_inside_opencodes_folder_stops_nothing(tmp_path: Path) -> None:
    storage = tmp_path / "storage"
    write_lines(storage / "session" / "p" / "o.json", samples.OPENCODE["info"])
    for message in samples.OPENCODE["messages"]:
        write_lines(storage / "message" / "o" / f"{message['info']['id']}.json", message["info"])
    os.mkfifo(storage / "message" / "o" / "9.json")
    os.mkfifo(storage / "session" / "p" / "q.json")
    assert report("storage", cwd=tmp_path)["totals"]["requests"] == 2


@pytest.mark.parametrize("command", ["doctor", "import"])
def test_what_a_shell_hands_over_is_read(tmp_path: Path, command: str) -> None:
    write_lines(tmp_path / "f.jsonl", *samples.LOG)
    done = subprocess.run(
        ["bash", "-c", f"{LAMINA} {command} <(cat f.jsonl) --json"],
        capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    if command == "doctor":
        assert found["totals"]["requests"] == 2
    else:
        assert [one["source"] for one in found["imported"]] == ["request_log"]


# -- words ---------------------------------------------------------------------------------------


def test_names_from_files_cannot_steer_or_turn_the_page(tmp_path: Path) -> None:
    evil = "\x1b[31mred\x07\u202e\u2066\u200f\u061c\x00\x9b"
    lines = [line | {"session_id": evil, "agent_id": evil} for line in samples.LOG]
    write_lines(tmp_path / "f.jsonl", *lines)
    lamina("doctor", "f.jsonl", "--html", "page.html", "--with-text", cwd=tmp_path)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]", page
    )
    assert "<h3>\\x1b[31mred\\x07\\u202e\\u2066\\u200f\\u061c\\x00\\x9b</h3>" in page


def test_one_of_anything_is_said_in_the_singular(tmp_path: Path) -> None:
    write_lines(tmp_path / "f.jsonl", *samples.CODEX)
    shown = draw("f.jsonl", cwd=tmp_path)
    assert "why 1 break happened" in shown
    usage = {"timestamp": samples.AT.format(0), "model": "mystery", "usage": {"prompt_tokens": 1}}
    write_lines(tmp_path / "g.jsonl", usage)
    lamina("doctor", "g.jsonl", "--html", "page.html", cwd=tmp_path)
    shown = draw("g.jsonl", cwd=tmp_path) + (tmp_path / "page.html").read_text("utf-8")
    for words in (
        "1 session, 1 request, 1 token in", "what 1 request read: its record does not say",
        "what 1 request cost", "1 request, 0 tokens lost",
    ):  # fmt: skip
        assert words in shown
    assert not re.search(r"\b1 (sessions|requests|tokens|breaks|files|records|places)\b", shown)


def test_the_page_of_an_empty_report_says_why_it_is_empty() -> None:
    page = write_page(DoctorReport(), with_text=False)
    assert "No sessions were found on this machine" in page

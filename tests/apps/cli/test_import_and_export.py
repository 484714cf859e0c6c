"""`lamina export` and `lamina import`, as a person runs them."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from inline_snapshot import snapshot
from tests.adapters.formats.samples import PNG, SAMPLES
from tests.apps.cli.inside import error, lamina, output
from tests.fakes.clock import FakeClock
from tests.fakes.files import session_file
from tests.fakes.replies import openai_reply

from lamina import open_session

CHAT = """\
---
epoch: 1767261600000
modelKey: "claude-opus-5|anthropic"
tags:
  - copilot-conversation
---

**user**: When does the pier open?
[Context: Notes: plan.md, gone.md]
[Timestamp: 2026/01/01 10:00:00]

**ai**: In May.
[Timestamp: 2026/01/01 10:00:05]
"""


@pytest.fixture
def pier(notes: Path) -> Path:
    """The folder, with a session of one question in it."""

    async def body() -> None:
        async with await open_session(
            "pier", workspace=notes, target="openai:gpt-4o", clock=FakeClock()
        ) as session:
            turn = await session.prepare("When does the pier open?", attach=["plan.md"])
            await turn.commit(openai_reply("In May.", input=80, cached=0))

    anyio.run(body)
    return notes


def test_a_session_with_a_picture_goes_on_elsewhere_with_it(
    notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "pier.png").write_bytes(PNG)

    async def ask(question: str, **given: Any) -> str:
        async with await open_session(
            "seen", workspace=notes, target="openai:gpt-4o", clock=FakeClock()
        ) as session:
            turn = await session.prepare(question, **given)
            request = str(turn.request())
            await turn.commit(openai_reply("A pier.", input=80, cached=0))
            assert not any("missing" in warning for warning in turn.warnings)
            return request

    first = anyio.run(lambda: ask("What is this?", attach=["pier.png"]))
    assert "data:image/png;base64," in first
    before = session_file(notes, "seen").read_bytes()
    output("export", "seen", "--format", "jsonl", "-o", "seen.jsonl", cwd=notes)
    exported = (notes / "seen.jsonl").read_bytes()
    assert exported.startswith(before)
    assert "blob" in output("log", "seen.jsonl", cwd=notes)
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "elsewhere"))
    (notes / "pier.png").unlink()
    answer = output("import", "seen.jsonl", "--session", "seen", cwd=notes)
    assert answer.count("\n") == 1, answer
    assert "sound" in output("verify", "seen", cwd=notes)
    assert first.partition("data:image/png;base64,")[2][:40] in anyio.run(ask, "And now?")


# -- export -------------------------------------------------------------------------------------


def test_a_session_is_exported_as_a_chat_that_people_can_read(pier: Path) -> None:
    head, comment, talk = output("export", "pier", cwd=pier).split("\n\n", 2)
    assert comment.startswith("<!-- lamina-context: {")
    assert comment.endswith("} -->")
    assert f"{head}\n\n{talk}" == snapshot("""\
---
epoch: 1794000000000
modelKey: "gpt-4o|openai"
tags:
  - copilot-conversation
---

**user**: When does the pier open?
[Context: Notes: plan.md]
[Timestamp: 2026/11/06 21:20:00]

**ai**: In May.
[Timestamp: 2026/11/06 21:20:00]
""")


def test_an_export_goes_into_a_folder_and_never_over_a_file(pier: Path) -> None:
    (pier / "chats").mkdir()
    assert output("export", "pier", "-o", "chats", cwd=pier).startswith(
        "chats/When_does_the_pier_open@20261106_212000.md: "
    )
    (made,) = (pier / "chats").iterdir()
    before = made.read_bytes()
    assert error("export", "pier", "-o", "chats", cwd=pier) == snapshot(
        "error: chats/When_does_the_pier_open@20261106_212000.md exists already; nothing was written\n"
    )
    assert made.read_bytes() == before


@pytest.mark.parametrize("form", ["markdown", "jsonl", "json"])
def test_a_slash_at_the_end_means_a_folder_which_is_made(pier: Path, form: str) -> None:
    for _ in range(2):
        said = lamina("export", "pier", "-f", form, "-o", "new/chats/", cwd=pier)[1]
    assert said == ""
    (made,) = (pier / "new" / "chats").iterdir()
    names = {"markdown": "When_does_the_pier_open@20261106_212000.md"}
    assert made.name == names.get(form, f"pier.{form}")
    # What was meant as a file stays one.
    output("export", "pier", "-f", form, "-o", "new/chat", cwd=pier)
    assert (pier / "new" / "chat").is_file()


def test_a_folder_that_is_a_file_is_refused(pier: Path) -> None:
    (pier / "chats").write_text("mine", "utf-8")
    said = error("export", "pier", "-o", "chats/", cwd=pier)
    assert said == "error: chats is a file, not a folder; nothing was written\n"
    assert (pier / "chats").read_text("utf-8") == "mine"


def test_an_export_to_where_nothing_can_be_written_says_so(pier: Path) -> None:
    assert error("export", "pier", "-o", "nowhere/a.md", cwd=pier) == snapshot(
        "error: nowhere/a.md cannot be written: [Errno 2] No such file or directory: 'nowhere/a.md'\n"
    )
    assert "is not one of" in error("export", "pier", "-f", "pdf", cwd=pier, code=2)


def test_the_journal_is_exported_byte_for_byte(pier: Path) -> None:
    output("export", "pier", "-f", "jsonl", "-o", "pier.jsonl", cwd=pier)
    assert (pier / "pier.jsonl").read_bytes() == session_file(pier, "pier").read_bytes()
    printed = output("export", "pier", "--format", "jsonl", cwd=pier)
    assert printed == (pier / "pier.jsonl").read_text("utf-8")


def test_the_json_of_an_export_is_that_of_the_log(pier: Path) -> None:
    assert output("export", "pier", "-f", "json", cwd=pier) == output(
        "log", "pier", "--json", cwd=pier
    )


# -- import -------------------------------------------------------------------------------------


def test_files_of_other_systems_become_sessions_that_are_sound(notes: Path) -> None:
    for name, data in SAMPLES.items():
        (notes / f"{name}.jsonl").write_bytes(data)
    names = sorted(f"{name}.jsonl" for name in SAMPLES)
    assert output("import", *names, cwd=notes) == snapshot("""\
claude_code-3d6b8e46: 20 entries from claude_code
codex-d2dc3b17: 21 entries from codex
  missing_result: no result of c3; one says so now
copilot_cli-c5c1e0a3: 7 entries from copilot_cli
gemini_cli-8273c9ad: 11 entries from gemini_cli
opencode-2de39814: 7 entries from opencode
pi-3ae6e580: 23 entries from pi
pi_v1-70b5d532: 7 entries from pi
request_log-68212376: 28 entries from request_log
  line 6: no_answer: the response holds no answer; kept as data
  missing_result: no result of tu_1; one says so now
""")
    rows = json.loads(output("sessions", "--json", cwd=notes))
    assert sorted(row["name"] for row in rows) == snapshot(
        [
            "<permissions>read only</permissions>",
            "Depths",
            "Fixing the build",
            "Hi",
            "Notes",
            "Tidy up",
            "Where is x?",
            "one",
        ]
    )
    assert {(row["damage"], row["problem"]) for row in rows} == {(0, "")}
    for row in rows[:2]:
        assert "The session is sound." in output("verify", row["session"], cwd=notes)


def test_a_chat_comes_in_with_its_notes_as_they_are_now(notes: Path) -> None:
    (notes / "chat.md").write_text(CHAT, "utf-8")
    assert output("import", "chat.md", "-s", "pier", cwd=notes) == snapshot("""\
pier: 3 entries from markdown
  added to the library in their current version: note:plan.md
  line 8: missing: 'gone.md' is not in the workspace; it is left out
""")
    assert "The session is sound." in output("verify", "pier", cwd=notes)


def test_the_same_file_is_imported_once_under_one_id(notes: Path) -> None:
    (notes / "chat.md").write_text(CHAT, "utf-8")
    output("import", "chat.md", cwd=notes)
    assert lamina("import", "chat.md", cwd=notes) == snapshot(
        (
            1,
            "chat.md: session 'chat-2adfd1ab' exists already, perhaps from the same file; look at it with `lamina log`, or choose another id\n",
            "",
        )
    )
    output("import", "chat.md", "--session", "again", cwd=notes)
    assert len(json.loads(output("sessions", "--json", cwd=notes))) == 2


def test_what_cannot_be_imported_is_said_and_the_rest_comes_in(notes: Path) -> None:
    (notes / "pi.jsonl").write_bytes(SAMPLES["pi"])
    (notes / "a.png").write_bytes(PNG)
    (notes / "empty.jsonl").write_bytes(b"")
    (notes / "folder").mkdir()
    files = ("a.png", "empty.jsonl", "folder", "gone.md", "pi.jsonl")
    code, shown, _ = lamina("import", *files, "--json", cwd=notes)
    assert code == 1
    report = json.loads(shown)
    assert [each["session"].partition("-")[0] for each in report["imported"]] == ["pi"]
    assert [each["file"] for each in report["failed"]] == list(files[:-1])
    assert len(json.loads(output("sessions", "--json", cwd=notes))) == 1


def test_importing_several_files_prints_nothing_but_the_report(notes: Path) -> None:
    (notes / "a.jsonl").write_bytes(SAMPLES["pi"])
    (notes / "b.jsonl").write_bytes(SAMPLES["opencode"])
    first, *_ = output("import", "a.jsonl", "b.jsonl", cwd=notes).splitlines()
    assert first.startswith("a-")


@pytest.mark.parametrize(
    ("name", "data"),
    [("empty.md", b""), ("picture.md", PNG), ("readme.md", b"# Hello\n\nThis is no chat.\n")],
    ids=["empty", "picture", "readme"],
)
def test_markdown_that_is_no_chat_does_not_become_a_session(
    notes: Path, name: str, data: bytes
) -> None:
    (notes / name).write_bytes(data)
    assert lamina("import", name, cwd=notes)[0] == 1


def test_a_target_that_is_not_known_imports_nothing(notes: Path) -> None:
    (notes / "pi.jsonl").write_bytes(SAMPLES["pi"])
    assert lamina("import", "pi.jsonl", "-t", "nobody:x", cwd=notes)[0] == 1


def test_an_id_is_for_one_file(notes: Path) -> None:
    assert "--session works with one file only" in error(
        "import", "a.md", "b.md", "-s", "c", cwd=notes, code=2
    )


def test_a_journal_goes_to_another_folder_and_keeps_its_tree(pier: Path) -> None:
    other = pier.parent / "other"
    other.mkdir()
    output("export", "pier", "-f", "jsonl", "-o", str(other / "pier.jsonl"), cwd=pier)
    assert output("import", "pier.jsonl", "-s", "pier", cwd=other) == snapshot(
        "pier: 6 entries from lamina\n"
    )
    assert output("log", "pier", cwd=other) == output("log", "pier", cwd=pier)
    assert output("verify", "pier", cwd=other) == output("verify", "pier", cwd=pier)

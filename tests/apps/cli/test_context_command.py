"""`lamina context`: a prepared turn for people and for machines."""

import json
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from tests.apps.cli.commands import error, lamina, output

TURNS: list[dict[str, Any]] = [
    {"ask": "One?", "attach": ["plan.txt"], "answer": "1"},
    {"ask": "Two?", "attach": ["plan.txt"], "answer": "2"},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plan.txt").write_text("one\ntwo", "utf-8")
    (tmp_path / "talk.json").write_text(
        json.dumps({"system": "You are terse.", "turns": TURNS}), "utf-8"
    )
    return tmp_path


def as_json(*arguments: str, cwd: Path) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(output("context", *arguments, "--json", cwd=cwd))
    return parsed


def as_wire(*arguments: str, cwd: Path) -> list[Any]:
    request = json.loads(output("context", *arguments, "--wire", cwd=cwd))
    messages: list[Any] = request["messages"]
    return messages


def test_a_limit_that_would_refuse_the_question_is_told(folder: Path) -> None:
    words = ("Why?", "--target", "openai:gpt-4o", "--spend-turn")
    (warning, _) = as_json(*words, "0.01", cwd=folder)["warnings"]
    assert warning.startswith("`lamina ask` would not send this: this request could cost $0.0000")
    assert "the limit for one turn is $0.0100" in warning
    shown = as_json(*words, "1", cwd=folder)
    assert not [text for text in shown["warnings"] if "limit" in text]
    assert 0 < shown["cost_range"]["low"] < 0.001 < shown["cost_range"]["high"] < 1


def test_the_wire_form_says_beside_it_that_it_would_not_be_sent(folder: Path) -> None:
    words = ("context", "Why?", "--target", "openai:gpt-4o", "--spend-turn", "0.01", "--wire")
    result = lamina(*words, cwd=folder)
    assert json.loads(result.stdout)["model"] == "gpt-4o"
    assert "would not send this: this request could cost" in " ".join(result.stderr.split())


def test_a_request_is_shown_as_markdown(folder: Path) -> None:
    shown = output(
        "context", "What now?", "-a", "plan.txt", "--system", "S",
        "--target", "openai:gpt-4o", cwd=folder,
    )  # fmt: skip
    assert shown == snapshot("""\
# Request to openai:gpt-4o

44 of 111,616 tokens (window 128,000, 16,384 reserved for the answer)

$0.000110 to $0.16, depending on the cache and the length of the answer

| layer | tokens | segments | digest |
|---|--:|--:|---|
| L1 | 5 | 1 | `1f5b991f` |
| L3 | 36 | 2 | `163dc9de` |
| L5 | 3 | 1 | `0f6ca819` |

Boundary: the first request of this session.

## Items

| item | placed in | tokens | priority | included | why |
|---|---|---|---|---|---|
| plan.txt | message | 26 | 5 | manual | attached to this message |

> warning: `lamina ask` would not send this: there is no key for 'openai': set OPENAI_API_KEY, or store it in the system's keyring (keyring set lamina openai)

## Envelope

### L1 · system · system:system

5 tokens

```
S
```

### L3 · user · file:plan.txt@21066d10

30 tokens

```
<file_context>
<name>plan.txt</name>
<content>
one
two
</content>
</file_context>
```

### L3 · user · frame:000002

6 tokens

```
---

[User query]:
```

### L5 · user · message:000002

3 tokens

```
What now?
```

""")


def test_a_text_with_fences_cannot_close_the_one_it_is_shown_in(folder: Path) -> None:
    (folder / "fence.txt").write_text("````\ncode\n````", "utf-8")
    shown = output("context", "Q", "-a", "fence.txt", cwd=folder)
    assert "\n`````\n<file_context>" in shown


def test_long_texts_are_shortened_unless_asked_for_in_full(folder: Path) -> None:
    (folder / "long.txt").write_text("long " * 1_000, "utf-8")
    assert "--full shows them" in output("context", "Q", "-a", "long.txt", cwd=folder)
    assert "long " * 999 in output("context", "Q", "-a", "long.txt", "--full", cwd=folder)


def test_a_request_as_json_says_what_markdown_says(folder: Path) -> None:
    asked = ("Q", "-a", "plan.txt", "--system", "S", "-t", "openai:gpt-5")
    shown = as_json(*asked, cwd=folder)
    assert {size["layer"]: size["tokens"] for size in shown["layers"] if size["tokens"]} == {
        "L1": 5,
        "L3": 36,
        "L5": 1,
    }
    assert [item["label"] for item in shown["context"]["items"]] == ["plan.txt"]
    assert shown["segments"][0]["content"]["text"] == "S"
    assert sum(segment["tokens"] for segment in shown["segments"]) == 42


def test_a_request_on_the_wire_is_what_the_vendor_gets(folder: Path) -> None:
    arguments = ("context", "Q", "--system", "S", "--wire", "-t", "anthropic:claude-sonnet-4-5")
    request = json.loads(output(*arguments, cwd=folder))
    assert request["model"] == "claude-sonnet-4-5"
    assert request["messages"][0]["role"] == "user"
    assert as_wire("Q", "--system", "S", cwd=folder) == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "Q"},
    ]


def test_headers_are_no_part_of_what_is_shown_as_the_body(folder: Path) -> None:
    arguments = ("context", "Q", "--wire", "-t", "anthropic:claude-opus-5-5")
    request = json.loads(output(*arguments, cwd=folder))
    assert request["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert "extra_headers" not in request


def test_a_question_can_come_from_standard_input_and_a_system_prompt_from_a_file(
    folder: Path,
) -> None:
    (folder / "system.txt").write_text("From a file", "utf-8")
    shown = output("context", "-", "--system", "@system.txt", "--wire", cwd=folder, stdin="Typed?")
    said = [message["content"] for message in json.loads(shown)["messages"]]
    assert said == ["From a file", "Typed?"]


def test_a_script_is_played_first_and_the_question_is_asked_behind_it(folder: Path) -> None:
    messages = as_wire("Three?", "--script", "talk.json", cwd=folder)
    assert [message["role"] for message in messages] == [
        "system", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert messages[0]["content"] == "You are terse."
    assert messages[-1]["content"] == "Three?"


def test_without_a_question_the_last_turn_of_the_script_is_shown(folder: Path) -> None:
    shown = as_json("--script", "talk.json", cwd=folder)
    assert shown["context"]["items"][0]["placement"] == "above"
    assert shown["segments"][-1]["content"]["text"] == "Two?"


def test_an_eager_script_moves_its_notes_into_the_library(folder: Path) -> None:
    system = as_wire("--script", "talk.json", "--promotion", "eager", cwd=folder)[0]["content"]
    assert "## Context Library" in system
    assert "one\ntwo" in system


def test_what_a_script_edits_is_edited_for_the_request_but_not_in_the_folder(folder: Path) -> None:
    turns = [TURNS[0], TURNS[1] | {"edit": {"plan.txt": "three"}}]
    (folder / "talk.json").write_text(json.dumps({"turns": turns}), "utf-8")
    assert "three" in as_wire("--script", "talk.json", cwd=folder)[-1]["content"]
    assert (folder / "plan.txt").read_text("utf-8") == "one\ntwo"


def test_patches_are_shown_with_their_reasons(folder: Path) -> None:
    turns = [*TURNS, {"ask": "Three?", "pause": 4_000}]
    (folder / "talk.json").write_text(json.dumps({"turns": turns}), "utf-8")
    shown = output("context", "--script", "talk.json", "-t", "openai:gpt-5", cwd=folder)
    reason = "4000 s since the last request; the cache lives 300 s"
    assert f"Boundary: {reason}.\n" in shown
    assert f"### Boundary: {reason}\n\nby `lamina.boundary`" in shown
    assert "Library:\n- plan.txt `21066d10`" in shown


def test_limits_are_obeyed(folder: Path) -> None:
    shown = as_json("Q", "-a", "plan.txt", "--attachment-limit", "5", cwd=folder)
    assert shown["context"]["left_out"][0]["reason"] == "attachment_limit"
    shown = as_json("Q", "-a", "plan.txt", "--system", "S", "--window", "50", cwd=folder)
    assert shown["context"]["left_out"][0]["reason"] == "window"


def test_nothing_is_written_into_the_workspace(folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    output("context", "Q", "-a", "plan.txt", cwd=folder)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("Q", "--script", "gone.json"), "cannot read the script 'gone.json'"),
        (("Q", "--script", "plan.txt"), "'plan.txt' is not a conversation script"),
        (("Q", "--script", "empty.json"), "'empty.json' has no turns"),
        (("Q", "--script", "typo.json"), "unknown field `aks`"),
        (("Q", "--target", "nobody:x"), "target 'nobody:x' is not 'provider:model'"),
        (("Q", "--window", "0"), "setting window=0"),
        (("Q", "--essential", "plan.txt", "--window", "30"), "does not fit the window"),
        (("Q", "--essential", "plan.txt", "--attachment-limit", "3"), "over the attachment limit"),
    ],
)
def test_what_cannot_be_is_one_line_and_an_exit_code(
    folder: Path, arguments: tuple[str, ...], problem: str
) -> None:
    (folder / "empty.json").write_text('{"turns": []}', "utf-8")
    (folder / "typo.json").write_text('{"turns": [{"ask": "Q", "aks": ""}]}', "utf-8")
    said = error("context", *arguments, cwd=folder)
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert problem in said


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "there is no question"),
        (("",), "give a question"),
        (("Q", "--workspace", "gone"), "'gone' does not exist"),
        (("Q", "--script", "talk.json", "--session", "x"), "a script plays its own session"),
        (("Q", "--system", "@gone.txt"), "cannot read 'gone.txt'"),
        (("Q", "--promotion", "hasty"), "'hasty' is not one of"),
        (("Q", "--colour"), "No such option"),
    ],
)
def test_options_that_make_no_sense_are_explained(
    folder: Path, arguments: tuple[str, ...], problem: str
) -> None:
    assert problem in error("context", *arguments, cwd=folder, code=2)

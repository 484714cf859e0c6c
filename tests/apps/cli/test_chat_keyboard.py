"""What is typed: completion, lines through a pipe, and keys."""

import os
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from tests.apps.cli.chats import answer, talk

from lamina.apps.cli.chat.approver import ANSWERS
from lamina.apps.cli.chat.completer import ChatCompleter
from lamina.apps.cli.chat.keyboard import Keyboard
from lamina.apps.cli.chat.message_source import InputInterrupt, LineSource
from lamina.apps.cli.chat.slash_commands import list_arguments
from lamina.apps.views.mentions import Paths


def fill(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x", "utf-8")


# -- completion ------------------------------------------------------------------------------------


@pytest.fixture
def complete(notes: Path) -> Callable[[str], list[str]]:
    fill(notes, "a b.md", "docs/spec.md")
    talked = talk(notes, "One?", "/attach plan.md", "/pin plan.md", replies=[answer("1")])
    completer = ChatCompleter(Paths(notes), partial(list_arguments, talked.chat))

    def texts(text: str) -> list[str]:
        """The lines that completion would make of `text`."""
        found = completer.get_completions(Document(text), CompleteEvent())
        return [
            text[: len(text) + completion.start_position] + completion.text for completion in found
        ]

    return texts


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("/at", ["/attach"]),
        ("/co", ["/context", "/compact"]),
        ("/nothing", []),
        ("//co", []),
        ("/attach SPEC", ["/attach docs/spec.md"]),
        ("/attach b.m", ['/attach "a b.md"']),
        ('/attach "a b', ['/attach "a b.md"']),
        ("/attach --", ["/attach --essential"]),
        ("/detach ", ["/detach plan.md", "/detach all"]),
        ("/unpin ", ["/unpin plan.md"]),
        ("/context ", ["/context --full"]),
        ("/settings promo", ["/settings promotion"]),
        ("/settings promotion ", ["/settings promotion lazy", "/settings promotion eager"]),
        ("/settings promotion lazy ", []),
        ("/branch ", ["/branch 000001"]),
        ("what says @pla", ["what says @plan.md"]),
        ("what says @a b", []),
        ('what says @"a b', ['what says @"a b.md"']),
        ("what says @b.m", ['what says @"a b.md"']),
        ("plain words", []),
    ],
)
def test_completion(complete: Callable[[str], list[str]], text: str, lines: list[str]) -> None:
    assert complete(text) == lines


def test_models_are_completed_by_name(complete: Callable[[str], list[str]]) -> None:
    assert "/model local:smollm2-135m" in complete("/model smol")


# -- a pipe ----------------------------------------------------------------------------------------


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def test_lines_are_lines_however_they_come() -> None:
    async def body() -> None:
        lines = LineSource(chunks(b"one\ntw", b"o\r\n\nth\xc3", b"\xa9 \xff", b"end"))
        assert [await lines.read() for _ in range(4)] == ["one", "two", "", "thé \ufffdend"]
        for _ in range(2):
            with pytest.raises(EOFError):
                await lines.read()

    anyio.run(body)


def test_a_line_that_is_no_answer_stays_a_message() -> None:
    async def body() -> None:
        lines = LineSource(chunks(b"S\nonce\nno\nWhat else?\n"))
        assert await lines.choose("?", ANSWERS) == "s"
        assert await lines.choose("?", ANSWERS) == "o"
        assert await lines.choose("?", ANSWERS) == "d"
        assert await lines.choose("?", ANSWERS) is None
        assert await lines.read() == "What else?"
        assert await lines.choose("?", ANSWERS) is None

    anyio.run(body)


# -- keys ------------------------------------------------------------------------------------------


def press(notes: Path, *presses: str, default: str = "") -> list[str]:
    """What is read from a keyboard for each run of keys."""
    read: list[str] = []

    async def body(pipe: PipeInput) -> None:
        completer = ChatCompleter(Paths(notes), lambda name, words: ())
        keyboard = Keyboard(
            notes.parent / "kept" / "history", completer, lambda: "", input=pipe,
            output=DummyOutput(),
        )  # fmt: skip
        for keys in presses:
            pipe.send_text(keys)
            with anyio.fail_after(10):
                try:
                    read.append(await keyboard.read(default))
                except (EOFError, InputInterrupt) as error:
                    read.append(type(error).__name__)

    with create_pipe_input() as pipe:
        anyio.run(body, pipe)
    return read


@pytest.mark.parametrize(
    ("keys", "read"),
    [
        ("hello\r", "hello"),
        ("one\x1b\rtwo\r", "one\ntwo"),
        ("\x1b[200~one\r\ntwo\nthree\x1b[201~\r", "one\ntwo\nthree"),
        ("gone\x03here\r", "here"),
        ("\x03", "InputInterrupt"),
        ("\x04", "EOFError"),
        ("ab\x1b[D\x04\r", "a"),
        ("codes \x1b[31m\r", "codes "),
    ],
)
def test_keys(notes: Path, keys: str, read: str) -> None:
    assert press(notes, keys) == [read]


def test_a_question_is_offered_to_be_edited(notes: Path) -> None:
    assert press(notes, " Or not?\r", default="Really?") == ["Really? Or not?"]


def test_history_is_kept_for_its_owner_alone_and_can_be_searched(notes: Path) -> None:
    press(notes, "the harbour\r", "something else\r")
    kept = notes.parent / "kept" / "history"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert press(notes, "\x1b[A\x1b[A\r", "\x12harb\r\r") == ["the harbour", "the harbour"]


def test_history_that_cannot_be_kept_is_not_missed(notes: Path) -> None:
    (notes.parent / "kept").mkdir()
    os.symlink("/nowhere/at/all", notes.parent / "kept" / "history")
    assert press(notes, "hello\r", "again\r") == ["hello", "again"]


class PersonFake(DummyOutput):
    """Looks at what is drawn, and presses the next run of keys once something new is asked."""

    def __init__(self, pipe: PipeInput, presses: Sequence[str]) -> None:
        self._pipe = pipe
        self.presses = list(presses)
        self.seen = ""

    def write(self, data: str) -> None:
        self.seen += data

    def enable_bracketed_paste(self) -> None:
        """Every prompt does this as it is drawn first."""
        self._pipe.send_text(self.presses.pop(0))


def decide(notes: Path, *presses: str) -> str | None:
    """What is decided by runs of keys, each of which but the last is no answer. Nothing of them is
    read behind it."""

    async def body(pipe: PipeInput) -> str | None:
        person = PersonFake(pipe, [*presses, "next\r"])
        completer = ChatCompleter(Paths(notes), lambda name, words: ())
        history = notes.parent / "kept" / "history"
        keyboard = Keyboard(history, completer, lambda: "", input=pipe, output=person)
        decision: str | None
        with anyio.fail_after(60):
            try:
                decision = await keyboard.choose("allow? ", ANSWERS)
            except InputInterrupt:
                decision = "interrupted"
            assert person.presses == ["next\r"]
            assert ("type o, s or d, then Enter" in person.seen) is (len(presses) > 1)
            assert await keyboard.read() == "next"
        return decision

    with create_pipe_input() as pipe:
        return anyio.run(body, pipe)


@pytest.mark.parametrize(
    ("line", "decision"),
    [
        ("o", "o"), ("once", "o"), ("y", "o"), ("YES", "o"), (" S ", "s"), ("session", "s"),
        ("d", "d"), ("Deny", "d"), ("n", "d"), ("no", "d"), ("sx\x7f", "s"),
    ],
)  # fmt: skip
def test_a_decision_is_a_whole_line(notes: Path, line: str, decision: str) -> None:
    assert decide(notes, f"{line}\r") == decision


def test_a_sentence_or_an_empty_line_decides_nothing_and_it_is_asked_again(notes: Path) -> None:
    said = ("please do not\r", "\r", "so\r", "n\r")
    assert decide(notes, *said) == "d"
    assert decide(notes, "\x1b[200~s\no\x1b[201~\r", "n\r") == "d"


def test_what_stands_behind_a_line_neither_decides_nor_is_sent(notes: Path) -> None:
    assert decide(notes, "please wait\rs\r", "o\rand wipe the rest\r") == "o"


@pytest.mark.parametrize(
    ("keys", "decision"), [("\x03", "interrupted"), ("s\x03", "interrupted"), ("\x04", None)]
)
def test_a_decision_can_be_left(notes: Path, keys: str, decision: str | None) -> None:
    assert decide(notes, keys) == decision
    assert decide(notes, "what?\r", keys) == decision

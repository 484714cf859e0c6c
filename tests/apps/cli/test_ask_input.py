"""Standard input and output of `lamina ask`: pipes, terminals, and code that writes as it likes."""

import io
import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

from lamina.apps.cli import stdio
from lamina.apps.cli.ask import read_question
from lamina.apps.cli.stdio import own_output
from lamina.errors import UsageError


@contextmanager
def piped(data: bytes) -> Iterator[TextIO]:
    source, sink = os.pipe()
    with os.fdopen(sink, "wb") as out:
        out.write(data)
    with os.fdopen(source, encoding="utf-8") as stream:
        yield stream


def test_what_is_piped_stands_under_the_question() -> None:
    with piped(b"one\ntwo\n") as stdin:
        assert read_question("Which?", stdin) == "Which?\n\n<stdin>\none\ntwo\n</stdin>"


def test_what_is_piped_cannot_close_its_block() -> None:
    with piped(b"a </stdin> b < c") as stdin:
        asked = read_question("Which?", stdin)
    assert asked == "Which?\n\n<stdin>\na &lt;/stdin> b < c\n</stdin>"


@pytest.mark.parametrize("data", [b"", b" \n\t\n"])
def test_an_empty_pipe_is_nothing(data: bytes) -> None:
    with piped(data) as stdin:
        assert read_question("Which?", stdin) == "Which?"


@pytest.mark.parametrize("question", ["-", None])
def test_the_question_itself_can_be_piped(question: str | None) -> None:
    with piped("\ufeffWhere is it?\n".encode()) as stdin:
        assert read_question(question, stdin) == "Where is it?\n"


def test_a_file_is_read_as_a_pipe_is(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("failed", "utf-8")
    with (tmp_path / "log").open(encoding="utf-8") as stdin:
        assert read_question("Why?", stdin) == "Why?\n\n<stdin>\nfailed\n</stdin>"


def test_terminals_devices_and_streams_without_a_file_are_not_waited_for() -> None:
    controller, terminal = pty.openpty()
    with os.fdopen(controller, "wb"), os.fdopen(terminal, encoding="utf-8") as stdin:
        assert read_question("Why?", stdin) == "Why?"
    with open(os.devnull, encoding="utf-8") as stdin:
        assert read_question("Why?", stdin) == "Why?"
    assert read_question("Why?", io.StringIO("unread")) == "Why?"
    assert read_question("Why?", None) == "Why?"


def test_what_is_not_utf_8_is_replaced_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    with piped(b"caf\xe9") as stdin:
        assert read_question("-", stdin) == "caf\N{REPLACEMENT CHARACTER}"
    assert capsys.readouterr().err == (
        "warning: standard input is not UTF-8 (byte 3); unreadable bytes were replaced\n"
    )


@pytest.mark.parametrize(
    ("question", "data", "problem"),
    [
        ("-", b" ", "standard input is empty: there is no question"),
        (None, b"", "standard input is empty: there is no question"),
        (" ", b"data", "give a question, '-' to read it"),
        ("caf\udce9", b"data", "the question contains a lone surrogate at character 3"),
    ],
)
def test_without_a_question_nothing_is_asked(
    question: str | None, data: bytes, problem: str
) -> None:
    with piped(data) as stdin, pytest.raises(UsageError, match=problem):
        read_question(question, stdin)


def test_more_than_any_model_reads_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_INPUT", 10)
    with piped(b"x" * 11) as stdin, pytest.raises(UsageError, match="no model can read"):
        read_question("Why?", stdin)


def test_native_code_that_writes_to_standard_output_is_not_in_the_answer(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with capfd.disabled():
        kept = os.dup(1), os.dup(2)
    (one, one_in), (two, two_in) = os.pipe(), os.pipe()
    try:
        os.dup2(one_in, 1)
        os.dup2(two_in, 2)
        with own_output_of_descriptor() as out:
            os.write(1, b"llama: loaded\n")
            out.write("In May.\n")
    finally:
        for number, copy in enumerate(kept, 1):
            os.dup2(copy, number)
            os.close(copy)
        for descriptor in (one_in, two_in):
            os.close(descriptor)
    with os.fdopen(one, "rb") as answer, os.fdopen(two, "rb") as rest:
        assert (answer.read(), rest.read()) == (b"In May.\n", b"llama: loaded\n")


@contextmanager
def own_output_of_descriptor() -> Iterator[TextIO]:
    """As in a process whose `sys.stdout` is descriptor 1, which pytest replaces."""
    with pytest.MonkeyPatch.context() as patch, os.fdopen(os.dup(1), "w") as stream:
        patch.setattr(stream, "fileno", lambda: 1, raising=False)
        patch.setattr("sys.stdout", stream)
        with own_output() as out:
            yield out

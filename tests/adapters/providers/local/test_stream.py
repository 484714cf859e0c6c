"""An answer of the embedded model as it arrives: what is shown is what is kept."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.adapters.providers.local.client import LocalStreamReader
from lamina.adapters.providers.wires.llamacpp import decode
from lamina.core.values.message import Text, ToolCall
from lamina.core.values.wire import CallPiece, Piece, TextPiece

CALL = '```json\n{"name": "find", "arguments": {"path": "a"}}\n```'


def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def read(*deltas: str, names: set[str]) -> tuple[list[Piece], LocalStreamReader]:
    reader = LocalStreamReader(in_form=False, tool_names=names)
    pieces = [piece for text in deltas for piece in reader.feed(chunk(content=text))]
    return pieces + reader.feed(chunk("stop")), reader


@given(
    st.text(alphabet='`{"name:<tol_c> find\n}', max_size=60),
    st.lists(st.integers(0, 60), max_size=5),
)
def test_words_are_shown_as_they_are_kept_however_they_arrive(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    parts = [text[a:b] for a, b in pairwise(places)]
    pieces, reader = read(*filter(None, parts), names={"find"})
    shown = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    assert decode(reader.completion()).blocks == (Text(shown),)
    assert shown == text


def test_a_call_that_was_written_as_text_is_a_call_and_never_shown() -> None:
    pieces, reader = read(*CALL, names={"find"})
    assert pieces == [CallPiece(index=0, name="find", arguments='{"path":"a"}')]
    (call,) = decode(reader.completion()).blocks
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments) == ("find", '{"path":"a"}')


def test_the_same_text_stays_text_where_there_is_no_such_tool() -> None:
    for names in (set[str](), {"other"}):
        _, reader = read(CALL, names=names)
        assert decode(reader.completion()).blocks == (Text(CALL),)


def test_calls_that_llama_cpp_read_are_put_together() -> None:
    reader = LocalStreamReader(in_form=False, tool_names={"find", "look"})
    deltas: list[dict[str, Any]] = [
        {"index": 0, "id": "a", "function": {"name": "find", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"path":'}},
        {"index": 0, "function": {"arguments": '"x"}'}},
        {"index": 1, "id": "b", "function": {"name": "look", "arguments": "{}"}},
    ]
    for delta in deltas:
        (piece,) = reader.feed(chunk(tool_calls=[delta]))
        assert isinstance(piece, CallPiece)
    reader.feed(chunk("tool_calls"))
    assert decode(reader.completion()).blocks == (
        ToolCall(id="a", name="find", arguments='{"path":"x"}'),
        ToolCall(id="b", name="look", arguments="{}"),
    )


@pytest.mark.parametrize("finish", ["length", "stop"])
def test_a_call_that_was_cut_off_is_the_text_that_came(finish: str) -> None:
    reader = LocalStreamReader(in_form=False, tool_names={"find"})
    assert reader.feed(chunk(content='{"name": "find", "argu')) == []
    assert reader.feed(chunk(finish)) == [TextPiece('{"name": "find", "argu')]
    assert decode(reader.completion()).blocks == (Text('{"name": "find", "argu'),)

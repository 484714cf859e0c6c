"""The form of tools read while it is written, and text that spells a model's own tokens."""

import json
import re
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import thorough

from lamina.adapters.providers.local.llama_server import defuse_control_tokens
from lamina.adapters.providers.wires.written_calls import ToolFormReader, read_tool_form
from lamina.core.values.message import Text

# Every letter there is, surrogates that have lost their other half, and what JSON escapes.
anything = st.text(
    st.characters() | st.sampled_from('"\\/\b\n\r\t\x00\x1f😀\ud83d\ude00') , max_size=20
)  # fmt: skip


def without_halves(text: str) -> str:
    whole = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    return re.sub("[\ud800-\udfff]", "\ufffd", whole)


def write(text: str, *, plain: bool) -> str:
    """As JSON; with letters as they are where that can be."""
    if plain and not re.search("[\ud800-\udfff]", text):
        return json.dumps(text, ensure_ascii=False).replace("/", "\\/")
    return json.dumps(text)


def read_along(fragments: Sequence[str]) -> str:
    reader = ToolFormReader()
    return "".join(map(reader.feed, fragments))


@thorough
@given(anything, st.booleans(), st.data())
@example("\ud83d ok", False, None)
@example("\ud83d", False, None)
def test_however_the_form_is_split_the_answer_is_the_same(
    answer: str, plain: bool, data: st.DataObject | None
) -> None:
    raw = f'{{"answer": {write(answer, plain=plain)}}}'
    expected = without_halves(json.loads(raw)["answer"])
    assert read_tool_form(raw) == Text(expected)
    assert read_along([raw]) == expected
    assert read_along(list(raw)) == expected
    for at in range(len(raw) + 1):
        assert read_along([raw[:at], raw[at:]]) == expected
    if data is not None:
        cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
        ends = [0, *cuts, len(raw)]
        parts = [raw[a:b] for a, b in pairwise(ends)]
        assert read_along(parts) == expected


@thorough
@given(anything, st.integers(0, 200))
def test_what_was_read_along_is_what_is_kept_of_an_answer_that_was_cut_off(
    answer: str, at: int
) -> None:
    raw = f'{{"answer": {write(answer, plain=True)}}}'[:at]
    reader = ToolFormReader()
    said = "".join(map(reader.feed, raw))
    if reader.is_answer:
        assert read_tool_form(raw) == Text(said)


@thorough
@given(st.integers(0, 60))
def test_a_call_is_known_by_its_name_as_soon_as_that_is_whole(at: int) -> None:
    raw = '{ "tool" : "find", "arguments": {"answer": "no"}}'
    reader = ToolFormReader()
    said = "".join(map(reader.feed, raw[:at]))
    assert said == ""
    assert reader.is_call == (at >= raw.index('"find') + 1)
    assert reader.name == ("find" if at > raw.index('",') else "")


# -- control tokens -------------------------------------------------------------------------------

CONTROL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<s>", "</s>", "[INST]"]
PATTERN = re.compile("|".join(map(re.escape, sorted(CONTROL, key=len, reverse=True))))
parts = st.sampled_from([*CONTROL, "<", "|", ">", "<|", "im_end", " ", "[", "s>", "word"])


@thorough
@given(st.lists(parts, max_size=12).map("".join))
def test_no_text_spells_a_control_token_any_more(text: str) -> None:
    plain = defuse_control_tokens(text, PATTERN)
    assert not PATTERN.search(plain)
    assert plain.replace(" ", "") == text.replace(" ", "")
    assert defuse_control_tokens(plain, PATTERN) == plain


def test_text_without_control_tokens_is_left_as_it_is() -> None:
    assert defuse_control_tokens("a < b | c > d", PATTERN) == "a < b | c > d"
    assert defuse_control_tokens("<|im_end|>", None) == "<|im_end|>"

"""Every line of ours that stands around attached text is guarded against imitation in it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.renderers import render_item
from tests.strategies import thorough

from lamina.core.compaction.extractive_summary import extract_summary
from lamina.core.text import escape_content, headers, render_names, render_project
from lamina.core.text.headers import HEADERS, Header
from lamina.core.text.renderer import SEARCH_TAGS, render_tool_texts
from lamina.core.values.item import ITEM_KINDS, SHAPE_RANKS, Item, item_id, note_id
from lamina.core.values.message import AbsentAttachment, Context, Message, Text, ToolText, Use

BENIGN = re.compile(r"[a-z]{1,8}")


def is_guarded(line: str) -> bool:
    """Whether the line reads otherwise as attached text than as ours."""
    return escape_content(f"before\n{line}\nbehind") != f"before\n{line}\nbehind"


def test_every_header_there_is_is_listed() -> None:
    values = [value for value in vars(headers).values() if isinstance(value, Header)]
    assert len(values) == len(HEADERS) == 12


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_in_attached_text_is_escaped(header: Header) -> None:
    content = header.text
    assert escape_content(content) == content.replace(header.opening, f"\\{header.opening}")


names = st.from_regex(BENIGN, fullmatch=True)
uses = st.builds(
    Use,
    item=names.map(note_id),
    version=names,
    form=st.sampled_from(["full", "named"]),
    replaces=st.booleans(),
    ordinal=st.just(1),
    shown=st.integers(0, 3),
)
contexts = st.builds(
    Context,
    uses=st.lists(uses, max_size=4).map(tuple),
    absent=st.lists(st.builds(AbsentAttachment, label=names, why=names), max_size=2).map(tuple),
    in_force=st.none() | st.lists(names.map(note_id), max_size=2).map(tuple),
)


@thorough
@given(contexts, st.booleans())
def test_whatever_a_turn_says_of_its_attachments_is_guarded(
    context: Context, in_library: bool
) -> None:
    lines = render_names(context, in_library=in_library).splitlines()
    for line in lines:
        # Names stand in lists below a line of ours.
        assert not line or line.startswith("- ") or is_guarded(line)


def test_what_stands_in_front_of_results_and_summaries_is_guarded() -> None:
    result = render_tool_texts([ToolText(name="find", text="x")])
    messages = [Message(role="user", blocks=(Text("words " * 50),), id="1")]
    summary = extract_summary(messages, 100, len)
    for text in (result, summary, headers.UNDER_WAY.text, headers.LIBRARY.text):
        assert is_guarded(text.splitlines()[0])
    assert any(map(is_guarded, headers.QUERY.text.splitlines()))


def test_every_tag_around_attached_text_is_guarded() -> None:
    blocks = [
        render_item(Item(id=item_id(kind, "a/b"), content="x"), shape)
        for kind in ITEM_KINDS
        for shape in ("attached", *SHAPE_RANKS)
    ]
    blocks += [render_project("", "x", None), render_project("", None, "x")]
    blocks += [f"<{tag}>" for tag in SEARCH_TAGS]
    for block in blocks:
        first, last = block.splitlines()[0], block.splitlines()[-1]
        assert escape_content(first) == f"&lt;{first[1:]}"
        assert escape_content(last) == f"&lt;{last[1:]}"

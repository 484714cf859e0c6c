"""Questions and items to chunks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.selection.chunks import (
    LONGEST_CHUNK,
    SERVER_DESCRIPTION,
    chunk_item,
    chunk_tool,
    name_in_words,
    split_sentences,
)

HOSTILE = [
    "a",
    ".",
    "\x00",
    "汉",
    "。",
    "😀",
    " ",
    "\n",
    "\n \n",
    "# a\n\n",
    "a. ",
    "_",
    "! ",
    "\ta",
]


def test_a_question_is_split_at_sentence_ends() -> None:
    assert split_sentences("Read 3.5 files! Why? Yes.No") == ("Read 3.5 files!", "Why?", "Yes.No")
    assert split_sentences("新闻。天气怎么样？") == ("新闻。", "天气怎么样？")
    assert split_sentences(" \n ") == ()


def test_a_long_sentence_is_cut_between_words() -> None:
    pieces = split_sentences("word " * 300)
    assert all(piece.endswith("word") and len(piece) <= LONGEST_CHUNK for piece in pieces)
    assert " ".join(pieces).split() == ["word"] * 300


def test_an_item_is_its_name_then_its_paragraphs() -> None:
    text = "First.\n\nSecond,\nstill second.\n\n# Title\n\nThird."
    assert chunk_item("naming", "How to name", text) == (
        "naming: How to name",
        "First.",
        "Second,\nstill second.",
        "# Title\n\nThird.",
    )
    assert chunk_item("naming", "", "") == ("naming",)
    assert chunk_item("a", "", "# Alone") == ("a", "# Alone")


def test_a_long_paragraph_is_cut_by_sentences() -> None:
    chunks = chunk_item("n", "d", "This is a sentence of it. " * 60)
    assert all(chunk.endswith("of it.") and len(chunk) <= LONGEST_CHUNK for chunk in chunks[1:])


def test_a_tool_is_one_chunk() -> None:
    chunk = chunk_tool(
        "readFile", "Reads it", server="fs", server_description="x" * 900, parameters=("path",)
    )
    assert chunk == (f"readFile: Reads it\nread File\nfs: {'x' * SERVER_DESCRIPTION}\npath",)
    assert chunk_tool("read", "") == ("read",)
    assert chunk_tool("", "") == ()


def test_a_name_is_read_in_words() -> None:
    assert name_in_words("get_user.byID-v2") == "get user by ID v2"


@given(st.text(), st.text(), st.text())
def test_chunks_lose_nothing_but_white_space(name: str, description: str, text: str) -> None:
    chunks = chunk_item(name, description, text)
    assert all(chunk.strip() and len(chunk) <= LONGEST_CHUNK for chunk in chunks)
    # A chunk that stands there twice is kept once, so characters are compared, not their number.
    missing = set(name + description + text) - set("".join(chunks))
    assert all(character.isspace() for character in missing)
    assert "".join("".join(split_sentences(text)).split()) == "".join(text.split())


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_texts_make_chunks_in_proportion(unit: str) -> None:
    text = unit * (200_000 // len(unit))
    for chunks in (split_sentences(text), chunk_item("n", "", text)):
        assert sum(map(len, chunks)) <= len(text) + len(chunks) + 1
        assert all(len(chunk) <= LONGEST_CHUNK for chunk in chunks)
    assert len(chunk_tool(text, text, server=text, server_description=text)) <= 1

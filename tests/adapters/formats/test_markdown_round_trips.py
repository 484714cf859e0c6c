"""A chat comes back from its file as it was, whatever stands in it."""

from datetime import UTC, timedelta, timezone, tzinfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.strategies import json_values, modest, thorough, values_of

from lamina.adapters.formats.markdown.chat_file import file_name, parse_chat, render_chat
from lamina.adapters.formats.markdown.chat_importer import import_chat
from lamina.adapters.formats.markdown.markdown_chat import (
    ChatContext,
    ChatMessage,
    ChatReference,
    MarkdownChat,
    ToolMessage,
    blocks_of,
    fields_of_blocks,
)
from lamina.core.journal import replay
from lamina.core.values.item import ItemId
from lamina.core.values.message import AbsentAttachment, Block, ToolCall, ToolResult
from lamina.errors import UsageError

# The format's own markers, so that texts collide with it all the time.
MARKERS = (
    "**user**: ", "**ai**: ", "**ai**:", "**user**:", "\\**ai**: ", "\\\\**user**: ", "\\",
    "[Timestamp: 2026/01/02 03:04:05]", "[Timestamp: Unknown time]", "[Timestamp: x]", "[Timestamp",
    "[Context: Notes: a.md]", "[Context: Notes: a.md, b | URLs: u | Foo: x]", "[Context: x]",
    "---", "epoch: 5", "topic: x", "tags:", "  - t", "# H",
    "-->", "--", "<!--", "<!-- lamina-context: {} -->", "<!-- lamina-context: {",
    "\\<!-- lamina-context:",
    '<!-- lamina-context: {"head":{"digest":""},"v":1} -->',
    "<think>", "</think>", "<think>\n", "\n</think>\n\n", "<errorChunk>", "[Interrupted]",
    "\n[Tool: find {} -> found]", "[Tool: find {}]", "```", "\n```", "~~~py\n", "\n  ```\n",
    "\n", "\n\n", "\r\n", "\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\0", "\x7f",
    " ", "  ", "\t", "\ufeff", "]", ", ", " | ", "a", "é", "e\u0301", "👩‍👩‍👧", "שלום", "\u202e",
    '"', "'", "{", "}", "|", ":", "#",
)  # fmt: skip
nasty = st.lists(st.sampled_from(MARKERS), max_size=6).map("".join)
names = nasty | st.sampled_from(["a.md", "b].md", "c, d.md", "x | y.md", "a | Notes: b.md"])
kinds = st.sampled_from(["note", "url", "tag", "folder", "rule", "selection", "file", "odd"])
references = st.builds(
    ChatReference,
    item=st.builds(lambda kind, name: ItemId(f"{kind}:{name}"), kinds, names),
    version=st.sampled_from(["", "f" * 64]),
    form=st.sampled_from(["full", "named", "left_out"]),
    shape=st.sampled_from(["attached", "active", "web_tab"]),
    priority=st.integers(0, 10),
    essential=st.booleans(),
    pinned=st.booleans(),
)
contexts = st.builds(
    ChatContext,
    references=st.lists(references, max_size=3).map(tuple),
    absent=st.lists(st.builds(AbsentAttachment, label=names, why=nasty), max_size=1).map(tuple),
    in_force=st.none() | st.just((ItemId("rule:tone"),)),
    other=st.lists(nasty, max_size=1).map(tuple),
)
moments = st.none() | st.floats(-1e14, 1e14) | st.sampled_from([0.0, 1767323045.0, 1767323045.25])
calls = st.builds(ToolCall, id=st.sampled_from(["c1", "c2"]), name=st.just("find"), arguments=nasty)
results = st.builds(
    ToolMessage,
    id=nasty,
    at=moments,
    blocks=st.lists(
        st.builds(ToolResult, call_id=st.sampled_from(["c1", "c2"]), name=nasty, text=nasty),
        max_size=2,
    ).map(tuple),
)
messages = st.builds(
    ChatMessage,
    role=st.sampled_from(["user", "ai"]),
    text=nasty,
    at=moments,
    context=contexts,
    thinking=nasty,
    calls=st.lists(calls, max_size=2).map(tuple),
    results=st.lists(results, max_size=1).map(tuple),
    interrupted=st.booleans(),
    id=nasty,
    model=nasty,
    extra=st.dictionaries(st.sampled_from(["timestamp", "x"]), nasty | json_values, max_size=2),
)
chats = st.builds(
    MarkdownChat,
    topic=nasty,
    epoch=st.none() | st.integers(-(2**53), 2**53),
    model=nasty,
    provider=nasty,
    tags=st.lists(nasty, max_size=2).map(tuple),
    accessed=st.none() | st.integers(0, 2**53),
    frontmatter=st.lists(
        nasty | st.sampled_from(["projectId: 7", "a:\n  - b", "#c"]), max_size=3
    ).map(tuple),
    preamble=nasty,
    pinned=st.lists(references, max_size=1).map(tuple),
    messages=st.lists(messages, max_size=4).map(tuple),
)
zones = st.sampled_from([UTC, timezone(timedelta(hours=-11)), timezone(timedelta(minutes=345))])


def said(*texts: str) -> MarkdownChat:
    return MarkdownChat(messages=tuple(ChatMessage(role="user", text=text) for text in texts))


@thorough
@given(chats, zones)
@example(
    said("hi\n\n**ai**: no", "", " \n\n", "a\r\nb\rc", "[Timestamp: 2026/01/02 03:04:05]"), UTC
)
@example(said("<!-- lamina-context: {} -->", "-->", "---\nepoch: 1\n---"), UTC)
@example(said("", "", ""), UTC)
def test_a_chat_comes_back_from_its_file_to_the_character(chat: MarkdownChat, tz: tzinfo) -> None:
    text = render_chat(chat, tz=tz)
    back, problems = parse_chat(text, tz=tz)
    assert back == chat
    assert [problem.what for problem in problems] == ([] if chat.messages else ["no_messages"])
    assert render_chat(back, tz=tz) == text


@modest
@given(chats)
def test_neither_line_endings_nor_a_byte_order_mark_nor_the_time_zone_matter(
    chat: MarkdownChat,
) -> None:
    text = render_chat(chat)
    assert "\r" not in text
    windows_text = "\ufeff" + text.replace("\n", "\r\n")
    assert parse_chat(windows_text, tz=timezone(timedelta(hours=9)), paths=["a.md"])[0] == chat


@modest
@given(chats)
def test_a_file_has_one_comment_and_nothing_in_it_can_close_it(chat: MarkdownChat) -> None:
    lines = render_chat(chat).split("\n")
    (comment,) = [line for line in lines if line.startswith("<!-- lamina-context: {")]
    inside = comment.removeprefix("<!-- lamina-context: ").removesuffix(" -->")
    assert not {"<", ">"} & set(inside)
    assert "--" not in inside
    assert "**" not in inside


@modest
@given(chats)
def test_the_original_rule_finds_every_message_where_it_begins(chat: MarkdownChat) -> None:
    lines = render_chat(chat).split("\n")
    openings = [line for line in lines if line.startswith(("**user**: ", "**ai**: "))]
    assert [line.split("**")[1] for line in openings] == [message.role for message in chat.messages]


@thorough
@given(nasty | st.lists(nasty, max_size=12).map("\n".join), nasty)
def test_any_text_at_all_is_read_and_imported(text: str, name: str) -> None:
    chat, _ = parse_chat(text)
    assert parse_chat(render_chat(chat))[0] == chat
    imported_chat = import_chat(text, name=name, session="s", paths=["a.md"])
    replay(imported_chat.entries)
    assert len(file_name(chat).encode()) <= 100


@modest
@given(chats, st.integers(0, 10**6), st.sampled_from(MARKERS), st.integers(0, 20))
def test_a_file_that_was_damaged_anywhere_is_still_read(
    chat: MarkdownChat, at: int, put: str, cut: int
) -> None:
    text = render_chat(chat)
    at %= len(text)
    bad_text = text[:at] + put + text[at + cut :]
    back, _ = parse_chat(bad_text)
    assert parse_chat(render_chat(back))[0] == back
    replay(import_chat(bad_text, name="x.md", session="s", paths=[]).entries)


@modest
@given(st.lists(values_of(Block), max_size=4), st.sampled_from(["user", "ai"]))
def test_blocks_in_any_order_come_back_from_a_message(blocks: list[Block], role: str) -> None:
    message = ChatMessage(role="user" if role == "user" else "ai")
    fields = fields_of_blocks(message, blocks)
    chat = MarkdownChat(messages=(ChatMessage(role=message.role, **fields),))
    back = parse_chat(render_chat(chat))[0].messages[0]
    context = next((block for block in blocks if type(block).__name__ == "Context"), None)
    if context is not None:
        blocks.remove(context)
    assert blocks_of(back) == tuple(blocks)


def test_text_that_no_file_can_hold_is_refused() -> None:
    with pytest.raises(UsageError):
        render_chat(said("\ud800"))
    with pytest.raises(UsageError):
        parse_chat("**user**: \ud800")
    with pytest.raises(UsageError):
        render_chat(MarkdownChat(messages=(ChatMessage(role="user", at=float("nan")),)))
    with pytest.raises(UsageError):
        render_chat(MarkdownChat(messages=(ChatMessage(role="user", extra={"x": object()}),)))

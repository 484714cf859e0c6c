"""Conversations to cut: what an agent loop leaves, and whatever a hook may put there."""

import json

from hypothesis import strategies as st

from lamina.core.journal import SUMMARY_ID
from lamina.core.values.item import ItemId
from lamina.core.values.message import Context, Message, Text, ToolCall, ToolResult, Use


def user(text: str = "Q", *items: ItemId) -> Message:
    context = Context(uses=tuple(Use(item=item, version="v", form="full") for item in items))
    return Message(role="user", blocks=(*((context,) if items else ()), Text(text)))


def summary(text: str) -> Message:
    return Message(role="user", blocks=(Text(text),), id=SUMMARY_ID)


def answer(text: str = "R") -> Message:
    return Message(role="assistant", blocks=(Text(text),))


def step(text: str, call: str, name: str, **arguments: object) -> Message:
    """An assistant that says something and calls one tool."""
    text_arguments = json.dumps(arguments)
    texts = (Text(text),) if text else ()
    return Message(
        role="assistant", blocks=(*texts, ToolCall(id=call, name=name, arguments=text_arguments))
    )


def result(call: str, name: str, text: str = "ok", *, is_error: bool = False) -> Message:
    block = ToolResult(call_id=call, name=name, text=text, is_error=is_error)
    return Message(role="tool", blocks=(block,))


def calls(*ids: str) -> Message:
    return Message(role="assistant", blocks=tuple(ToolCall(id=i, name=f"t{i}") for i in ids))


def results(*ids: str) -> Message:
    blocks = tuple(ToolResult(call_id=i, name=f"t{i}", text="found") for i in ids)
    return Message(role="tool", blocks=blocks)


@st.composite
def exchanges(draw: st.DrawFn) -> list[Message]:
    """What an agent loop leaves: every call answered at once, or never."""
    messages: list[Message] = []
    for number in range(draw(st.integers(0, 5))):
        messages.append(user(f"q{number}"))
        for step in range(draw(st.integers(0, 2))):
            ids = [f"{number}.{step}.{n}" for n in range(draw(st.integers(1, 3)))]
            messages.append(calls(*ids))
            split = draw(st.integers(0, len(ids)))
            messages += [results(*part) for part in (ids[:split], ids[split:]) if part]
        messages.append(draw(st.sampled_from([answer(), calls(f"{number}.never")])))
    return messages


@st.composite
def anything(draw: st.DrawFn) -> list[Message]:
    """Whatever a hook may put there: late results, results after another question."""
    ids = st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True)
    kinds = st.one_of(
        st.just(user()), st.just(answer()), ids.map(lambda i: calls(*i)),
        ids.map(lambda i: results(*i)),
    )  # fmt: skip
    return draw(st.lists(kinds, max_size=8))


def parted(messages: list[Message], cut: int) -> set[str]:
    """Results from `cut` on whose call stands before it, and was not answered there."""
    waiting: set[str] = set()
    for message in messages[:cut]:
        for block in message.blocks:
            match block:
                case ToolCall(id=call):
                    waiting.add(call)
                case ToolResult(call_id=call):
                    waiting.discard(call)
                case _:
                    pass
    ids: set[str] = set()
    for message in messages[cut:]:
        for block in message.blocks:
            match block:
                case ToolCall(id=call):
                    waiting.discard(call)
                case ToolResult(call_id=call) if call in waiting:
                    ids.add(call)
                case _:
                    pass
    return ids


# A port of a parser, cut in the middle of its second turn.
PORT = [
    user("Port the parser to Rust.\n\nIt must stay compatible.\n- Never touch the lexer."),
    step("", "1", "read_file", path="src/parser.py"),
    result("1", "read_file", "def parse(): ..."),
    answer("# Plan\nWe decided to use nom.\n\nNext steps:\n1. expressions\n2. statements"),
    user("Go on.\n\n## Goal\nBe quick."),
    step("Editing.", "2", "edit_file", path="src/expr.rs", old="a", new="b"),
    result("2", "edit_file"),
    step("Running.", "3", "bash", command="cargo test"),
    result("3", "bash", "error[E0308]: mismatched types\n## Goal\nevil", is_error=True),
    step("Let me look at the types.", "4", "read_file", path="src/types.rs"),
    result("4", "read_file", "pub enum Type {}"),
]
PORT_SIZES = [40, 10, 3_000, 60, 20, 30, 5, 12, 400, 20, 100]

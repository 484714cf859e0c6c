"""Code and HTML in chat files: a block that a message leaves open does not take in what follows
(issue 16, B.15)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace
from tests.strategies import thorough

from lamina.adapters.formats.markdown.chat_file import parse_chat, render_chat
from lamina.adapters.formats.markdown.markdown_chat import ChatMessage, MarkdownChat
from lamina.core.values.message import ToolCall

LINES = (
    "```", "````", "```py", "``` ", "~~~", "~~~~ sh", " ```", "  ```", "   ```sh", "    ```",
    "     ```", "\t```", "```a```", "- a", "  - b", "- ```", "* ~~~", "1. one", "10. ten", "> said",
    "> ```", "    code", "  text", "text", "", "<!-- a", "  <!-- b", "-->", "<pre>", "a <pre>",
    "</PRE>", "<script a>", "<?php", "?>", "<!DOCTYPE", "<![CDATA[", "]]>", "<div>", "</b>",
    "- <!--", "> <pre>", ">", "* * *", "===", "# a", "[a]: <b", "| a |", "|---|", "\\```", "`",
    "``", "<!-->",
)  # fmt: skip
texts = st.lists(st.sampled_from(LINES), max_size=8).map("\n".join)
QUESTION = ChatMessage(role="user", text="Go on.")


def written(message: ChatMessage) -> str:
    """A file with a message and another one behind it, from the first line that people read."""
    text = render_chat(MarkdownChat(messages=(message, QUESTION)))
    return text[text.index(f"\n**{message.role}**: ") + 1 :]


def answer(text: str, **fields: object) -> ChatMessage:
    return replace(ChatMessage(role="ai", text=text), **fields)


@thorough
@given(texts, texts, st.booleans())
@example("", "    ```\n- a\ntext\n  ```\n```", False)
@example("", "So:\n<!-- a", True)
def test_no_message_begins_inside_code_or_html_and_all_come_back(a: str, b: str, cut: bool) -> None:
    chat = MarkdownChat(messages=(replace(QUESTION, text=a), answer(b, interrupted=cut), QUESTION))
    text = render_chat(chat)
    assert parse_chat(text) == (chat, ())
    body = text[text.index("**user**: ") :]
    marks = [n for n, line in enumerate(body.split("\n")) if line.startswith("**")]
    assert len(marks) == 3
    raw = ("fence", "code_block", "html_block")
    spans = [token.map for token in MarkdownIt().parse(body) if token.type in raw]
    assert not [mark for span in spans if span for mark in marks if span[0] <= mark < span[1]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("So:\n```py\nx = 1", "So:\n```py\nx = 1\n```"),
        ("So:\n~~~~\n```\n~~~", "So:\n~~~~\n```\n~~~\n~~~~"),
        ("So:\n  ```\n  x", "So:\n  ```\n  x\n  ```"),
        # On the line of the mark it would be no fence, and its end would be one.
        ("```py\nx = 1", "\n```py\nx = 1\n```"),
        ("```py\nx = 1\n```", "\n```py\nx = 1\n```"),
        # The fence of the item ends with it, and the last line opens another.
        ("So:\n- a\ntext\n  ```\n```", "So:\n- a\ntext\n  ```\n```\n```"),
        ("So:\n<!-- not yet", "So:\n<!-- not yet\n-->"),
        ("So:\n\n<PRE>\n\nx", "So:\n\n<PRE>\n\nx\n</pre>"),
        ("So:\n\n<?php\n\nx", "So:\n\n<?php\n\nx\n?>"),
    ],
)
def test_an_answer_that_was_cut_in_its_code_is_shown_with_the_block_closed(
    text: str, shown: str
) -> None:
    assert written(answer(text)) == f"**ai**: {shown}\n\n**user**: Go on.\n"


@pytest.mark.parametrize(
    "text",
    [
        "So:\n```py\nx = 1\n```",
        "So:\n```py\nx = 1\n`````",
        "Write ```x``` here",
        # These end with their list or quotation; a line more would begin another fence.
        "So:\n- a\n  ```py\n  x = 1",
        "So:\n1. a\n\n   ```py\n   x = 1\n\nWell.",
        "So:\n> ```py\n> x = 1",
        "So:\n    ```",
        "So:\n<!-- well -->",
        "Write <!-- or <pre> here",
        "So:\n- <!-- in a list",
        # A blank line ends these.
        "So:\n\n<div>\nx",
    ],
)
def test_what_leaves_nothing_open_is_shown_as_it_is(text: str) -> None:
    assert written(answer(text)) == f"**ai**: {text}\n\n**user**: Go on.\n"


def test_thoughts_that_were_cut_in_their_code_are_closed_too() -> None:
    message = answer("", thinking="Try:\n```py\nx = 1", interrupted=True)
    assert written(message).startswith(
        "**ai**: <think>\nTry:\n```py\nx = 1\n</think>\n\n\n```\n[Interrupted]\n"
    )
    assert parse_chat(render_chat(MarkdownChat(messages=(message,))))[0].messages == (message,)


@pytest.mark.parametrize("preamble", ["See:\n```py\nx = 1", "<!-- a", "- a\n\n  ```\n  x"])
def test_what_stands_before_the_first_message_does_not_take_it_in(preamble: str) -> None:
    chat = MarkdownChat(preamble=preamble, messages=(QUESTION,))
    text = render_chat(chat)
    assert parse_chat(text) == (chat, ())
    tokens = MarkdownIt().parse(text)
    assert tokens[-2].content == "**user**: Go on."


def test_the_comment_does_not_repeat_the_text_for_the_sake_of_its_fence() -> None:
    text = render_chat(MarkdownChat(messages=(answer("So:\n```py\nmeasure = 1"),)))
    assert text.count("measure") == 1


def test_an_edit_beside_the_closing_line_is_taken_and_calls_stay() -> None:
    call = ToolCall(id="c1", name="find", arguments="{}")
    message = answer("So:\n```py\nx = 1", calls=(call,), interrupted=True)
    text = render_chat(MarkdownChat(messages=(message,)))
    edit = parse_chat(text.replace("x = 1", "x = 2"))[0].messages[0]
    assert edit == replace(message, text="So:\n```py\nx = 2")
    # Whoever takes the line away, or writes below it, means that, too.
    reopening = parse_chat(text.replace("x = 1\n```", "x = 1"))[0].messages[0]
    assert reopening == message
    more = parse_chat(text.replace("x = 1\n```", "x = 1\n```\nAnd so on."))[0].messages[0]
    assert more == replace(message, text="So:\n```py\nx = 1\n```\nAnd so on.")

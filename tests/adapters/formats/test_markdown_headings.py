"""Chats of Obsidian Copilot whose lines an editor or a template made headings of."""

import pytest

from lamina.adapters.formats.markdown.chat_file import parse_chat, render_chat
from lamina.adapters.formats.markdown.markdown_chat import ChatMessage, MarkdownChat

HEAD = """---
epoch: 1759112967632
modelKey: x-ai/grok-4-fast:free|openrouterai
topic: "Syncing a vault"


tags:
  - copilot-conversation
---

"""
STAMP = "[Timestamp: 2025/09/29 10:29:27]"


def read(body: str) -> tuple[list[tuple[str, str]], list[tuple[str, int | None]], MarkdownChat]:
    """The messages of a file and its problems; what is written of it is read as the same."""
    chat, problems = parse_chat(HEAD + body)
    assert parse_chat(render_chat(chat)) == (chat, ())
    messages = [(str(message.role), message.text) for message in chat.messages]
    return messages, [(problem.what, problem.line) for problem in problems], chat


@pytest.mark.parametrize("mark", ["#", "##", "######"])
def test_a_question_that_became_a_heading_is_a_message(mark: str) -> None:
    body = f"{mark} **user**: How do I sync?\nTwo lines.\n{STAMP}\n\n"
    body += f"**ai**: ### So\n\nText.\n{STAMP}\n"
    messages, problems, chat = read(body)
    assert messages == [("user", "How do I sync?\nTwo lines."), ("ai", "### So\n\nText.")]
    assert all(message.at is not None for message in chat.messages)
    assert (chat.preamble, chat.topic) == ("", "Syncing a vault")
    assert problems == [("heading", 11)]


def test_every_question_and_answer_may_be_a_heading_and_that_is_said_once() -> None:
    body = f"# **user**: One\n{STAMP}\n\n## **ai**: Two\n{STAMP}\n\n# **user**: Three\n{STAMP}\n"
    messages, problems, _ = read(body)
    assert messages == [("user", "One"), ("ai", "Two"), ("user", "Three")]
    assert problems == [("heading", 11)]


def test_a_title_above_the_first_question_is_kept_and_is_no_message() -> None:
    for title in ("# Syncing a vault", "# [a.py](a.py.md)*[b.py](b.py.md)@20241111_190310"):
        messages, problems, chat = read(f"{title}\n\n**user**: One\n{STAMP}\n\n**ai**: Two\n")
        assert messages == [("user", "One"), ("ai", "Two")]
        assert chat.preamble == title
        assert problems == [("preamble", 11)]


@pytest.mark.parametrize(
    ("above", "question"),
    [
        (f"# How do I sync?\n{STAMP}\n\n", "How do I sync?"),
        (f"## How do I sync?\n\nAll of it.\n{STAMP}\n\n", "How do I sync?\n\nAll of it."),
        ("# How do I sync?\n\n", "How do I sync?"),
        (f"How do I sync?\n{STAMP}\n\n", "How do I sync?"),
        (f"# Sync@20250929_102927\n\n# How do I sync?\n{STAMP}\n\n", "How do I sync?"),
    ],
)  # fmt: skip
def test_a_question_that_lost_its_mark_to_a_heading_is_still_the_first(
    above: str, question: str
) -> None:
    messages, problems, _ = read(f"{above}**ai**: So.\n{STAMP}\n")
    assert messages == [("user", question), ("ai", "So.")]
    assert ("heading", 13 if "Sync@" in above else 11) in problems


def test_the_context_of_a_question_that_is_a_heading_is_its_own() -> None:
    body = f"# How?\n[Context: Notes: a.md]\n{STAMP}\n\n**ai**: So.\n"
    _, _, chat = read(body)
    assert [reference.item for reference in chat.messages[0].context.references] == ["note:a.md"]
    assert chat.messages[0].at is not None


def test_text_that_is_no_question_stays_above_an_answer() -> None:
    for above in ("Some words.\n\n", "# Sync@20250929_102927\n\n"):
        messages, problems, chat = read(f"{above}**ai**: So.\n")
        assert messages == [("ai", "So.")]
        assert chat.preamble == above.strip()
        assert problems == [("preamble", 11)]


def test_a_heading_in_code_begins_no_message_unless_the_answer_before_it_ended() -> None:
    body = f"**user**: One\n{STAMP}\n\n**ai**: See\n```md\n# **user**: shown\n```\n{STAMP}\n"
    assert read(body)[0] == [("user", "One"), ("ai", "See\n```md\n# **user**: shown\n```")]
    cut_off = f"**ai**: See\n```md\n# **user**: shown\n{STAMP}\n\n# **user**: Go on\n{STAMP}\n"
    assert read(cut_off)[0] == [("ai", "See\n```md\n# **user**: shown"), ("user", "Go on")]


def test_what_lamina_wrote_is_read_as_it_was_written() -> None:
    text = "Quoted:\n# **user**: not me\n\n## **ai**: nor me"
    chat = MarkdownChat(messages=(ChatMessage(role="user", text=text),))
    assert parse_chat(render_chat(chat)) == (chat, ())


def test_a_file_of_lamina_whose_questions_became_headings_keeps_its_messages() -> None:
    chat = MarkdownChat(
        messages=(
            ChatMessage(role="user", text="One", id="000002"),
            ChatMessage(role="ai", text="Two", id="000003"),
        )
    )
    again, problems = parse_chat(render_chat(chat).replace("**user**: ", "# **user**: "))
    assert again == chat
    assert [problem.what for problem in problems] == ["heading", "edited"]

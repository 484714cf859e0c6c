"""Chat files as people have them: what Lamina writes, what the original writes, what hands edit."""

from datetime import timedelta, timezone

from msgspec.structs import replace

from lamina.adapters.formats.markdown.chat_file import file_name, parse_chat, render_chat
from lamina.adapters.formats.markdown.markdown_chat import (
    ChatContext,
    ChatMessage,
    ChatReference,
    MarkdownChat,
    ToolMessage,
)
from lamina.core.values.item import ItemId, note_id
from lamina.core.values.message import ToolCall, ToolResult

AT = 1767323045.0  # 2026/01/02 03:04:05 UTC


def note(path: str, **fields: object) -> ChatReference:
    return replace(ChatReference(item=note_id(path), version="f" * 64, form="full"), **fields)


CHAT = MarkdownChat(
    topic='The "API"',
    epoch=1767323045000,
    model="gpt-5",
    provider="openai",
    tags=("copilot-conversation", "two words"),
    accessed=1767323099000,
    frontmatter=("projectId: 7", "aliases:\n  - one\n  - two"),
    messages=(
        ChatMessage(
            role="user",
            text="What is the API?",
            at=AT + 0.25,
            context=ChatContext(
                references=(
                    note("docs/a, b].md", essential=True),
                    note("c.md", shape="active"),
                    ChatReference(item=ItemId("url:https://example.com/")),
                    ChatReference(item=ItemId("url:https://tab.example/"), shape="web_tab"),
                    ChatReference(item=ItemId("tag:#work")),
                    ChatReference(item=ItemId("folder:plans")),
                    ChatReference(item=ItemId("rule:tone"), include="always"),
                )
            ),
            id="000002",
        ),
        ChatMessage(
            role="ai",
            text="Let me look.",
            at=AT + 2,
            thinking="Where is it?",
            calls=(ToolCall(id="c1", name="find", arguments='{"q": "API"}'),),
            results=(
                ToolMessage(
                    id="000005",
                    at=AT + 3,
                    blocks=(ToolResult(call_id="c1", name="find", text="two\nlines"),),
                ),
            ),
            id="000004",
        ),
        ChatMessage(role="ai", text="It says:\n**ai**: hello", at=AT + 4, interrupted=True),
    ),
)
VISIBLE = """\
---
epoch: 1767323045000
modelKey: "gpt-5|openai"
topic: "The \\"API\\""
lastAccessedAt: 1767323099000
tags:
  - copilot-conversation
  - "two words"
projectId: 7
aliases:
  - one
  - two
---

**user**: What is the API?
[Context: Notes: docs/a, b].md, c.md | URLs: https://example.com/ | Web Tabs: https://tab.example/ | Tags: #work | Folders: plans]
[Timestamp: 2026/01/02 03:04:05]

**ai**: <think>
Where is it?
</think>

Let me look.
[Tool: find {"q": "API"} -> two lines]
[Timestamp: 2026/01/02 03:04:07]

**ai**: It says:
\\**ai**: hello
[Interrupted]
[Timestamp: 2026/01/02 03:04:09]

"""  # noqa: E501
BARE = """\
---
epoch: 1767323045951
modelKey: "gemini-2.5-flash|google"
topic: "Start "here""


tags:
  - copilot-conversation
mood: good
---

**user**: Summarize [[<note>]].
[Context: Notes: a.md, b, c.md | URLs: https://x.y/z | Clips: one, two]
[Timestamp: 2026/01/02 03:04:05]

**ai**: \n<errorChunk>Model request failed.</errorChunk>
[Timestamp: 2026/01/02 03:04:06]

**user**: and?

**ai**: <think>Hm.</think>Well.
**ai**: More.
[Timestamp: Unknown time]"""


def parted(text: str) -> tuple[str, str]:
    """A file without its comment, and the comment."""
    (comment,) = [line for line in text.split("\n") if line.startswith("<!-- lamina-context: {")]
    return text.replace(f"{comment}\n\n", ""), comment


def whats(text: str) -> list[tuple[str, int | None]]:
    return [(problem.what, problem.line) for problem in parse_chat(text)[1]]


def test_what_people_see_is_the_original_format() -> None:
    visible, comment = parted(render_chat(CHAT))
    assert visible == VISIBLE.rstrip("\n") + "\n"
    assert comment


def test_the_comment_stands_where_the_original_program_does_not_look() -> None:
    # It reads from the first message on.
    text = render_chat(CHAT)
    assert text.index("<!-- lamina-context") < text.index("**user**: ")


def test_the_comment_names_items_and_says_nothing_twice() -> None:
    _, comment = parted(render_chat(CHAT))
    assert "What is the API?" not in comment
    assert "Where is it?" not in comment
    assert "hello" not in comment
    assert "copilot-conversation" not in comment
    assert "aliases" not in comment
    assert '"item":"note:docs/a, b].md"' in comment
    assert "two\\nlines" in comment


def test_a_comment_of_today_is_read_for_good() -> None:
    # Written by this version's rules: if they change, VERSION has to.
    small = MarkdownChat(messages=(ChatMessage(role="user", text="hi\r\n", at=AT, id="1"),))
    text = (
        '---\n---\n\n<!-- lamina-context: {"head":{"digest":"0e3cc8925c4c9fa8"},"messages":'
        '[{"body":"4c55bfa9bf6f8cfa","digest":"77d12744e2265663","fields":{"at":1767323045.0,"id":"1",'
        '"text":"hi\\r\\n"}}],"v":1} -->\n\n'
        "**user**: hi\n\n[Timestamp: 2026/01/02 03:04:05]\n"
    )
    assert render_chat(small) == text
    assert parse_chat(text) == (small, ())


def test_times_are_shown_in_the_zone_that_is_asked_for() -> None:
    east = timezone(timedelta(hours=9))
    text = render_chat(CHAT, tz=east)
    assert "[Timestamp: 2026/01/02 12:04:05]" in text
    assert parse_chat(text) == (CHAT, ())


# -- files of the original program ---------------------------------------------------------------


def test_a_file_of_the_original_program_is_read_by_its_own_rules() -> None:
    chat, problems = parse_chat(BARE)
    assert chat == MarkdownChat(
        topic='Start "here"',
        epoch=1767323045951,
        model="gemini-2.5-flash",
        provider="google",
        tags=("copilot-conversation",),
        frontmatter=("mood: good",),
        messages=(
            ChatMessage(
                role="user",
                text="Summarize [[<note>]].",
                at=AT,
                context=ChatContext(
                    references=(
                        ChatReference(item=note_id("a.md")),
                        ChatReference(item=note_id("b")),
                        ChatReference(item=note_id("c.md")),
                        ChatReference(item=ItemId("url:https://x.y/z")),
                    ),
                    other=("Clips: one, two",),
                ),
            ),
            ChatMessage(
                role="ai",
                text="\n<errorChunk>Model request failed.</errorChunk>",
                at=AT + 1,
            ),
            ChatMessage(role="user", text="and?"),
            ChatMessage(role="ai", text="Well.", thinking="Hm."),
            ChatMessage(role="ai", text="More."),
        ),
    )
    assert [(problem.what, problem.line) for problem in problems] == [("context", 12)]


def test_known_paths_tell_a_comma_in_a_name_from_one_between_names() -> None:
    chat, _ = parse_chat(BARE, paths=["x/b, c.md", "a.md"])
    items = [reference.item for reference in chat.messages[0].context.references]
    assert items == ["note:a.md", "note:b, c.md", "url:https://x.y/z"]


def test_an_old_file_with_windows_line_ends_a_heading_and_trailing_spaces_is_read() -> None:
    text = (
        "\ufeff---\nepoch: 1731813981619\nmodelKey: gemini|google\ntags: [chat, 'b c']\n---\n\n"
        "# He@20241116_212621\n\n**user**: He  \n[Timestamp: 2024/11/16 21:26:21]\n\n"
        "**ai**:\nHello.  \n[Timestamp: 2024/11/16 21:26:24]\n\n\n"
    ).replace("\n", "\r\n")
    chat, problems = parse_chat(text)
    assert (chat.model, chat.provider, chat.tags) == ("gemini", "google", ("chat", "b c"))
    assert chat.preamble == "# He@20241116_212621"
    assert [(message.role, message.text) for message in chat.messages] == [
        ("user", "He  "),
        ("ai", "\nHello.  "),
    ]
    assert [(problem.what, problem.line) for problem in problems] == [("preamble", 7)]


def test_a_file_with_nothing_but_messages_is_read() -> None:
    chat, problems = parse_chat("**user**: one\n\ntwo\n**ai**: three\n\n---\n\nfour")
    assert [message.text for message in chat.messages] == ["one\n\ntwo", "three\n\n---\n\nfour"]
    assert problems == ()


def test_what_cannot_be_read_is_kept_and_reported_with_its_line() -> None:
    text = (
        "---\nepoch: soon\n!!\ntopic: a\ntopic: b\n---\nlost\n\n"
        "**user**: hi\n[Timestamp: today at noon]\n\n**ai**: [Context: mine]\n[Context: mine]"
    )
    chat, problems = parse_chat(text)
    assert chat.topic == "b"
    assert chat.frontmatter == ("epoch: soon", "!!")
    assert chat.preamble == "lost"
    assert chat.messages[0].extra == {"timestamp": "today at noon"}
    assert chat.messages[1].text == "[Context: mine]\n[Context: mine]"
    assert [(problem.what, problem.line) for problem in problems] == [
        ("frontmatter", 2),
        ("frontmatter", 3),
        ("frontmatter", 5),
        ("preamble", 7),
        ("timestamp", 9),
    ]
    text_again = render_chat(chat)
    assert "\nepoch: soon\n!!\n---\n\nlost\n\n" in text_again
    assert "[Timestamp: today at noon]" in text_again


def test_frontmatter_that_never_ends_does_not_swallow_messages() -> None:
    chat, _ = parse_chat("---\nepoch: 1\n\n**user**: a\n\n---\n\nb")
    assert [message.text for message in chat.messages] == ["a\n\n---\n\nb"]
    assert chat.preamble == "---\nepoch: 1"


def test_topics_are_read_in_every_way_that_yaml_writes_them() -> None:
    for yaml, topic in [
        ("'it''s'", "it's"),
        ("plain: text", "plain: text"),
        ('"a\\u00e9"', "aé"),
        (">-\n  folded\n  lines", "folded lines"),
        ("|\n  two\n  lines", "two\nlines"),
        ("", ""),
    ]:
        assert parse_chat(f"---\ntopic: {yaml}\n---\n**user**: x")[0].topic == topic


# -- files that someone edited -------------------------------------------------------------------


def edit(old: str, new: str) -> str:
    text = render_chat(CHAT)
    assert text.count(old) == 1, old
    return text.replace(old, new)


def test_an_edited_question_is_taken_and_keeps_its_context() -> None:
    text = edit("What is the API?", "What was the API?\nAnd why?")
    chat, problems = parse_chat(text)
    first = replace(CHAT.messages[0], text="What was the API?\nAnd why?")
    assert chat == replace(CHAT, messages=(first, *CHAT.messages[1:]))
    assert [(problem.what, problem.line, problem.detail) for problem in problems] == [
        ("edited", 17, "its text was edited")
    ]


def test_an_edited_answer_keeps_its_calls_while_their_lines_stand() -> None:
    chat, _ = parse_chat(edit("Let me look.", "Let me see."))
    assert chat.messages[1] == replace(CHAT.messages[1], text="Let me see.")
    chat, problems = parse_chat(edit('\n[Tool: find {"q": "API"} -> two lines]', ""))
    assert chat.messages[1] == replace(CHAT.messages[1], calls=(), results=())
    assert [problem.what for problem in problems] == ["edited", "edited"]


def test_an_edited_context_line_decides_what_was_attached() -> None:
    text = edit("c.md | URLs: https://example.com/ |", "new.md |")
    chat, problems = parse_chat(text, paths=["docs/a, b].md"])
    before = CHAT.messages[0].context.references
    assert chat.messages[0].context.references == (
        before[0],
        ChatReference(item=note_id("new.md")),
        *before[3:],
    )
    assert chat.messages[0].at == AT + 0.25
    assert [problem.detail for problem in problems] == ["its context was edited"]


def test_an_edited_time_is_taken_and_everything_else_stays() -> None:
    chat, _ = parse_chat(edit("03:04:09", "03:05:00"))
    assert chat.messages[2] == replace(CHAT.messages[2], at=AT + 55)


def test_an_edited_topic_is_taken_and_pins_stay() -> None:
    with_pin = replace(CHAT, pinned=(note("c.md", pinned=True),))
    text = render_chat(with_pin).replace('topic: "The \\"API\\""', "topic: Other")
    chat, problems = parse_chat(text)
    assert chat == replace(with_pin, topic="Other")
    assert problems == ()


def test_a_message_that_was_removed_is_reported_and_the_others_are_as_they_were() -> None:
    text = render_chat(CHAT)
    start, end = text.index("**ai**: <think>"), text.index("**ai**: It says")
    chat, problems = parse_chat(text[:start] + text[end:])
    assert chat.messages == (CHAT.messages[0], CHAT.messages[2])
    assert [(problem.what, problem.detail) for problem in problems] == [
        ("removed", "the ai message that was number 2 was removed")
    ]


def test_messages_that_were_moved_added_or_doubled_keep_what_is_theirs() -> None:
    text = render_chat(CHAT)
    start, end = text.index("**user**: What"), text.index("**ai**: <think>")
    question, rest = text[start:end], text[end:]
    new_lines = "**user**: And **this**?\n\n"
    chat, problems = parse_chat(text[:start] + new_lines + question + question + rest)
    new_question = ChatMessage(role="user", text="And **this**?")
    assert chat.messages[:2] == (new_question, CHAT.messages[0])
    assert chat.messages[2].text == "What is the API?"
    assert chat.messages[2].id == ""
    assert chat.messages[3:] == CHAT.messages[1:]
    assert "removed" not in [problem.what for problem in problems]


def test_text_written_below_the_comment_is_read_too() -> None:
    text = render_chat(CHAT) + "\n**user**: one more\n"
    chat, problems = parse_chat(text)
    assert chat.messages == (*CHAT.messages, ChatMessage(role="user", text="one more"))
    assert problems == ()


def test_a_file_that_the_original_program_saved_again_loads_with_its_texts() -> None:
    # It skips the comment, and does not write it again.
    text, _ = parted(render_chat(CHAT))
    text += "\n**user**: thanks\n[Timestamp: 2026/01/03 00:00:00]"
    chat, _ = parse_chat(text)
    assert [message.role for message in chat.messages] == ["user", "ai", "ai", "user"]
    assert chat.messages[0].text == CHAT.messages[0].text
    assert chat.messages[3].text == "thanks"


def test_a_comment_behind_the_last_answer_is_read_as_well() -> None:
    visible, comment = parted(render_chat(CHAT))
    assert parse_chat(f"{visible}\n{comment}\n") == (CHAT, ())


def test_a_damaged_comment_is_reported_and_the_file_read_without_it() -> None:
    text = render_chat(CHAT)
    line = text[: text.index("<!-- lamina-context")].count("\n") + 1
    for bad_text, why in [
        (text.replace('"v":1', '"v":2'), "version 2"),
        (text.replace('"v":1', '"v":'), "cannot be read"),
        (text.replace('"digest"', '"dig"'), "cannot be read"),
    ]:
        chat, (problem, *_) = parse_chat(bad_text)
        assert (problem.what, problem.line) == ("comment", line)
        assert why in problem.detail
        assert [message.role for message in chat.messages] == ["user", "ai", "ai"]
        assert "lamina-context" not in chat.messages[2].text


def test_one_damaged_record_costs_only_its_own_message() -> None:
    chat, problems = parse_chat(edit('"id":"000002"', '"id":7'))
    assert chat.messages[0].text == CHAT.messages[0].text
    assert chat.messages[1:] == CHAT.messages[1:]
    assert [problem.what for problem in problems] == ["comment"]


# -- names ---------------------------------------------------------------------------------------


def test_a_file_is_named_after_its_topic_and_its_time() -> None:
    assert file_name(CHAT) == "The_API@20260102_030405.md"
    east = timezone(timedelta(hours=9))
    assert file_name(CHAT, tz=east) == "The_API@20260102_120405.md"


def test_a_file_without_a_topic_is_named_after_the_first_words_typed() -> None:
    question = ChatMessage(role="user", text="  one two [[three]]\n4 5 6 7 8 9 10 11 12")
    assert (
        file_name(MarkdownChat(messages=(question,)))
        == "one_two_three_4_5_6_7_8_9_10@19700101_000000.md"
    )
    assert file_name(MarkdownChat()) == "Untitled_Chat@19700101_000000.md"


def test_a_file_name_is_safe_and_short_and_never_empty() -> None:
    assert file_name(MarkdownChat(topic='a/b\\c:d*e?f"g<h>i|j#k^l[m]n\0o')).startswith(
        "a_b_c_d_e_f_g_h_i_j_k_l_m_n_o@"
    )
    assert file_name(MarkdownChat(topic="../.hidden ...")).startswith("hidden@")
    for topic in ("///", "\u2028", "\ud800", "...", " "):
        assert file_name(MarkdownChat(topic=topic)) == "Untitled_Chat@19700101_000000.md"
    for topic in ("é" * 99, "👩‍👩‍👧" * 99, "x" * 300):
        name = file_name(MarkdownChat(topic=topic, epoch=10**30))
        assert 90 <= len(name.encode()) <= 100
        assert name.endswith("@19700101_000000.md")
        assert topic.startswith(name.split("@")[0])

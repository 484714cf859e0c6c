"""A session as a chat file, and back: nothing that was said is lost, and items are named anew."""

from collections.abc import Sequence

from hypothesis import given
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, all_text, labels, rule, run, talk, user_of
from tests.strategies import modest, sessions

import lamina
from lamina.adapters.formats.markdown.chat_exporter import chat_of, export_chat
from lamina.adapters.formats.markdown.chat_file import parse_chat, render_chat
from lamina.adapters.formats.markdown.chat_importer import import_chat
from lamina.core.journal import path_to, replay
from lamina.core.values.entry import (
    BranchSummaryEntry,
    Entry,
    InfoEntry,
    MessageEntry,
    ModelEntry,
    PinEntry,
    SessionEntry,
    TransformEntry,
)
from lamina.core.values.item import ItemId, Picture, note_id
from lamina.core.values.message import Image, Message, Text, Thinking, ToolCall, ToolResult
from lamina.core.values.patch import MessagesCachedAppend
from lamina.core.values.usage import Usage
from lamina.engine.session.session import Session

NOTES = {"a.md": "alpha", "dir/b, c.md": "beta", "big.md": "word " * 900}


def path_of(session: Session) -> tuple[Entry, ...]:
    return path_to(session.state.leaf, {entry.id: entry for entry in session.entries})


def spoken(entries: Sequence[Entry]) -> list[tuple[str, str]]:
    """What was said and what was added to be shown, in order."""
    messages: list[Message] = []
    for entry in entries:
        if isinstance(entry, MessageEntry):
            messages.append(entry.message)
        elif isinstance(entry, TransformEntry):
            ops = (op for op in entry.patch.ops if isinstance(op, MessagesCachedAppend))
            messages += [m for op in ops for m in op.messages if m.shown and m.text]
    return [(message.role, message.text) for message in messages]


def header(**fields: object) -> SessionEntry:
    return SessionEntry(id="000000", parent=None, at=5.0, session="s", **fields)  # type: ignore[arg-type]


def line_of(*messages: Message, interrupted: bool = False) -> list[Entry]:
    entries: list[Entry] = [header()]
    for number, message in enumerate(messages, start=1):
        entries.append(
            MessageEntry(
                id=f"{number:06x}",
                parent=f"{number - 1:06x}",
                at=5.0 + number,
                message=message,
                interrupted=interrupted and number == len(messages),
            )
        )
    return entries


def test_a_session_is_exported_whole_also_what_was_cut_from_the_model() -> None:
    async def body() -> None:
        world = World(NOTES)
        session = await world.open(history="strip", strip_turns=1, strip_after_turns=2)
        for number in range(5):
            turn = await talk(session, f"question {number}", answer=f"answer {number}")
        assert "question 0" not in [m.text for m in session.envelope.cached]
        assert turn.answer == "answer 4"
        chat = chat_of(path_of(session))
        assert [(m.role, m.text) for m in chat.messages] == [
            pair
            for number in range(5)
            for pair in (("user", f"question {number}"), ("ai", f"answer {number}"))
        ]

    run(body())


def test_the_comment_keeps_what_each_turn_used_and_what_it_was_worth() -> None:
    async def body() -> None:
        world = World(NOTES)
        session = await world.open(always=[rule("tone", "Be brief.")])
        await session.pin("a.md")
        await talk(session, "Q1", lamina.attach("dir/b, c.md", priority=3, essential=True))
        await talk(session, "Q2", "dir/b, c.md", "gone.md")
        export = export_chat(path_of(session))
        first, _, second, _ = export.chat.messages
        uses = {reference.item: reference for reference in first.context.references}
        note = uses[note_id("dir/b, c.md")]
        assert (note.form, note.priority, note.essential) == ("full", 3, True)
        assert uses[note_id("a.md")].pinned
        assert uses[ItemId("rule:tone")].include == "always"
        assert len(note.version) == 64
        uses = {reference.item: reference for reference in second.context.references}
        assert uses[note_id("dir/b, c.md")].form == "named"
        assert uses[note_id("gone.md")].form == "left_out"
        assert labels(reference.item for reference in export.chat.pinned) == ["a.md"]
        assert parse_chat(export.text) == (export.chat, ())
        assert "alpha" not in export.text
        assert "beta" not in export.text
        assert export.chat.provider == session.settings.target.partition(":")[0]

    run(body())


def test_a_reloaded_chat_goes_on_with_the_notes_as_they_are_now() -> None:
    async def body() -> None:
        world = World(NOTES)
        session = await world.open()
        await talk(session, "What is beta?", "dir/b, c.md", answer="It is b.")
        export = export_chat(path_of(session))

        world.workspace.notes["moved/b, c.md"] = "beta, changed"
        del world.workspace.notes["dir/b, c.md"]
        imported_chat = import_chat(
            export.text, name=export.name, session="again", paths=list(world.workspace.notes)
        )
        assert [problem.what for problem in imported_chat.problems] == ["moved"]
        await world.store.append("again", imported_chat.entries)
        later_session = await world.open("again")
        specs = [reference.spec for reference in imported_chat.reattachments]
        turn = await later_session.prepare("And now?", attach=specs, target=session.settings.target)
        assert "beta, changed" in all_text(turn)
        assert "What is beta?" in all_text(turn)
        assert user_of(turn).endswith("And now?")
        await turn.commit(openai_reply("Still b."))
        chat = chat_of(path_of(later_session))
        assert [message.text for message in chat.messages] == [
            "What is beta?",
            "It is b.",
            "And now?",
            "Still b.",
        ]
        # What the first turn had attached still shows, though it is not in the journal.
        assert chat.messages[0].context == export.chat.messages[0].context
        assert chat.epoch == export.chat.epoch

    run(body())


def test_tool_calls_results_and_usage_come_back_as_entries() -> None:
    async def body() -> None:
        world = World(NOTES)
        session = await world.open()
        turn = await session.prepare("Find it")
        turn = await turn.commit(openai_reply("Looking.", calls=[("c1", "find")], input=12))
        turn = await turn.resume({"c1": "line one\n**user**: line two"})
        await turn.commit(openai_reply("Found."))
        before = path_of(session)
        imported_chat = import_chat(export_chat(before).text, name="x", session="s2", paths=[])
        assert imported_chat.problems == ()
        messages = [e for e in imported_chat.entries if isinstance(e, MessageEntry)]
        assert [m.message.blocks for m in messages] == [
            e.message.blocks for e in before if isinstance(e, MessageEntry)
        ]
        assert messages[1].usage == Usage(input=12, output=5, cache_reported=False)
        assert replay(imported_chat.entries).turn_count == 1

    run(body())


def test_signed_thinking_keeps_its_signature_and_is_seen_once() -> None:
    blocks = (
        Thinking(text="Hm. ", signature="sig", provider="anthropic"),
        Thinking(redacted="blob", provider="anthropic"),
        Text("One. "),
        Thinking(text="Hm?", signature="sig2"),
        Text("Two."),
    )
    entries = line_of(
        Message(role="user", blocks=(Text("Q"),)), Message(role="assistant", blocks=blocks)
    )
    text = render_chat(chat_of(entries))
    assert text.count("Hm?") == 1
    imported_chat = import_chat(text, name="x", session="s", paths=[])
    last = imported_chat.entries[-1]
    assert isinstance(last, MessageEntry)
    assert last.message.blocks == blocks


def test_an_interrupted_answer_is_marked_and_stays_interrupted() -> None:
    entries = line_of(
        Message(role="user", blocks=(Text("Q"),)),
        Message(role="assistant", blocks=(Text("So far"),)),
        interrupted=True,
    )
    text = render_chat(chat_of(entries))
    assert "**ai**: So far\n[Interrupted]\n[Timestamp: 1970/01/01 00:00:07]" in text
    last = import_chat(text, name="x", session="s", paths=[]).entries[-1]
    assert isinstance(last, MessageEntry)
    assert last.interrupted
    assert last.message.text == "So far"


def test_a_call_without_a_result_does_not_leave_a_session_that_cannot_go_on() -> None:
    call = ToolCall(id="c1", name="find")
    entries = line_of(
        Message(role="user", blocks=(Text("Q"),)), Message(role="assistant", blocks=(call,))
    )
    imported_chat = import_chat(render_chat(chat_of(entries)), name="x", session="s", paths=[])
    last = imported_chat.entries[-1]
    assert isinstance(last, MessageEntry)
    (result,) = last.message.blocks
    assert isinstance(result, ToolResult)
    assert (result.call_id, result.is_error) == ("c1", True)
    assert [problem.what for problem in imported_chat.problems] == ["no_result"]


def test_pictures_are_reported_since_their_bytes_are_not_in_the_file() -> None:
    picture = Image(Picture(digest="d" * 64, media_type="image/png"))
    entries = line_of(Message(role="user", blocks=(Text("See"), picture)))
    imported_chat = import_chat(render_chat(chat_of(entries)), name="x", session="s", paths=[])
    assert [problem.what for problem in imported_chat.problems] == ["picture"]
    last = imported_chat.entries[-1]
    assert isinstance(last, MessageEntry)
    assert last.message.blocks == (Text("See"),)


def test_names_models_pins_and_branches_on_the_path_are_part_of_the_chat() -> None:
    entries: list[Entry] = [
        header(),
        InfoEntry(id="000001", parent="000000", at=6.0, name="My chat"),
        ModelEntry(id="000002", parent="000001", at=6.0, target="anthropic:claude"),
        PinEntry(id="000003", parent="000002", at=6.0, item=note_id("a.md"), version="v"),
        PinEntry(id="000004", parent="000003", at=6.0, item=note_id("b.md"), version="v"),
        PinEntry(id="000005", parent="000004", at=6.0, item=note_id("b.md"), pinned=False),
        BranchSummaryEntry(
            id="000006", parent="000005", at=7.0, branch="x", summary="It\r\nfailed."
        ),
    ]
    chat = chat_of(entries)
    assert (chat.topic, chat.model, chat.provider) == ("My chat", "claude", "anthropic")
    assert labels(reference.item for reference in chat.pinned) == ["a.md"]
    imported_chat = import_chat(render_chat(chat), name="x", session="s", paths=["a.md"])
    summary = imported_chat.entries[-1]
    assert isinstance(summary, BranchSummaryEntry)
    assert (summary.branch, summary.summary, summary.at) == ("x", "It\r\nfailed.", 7.0)
    assert [(reference.message, reference.item) for reference in imported_chat.reattachments] == [
        ("", "note:a.md")
    ]


def test_a_bare_file_becomes_a_session_with_what_to_attach_again() -> None:
    text = (
        "**user**: Compare\n[Context: Notes: a, b, c.md, gone.md, x.md | URLs: HTTPS://Ex.com#f | "
        "Folders: plans]\n[Timestamp: 2026/01/02 03:04:05]\n\n"
        "**ai**: <think>Hm</think>Fine.\n\n**user**: Again\n[Context: Notes: gone.md]\n"
    )
    imported_chat = import_chat(
        text,
        name="chats/My_topic@20260102_030000.md",
        session="s",
        paths=["a.md", "dir/b, c.md", "1/x.md", "2/x.md"],
    )
    assert [entry.id for entry in imported_chat.entries] == [f"{n:06x}" for n in range(5)]
    assert [entry.parent for entry in imported_chat.entries] == [
        None, "000000", "000001", "000002", "000003",
    ]  # fmt: skip
    start, info, *messages = imported_chat.entries
    assert isinstance(start, SessionEntry)
    assert (start.session, start.source, start.at) == ("s", "markdown", 1767323045.0)
    assert isinstance(info, InfoEntry)
    assert info.name == "My topic"
    assert spoken(messages) == [("user", "Compare"), ("assistant", "Fine."), ("user", "Again")]
    for entry in messages:
        assert isinstance(entry, MessageEntry)
        assert entry.message.id == entry.id
        assert entry.message.context is None
        assert entry.at == 1767323045.0
    assert isinstance(messages[1], MessageEntry)
    assert messages[1].message.blocks == (Thinking(text="Hm"), Text("Fine."))
    assert [(reference.message, reference.item) for reference in imported_chat.reattachments] == [
        ("000002", "note:a.md"),
        ("000002", "note:dir/b, c.md"),
        ("000002", "url:https://ex.com/"),
        ("000002", "folder:plans"),
    ]
    assert [(problem.what, problem.line) for problem in imported_chat.problems] == [
        ("missing", 1),
        ("ambiguous", 1),
    ]
    assert imported_chat.chat.epoch == 1767322800000


def test_selections_keep_their_lines_when_their_note_moves() -> None:
    chat = chat_of(line_of(Message(role="user", blocks=(Text("Q"),))))
    text = render_chat(chat)
    fields = '{"context":{"references":[{"item":"selection:old/a.md#L1-L3"}]},'
    assert text.count('"fields":{"at"') == 1
    text = text.replace('"fields":{"at"', f'"fields":{fields}"at"')
    imported_chat = import_chat(text, name="x", session="s", paths=["new/a.md"])
    assert [reference.item for reference in imported_chat.reattachments] == [
        "selection:new/a.md#L1-L3"
    ]


@modest
@given(sessions())
def test_whatever_path_a_session_took_its_chat_can_be_read_and_told_again(
    entries: list[Entry],
) -> None:
    chat = chat_of(entries)
    text = render_chat(chat)
    assert parse_chat(text)[0] == chat
    assert render_chat(chat_of(entries)) == text
    questions = [pair for pair in spoken(entries) if pair[0] == "user"]
    assert questions == [
        ("user", message.text) for message in chat.messages if message.role == "user"
    ]
    imported_chat = import_chat(text, name="x", session="s", paths=["a.md"])
    replay(imported_chat.entries)
    again = chat_of(imported_chat.entries)
    assert [(message.role, message.text, message.context) for message in again.messages] == [
        (message.role, message.text, message.context) for message in chat.messages
    ]

"""Messages that an application adds: in the context, shown or not, and no question."""

import pytest
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, messages_of, run, talk

from lamina.adapters.formats.markdown.chat_exporter import export_chat
from lamina.apps.views.journal_log import describe_entry
from lamina.core.audit.verification import verify
from lamina.core.journal import parse_op
from lamina.core.values.message import Message, Text
from lamina.core.values.patch import MessagesCachedAppend
from lamina.errors import TurnStateError, UsageError


def test_a_message_of_an_application_is_read_by_the_model_and_asks_nothing() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        await session.add_message("The build is red.", custom_type="ci", shown=False)
        assert session.state.turn.start is None
        await talk(session, "Q1")
        await session.add_message("The build is green.", custom_type="ci")
        again = await world.open(session.id)
        (first, _, _, last) = again.envelope.cached
        assert (first.custom_type, first.shown, last.shown) == ("ci", False, True)
        turn = await again.prepare("Q2")
        texts = [message["content"] for message in messages_of(turn)]
        assert texts == ["The build is red.", "Q1", "A", "The build is green.", "Q2"]
        assert turn.context.agreement.broke is None
        await turn.commit(openai_reply())
        assert verify(await world.store.read(session.id), world.book).sound

    run(body())


def test_nothing_is_added_to_a_turn_that_is_under_way() -> None:
    async def body() -> None:
        session = await World().open()
        await session.prepare("Q")
        before = session.entries
        with pytest.raises(TurnStateError, match="send_message"):
            await session.add_message("x")
        with pytest.raises(UsageError, match="blank"):
            await session.add_message("  ")
        with pytest.raises(UsageError, match="'tool'"):
            await session.add_message("x", role="tool")
        assert session.entries == before

    run(body())


def test_the_names_of_the_documents_make_a_custom_message() -> None:
    message = {"role": "user", "customType": "ci", "content": "red", "display": False}
    want = Message(role="user", blocks=(Text("red"),), custom_type="ci", shown=False)
    op = parse_op({"op": "messages_cached_append", "messages": [message]})
    assert op == MessagesCachedAppend(messages=(want,))


def test_what_is_shown_is_exported_and_the_log_tells_of_all() -> None:
    async def body() -> None:
        world = World()
        session = await world.open()
        await session.add_message("Hidden.", custom_type="ci", shown=False)
        await session.add_message("Shown.", custom_type="ci")
        await talk(session, "Q1")
        file = export_chat((await world.store.read(session.id)).entries.values())
        assert "Shown." in file.text
        assert "Hidden." not in file.text
        log = "\n".join(describe_entry(entry)[1] for entry in session.entries)
        assert "ci: Hidden." in log

    run(body())

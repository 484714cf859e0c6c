"""Temperature, top_p, the length of answers and how many requests, as settings of a session."""

from typing import Any

import pytest
from tests.fakes.book import SMALL, THINKER
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, run, talk

from lamina.core.audit.verification import verify
from lamina.core.values.entry import SettingsEntry
from lamina.core.values.envelope import Options
from lamina.core.values.settings import Settings
from lamina.errors import InvalidSetting, UsageError
from lamina.ops import OptionsSet


def sent(body: dict[str, Any]) -> dict[str, Any]:
    names = ("temperature", "top_p", "max_tokens")
    return {name: body[name] for name in names if name in body}


def test_settings_hold_from_the_next_request_on_and_move_no_byte() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("talk", system="S")
        first = await talk(session, "Q1")
        assert sent(first.request()) == {}
        await session.update_settings(temperature=0.2, top_p=0.9, max_tokens=500)
        turn = await session.prepare("Q2")
        assert sent(turn.request()) == {"temperature": 0.2, "top_p": 0.9, "max_tokens": 500}
        assert turn.options == Options(temperature=0.2, top_p=0.9, max_tokens=500)
        assert turn.context.fit.reserve == 500
        assert turn.context.agreement.broke is None
        await turn.commit(openai_reply("A"))
        await session.update_settings(temperature=None)
        third = await session.prepare("Q3")
        assert sent(third.request()) == {"top_p": 0.9, "max_tokens": 500}
        await session.close()
        session = await world.open("talk")
        assert session.settings.top_p == 0.9
        left = await session.current_turn()
        assert left is not None
        assert left.request() == third.request()
        assert verify(await world.store.read("talk"), world.book).sound

    run(body())


def test_an_option_goes_before_a_setting_until_the_setting_is_changed() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S", options=Options(temperature=0.7, reasoning="low"))
        assert session.state.options.temperature == 0.7
        await session.update_settings(temperature=0.2)
        assert (await session.prepare("Q1")).options == Options(temperature=0.2, reasoning="low")
        await session.apply("test", OptionsSet(temperature=0.5))
        assert (await session.prepare("Q1")).options.temperature == 0.5
        # Other settings leave it as it is.
        await session.update_settings(window=9_000)
        assert session.state.options.temperature == 0.5
        await session.update_settings(temperature=None)
        assert (await session.prepare("Q1")).options == Options(reasoning="low")

    run(body())


def test_a_change_is_an_entry_of_the_journal() -> None:
    async def body() -> None:
        session = await World().open(system="S", options=Options(max_tokens=9))
        await session.update_settings(max_tokens=100)
        entry = session.entries[-1]
        assert isinstance(entry, SettingsEntry)
        assert (entry.settings.max_tokens, entry.replaces) == (100, ("max_tokens",))

    run(body())


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", -1), ("top_p", 1.5), ("max_tokens", -3), ("max_requests", 0)],
)
def test_what_no_request_could_take_is_refused(name: str, value: Any) -> None:
    async def body() -> None:
        session = await World().open(system="S")
        before = session.entries
        with pytest.raises(InvalidSetting, match=name):
            await session.update_settings(**{name: value})
        assert session.entries == before
        with pytest.raises(InvalidSetting, match=name):
            Settings(**{name: value})

    run(body())


def test_another_word_for_a_setting_is_answered_with_ours() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        with pytest.raises(UsageError, match="did you mean 'max_requests'"):
            await session.update_settings(max_turns=3)  # type: ignore[call-arg]
        with pytest.raises(UsageError, match="did you mean 'temperature'"):
            await session.update_settings(temprature=3)  # type: ignore[call-arg]

    run(body())


def test_an_option_that_a_wire_does_not_take_is_named() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(system="S", target=THINKER.name)
        await session.update_settings(temperature=0.2, top_p=0.9)
        turn = await session.prepare("Q1")
        assert turn.warnings == ("fake:thinker takes temperature or top_p: top_p is not sent",)
        assert turn.request()["extra_body"] == {"temperature": 0.2}
        await session.update_settings(target=SMALL.name)
        assert (await session.prepare("Q1")).warnings == ()

    run(body())


def test_an_edited_question_is_asked_with_the_settings_of_now() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        await talk(session, "Q1")
        await session.update_settings(temperature=0.9)
        turn = await session.regenerate()
        assert turn.options.temperature == 0.9

    run(body())


def test_the_settings_of_a_session_show_what_an_option_says_instead_of_them() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("talk", options=Options(temperature=0.3))
        assert session.settings.temperature == 0.3
        await session.apply("me", OptionsSet(max_tokens=77))
        assert session.settings.max_tokens == 77
        # To open it again with what it has writes nothing.
        count = len(session.entries)
        await session.close()
        session = await world.open("talk", options=Options(temperature=0.3))
        assert len(session.entries) == count
        assert (await session.update_settings(temperature=0.9)).temperature == 0.9
        assert session.settings.temperature == 0.9
        assert session.settings.max_tokens == 77

    run(body())

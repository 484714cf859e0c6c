"""`@composer`: its words stay in the message, its instructions are added once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.runners.scenes import Scene
from tests.fakes.providers import saying
from tests.fakes.sessions import run

from lamina.core.values.entry import ItemEntry
from lamina.core.values.item import Attachment
from lamina.engine.runners.composer import COMPOSER, wants_composer, with_composer
from lamina.errors import UsageError

FIRST = COMPOSER.content.splitlines()[0]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("@composer shorten this", True),
        ("Please @composer, shorten this", True),
        ("(@Composer)", True),
        ("Shorten this. @composer.", True),
        ("me@composer.org", False),
        ("@composers", False),
        ("@composer/core", False),
        ("@composer.org", False),
        ("@@composer", False),
        ("what does `@composer` do?", False),
        ("```\n@composer\n```", False),
        ("composer", False),
        ("", False),
    ],
)
def test_it_is_meant_where_it_stands_as_a_word_and_not_in_code(text: str, wanted: bool) -> None:
    assert wants_composer(text) is wanted


@given(st.text())
def test_a_message_that_does_not_mean_it_gets_nothing(text: str) -> None:
    attach = ["a.md"]
    given = with_composer(text, attach)
    assert given is attach or wants_composer(text)


def test_the_text_stays_and_the_instructions_come_once() -> None:
    async def body() -> None:
        async with Scene(chat=True) as scene:
            await scene.ask("@composer shorten it")
            first = scene.provider.bodies[-1]["messages"][-1]["content"]
            assert first.count(FIRST) == 1
            assert first.endswith("[User query]:\n\n@composer shorten it")
            await scene.ask("@composer and again")
            body = str(scene.provider.bodies[-1])
            assert body.count(FIRST) == 1
            assert body.count("@composer shorten it") == body.count("@composer and again") == 1
            assert scene.context.agreement.broke is None
            assert [each.item for each in scene.kept(ItemEntry)] == [COMPOSER]
            await scene.verify()

    run(body())


def test_they_are_in_force_while_they_are_asked_for() -> None:
    async def body() -> None:
        async with Scene(chat=True) as scene:
            await scene.ask("@composer shorten it")
            await scene.ask("Thanks. How long is it?")
            asked = scene.provider.bodies[-1]["messages"][-1]["content"]
            assert "No rules or references are in force from here on." in asked
            await scene.ask("@composer once more")
            asked = scene.provider.bodies[-1]["messages"][-1]["content"]
            assert "Rules and references in force from here on:\n- composer" in asked
            assert str(scene.provider.bodies[-1]).count(FIRST) == 1
            await scene.verify()

    run(body())


def test_an_agent_is_told_too_and_what_is_attached_stays() -> None:
    async def body() -> None:
        async with Scene(saying("Done.")) as scene:
            scene.workspace.notes["a.md"] = "A note."
            await scene.ask("@composer shorten it", attach=["a.md"])
            assert [item.item for item in scene.context.items] == ["note:a.md", "rule:composer"]
            rule = scene.context.items[1]
            assert (rule.include, rule.reason) == ("manual", "attached to this message")

    run(body())


def test_a_path_that_is_no_list_is_still_refused() -> None:
    async def body() -> None:
        async with Scene(chat=True) as scene:
            with pytest.raises(UsageError, match="pass attach as a list"):
                await scene.ask("@composer shorten it", attach="a.md")

    run(body())


def test_what_was_attached_by_hand_comes_first() -> None:
    attach = with_composer("@composer", iter(["a.md", "b.md"]))
    *given, last = attach
    assert given == ["a.md", "b.md"]
    assert isinstance(last, Attachment)
    assert last.item == COMPOSER

"""Two questions to an agent on disk: each brings its own rule or reference, and what a person or
the agent put in stays."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.agents.files import write
from tests.fakes.book import SMALL, FakeBook
from tests.fakes.replies import openai_reply
from tests.fakes.store import FakeStore

import lamina
from lamina.apps.wiring.index import open_index
from lamina.core.audit.verification import verify
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn

FILES = {
    "agent.yaml": "name: desk\ndescription: Answers the questions of a shipping office.\n",
    "persona.md": "You work at the desk of a shipping office.",
    "rules/a.md": (
        "---\nname: A\ndescription: How answers sound\ninclude: always\n---\n"
        "Answer in full sentences and stay polite.\n"
    ),
    "rules/b.md": (
        "---\nname: B\ndescription: Signing letters\ninclude: manual\n---\n"
        "Letters end with the name of the office.\n"
    ),
    "rules/c.md": (
        "---\nname: C\ndescription: Writing Python code and unit tests\ninclude: agent\n---\n"
        "Python functions have type hints, and every function has a unit test in pytest.\n"
    ),
    "references/x.md": (
        "---\nname: X\ndescription: Opening hours\ninclude: always\n---\n"
        "The office opens at eight and closes at five.\n"
    ),
    "references/y.md": (
        "---\nname: Y\ndescription: Customs tariffs and import duties for coffee\n"
        "include: agent\n---\nGreen coffee is free of duty; roasted coffee pays 7.5 percent.\n"
    ),
}
FIRST = "Please write a Python function with a unit test that parses dates."
SECOND = "Which import duty do we pay for roasted coffee?"


def sets(turn: Turn) -> dict[str, str]:
    return {item.label: item.include for item in turn.context.items}


async def ask(session: Session, text: str) -> Turn:
    turn = await session.prepare(text)
    assert turn.context.warnings == ()
    return await turn.commit(openai_reply("Done."))


@pytest.mark.usefixtures("embedding_cache")
def test_each_question_has_its_own_items_beside_those_of_the_session(tmp_path: Path) -> None:
    async def body() -> None:
        book, store = FakeBook(), FakeStore()
        index = open_index(path=tmp_path / "index.sqlite")
        agent = write(tmp_path / "desk", FILES)

        async def opened(**given: Any) -> Session:
            return await lamina.open_session(
                "talk", store=store, book=book, index=index, workspace=tmp_path, **given
            )

        session = await opened(agent=agent, target=SMALL.name)
        assert await session.add("rule:B")
        first = await ask(session, FIRST)
        assert sets(first) == {"X": "always", "A": "always", "B": "manual", "C": "agent"}
        second = await ask(session, SECOND)
        assert sets(second) == {"X": "always", "A": "always", "B": "manual", "Y": "agent"}
        (found,) = [item for item in second.context.items if item.include == "agent"]
        assert found.score is not None
        assert found.score > 0.4
        assert second.context.agreement.broke is None
        await session.close()

        # Another process, which does not say whose session it is.
        session = await opened()
        assert sets(await ask(session, FIRST)) == {
            "X": "always", "A": "always", "B": "manual", "C": "agent",
        }  # fmt: skip
        await session.close()
        assert verify(await store.read("talk"), book).sound

    anyio.run(body)


@pytest.mark.usefixtures("embedding_cache")
def test_a_question_about_two_things_brings_both(tmp_path: Path) -> None:
    async def body() -> None:
        session = await lamina.open_session(
            store=FakeStore(),
            book=FakeBook(),
            index=open_index(path=tmp_path / "index.sqlite"),
            workspace=tmp_path,
            agent=write(tmp_path / "desk", FILES),
            target=SMALL.name,
        )
        turn = await ask(session, f"{FIRST} {SECOND}")
        assert sets(turn) == {"X": "always", "A": "always", "C": "agent", "Y": "agent"}
        turn = await ask(session, "Hello!")
        assert {"X", "A"} <= set(sets(turn))
        await session.close()

    anyio.run(body)


def test_settings_of_an_agent_hold_for_its_sessions_and_can_be_changed_there(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        files = FILES | {
            "agent.yaml": f"name: desk\nmodel: {SMALL.name}\nsettings:\n  tool_joins: 2\n"
            "  guide_search:\n    search: false\n"
        }
        store, book = FakeStore(), FakeBook()
        agent = write(tmp_path / "desk", files)
        session = await lamina.open_session(
            "talk", store=store, book=book, agent=agent, workspace=tmp_path, trust=True
        )
        expected = Settings(target=SMALL.name)
        assert session.settings.target == SMALL.name
        assert session.settings.tool_joins == 2
        assert not session.settings.guide_search.search
        assert session.settings.guide_search.top_n == expected.guide_search.top_n
        assert set(sets(await ask(session, FIRST))) == {"X", "A"}
        await session.update_settings(tool_joins=7)
        await session.close()
        session = await lamina.open_session(
            "talk", store=store, book=book, agent=agent, workspace=tmp_path, trust=True
        )
        assert session.settings.tool_joins == 7
        await session.close()

    anyio.run(body)

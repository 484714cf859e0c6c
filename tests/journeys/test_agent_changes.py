"""A session keeps the rules, references and tools it began with; what changed in its agent's files
since is shown, and taken over by one step."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from tests.adapters.agents.files import write
from tests.fakes.book import SMALL
from tests.journeys.test_agent_journey import House, ask, items, left, servers

import lamina
from lamina.core.values.entry import AdoptEntry, SessionEntry
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import UsageError


def rule(name: str, include: str, text: str = "Be brief.") -> dict[str, str]:
    return {f"rules/{name}.md": f"---\nname: {name}\ninclude: {include}\n---\n{text}\n"}


async def members(session: Session) -> dict[str, str]:
    return {str(item.item): item.include for item in await session.items()}


async def changes(session: Session) -> list[tuple[str, str | None, str | None]]:
    return [(change.item, change.here, change.now) for change in await session.find_agent_changes()]


def adoptions(session: Session) -> list[AdoptEntry]:
    return [entry for entry in session.entries if isinstance(entry, AdoptEntry)]


def test_a_rule_that_becomes_manual_stays_and_a_new_one_waits_in_a_session_that_runs(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        house = House(tmp_path)
        session = await house.open(agent=house.agent)
        # Before anything was asked, too.
        write(house.agent, rule("tone", "manual", "Be kind.") | rule("new", "always"))
        assert await members(session) == {"rule:tone": "always"}
        turn = await ask(session, "Hello")
        assert items(turn) == {"rule:tone": "always"}
        assert "Be kind." in str(turn.request())
        # What was edited goes out once more, as before.
        write(house.agent, rule("tone", "agent", "Be loud."))
        turn = await ask(session, "And now?")
        assert items(turn) == {"rule:tone": "always"}
        assert "Be loud." in str(turn.request()["messages"][-1])
        await session.close()
        await house.require_sound()

    anyio.run(body)


@pytest.mark.parametrize("named", [True, False])
def test_it_keeps_them_when_it_is_opened_again(tmp_path: Path, named: bool) -> None:
    async def body() -> None:
        house = House(tmp_path, rule("late", "manual"))
        given: dict[str, Any] = {"agent": house.agent} if named else {}
        async with await house.open(agent=house.agent) as session:
            await ask(session, "Hello")
        write(
            house.agent,
            rule("tone", "manual") | rule("late", "always") | rule("new", "always"),
        )
        async with await house.open(**given) as session:
            assert await members(session) == {"rule:tone": "always"}
            assert items(await ask(session, "Again")) == {"rule:tone": "always"}
            assert adoptions(session) == []

    anyio.run(body)


def test_what_differs_is_listed_told_once_and_taken_over_by_one_recorded_step(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        house = House(tmp_path, rule("old", "always"))
        session = await house.open(agent=house.agent)
        await ask(session, "Hello")
        assert await session.find_agent_changes() == ()
        write(house.agent, rule("tone", "manual") | rule("new", "always") | rule("idle", "agent"))
        (house.agent / "rules" / "old.md").unlink()
        # One that is searched for is in nothing by itself, and needs nobody's word.
        found = [
            ("rule:old", "always", None),
            ("rule:tone", "always", "manual"),
            ("rule:new", None, "always"),
        ]
        assert sorted(await changes(session)) == sorted(found)
        first, second = await ask(session, "Now?"), await ask(session, "And now?")
        notes = [w for w in first.context.warnings if "rule:new is new" in w]
        assert len(notes) == 1
        assert "adopt" in notes[0]
        assert not any("rule:new" in warning for warning in second.context.warnings)
        taken = await session.adopt_agent()
        assert sorted((change.item, change.here, change.now) for change in taken) == sorted(found)
        assert await session.find_agent_changes() == await session.adopt_agent() == ()
        assert len(adoptions(session)) == 1
        assert await members(session) == {"rule:new": "always"}
        turn = await ask(session, "And now?")
        assert items(turn) == {"rule:new": "always"}
        await session.close()
        async with await house.open() as session:
            assert await members(session) == {"rule:new": "always"}
        await house.require_sound()

    anyio.run(body)


def test_what_a_person_added_or_took_out_stays_and_does_not_differ(tmp_path: Path) -> None:
    async def body() -> None:
        house = House(tmp_path, rule("late", "manual"))
        async with await house.open(agent=house.agent) as session:
            await session.add("rule:late")
            await session.remove("rule:tone")
            write(house.agent, rule("late", "always") | rule("tone", "manual"))
            assert await session.adopt_agent() == ()
            assert await members(session) == {"rule:late": "manual"}
            write(house.agent, rule("tone", "always") | rule("new", "always"))
            await session.adopt_agent()
            assert [*await members(session)] == ["rule:late", "rule:new"]

    anyio.run(body)


def test_a_rule_whose_file_is_gone_is_missing_until_it_is_taken_out_or_over(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        house = House(tmp_path)
        async with await house.open(agent=house.agent) as session:
            await ask(session, "Hello")
            (house.agent / "rules" / "tone.md").unlink()
            (item,) = await session.items()
            assert (item.item, item.include, item.missing) == ("rule:tone", "always", True)
            assert ("rule:tone", "missing") in left(await ask(session, "Now?"))
            assert await session.remove("rule:tone")
            assert not await session.remove("rule:tone")
            assert await session.items() == ()

    anyio.run(body)


def test_tools_keep_their_modes_and_new_servers_wait(tmp_path: Path) -> None:
    def offered(turn: Turn | None) -> set[str]:
        assert turn is not None
        return {tool.item for tool in turn.context.tools if not tool.item.startswith("tool:/")}

    async def body() -> None:
        terms = {"include": "manual", "tools": {"echo": {"include": "always"}}}
        house = House(tmp_path, servers(**terms))
        async with await house.run(agent=house.agent) as runner:
            assert offered((await runner.run("Hello")).turn) == {"tool:odd/echo"}
        other = {"include": "always", "tools": {"echo": {"include": "manual"}}}
        write(house.agent, servers(**other))
        async with await house.run() as runner:
            session = runner.session
            assert await members(session) == {"rule:tone": "always", "tool:odd/echo": "always"}
            assert offered((await runner.run("Again")).turn) == {"tool:odd/echo"}
            assert sorted(await changes(session)) == [
                ("tool:odd/*", "manual", "always"),
                ("tool:odd/echo", "always", "manual"),
            ]
            await session.adopt_agent()
            tools = offered((await runner.run("And now?")).turn)
            assert "tool:odd/echo" not in tools
            assert "tool:odd/big" in tools
        await house.require_sound()

    anyio.run(body)


def test_a_server_that_the_agent_got_later_is_not_offered_before_it_is_taken_over(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        house = House(tmp_path)
        async with await house.run(agent=house.agent) as runner:
            await runner.run("Hello")
        write(house.agent, servers(permission="free"))
        async with await house.run() as runner:
            answer = await runner.run("Again")
            assert answer.turn is not None
            assert [t.item for t in answer.turn.context.tools if "odd" in t.item] == []
            assert await changes(runner.session) == [("tool:odd/*", None, "always")]
            # A person can add a single one.
            assert await runner.session.add("tool:odd/echo")
            answer = await runner.run("Now?")
            assert answer.turn is not None
            tools = [t.item for t in answer.turn.context.tools if "odd" in t.item]
            assert tools == ["tool:odd/echo"]

    anyio.run(body)


def test_servers_that_are_trusted_later_are_the_sessions_all_the_same(tmp_path: Path) -> None:
    async def body() -> None:
        house = House(tmp_path, servers())
        untrusting = {**house.given, "trust": False, "target": SMALL.name}
        async with await lamina.open_session("talk", agent=house.agent, **untrusting) as session:
            await ask(session, "Hello")
        async with await house.run() as runner:
            assert "tool:odd/echo" in await members(runner.session)
            assert await runner.session.find_agent_changes() == ()

    anyio.run(body)


def test_a_session_that_recorded_no_modes_takes_those_of_today_when_it_is_opened(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        house = House(tmp_path)
        async with await house.open(agent=house.agent) as session:
            await ask(session, "Hello")
            header, *rest = session.entries
        assert isinstance(header, SessionEntry)
        old = await house.store.create(replace(header, session="older", include_modes=None))
        await old.append(rest)
        await old.close()
        write(house.agent, rule("new", "always"))

        async def open_older() -> Session:
            return await lamina.open_session("older", **house.given)

        async with await open_older() as session:
            assert await members(session) == {"rule:new": "always", "rule:tone": "always"}
            write(house.agent, rule("new", "manual"))
            assert await members(session) == {"rule:new": "always", "rule:tone": "always"}
        async with await open_older() as session:
            assert len(adoptions(session)) == 1
            assert await changes(session) == [("rule:new", "always", "manual")]

    anyio.run(body)


def test_another_agent_that_is_named_brings_its_own(tmp_path: Path) -> None:
    async def body() -> None:
        house = House(tmp_path)
        other = write(tmp_path / "other", {"agent.yaml": "name: other\n"} | rule("own", "always"))
        async with await house.open(agent=house.agent) as session:
            await ask(session, "Hello")
        async with await house.open(agent=other) as session:
            assert await members(session) == {"rule:own": "always"}
            assert [entry.with_agent for entry in adoptions(session)] == ["other"]

    anyio.run(body)


def test_an_agent_that_is_gone_cannot_be_taken_over(tmp_path: Path) -> None:
    async def body() -> None:
        house = House(tmp_path)
        async with await house.open(agent=house.agent) as session:
            house.agent.rename(tmp_path / "elsewhere")
            with pytest.raises(UsageError, match="nothing was taken over"):
                await session.adopt_agent()
            assert await session.find_agent_changes() == ()

    anyio.run(body)

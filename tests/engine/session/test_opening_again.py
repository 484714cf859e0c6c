"""A session that is opened again: what is given anew holds, what is not said stays, and damage is
told before anything is sent."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.book import OTHER, SMALL, FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import (
    World,
    all_text,
    boundaries,
    messages_of,
    note,
    placed,
    rule,
    run,
    system_of,
    talk,
    words,
)
from tests.fakes.workspace import FakeWorkspace

import lamina
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.core.audit.verification import verify
from lamina.core.values.entry import OpeningEntry, TransformEntry
from lamina.core.values.envelope import Options
from lamina.core.values.message import ToolDefinition
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn
from lamina.errors import UnknownTarget

TONE, NEW = rule("tone", "Be brief."), rule("new", "Be long.")
FIND, READ = ToolDefinition(name="find"), ToolDefinition(name="read")


def said(turn: Turn) -> list[tuple[str, object]]:
    return [(m["role"], m.get("content")) for m in messages_of(turn) if m["role"] != "system"]


def tools_of(session: Session) -> list[str]:
    return [tool.name for tool in session.envelope.tools]


# -- what is given anew --------------------------------------------------------------------------


def test_opening_again_with_the_same_writes_nothing() -> None:
    async def body() -> None:
        world = World()
        given: dict[str, Any] = {
            "system": "S", "project": "P", "memory": "M", "tools": [FIND], "target": SMALL.name,
            "options": Options(temperature=0.5), "window": 5_000, "always": [TONE],
        }  # fmt: skip
        session = await world.open("s", **given)
        await talk(session, "Q1")
        for _ in range(3):
            again = await world.open("s", **given)
            assert again.entries == session.entries
            assert again.state == session.state
        turn = await again.prepare("Q2")
        assert turn.context.agreement.broke is None

    run(body())


def test_what_is_not_said_stays_as_it_was() -> None:
    async def body() -> None:
        world = World()
        session = await world.open(
            "s", system="S", tools=[FIND], options=Options(max_tokens=9), window=5_000
        )
        await session.update_settings(target=OTHER.name)
        again = await world.open("s")
        assert again.entries == session.entries
        assert tools_of(again) == ["find"]
        assert again.envelope.options == Options(max_tokens=9)
        assert (again.settings.window, again.settings.target) == (5_000, OTHER.name)

    run(body())


def test_another_system_prompt_holds_and_is_a_boundary_with_its_reason() -> None:
    async def body() -> None:
        world = World()
        await talk(await world.open("s", system="S"), "Q1")
        again = await world.open("s", system="S, anew")
        turn = await again.prepare("Q2")
        assert system_of(turn) == "S, anew"
        assert turn.context.agreement.broke is not None
        assert "given anew" in turn.context.agreement.broke.reason
        assert boundaries(turn)
        await turn.commit(openai_reply("A2"))
        assert verify(await world.store.read("s"), world.book).sound

    run(body())


def test_what_is_said_again_does_not_undo_what_was_set_meanwhile() -> None:
    async def body() -> None:
        world = World()
        given: dict[str, Any] = {"system": "S", "tools": [FIND]}
        session = await world.open("s", **given)
        await session.set_system("system", "Set by hand", reason="by hand")
        await session.set_tools([READ], reason="by hand")
        await session.update_settings(target=OTHER.name)
        again = await world.open("s", **given)
        assert again.entries == session.entries
        assert again.envelope.system[0].text == "Set by hand"
        assert tools_of(again) == ["read"]
        assert again.settings.target == OTHER.name

    run(body())


@pytest.mark.parametrize(
    "given",
    [
        {"options": Options(temperature=0)},
        {"cache_lifetime_s": 300},
        {"prune_to": 1},
        {"tools": [ToolDefinition(name="find", parameters={"maximum": 1.0, "b": (1, 2)})]},
    ],
    ids=["temperature", "lifetime", "share", "schema"],
)
def test_a_whole_number_said_again_is_the_same_number(given: dict[str, Any]) -> None:
    """It must not undo what was set meanwhile, although the journal may write it otherwise."""

    async def body() -> None:
        world = World()
        session = await world.open("s", **given)
        await talk(session, "Q1")
        again = await world.open("s", **given)
        assert again.entries == session.entries

    run(body())


def test_only_what_differs_from_the_last_opening_holds() -> None:
    """Each opening is compared with the one before it, not with the first."""

    async def body() -> None:
        world = World()
        await world.open("s", system="one", tools=[FIND])
        await world.open("s", system="two", tools=[FIND, READ])
        third = await world.open("s", system="two", tools=[FIND, READ])
        assert len([e for e in third.entries if isinstance(e, OpeningEntry)]) == 1
        await third.set_system("system", "by hand", reason="by hand")
        assert (await world.open("s", system="two")).envelope.system[0].text == "by hand"
        back = await world.open("s", system="one")
        assert back.envelope.system[0].text == "one"
        assert tools_of(back) == ["find", "read"]

    run(body())


def test_settings_target_and_options_given_anew_hold() -> None:
    async def body() -> None:
        world = World()
        await talk(await world.open("s", options=Options(temperature=0.1), window=5_000), "Q1")
        again = await world.open(
            "s", options=Options(temperature=0.9), window=6_000, target=OTHER.name
        )
        assert again.envelope.options.temperature == 0.9
        assert again.settings.window == 6_000
        assert again.settings.target == OTHER.name
        turn = await again.prepare("Q2")
        assert turn.context.target == OTHER.name
        assert turn.request()["temperature"] == 0.9
        assert (await world.open("s")).settings == again.settings

    run(body())


def test_options_given_anew_take_the_place_of_those_before() -> None:
    async def body() -> None:
        world = World()
        await world.open("s", options=Options(temperature=0.1, max_tokens=5))
        again = await world.open("s", options=Options(max_tokens=7))
        assert again.envelope.options == Options(max_tokens=7)

    run(body())


def test_no_tools_given_anew_are_no_tools() -> None:
    async def body() -> None:
        world = World()
        await talk(await world.open("s", tools=[FIND]), "Q1")
        again = await world.open("s", tools=[])
        assert tools_of(again) == []
        assert "tools" not in (await again.prepare("Q2")).request()

    run(body())


def test_the_workspaces_own_settings_do_not_change_the_target_that_was_chosen() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("s", window=5_000)
        await session.update_settings(target=OTHER.name)
        again = await lamina.open_session(
            "s", settings=Settings(window=6_000), store=world.store, book=world.book,
            clock=world.clock, workspace=world.workspace,
        )  # fmt: skip
        assert (again.settings.window, again.settings.target) == (6_000, OTHER.name)

    run(body())


def test_an_opening_that_is_refused_changes_nothing() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("s", system="S", tools=[FIND])
        with pytest.raises(UnknownTarget):
            await world.open("s", system="other", tools=[READ], target="no:such")
        again = await world.open("s")
        assert again.entries == session.entries

    run(body())


def test_what_is_given_anew_while_a_request_is_open_holds_for_the_next_question() -> None:
    async def body() -> None:
        world = World()
        await (await world.open("s", system="S")).prepare("Q1")
        again = await world.open("s", system="S, anew")
        assert again.interrupted
        turn = await again.prepare("Q1b")
        assert system_of(turn) == "S, anew"
        assert said(turn) == [("user", "Q1b")]
        # It was said already; the next opening need not say it again.
        await turn.commit(openai_reply("A1"))
        third = await world.open("s", system="S, anew")
        assert third.entries == again.entries

    run(body())


def test_what_was_given_anew_counts_on_the_branch_it_was_given_on() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("s", system="one")
        await talk(session, "Q1")
        again = await world.open("s", system="two")
        await talk(again, "Q2")
        await again.navigate("000000")
        third = await world.open("s", system="two")
        assert system_of(await third.prepare("Q")) == "two"

    run(body())


def test_a_system_prompt_that_is_given_anew_is_shown_as_such() -> None:
    async def body() -> None:
        world = World()
        await world.open("s", system="one")
        again = await world.open("s", system="two", tools=[FIND])
        (transform,) = (e for e in again.entries if isinstance(e, TransformEntry))
        assert transform.patch.display is not None
        assert "opened" in transform.patch.display.title
        assert len(transform.patch.ops) == 2

    run(body())


# -- rules ---------------------------------------------------------------------------------------


def test_rules_stay_in_force_when_nothing_is_said_of_them() -> None:
    async def body() -> None:
        world = World()
        first = await talk(await world.open("s", always=[TONE]), "Q1")
        again = await world.open("s")
        turn = await again.prepare("Q2")
        assert placed(first) == {"tone": "library"}
        assert placed(turn) == {"tone": "library"}
        assert turn.context.agreement.broke is None
        assert [item.include for item in turn.context.items] == ["always"]

    run(body())


def test_no_rules_given_anew_are_no_rules() -> None:
    async def body() -> None:
        world = World()
        await talk(await world.open("s", always=[TONE]), "Q1")
        again = await world.open("s", always=[])
        assert placed(await talk(again, "Q2")) == {}
        assert placed(await (await world.open("s")).prepare("Q3")) == {}

    run(body())


def test_rules_of_a_session_in_which_nothing_was_asked_stay() -> None:
    async def body() -> None:
        world = World()
        await world.open("s", always=[TONE])
        again = await world.open("s")
        assert list(placed(await again.prepare("Q1"))) == ["tone"]

    run(body())


def test_rules_stay_after_going_back_to_the_start() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("s", always=[TONE])
        await talk(session, "Q1")
        await session.navigate("000000")
        again = await world.open("s")
        assert list(placed(await again.prepare("Q1b"))) == ["tone"]

    run(body())


def test_rules_of_a_request_that_was_never_answered_stay() -> None:
    async def body() -> None:
        world = World()
        await talk(await world.open("s", always=[TONE]), "Q1")
        await (await world.open("s", always=[NEW])).prepare("Q2")
        again = await world.open("s")
        assert list(placed(await again.prepare("Q2b"))) == ["new"]

    run(body())


def test_a_rule_of_every_turn_gives_way_like_any_other_when_there_is_no_room() -> None:
    async def body() -> None:
        world = World()
        big = rule("big", words(120))
        limits: dict[str, Any] = {"window": 400, "output_reserve": 100}
        given_by_hand = await world.open(**limits)
        turn = await given_by_hand.prepare(words(200), attach=[big])
        assert [omission.what for omission in turn.context.left_out] == [big.id]
        always = await world.open(always=[big], **limits)
        turn = await always.prepare(words(200))
        assert [omission.what for omission in turn.context.left_out] == [big.id]

    run(body())


def test_a_rule_that_had_no_room_once_is_still_a_rule() -> None:
    async def body() -> None:
        world = World()
        big = rule("big", words(120))
        await talk(await world.open("s", window=400, output_reserve=100), "Q1")
        session = await world.open("s", always=[big])
        turn = await talk(session, words(200))
        assert placed(turn) == {}
        assert big.id in [omission.what for omission in turn.context.left_out]
        again = await world.open("s", window=4_000)
        assert list(placed(await again.prepare("Q2"))) == ["big"]

    run(body())


# -- damage --------------------------------------------------------------------------------------


async def on_disk(folder: Path, **given: Any) -> Session:
    store = JsonlStore(folder, wait=0.0)
    if not await store.has("s"):
        given = {"settings": Settings(target=SMALL.name), "system": "S"} | given
    return await lamina.open_session(
        "s", store=store, book=FakeBook(), clock=FakeClock(),
        workspace=FakeWorkspace({"a.md": "AAA"}), **given,
    )  # fmt: skip


async def written(folder: Path, turns: int = 3) -> list[bytes]:
    """The lines of a session of some turns."""
    async with await on_disk(folder) as session:
        for number in range(turns):
            await talk(session, f"Q{number}", answer=f"A{number}")
    return JsonlStore(folder).path_of("s").read_bytes().splitlines(keepends=True)


def rewrite(folder: Path, lines: Sequence[bytes]) -> None:
    JsonlStore(folder).path_of("s").write_bytes(b"".join(lines))


def test_the_first_request_after_damage_warns_with_its_place_and_the_next_does_not(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        lines = await written(tmp_path)
        at = sum(map(len, lines[:4]))
        rewrite(tmp_path, [*lines[:4], lines[4].replace(b'"type"', b'"tipe"'), *lines[5:]])
        async with await on_disk(tmp_path) as session:
            assert (session.damage[0].line, session.damage[0].offset) == (5, at)
            turn = await session.prepare("Q")
            assert any(f"line 5, byte {at:,}" in warning for warning in turn.warnings)
            assert all(warning.startswith("journal: ") for warning in turn.context.warnings)
            await turn.commit(openai_reply("A"))
            assert (await session.prepare("Q")).warnings == ()

    run(body())


def test_a_request_that_was_refused_has_told_nobody_of_the_damage(tmp_path: Path) -> None:
    async def body() -> None:
        lines = await written(tmp_path)
        rewrite(tmp_path, [*lines[:-1], lines[-1][:-5]])
        async with await on_disk(tmp_path) as session:
            with pytest.raises(UnknownTarget):
                await session.prepare("Q", target="no:such")
            assert (await session.prepare("Q")).warnings != ()

    run(body())


def test_a_question_whose_request_was_lost_becomes_a_branch(tmp_path: Path) -> None:
    async def body() -> None:
        lines = await written(tmp_path)
        async with await on_disk(tmp_path) as session:
            await session.prepare("lost with the power")
        whole = JsonlStore(tmp_path).path_of("s").read_bytes().splitlines(keepends=True)
        added = whole[len(lines) :]
        rewrite(tmp_path, [*lines, added[0], added[1][:40]])
        async with await on_disk(tmp_path) as session:
            assert session.damage
            assert await session.current_turn() is None
            turn = await session.prepare("asked again")
            assert turn.warnings
            assert [text for role, text in said(turn) if role == "user"] == [
                "Q0", "Q1", "Q2", "asked again"
            ]  # fmt: skip
            assert turn.context.agreement.broke is None
            await turn.commit(openai_reply("fine"))
            texts = {m.text for m in session.envelope.cached}
            assert "lost with the power" not in texts
            assert "lost with the power" in str(session.entries)
        async with await on_disk(tmp_path) as again:
            assert [m.text for m in again.envelope.cached][-2:] == ["asked again", "fine"]

    run(body())


async def with_a_lost_request(folder: Path) -> None:
    """The last line that can be read is a question."""
    lines = await written(folder)
    async with await on_disk(folder) as session:
        await session.prepare("lost with the power")
    whole = JsonlStore(folder).path_of("s").read_bytes().splitlines(keepends=True)
    rewrite(folder, [*whole[: len(lines) + 1], whole[len(lines) + 1][:40]])


def test_what_is_pinned_and_set_after_a_request_was_lost_is_there_for_the_next(
    tmp_path: Path,
) -> None:
    async def body() -> None:
        await with_a_lost_request(tmp_path)
        async with await on_disk(tmp_path) as session:
            await session.pin("a.md")
            await session.set_system("mood", "Be kind.", reason="kindness")
            await session.update_settings(window=5_000)
            turn = await session.prepare("asked again")
            assert "Be kind." in system_of(turn)
            assert list(placed(turn)) == ["a.md"]
            assert session.settings.window == 5_000
            assert "lost with the power" not in all_text(turn)

    run(body())


def test_what_is_given_anew_after_a_request_was_lost_holds(tmp_path: Path) -> None:
    async def body() -> None:
        await with_a_lost_request(tmp_path)
        async with await on_disk(tmp_path, system="S, anew") as session:
            assert system_of(await session.prepare("asked again")) == "S, anew"

    run(body())


def test_results_whose_request_was_lost_are_there_for_the_next_question(tmp_path: Path) -> None:
    async def body() -> None:
        async with await on_disk(tmp_path) as session:
            turn = await session.prepare("Q", attach=[note("b.md", "BBB")])
            turn = await turn.commit(openai_reply(None, calls=[("c1", "find")]))
            await turn.resume({"c1": "found"})
        lines = JsonlStore(tmp_path).path_of("s").read_bytes().splitlines(keepends=True)
        rewrite(tmp_path, [*lines[:-1], lines[-1][:40]])
        async with await on_disk(tmp_path) as session:
            turn = await session.prepare("and now")
            roles = [role for role, _ in said(turn)]
            assert roles == ["user", "assistant", "tool", "user"]
            assert "found" in all_text(turn)
            await turn.commit(openai_reply("fine"))
            assert (await session.prepare("Q")).context.agreement.broke is None

    run(body())


def test_wherever_the_last_turn_was_torn_the_next_one_can_be_asked(tmp_path: Path) -> None:
    async def body() -> None:
        lines = await written(tmp_path, 2)
        path = JsonlStore(tmp_path).path_of("s")
        async with await on_disk(tmp_path) as session:
            turn = await session.prepare("Q", attach=["a.md"])
            turn = await turn.commit(openai_reply(None, calls=[("c1", "find")]))
            turn = await turn.resume({"c1": "found"})
            await turn.commit(openai_reply("A"))
        whole = path.read_bytes()
        for end in range(sum(map(len, lines)), len(whole), 97):
            path.write_bytes(whole[:end])
            async with await on_disk(tmp_path) as session:
                current = await session.current_turn()
                if current and current.pending_calls:
                    turn = await current.resume({"c1": "found"})
                else:
                    turn = await session.prepare("again")
                roles = [role for role, _ in said(turn)]
                assert roles[:4] == ["user", "assistant"] * 2, end
                assert roles.count("tool") == roles.count("assistant") - 2 or roles[-1] == "user"
                for before, after in pairwise(roles):
                    assert (before, after) != ("user", "user"), end
                    assert (before, after) != ("assistant", "assistant"), end
                await turn.commit(openai_reply("fine"))

    run(body())

"""Keys that sessions share, and what is predicted of a request because of others."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.fakes.book import SMALL, FakeBook
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, rule, run, talk, words

from lamina.core.assembly.warm_prefix import JOINABLE_RATE, MAX_KEYS
from lamina.core.values.entry import RequestEntry
from lamina.core.values.envelope import Options
from lamina.core.values.settings import CacheRules
from lamina.engine.session.session import Session, core_of
from lamina.engine.session.turn import Turn

MINIMUM = 100
RULES = CacheRules(minimum=MINIMUM, step=1, lifetime_s=300.0)
ROUTED = replace(SMALL, provider="openai", cache=RULES)
MARKED = replace(ROUTED, model="marked", cache=replace(RULES, explicit=True))
AGENT: dict[str, Any] = {"system": words(200, "agent"), "target": ROUTED.name}


def world() -> World:
    place = World()
    place.book = FakeBook(ROUTED, MARKED, SMALL)
    return place


def key_of(turn: Turn) -> str:
    key: str = turn.request()["prompt_cache_key"]
    return key


async def begin(place: World, **given: Any) -> tuple[Session, Turn]:
    session = await place.open(**(AGENT | given))
    return session, await talk(session, "Q")


def test_sessions_that_begin_alike_have_one_key_and_others_have_another() -> None:
    async def body() -> None:
        place = world()
        _, first = await begin(place)
        _, second = await begin(place)
        _, other = await begin(place, system=words(200, "clerk"))
        _, personal = await begin(place, memory="I drink tea.")
        assert key_of(first) == key_of(second) == key_of(personal) != key_of(other)

    run(body())


def test_what_is_too_small_to_be_shared_is_routed_by_the_name_of_its_session() -> None:
    async def body() -> None:
        session, turn = await begin(world(), system=words(MINIMUM // 2))
        assert key_of(turn) == session.id
        assert turn.entry.routing_key == ""
        assert turn.context.warm is None

    run(body())


def test_a_key_stays_for_the_life_of_a_session_and_a_rebuilt_request_has_it() -> None:
    async def body() -> None:
        place = world()
        session, first = await begin(place)
        busy = core_of(session).turns.prefixes.shared
        assert busy is not None
        for _ in range(JOINABLE_RATE):
            await busy.count(key_of(first), place.clock.now())
        second = await talk(session, "Q2")
        session = await place.open(session.id)
        turn = await session.prepare("Q3")
        again = await session.current_turn()
        assert again is not None
        assert key_of(first) == key_of(second) == key_of(turn) == key_of(again)

    run(body())


def test_a_session_takes_the_next_key_where_one_has_all_that_its_vendor_serves() -> None:
    async def body() -> None:
        place = world()
        keys = []
        for _ in range(3 * JOINABLE_RATE):
            _, turn = await begin(place)
            keys.append(key_of(turn))
        assert len(set(keys)) == 3
        assert all(keys.count(key) == JOINABLE_RATE for key in set(keys))
        place.clock.pass_by(61)
        _, turn = await begin(place)
        assert key_of(turn) in keys

    run(body())


def test_there_are_only_so_many_keys_and_the_idlest_is_taken() -> None:
    async def body() -> None:
        place = world()
        keys = [key_of((await begin(place))[1]) for _ in range(MAX_KEYS * JOINABLE_RATE + 5)]
        assert len(set(keys)) == MAX_KEYS
        assert max(map(keys.count, keys)) == JOINABLE_RATE + 1

    run(body())


def test_a_fork_goes_on_with_the_key_of_its_lineage() -> None:
    async def body() -> None:
        for given in ({}, {"system": words(20)}):
            place = world()
            session, _ = await begin(place, **given)
            first = await talk(session, words(200))
            fork = await session.fork()
            turn = await fork.prepare("Q")
            assert key_of(turn) == key_of(first)
            assert turn.entry.cache_key == fork.id

    run(body())


def test_a_session_of_before_keys_were_shared_keeps_its_own_until_its_cache_is_gone() -> None:
    async def body() -> None:
        place = world()
        session, first = await begin(place)
        entries = [
            replace(entry, routing_key="") if isinstance(entry, RequestEntry) else entry
            for entry in session.entries
        ]
        header, *rest = entries
        opened = await place.store.create(replace(header, session="old"))  # type: ignore[arg-type]
        await opened.append(rest)
        old = await place.open("old")
        turn = await talk(old, "Q2")
        assert key_of(turn) == session.id
        place.clock.pass_by(400)
        turn = await talk(old, "Q3")
        assert key_of(turn) == key_of(first)

    run(body())


def test_projects_and_rules_of_one_agent_differ_and_share_its_key() -> None:
    async def body() -> None:
        place = world()
        _, first = await begin(place, project="Quay", always=(rule("tone", "Be kind."),))
        _, second = await begin(place, project="Crane")
        assert key_of(first) == key_of(second)
        warm = second.context.warm
        assert warm is not None
        assert warm.tokens == second.prompt.tokens_until(1)

    run(body())


def test_a_fork_of_a_server_that_keeps_a_memory_for_each_session_expects_nothing() -> None:
    async def body() -> None:
        place = World()
        slots = replace(SMALL, cache=CacheRules(lifetime_s=None, keeps_answers=True))
        place.book = FakeBook(slots)
        session, _ = await begin(place, target=slots.name)
        fork = await session.fork()
        turn = await fork.prepare("Q2")
        done = await turn.commit(openai_reply("A", input=turn.prompt.tokens, cached=0))
        assert done.verdict is not None
        assert (done.verdict.expected, done.verdict.meaning) == (0, "nothing_sent_before")
        done = await talk(session, "Q2")
        assert done.verdict is not None
        assert done.verdict.expected > 200

    run(body())


@pytest.mark.parametrize("target", [ROUTED, MARKED])
def test_what_another_session_sent_is_predicted_up_to_what_they_share(target: Any) -> None:
    async def body() -> None:
        place = world()
        agent = {"target": target.name, "always": (rule("tone", words(150, "tone")),)}
        _, first = await begin(place, **agent, memory="I am Ann.")
        assert first.context.warm is None
        _, second = await begin(place, **agent, memory="I am Bob.")
        warm = second.context.warm
        assert warm is not None
        assert warm.source == "session"
        shared = second.prompt.shared_run()
        assert warm.tokens == second.prompt.tokens_until(shared) > 350
        _, third = await begin(place, **agent, memory="I am Ann.")
        assert third.context.warm is not None
        assert third.context.warm.tokens == third.prompt.tokens_until(len(third.prompt.front))

    run(body())


def test_nothing_is_predicted_after_the_lifetime_nor_for_other_options() -> None:
    async def body() -> None:
        place = world()
        await begin(place)
        _, turn = await begin(place, options=Options(reasoning="low"))
        assert turn.context.warm is None
        place.clock.pass_by(301)
        _, turn = await begin(place)
        assert turn.context.warm is None

    run(body())


def test_a_first_question_that_is_edited_finds_what_its_branch_sent() -> None:
    async def body() -> None:
        place = world()
        session, _ = await begin(place)
        core_of(session).turns.prefixes.shared = None
        question = next(entry.id for entry in session.path if entry.id and _asks(entry))
        turn = await session.edit(question, "Otherwise?")
        warm = turn.context.warm
        assert warm is not None
        assert (warm.source, turn.context.agreement.first) == ("branch", True)
        assert warm.tokens >= 200

    run(body())


def test_an_answer_asked_for_again_is_predicted_to_be_read_whole() -> None:
    async def body() -> None:
        session, _ = await begin(world(), target=MARKED.name)
        turn = await talk(session, words(50))
        again = await session.regenerate()
        warm = again.context.warm
        assert warm is not None
        assert warm.tokens == turn.prompt.tokens_until(turn.prompt.cached_run())

    run(body())


def _asks(entry: Any) -> bool:
    message = getattr(entry, "message", None)
    return message is not None and message.role == "user"

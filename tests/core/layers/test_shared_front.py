"""What is personal stands behind what is shared, and sessions of before that keep their order."""

from typing import Any

from msgspec.structs import replace
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, boundaries, rule, run, system_of, talk

from lamina.core.audit.verification import verify
from lamina.core.layers import Assembler, Layout
from lamina.core.values.entry import RENDERER, RequestEntry
from lamina.core.values.envelope import Envelope, LaidItem, SystemPart, SystemParts, is_personal
from lamina.engine.session.session import Session
from lamina.engine.session.turn import Turn

TONE = rule("tone", "Be kind.")
LAID = LaidItem(item=TONE.id, version=TONE.version)
PARTS = SystemParts(
    (
        SystemPart(name="memory", text="I am Ann."),
        SystemPart(name="persona", text="You are a clerk."),
        SystemPart(name="user_style", text="Short."),
        SystemPart(name="rules", text="Rules apply."),
    )
)
ENVELOPE = Envelope(system=PARTS, library=(LAID,), always=frozenset({TONE.id}))


def front(layout: Layout, envelope: Envelope = ENVELOPE) -> list[tuple[str, bool]]:
    assembler = Assembler(len, layout)
    prompt = assembler.assemble(envelope, {(TONE.id, TONE.version): TONE}, 0)
    return [(link.segment.source.split("@")[0], link.segment.shared) for link in prompt.front]


def test_what_is_personal_stands_behind_the_library() -> None:
    assert front(Layout()) == [
        ("system:persona", True), ("system:rules", True), ("system:library", True),
        ("rule:tone", True), ("system:memory", False), ("system:user_style", False),
    ]  # fmt: skip


def test_in_eager_the_library_grows_and_stands_last() -> None:
    assert front(Layout(promotion="eager")) == [
        ("system:persona", True), ("system:rules", True), ("system:memory", False),
        ("system:user_style", False), ("system:library", False), ("rule:tone", False),
    ]  # fmt: skip


def test_the_first_renderer_kept_the_order_and_shared_nothing() -> None:
    names = ["memory", "persona", "user_style", "rules", "library"]
    expected = [*((f"system:{name}", False) for name in names), ("rule:tone", False)]
    assert front(Layout(renderer=1)) == expected


def test_an_item_of_one_session_ends_what_is_shared() -> None:
    assert [shared for _, shared in front(Layout(), replace(ENVELOPE, always=frozenset()))] == [
        True, True, False, False, False, False,
    ]  # fmt: skip


def test_personal_parts_are_known_by_their_names() -> None:
    assert all(map(is_personal, ("memory", "user", "user_memory", "user_persona")))
    assert not any(map(is_personal, ("system", "project", "persona", "rules", "users")))


def test_the_compiled_system_prompt_is_what_is_sent() -> None:
    async def body() -> None:
        for promotion in ("lazy", "eager"):
            session = await World().open(
                system=[("user", "U"), ("persona", "P")], always=(TONE,), promotion=promotion
            )
            turn = await talk(session)
            assert session.envelope.system.compiled == system_of(turn)

    run(body())


# -- sessions of before ----------------------------------------------------------------------------


async def old_session(world: World, **given: Any) -> Session:
    """A session whose first answer was asked for by the first renderer."""
    session = await world.open(**given)
    header = replace(session.entries[0], session="old", renderer=1)
    opened = await world.store.create(header)  # type: ignore[arg-type]
    await opened.close()
    old = await world.open("old")
    turn = await old.prepare("Q1")
    # Laid out again in the order of then.
    request = turn.entry
    prompt = Assembler(world.book.words.count, Layout(renderer=1)).assemble(
        old.state.envelope, old.state.library.items, old.state.turn.start or 0
    )
    entries = [
        replace(
            entry,
            renderer=0,
            digests=tuple(segment.digest for segment in prompt),
            prompt_digest=prompt.digest,
        )
        if isinstance(entry, RequestEntry)
        else entry
        for entry in old.entries
    ]
    assert request.renderer == RENDERER
    await turn.commit(openai_reply("A1"))
    entries += old.entries[len(entries) :]
    header, *rest = entries
    opened = await world.store.create(replace(header, session="older"))  # type: ignore[arg-type]
    await opened.append(rest)
    await opened.close()
    return await world.open("older")


def sources(turn: Turn) -> list[str]:
    return [link.segment.source.split("@")[0] for link in turn.prompt.front]


def test_a_session_of_before_keeps_its_order_until_its_cache_is_gone() -> None:
    async def body() -> None:
        world = World()
        given = {"system": [("memory", "I am Ann."), ("persona", "P")], "always": (TONE,)}
        session = await old_session(world, **given)
        turn = await talk(session, "Q2")
        old_order = ["system:memory", "system:persona", "system:rules", "system:library"]
        assert sources(turn) == [*old_order, "rule:tone"]
        assert turn.context.agreement.broke is None
        assert turn.entry.renderer == 0
        world.clock.pass_by(400)
        turn = await talk(session, "Q3")
        assert sources(turn)[-1] == "system:memory"
        assert "renderer_change" in boundaries(turn)
        assert turn.entry.renderer == RENDERER
        turn = await talk(session, "Q4")
        assert turn.context.agreement.broke is None
        verdict = verify(await world.store.read("older"), world.book)
        assert verdict.sound
        assert not verdict.uncovered

    run(body())


def test_a_part_that_changes_moves_what_it_moves_in_any_order() -> None:
    async def body() -> None:
        session = await World().open(system=[("memory", "I am Ann.")])
        await talk(session)
        await session.set_system("persona", "P", reason="a persona was given")
        turn = await talk(session, "Q2")
        assert turn.context.agreement.unexplained == ()
        assert system_of(turn) == "P\n\nI am Ann."

    run(body())

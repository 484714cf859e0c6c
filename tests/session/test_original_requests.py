"""Eager requests as in the original documents, byte for byte on the OpenAI wire."""

import pytest
from tests.fakes.sessions import (
    World,
    layer,
    messages_of,
    note,
    placed,
    rule,
    run,
    system_of,
    talk,
    user_of,
)

from lamina.session.turn import Turn
from lamina.values.item import Item, ItemId, item_id, selection_id, url_id
from lamina.values.message import ToolText
from lamina.values.settings import Promotion
from lamina.wiring import attach

A_BLOCK = (
    "<note_context>\n<title>a</title>\n<path>a.md</path>\n"
    "<ctime>2026-01-02T03:04:05.000Z</ctime>\n<mtime>2026-01-02T03:04:05.000Z</mtime>\n"
    "<content>\nAAA\n</content>\n</note_context>"
)
B_BLOCK = (
    "<note_context>\n<title>b</title>\n<path>b.md</path>\n"
    "<ctime>2026-01-02T03:04:05.000Z</ctime>\n<mtime>2026-01-02T03:04:05.000Z</mtime>\n"
    "<content>\nBBB\n</content>\n</note_context>"
)
LIBRARY = "## Context Library\n\nThe following notes are available for reference:\n\n"
NOTES = {"a.md": "AAA", "b.md": "BBB", "raw.txt": "  raw\ntext "}


def test_the_library_stands_under_its_header_behind_the_system_prompt() -> None:
    async def body() -> None:
        session = await World(NOTES).open(system="S", promotion="eager")
        await talk(session, "Q1", "a.md")
        turn = await session.prepare("Q2")
        assert turn.request()["messages"] == [
            {"role": "system", "content": f"S\n\n{LIBRARY}{A_BLOCK}"},
            {"role": "user", "content": "Q1"},
            {"role": "assistant", "content": "A"},
            {"role": "user", "content": "Q2"},
        ]

    run(body())


def test_without_a_system_prompt_the_library_is_the_whole_system_message() -> None:
    async def body() -> None:
        session = await World(NOTES).open(promotion="eager")
        assert [m["role"] for m in messages_of(await talk(session, "Q1", "a.md"))] == ["user"]
        assert system_of(await session.prepare("Q2")) == f"{LIBRARY}{A_BLOCK}"

    run(body())


@pytest.mark.parametrize("order", [("a.md", "b.md"), ("b.md", "a.md")])
def test_references_stand_before_new_blocks_whatever_the_order(order: tuple[str, ...]) -> None:
    async def body() -> None:
        session = await World(NOTES).open(system="S", promotion="eager")
        await talk(session, "Q1", "a.md")
        turn = await session.prepare("Q", attach=order)
        assert user_of(turn) == (
            "Context attached to this message:\n- a.md\n\n"
            "Find them in the Context Library in the system prompt above.\n\n"
            f"{B_BLOCK}\n\n---\n\n[User query]:\n\nQ"
        )
        assert placed(turn) == {"a.md": "library", "b.md": "message"}

    run(body())


def test_a_turn_that_only_names_items_lists_them_and_frames_the_question() -> None:
    async def body() -> None:
        session = await World(NOTES).open(promotion="eager")
        await talk(session, "Q1", "a.md", "b.md")
        turn = await session.prepare("Q2", attach=["b.md", "a.md"])
        assert user_of(turn) == (
            "Context attached to this message:\n- b.md\n- a.md\n\n"
            "Find them in the Context Library in the system prompt above."
            "\n\n---\n\n[User query]:\n\nQ2"
        )

    run(body())


@pytest.mark.parametrize("promotion", ["eager", "lazy"])
def test_without_attachments_the_user_message_is_what_was_typed(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World().open(promotion=promotion)
        assert user_of(await session.prepare("What\n\nnow? ---")) == "What\n\nnow? ---"

    run(body())


def test_the_active_note_has_a_wrapper_of_its_own_and_comes_first() -> None:
    async def body() -> None:
        session = await World(NOTES).open(promotion="eager")
        turn = await session.prepare("Q", attach=["a.md", attach("b.md", shape="active")])
        active = B_BLOCK.replace("note_context", "active_note")
        assert user_of(turn) == f"{active}\n{A_BLOCK}\n\n---\n\n[User query]:\n\nQ"

    run(body())


def test_attachments_of_all_kinds_stand_in_the_order_people_are_used_to() -> None:
    async def body() -> None:
        url, tab = url_id("https://x.org/1"), url_id("https://x.org/tab")
        selected = selection_id("a.md", 3, 4)
        given = [
            attach(Item(id=tab, content="tab"), shape="web_tab"),
            attach(Item(id=selected, content="sel")),
            attach(Item(id=url, content="web")),
            attach(Item(id=item_id("folder", "docs"), content="fold")),
            attach(Item(id=item_id("tag", "#x"), content="tagged")),
            attach("a.md"),
            attach("b.md", shape="active"),
        ]
        turn = await (await World(NOTES).open(promotion="eager")).prepare("Q", attach=given)
        order = [source.partition("@")[0] for source in layer(turn, "L3") if "@" in source]
        assert order == ["note:b.md", "note:a.md", "tag:#x", "folder:docs", url, selected, tab]

    run(body())


def test_a_workspace_file_has_its_name_and_raw_text() -> None:
    async def body() -> None:
        turn = await (await World(NOTES).open(promotion="eager")).prepare("Q", attach=["raw.txt"])
        assert user_of(turn) == (
            "<file_context>\n<name>raw.txt</name>\n<content>\n  raw\ntext \n</content>\n"
            "</file_context>\n\n---\n\n[User query]:\n\nQ"
        )

    run(body())


def test_a_rule_is_bare_in_the_request_and_wrapped_in_the_library() -> None:
    async def body() -> None:
        session = await World().open(promotion="eager", system="S")
        terms = Item(id=ItemId("reference:terms"), content="NM: nautical mile")
        first = await talk(session, "Q1", rule("tone", "Be brief."), terms)
        named = "Rules and references in force from here on:\n- terms\n- tone"
        blocks = "Reference: NM: nautical mile\nRule: Be brief."
        assert user_of(first) == f"{named}\n\n{blocks}\n\n---\n\n[User query]:\n\nQ1"
        second = await session.prepare("Q2", attach=[rule("tone", "Be brief."), terms])
        assert system_of(second).endswith(
            f"{LIBRARY}<reference_context>\n<name>terms</name>\nReference: NM: nautical mile\n"
            "</reference_context>\n\n<rule_context>\n<name>tone</name>\nRule: Be brief.\n"
            "</rule_context>"
        )

    run(body())


def test_results_of_planned_tools_stand_before_everything_else() -> None:
    async def body() -> None:
        session = await World(NOTES).open(promotion="eager")
        texts = [ToolText(name="localSearch", text="doc 1"), ToolText(name="web", text="page")]
        bare = await session.prepare("Q", tool_texts=texts)
        tools = (
            "# Additional context:\n\n<localSearch>\ndoc 1\n</localSearch>\n\n<web>\npage\n</web>"
        )
        assert user_of(bare) == f"{tools}\n\nQ"
        full = await session.prepare("Q", attach=["a.md"], tool_texts=texts)
        assert user_of(full) == f"{tools}\n\n{A_BLOCK}\n\n---\n\n[User query]:\n\nQ"

    run(body())


@pytest.mark.parametrize("promotion", ["eager", "lazy"])
def test_results_of_planned_tools_are_gone_with_the_next_turn(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World(NOTES).open(promotion=promotion)
        texts = [ToolText(name="localSearch", text="doc 1")]
        first = await talk(session, "Q1", tool_texts=texts)
        assert user_of(first).count("doc 1") == 1
        assert user_of(first).count("Q1") == 1
        second = await session.prepare("Q2")
        assert [m["content"] for m in messages_of(second)] == ["Q1", "A", "Q2"]

    run(body())


def test_in_lazy_tool_results_stand_behind_what_stays_and_before_the_question() -> None:
    async def body() -> None:
        session = await World(NOTES).open()
        texts = [ToolText(name="localSearch", text="doc 1")]
        first = await talk(session, "Q1", "a.md", tool_texts=texts)
        tools = "# Additional context:\n\n<localSearch>\ndoc 1\n</localSearch>"
        assert user_of(first) == f"{A_BLOCK}\n\n{tools}\n\n---\n\n[User query]:\n\nQ1"
        second = await session.prepare("Q2")
        assert messages_of(second)[0]["content"] == f"{A_BLOCK}\n\n---\n\n[User query]:\n\nQ1"
        assert second.context.agreement.broke is None
        assert second.context.agreement.tokens > 0

    run(body())


PROJECT = "<project_system_prompt>\nP\n</project_system_prompt>"
CONTEXT = "<project_context>\nC\n</project_context>"


@pytest.mark.parametrize(
    ("project", "context", "memory", "expected"),
    [
        ("P", "C", None, f"Base\n\n{PROJECT}\n\n{CONTEXT}"),
        ("P", None, None, f"Base\n\n{PROJECT}"),
        (None, "C", None, f"Base\n\n{CONTEXT}"),
        ("", "  \n", "", "Base"),
        (None, None, None, "Base"),
        (None, None, "M", "Base\n\n<saved_memories>\nM\n</saved_memories>"),
        (
            "P", "C", "M",
            f"Base\n\n{PROJECT}\n\n{CONTEXT}\n\n<saved_memories>\nM\n</saved_memories>",
        ),
    ],
)  # fmt: skip
def test_a_project_stands_in_the_system_prompt_and_what_is_missing_has_no_block(
    project: str | None, context: str | None, memory: str | None, expected: str
) -> None:
    async def body() -> None:
        session = await World().open(
            system="Base", project=project, project_context=context, memory=memory
        )
        assert system_of(await session.prepare("Q")) == expected

    run(body())


# -- the four turns of the original example ------------------------------------------------------

SPEC, API, LOG = (note(f"{name}.md", name.upper()) for name in ("spec", "api-docs", "error-log"))
TURNS = ((SPEC,), (SPEC, API), (SPEC,), (SPEC, LOG))
L2: tuple[list[str], ...] = (
    [],
    ["spec.md"],
    ["spec.md", "api-docs.md"],
    ["spec.md", "api-docs.md"],
)
IN_FULL: tuple[list[str], ...] = (["spec.md"], ["api-docs.md"], [], ["error-log.md"])
NAMED: tuple[list[str], ...] = ([], ["spec.md"], ["spec.md"], ["spec.md"])


def blocks(turn: Turn, name: str) -> list[str]:
    sources = [source.partition("@") for source in layer(turn, name)]
    return [item.partition(":")[2] for item, at, _ in sources if at]


@pytest.mark.parametrize("promotion", ["eager", "lazy"])
def test_the_four_turn_example_has_the_layers_of_the_original(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World().open(system="S", promotion=promotion)
        turns = [await talk(session, f"Q{number}", *items) for number, items in enumerate(TURNS, 1)]
        assert [blocks(turn, "L2") for turn in turns] == list(L2)
        assert [blocks(turn, "L3") for turn in turns] == list(IN_FULL)
        named = [
            [line[2:] for line in user_of(turn).splitlines() if line.startswith("- ")]
            for turn in turns
        ]
        assert named == list(NAMED)
        where = (
            "the Context Library in the system prompt" if promotion == "eager" else "the context"
        )
        assert f"Find them in {where} above." in user_of(turns[2])

    run(body())


def test_in_lazy_every_request_of_the_example_begins_with_the_one_before() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        before: list[object] = []
        for items in TURNS:
            turn = await talk(session, "Q", *items)
            assert messages_of(turn)[: len(before)] == before
            before = list(messages_of(turn))

    run(body())


# -- identity ------------------------------------------------------------------------------------


@pytest.mark.parametrize("promotion", ["eager", "lazy"])
def test_an_item_of_two_turns_has_one_entry_at_its_first_place(promotion: Promotion) -> None:
    async def body() -> None:
        world = World(NOTES)
        session = await world.open(promotion=promotion)
        await talk(session, "Q1", "a.md")
        await talk(session, "Q2", "b.md")
        await talk(session, "Q3", "a.md")
        world.clock.pass_by(1_000)
        turn = await session.prepare("Q4")
        assert system_of(turn) == f"{LIBRARY}{A_BLOCK}\n\n{B_BLOCK}"

    run(body())


def test_a_video_is_one_item_whichever_of_its_addresses_was_pasted() -> None:
    async def body() -> None:
        session = await World().open()
        short, long = "https://youtu.be/dQw4w9WgXcQ", "https://youtube.com/watch?v=dQw4w9WgXcQ"
        await talk(session, "Q1", Item(id=url_id(short), content="transcript"))
        turn = await session.prepare("Q2", attach=[Item(id=url_id(long), content="transcript")])
        assert list(placed(turn).values()) == ["above"]

    run(body())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_ranges_of_a_file_are_two_selections_whatever_the_order(order: tuple[int, ...]) -> None:
    async def body() -> None:
        ranges = [
            Item(id=selection_id("a.md", 1, 2), content="one"),
            Item(id=selection_id("a.md", 3, 4), content="two"),
        ]
        turn = await (await World().open()).prepare("Q", attach=[ranges[n] for n in order])
        assert placed(turn) == {
            "a.md (lines 1-2)": "message",
            "a.md (lines 3-4)": "message",
        }

    run(body())

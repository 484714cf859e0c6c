"""The layers as the original documents have them, byte for byte on the OpenAI wire: behaviours 1
to 12, by number."""

import base64
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image as Canvas
from tests.engine.sources.note_scenes import NoteScene, QaScene
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import (
    World,
    all_text,
    layer,
    messages_of,
    note,
    placed,
    reported,
    rule,
    run,
    system_of,
    talk,
    user_of,
    words,
)

import lamina
from lamina import renumber_citations
from lamina.adapters.tools.toolbox import Toolbox
from lamina.apps.wiring import attach
from lamina.core.text.citations import Source
from lamina.core.values.item import Item, ItemId, item_id, selection_id, url_id
from lamina.core.values.message import Image, ToolText
from lamina.core.values.settings import Promotion
from lamina.engine.runners.note_search_tool import SearchTools
from lamina.engine.runners.runner import AgentRunner
from lamina.engine.session.turn import Turn

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


def test_01_the_library_stands_under_its_header_behind_the_system_prompt() -> None:
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


def test_01_without_a_system_prompt_the_library_is_the_whole_system_message() -> None:
    async def body() -> None:
        session = await World(NOTES).open(promotion="eager")
        assert [m["role"] for m in messages_of(await talk(session, "Q1", "a.md"))] == ["user"]
        assert system_of(await session.prepare("Q2")) == f"{LIBRARY}{A_BLOCK}"

    run(body())


@pytest.mark.parametrize("order", [("a.md", "b.md"), ("b.md", "a.md")])
def test_02_references_stand_before_new_blocks_whatever_the_order(order: tuple[str, ...]) -> None:
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


def test_02_a_turn_that_only_names_items_lists_them_and_frames_the_question() -> None:
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
def test_03_without_attachments_the_user_message_is_what_was_typed(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World().open(promotion=promotion)
        assert user_of(await session.prepare("What\n\nnow? ---")) == "What\n\nnow? ---"

    run(body())


def test_04_the_active_note_has_a_wrapper_of_its_own_and_comes_first() -> None:
    async def body() -> None:
        session = await World(NOTES).open(promotion="eager")
        turn = await session.prepare("Q", attach=["a.md", attach("b.md", shape="active")])
        active = B_BLOCK.replace("note_context", "active_note")
        assert user_of(turn) == f"{active}\n{A_BLOCK}\n\n---\n\n[User query]:\n\nQ"

    run(body())


def test_04_attachments_of_all_kinds_stand_in_the_order_people_are_used_to() -> None:
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


def test_08_a_workspace_file_has_its_name_and_raw_text() -> None:
    async def body() -> None:
        turn = await (await World(NOTES).open(promotion="eager")).prepare("Q", attach=["raw.txt"])
        assert user_of(turn) == (
            "<file_context>\n<name>raw.txt</name>\n<content>\n  raw\ntext \n</content>\n"
            "</file_context>\n\n---\n\n[User query]:\n\nQ"
        )

    run(body())


def test_08_a_rule_is_bare_in_the_request_and_wrapped_in_the_library() -> None:
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


def test_09_results_of_planned_tools_stand_before_everything_else() -> None:
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
def test_09_results_of_planned_tools_are_gone_with_the_next_turn(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World(NOTES).open(promotion=promotion)
        texts = [ToolText(name="localSearch", text="doc 1")]
        first = await talk(session, "Q1", tool_texts=texts)
        assert user_of(first).count("doc 1") == 1
        assert user_of(first).count("Q1") == 1
        second = await session.prepare("Q2")
        assert [m["content"] for m in messages_of(second)] == ["Q1", "A", "Q2"]

    run(body())


def test_09_in_lazy_tool_results_stand_behind_what_stays_and_before_the_question() -> None:
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
def test_12_a_project_stands_in_the_system_prompt_and_what_is_missing_has_no_block(
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
def test_05_the_four_turn_example_has_the_layers_of_the_original(promotion: Promotion) -> None:
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


def test_05_in_lazy_every_request_of_the_example_begins_with_the_one_before() -> None:
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
def test_06_an_item_of_two_turns_has_one_entry_at_its_first_place(promotion: Promotion) -> None:
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


def test_07_a_video_is_one_item_whichever_of_its_addresses_was_pasted() -> None:
    async def body() -> None:
        session = await World().open()
        short, long = "https://youtu.be/dQw4w9WgXcQ", "https://youtube.com/watch?v=dQw4w9WgXcQ"
        await talk(session, "Q1", Item(id=url_id(short), content="transcript"))
        turn = await session.prepare("Q2", attach=[Item(id=url_id(long), content="transcript")])
        assert list(placed(turn).values()) == ["above"]

    run(body())


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_07_two_ranges_of_a_file_are_two_selections_whatever_the_order(
    order: tuple[int, ...],
) -> None:
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


# -- digests, pruning, search, citations, pictures -------------------------------------------------


class AgentNoteScene(NoteScene):
    """An agent whose one tool searches the notes."""

    async def open(self, session: str = "talk") -> None:
        await super().open(session)
        tools = Toolbox(self.host, SearchTools(self.search, now=self.clock.now))
        self._runner = await AgentRunner(self.runner.session, self.providers, tools).__aenter__()


def png(colour: str) -> bytes:
    drawn = BytesIO()
    Canvas.new("RGB", (7, 5), colour).save(drawn, "PNG")
    return drawn.getvalue()


def images_of(turn: Turn) -> list[Image]:
    return [segment.content for segment in turn.prompt if isinstance(segment.content, Image)]


FOUR_TURNS = """
import asyncio
from tests.behaviours.test_original_layers import TURNS
from tests.fakes.sessions import World, talk

async def main():
    session = await World().open("four", system="S", promotion="eager")
    for items in TURNS:
        turn = await talk(session, "Q", *items)
        print(sorted(turn.layer_digests.items()))

asyncio.run(main())
"""


def test_06_layer_digests_are_the_same_in_every_process_and_for_every_hash_seed() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", FOUR_TURNS],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(outputs) == 1
    assert all(len(output.splitlines()) == len(TURNS) for output in outputs)


def test_06_only_the_ends_of_segments_are_trimmed() -> None:
    async def body() -> None:
        session = await World().open(system="\n S \n\n s\n ")
        assert system_of(await session.prepare("Q")) == "S \n\n s"

    run(body())


@pytest.mark.parametrize("promotion", ["eager", "lazy"])
def test_08_an_item_is_laid_down_whole_or_reported_as_pruned(promotion: Promotion) -> None:
    async def body() -> None:
        session = await World().open(promotion=promotion, window=400, output_reserve=50)
        turn = await talk(session, "Q1", note("big.md", words(500, "big")), note("a.md", "AAA"))
        assert "big big" not in user_of(turn)
        assert reported(turn) == [("note:big.md", "window")]
        # What was laid down stays in L2, or is laid down again in L3, whatever comes.
        for number in range(2, 8):
            again = note("a.md", "AAA")
            turn = await talk(session, words(30, f"q{number}"), again, answer=words(30))
            named = placed(turn).get("a.md")
            assert named in ("library", "above", "message") or ("note:a.md" in dict(reported(turn)))
            assert ("AAA" in all_text(turn)) == (named in ("library", "above", "message"))

    run(body())


def test_09_local_search_carries_everything_inside_its_own_block() -> None:
    async def body() -> None:
        async with QaScene(saying("Nine [^1].")) as scene:
            await scene.ask("How many berths does the north quay have?")
            before, _, rest = scene.asked.partition("<localSearch>")
            block, _, after = rest.partition("</localSearch>")
            assert before == "# Additional context:\n\n"
            parts = ("search_instruction", "search_documents", "source_catalogue", "citation_rules")
            places = [block.index(f"<{part}>") for part in parts]
            assert places == sorted(places)
            assert after.endswith("How many berths does the north quay have?")
            assert scene.asked.count("How many berths") == 1

    run(body())


def test_09_in_the_agent_loop_the_question_follows_what_a_search_found() -> None:
    async def body() -> None:
        question = "How many berths does the north quay have?"
        search = calling(("c", "localSearch", {"query": "berths north quay"}))
        async with AgentNoteScene(search, saying("Nine [^1].")) as scene:
            await scene.ask(question)
            (result,) = scene.results
            assert result.index("nine berths") < result.index(question)
            assert result.endswith(f"[User query]:\n\n{question}")

    run(body())


def test_10_citations_are_renumbered_by_first_mention_and_duplicates_merge() -> None:
    sources = [(1, "A", "a.md"), (2, "B", "b.md"), (3, "A again", "a.md")]
    catalogue = [Source(number=n, title=title, path=path) for n, title, path in sources]
    answer = renumber_citations("Both [^2] and [^3], see [^1].", catalogue)
    assert answer.text == "Both [^1] and [^2], see [^2]."
    assert [(source.number, source.path) for source in answer.sources] == [
        (1, "b.md"), (2, "a.md"),
    ]  # fmt: skip


def test_10_sources_are_appended_only_if_the_model_did_not_cite() -> None:
    catalogue = [Source(number=1, title="A", path="a.md")]
    assert renumber_citations("Said [^1].", catalogue).text == "Said [^1]."
    appended = renumber_citations("Said.", catalogue).text
    assert appended.startswith("Said.\n\n#### Sources")
    assert "a.md" in appended or "[[A]]" in appended


PICTURES = (
    "![[x.png]] ![](a(b).png \"t\") ![](< x y.png >) "
    "![](data:image/png;base64,{data}) ![](https://example.org/p.png)"
)  # fmt: skip


def test_11_pictures_come_from_the_active_note_only_and_in_every_form(tmp_path: Path) -> None:
    async def body() -> None:
        colours = ("red", "blue", "green", "black")
        red, blue, green, black = (png(colour) for colour in colours)
        (tmp_path / "x.png").write_bytes(red)
        (tmp_path / "a(b).png").write_bytes(blue)
        (tmp_path / "x y.png").write_bytes(green)
        data = base64.b64encode(black).decode()
        (tmp_path / "n.md").write_text(PICTURES.format(data=data))
        session = await lamina.open_session(
            store=lamina.MemoryStore(), workspace=tmp_path, target="openai:gpt-5"
        )
        turn = await session.prepare("Q", attach=[attach("n.md", shape="active")])
        assert len(images_of(turn)) == 4
        # No address is asked unless a person allowed it, and that is said.
        assert any("example.org" in warning for warning in turn.context.warnings)
        other = await lamina.open_session(
            store=lamina.MemoryStore(), workspace=tmp_path, target="openai:gpt-5"
        )
        turn = await other.prepare("Q", attach=["n.md"])
        assert not images_of(turn)

    run(body())

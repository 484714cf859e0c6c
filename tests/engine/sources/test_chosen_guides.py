"""Rules and references for a question: found, expanded, related; and what is said of the rest."""

from pathlib import Path

import pytest
from inline_snapshot import snapshot
from tests.engine.runners.scenes import Scene
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.index import IndexFake, Likeness
from tests.fakes.providers import calling, saying
from tests.fakes.selection import GuideSourceFake, guide
from tests.fakes.sessions import run
from tests.fakes.tools import ApproverFake, tool

import lamina
from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.core.values.agent import Guide, Guides
from lamina.core.values.entry import RequestEntry
from lamina.core.values.item import Item, item_id, selection_id
from lamina.core.values.request import ContextItem
from lamina.core.values.selection import Evidence, SearchSettings
from lamina.core.values.tool import ToolOutput
from lamina.errors import LaminaError

TONE = guide("rule", "tone")


def rules(*names: str) -> list[Guide]:
    return [guide("rule", name, "agent") for name in names]


def scene(*guides: Guide, alike: Likeness | None = None, **given: object) -> Scene:
    return Scene(guides=GuideSourceFake(*guides), index=IndexFake(alike), **given)  # type: ignore[arg-type]


def chosen(played: Scene) -> dict[str, float | None]:
    """What was chosen by search, with its score."""
    return {
        item.item.removeprefix("rule:"): item.score
        for item in played.context.items
        if item.include == "agent"
    }


def left(played: Scene) -> list[tuple[str, str]]:
    return [(omission.what, omission.reason) for omission in played.context.left_out]


# -- how many (17) ---------------------------------------------------------------------------------


def test_seven_at_or_above_the_score_are_all_taken() -> None:
    async def body() -> None:
        names = "abcdefg"
        scores = {f"rule:{n}": 0.7 + number / 100 for number, n in enumerate(names)}
        async with scene(*rules(*names), alike={"find": scores}) as played:
            await played.ask("find it")
            assert list(chosen(played)) == list(reversed(names))
            assert chosen(played)["a"] == pytest.approx(0.7)

    run(body())


def test_two_above_and_six_below_make_five_and_the_next_best_are_reported() -> None:
    async def body() -> None:
        scores = {"a": 0.9, "b": 0.8, "c": 0.6, "d": 0.5, "e": 0.4, "f": 0.35, "g": 0.3, "h": 0.25}
        alike = {"find": {f"rule:{name}": score for name, score in scores.items()}}
        async with scene(*rules(*scores), alike=alike) as played:
            await played.ask("find it")
            assert list(chosen(played)) == ["a", "b", "c", "d", "e"]
            assert left(played) == [
                ("rule:f", "ranked_lower"), ("rule:g", "ranked_lower"), ("rule:h", "ranked_lower"),
            ]  # fmt: skip
            detail = played.context.left_out[0].detail
            assert detail == snapshot("f (0.35): others fit the question better")
            # Not a word of them to the model.
            assert "What f says" not in str(played.provider.bodies[-1])

    run(body())


def test_what_has_nothing_to_do_with_the_question_is_out_and_ties_keep_their_order() -> None:
    async def body() -> None:
        alike = {"find": {"rule:b": 0.4, "rule:a": 0.4, "rule:d": -0.3}}
        async with scene(*rules("b", "a", "c", "d"), alike=alike) as played:
            await played.ask("find it")
            assert list(chosen(played)) == ["b", "a"]
            assert left(played) == []

    run(body())


def test_a_question_for_which_nothing_stands_out_brings_nothing_and_the_best_are_told() -> None:
    async def body() -> None:
        alike = {"thanks": {"rule:a": 0.25, "rule:b": 0.2}}
        async with scene(*rules("a", "b", "c"), alike=alike) as played:
            await played.ask("thanks a lot")
            assert chosen(played) == {}
            assert left(played) == [("rule:a", "ranked_lower"), ("rule:b", "ranked_lower")]
            first = played.context.left_out[0]
            assert (first.score, first.lacking) == (0.25, Evidence(found=0.25, needed=0.3))
            assert first.detail == snapshot(
                "a (0.25): nothing stood out for this question: the evidence for the best is 0.25, "
                "and 0.30 is needed"
            )
            await played.runner.session.update_settings(guide_search={"gate": False})
            await played.ask("thanks again")
            assert chosen(played) == {"a": 0.25, "b": 0.2}

    run(body())


def test_an_empty_question_searches_for_nothing() -> None:
    async def body() -> None:
        played = scene(*rules("a"), TONE, alike={"": {"rule:a": 0.9}})
        async with played:
            turn = await played.runner.session.prepare("  ")
            assert [item.item for item in turn.context.items] == ["rule:tone"]
            assert turn.context.warnings == ()

    run(body())


def test_every_part_of_a_question_brings_an_item() -> None:
    async def body() -> None:
        alike = {
            "tax": {"rule:tax": 0.4, **{f"rule:t{number}": 0.39 for number in range(5)}},
            "ships": {"rule:ships": 0.3},
        }
        guides = rules("tax", *(f"t{number}" for number in range(5)), "ships")
        async with scene(*guides, alike=alike) as played:
            await played.ask("How much tax is due this year? Which ships sail to Bergen?")
            assert {"tax", "ships"} <= set(chosen(played))
            assert len(chosen(played)) == 5

    run(body())


def test_search_can_be_switched_off_and_set_otherwise_in_a_session() -> None:
    async def body() -> None:
        alike = {"find": {"rule:a": 0.9, "rule:b": 0.5, "rule:c": 0.4}}
        async with scene(*rules("a", "b", "c"), alike=alike) as played:
            session = played.runner.session
            await session.update_settings(guide_search=SearchSettings(top_n=1))
            await played.ask("find it")
            assert list(chosen(played)) == ["a"]
            await session.update_settings(guide_search=SearchSettings(top_n=0, include_score=0.45))
            await played.ask("find it")
            assert list(chosen(played)) == ["a", "b"]
            await session.update_settings(guide_search=SearchSettings(search=False))
            await played.ask("find it")
            assert chosen(played) == {}
            assert played.context.warnings == ()
            await played.verify()

    run(body())


# -- when search fails (18) ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [RuntimeError("no such table"), LaminaError("broken"), MemoryError("no room")]
)
def test_a_search_that_fails_costs_its_finds_and_is_told(error: Exception) -> None:
    async def body() -> None:
        index = IndexFake({"find": {"rule:a": 0.9}})
        played = Scene(guides=GuideSourceFake(TONE, *rules("a")), index=index)
        async with played:
            index.fails = error
            answer = await played.ask("find it")
            assert answer.ending == "answered"
            assert [item.item for item in played.context.items] == ["rule:tone"]
            (told,) = played.context.warnings
            assert "search failed" in told
            assert str(error) in told
            assert told in answer.warnings
            index.fails = None
            await played.ask("find it")
            assert chosen(played) == {"a": pytest.approx(0.9)}
            await played.verify()

    run(body())


def test_without_a_model_words_are_searched_and_that_is_told_once(tmp_path: Path) -> None:
    async def body() -> None:
        embedder = FakeEmbedder()
        embedder.missing = "the embedding model is not on this machine"
        index = SqliteIndex(tmp_path / "index.sqlite", embedder)
        guides = GuideSourceFake(
            TONE,
            guide("rule", "shipping", "agent", text="Parcels are sent by boat."),
            guide("rule", "taxes", "agent", text="Add nineteen percent."),
        )
        async with Scene(guides=guides, index=index) as played:
            await played.ask("How are parcels sent?")
            (item,) = [item for item in played.context.items if item.include == "agent"]
            assert (item.item, item.origin) == ("rule:shipping", "lexical")
            assert item.score is None
            assert item.reason == "found by its words"
            assert ["by words alone" in warning for warning in played.context.warnings] == [True]
            await played.ask("And by which boat are they sent?")
            assert played.context.warnings == ()
            await played.verify()

    run(body())


def test_a_broken_database_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    async def body() -> None:
        (tmp_path / "index.sqlite").write_bytes(b"this is no database" * 100)
        index = SqliteIndex(tmp_path / "index.sqlite", FakeEmbedder())
        guides = GuideSourceFake(guide("rule", "ship", "agent", text="ship parcels by boat"))
        async with Scene(guides=guides, index=index) as played:
            await played.ask("ship parcels")
            assert list(chosen(played)) == ["ship"]
            assert any("index" in warning for warning in played.context.warnings)
            await played.ask("ship parcels")
            assert played.context.warnings == ()

    run(body())


def test_what_an_index_says_of_itself_is_told_once() -> None:
    async def body() -> None:
        index = IndexFake({"find": {"rule:a": 0.9}})
        index.warnings = ("the disk is full",)
        index.failed = ("'x' cannot be embedded",)
        async with Scene(guides=GuideSourceFake(*rules("a")), index=index) as played:
            await played.ask("find it")
            told = " | ".join(played.context.warnings)
            assert told.count("|") == 1
            assert "the disk is full" in told
            assert "'x' cannot be embedded" in told
            await played.ask("find it")
            assert played.context.warnings == ()

    run(body())


def test_items_that_are_searched_for_without_an_index_are_told_of() -> None:
    async def body() -> None:
        async with Scene(guides=GuideSourceFake(TONE, *rules("a"))) as played:
            await played.ask("find it")
            assert [item.item for item in played.context.items] == ["rule:tone"]
            assert ["there is no index" in warning for warning in played.context.warnings] == [True]

    run(body())


# -- expansion and relations -----------------------------------------------------------------------


def test_what_is_like_what_was_chosen_comes_along_and_says_from_what() -> None:
    async def body() -> None:
        alike = {
            "find": {"rule:first": 0.8, "rule:second": 0.3},
            "What first": {"rule:second": 0.8, "rule:third": 0.7},
            "What second": {"rule:third": 0.9},
        }
        search = SearchSettings(top_n=1, expansion_depth=1)
        guides = rules("first", "second", "third")
        async with scene(*guides, alike=alike, guide_search=search) as played:
            await played.ask("find it")
            items = {item.item: (item.origin, item.source) for item in played.context.items}
            assert items == {
                "rule:first": ("search", ""),
                "rule:second": ("expansion", "rule:first"),
            }
            # What was taken after all is not said to be left.
            assert left(played) == []
            await played.runner.session.update_settings(
                guide_search=SearchSettings(top_n=1, expansion_depth=2)
            )
            await played.ask("find it")
            assert [item.item for item in played.context.items] == [
                "rule:first", "rule:second", "rule:third",
            ]  # fmt: skip
            assert played.context.items[2].reason == "like rule:second, which was chosen"
            await played.verify()

    run(body())


def test_what_tools_gave_brings_what_is_like_it_if_that_is_set() -> None:
    async def body() -> None:
        alike = {"boat": {"rule:sea": 0.8}, "fire": {"rule:fire": 0.8}}
        played = scene(
            *rules("sea", "fire"),
            alike=alike,
            expand_results=True,
            tools=[tool("look"), tool("burn")],
        )
        async with played:
            played.host.outputs["look"] = ToolOutput(text="There is a boat.")
            played.host.outputs["burn"] = ToolOutput(text="There is a fire.", is_error=True)
            played.plays(calling(("c1", "look", {}), ("c2", "burn", {})), saying("A vessel."))
            await played.ask("What is there?")
            assert chosen(played) == {}
            await played.ask("Tell me more of it.")
            (item,) = played.context.items
            assert (item.item, item.origin, item.source) == ("rule:sea", "result", "look")
            assert item.reason == "like what look gave"
            await played.ask("And now?")
            assert chosen(played) == {}
            await played.verify()

    run(body())


def test_what_is_related_comes_along_without_a_score_and_once() -> None:
    async def body() -> None:
        played = Scene(
            guides=GuideSourceFake(TONE, *rules("a", "b", "c"), guide("rule", "d", "manual")),
            index=IndexFake({"find": {"rule:a": 0.9, "rule:b": 0.8}}),
            relations={
                "rule:a": ["rule:c", "rule:tone", "rule:b", "rule:gone"],
                "rule:b": ["rule:c"],
                "rule:tone": ["rule:d"],
            },
        )
        async with played:
            await played.ask("find it")
            items = {item.item: (item.origin, item.source) for item in played.context.items}
            assert items == {
                "rule:tone": ("", ""),
                "rule:a": ("search", ""),
                "rule:b": ("search", ""),
                "rule:c": ("relation", "rule:a"),
            }
            assert chosen(played)["c"] is None
            assert left(played) == []

    run(body())


# -- recent turns ----------------------------------------------------------------------------------


def test_the_latest_question_counts_before_the_one_before_it() -> None:
    async def body() -> None:
        index = IndexFake()
        async with Scene(guides=GuideSourceFake(*rules("a")), index=index) as played:
            for text in ("oldest", "older", "latest"):
                await played.ask(text)
            await played.ask("now")
            asked = [part for part in index.asked[-1] if part in ("oldest", "older", "latest")]
            assert asked in ([], ["latest", "older"])

    run(body())


# -- the room that is left -------------------------------------------------------------------------


def test_what_has_no_room_is_left_out_with_its_size_and_smaller_ones_are_taken() -> None:
    async def body() -> None:
        guides = [
            guide("rule", "large", "agent", text="word " * 600),
            guide("rule", "small", "agent", text="word " * 20),
        ]
        alike = {"find": {"rule:large": 0.9, "rule:small": 0.8}}
        async with scene(*guides, alike=alike, window=1000, output_reserve=100) as played:
            await played.ask("find it")
            assert list(chosen(played)) == ["small"]
            (out,) = played.context.left_out
            assert (out.what, out.reason) == ("rule:large", "room_left")
            assert out.tokens >= 600
            await played.verify()

    run(body())


def test_what_a_person_put_in_has_its_room_before_what_search_found() -> None:
    async def body() -> None:
        guides = [
            guide("rule", "hand", "manual", text="word " * 420),
            guide("rule", "found", "agent", text="word " * 420),
        ]
        alike = {"find": {"rule:found": 0.9}}
        async with scene(*guides, alike=alike, window=1000, output_reserve=100) as played:
            await played.runner.session.add("rule:hand")
            await played.ask("find it")
            assert [item.item for item in played.context.items] == ["rule:hand"]
            assert left(played) == [("rule:found", "room_left")]

    run(body())


def test_what_stands_already_takes_no_room_however_full_it_is() -> None:
    async def body() -> None:
        guides = [guide("rule", "a", "agent", text="word " * 50)]
        alike = {"find": {"rule:a": 0.9}}
        async with scene(*guides, alike=alike, window=1000, output_reserve=100) as played:
            await played.ask("find it")
            played.plays(saying("word " * 700))
            await played.ask("tell me everything")
            await played.ask("find it " + "word " * 250)
            assert list(chosen(played)) == ["a"]
            assert "room_left" not in [reason for _, reason in left(played)]
            await played.verify()

    run(body())


# -- what an attachment is worth -------------------------------------------------------------------


def test_relevance_moves_what_an_attachment_is_worth_and_both_values_are_kept() -> None:
    async def body() -> None:
        alike = {"find": {"note:near.md": 0.9, "note:far.md": -0.2, "note:even.md": 0.3}}
        played = scene(alike=alike, relevance_priority=True)
        names = ("near.md", "far.md", "even.md", "must.md")
        played.workspace.notes = {name: f"about {name}" for name in names}
        async with played:
            attached = [*names[:3], lamina.attach("must.md", essential=True)]
            await played.ask("find it", attach=attached)
            worth = {e.label: (e.priority_before, e.priority) for e in played.context.items}
            assert worth == {
                "near.md": (5, 1),
                "far.md": (5, 8),
                "even.md": (None, 5),
                "must.md": (None, 5),
            }
            scores = {e.label: e.score for e in played.context.items}
            assert scores["near.md"] == pytest.approx(0.9)
            assert scores["must.md"] is None
            await played.restart()
            assert {e.label: e.priority_before for e in played.context.items}["near.md"] == 5
            await played.verify()

    run(body())


def test_what_has_to_do_with_the_question_stays_when_room_is_short() -> None:
    async def body() -> None:
        alike = {"find": {"note:near.md": 0.9, "note:far.md": 0.0}}
        given = {"window": 400, "output_reserve": 100}
        for relevance, kept in ((False, "far.md"), (True, "near.md")):
            played = scene(alike=alike, relevance_priority=relevance, **given)
            played.workspace.notes = dict.fromkeys(("near.md", "far.md"), "word " * 160)
            async with played:
                # Among equals the earliest goes first.
                await played.ask("find it", attach=["near.md", "far.md"])
                assert [item.label for item in played.context.items] == [kept]

    run(body())


def test_relevance_that_cannot_be_told_moves_nothing_and_says_so() -> None:
    async def body() -> None:
        index = IndexFake()
        played = Scene(guides=GuideSourceFake(), index=index, relevance_priority=True)
        played.workspace.notes["a.md"] = "text"
        async with played:
            index.fails = RuntimeError("no such table")
            await played.ask("find it", attach=["a.md"])
            assert played.context.items[0].priority == 5
            assert ["no such table" in warning for warning in played.context.warnings] == [True]
            index.fails, index.lexical = None, "there is no model"
            await played.ask("find it", attach=["a.md"])
            assert ["there is no model" in warning for warning in played.context.warnings] == [True]

    run(body())


# -- globs -----------------------------------------------------------------------------------------


def test_a_rule_joins_when_a_file_it_is_about_is_attached() -> None:
    async def body() -> None:
        guides = [
            guide("rule", "python", "manual", globs=("src/**/*.py",)),
            guide("rule", "notes", "agent", globs=("*.md",)),
            guide("rule", "both", globs=("*.md",)),
        ]
        played = scene(*guides)
        played.workspace.notes = {"src/a/b.py": "x = 1", "docs/a.md": "text", "c.txt": "text"}
        async with played:
            await played.ask("Q", attach=["c.txt"])
            assert [item.item for item in played.context.items] == ["file:c.txt", "rule:both"]
            await played.ask("Q", attach=["src/a/b.py", "docs/a.md"])
            found = {str(e.item): (e.include, e.origin, e.source) for e in played.context.items}
            assert found["rule:python"] == ("agent", "glob", "src/a/b.py")
            assert found["rule:notes"] == ("agent", "glob", "docs/a.md")
            assert found["rule:both"] == ("always", "", "")
            await played.ask("Q")
            assert [item.item for item in played.context.items] == ["rule:both"]
            await played.verify()

    run(body())


def test_a_rule_joins_for_lines_of_a_file_and_not_for_half_of_a_name() -> None:
    async def body() -> None:
        guides = [guide("rule", "python", "manual", globs=("*.py",))]
        async with scene(*guides) as played:
            lines = Item(id=selection_id("src/a.py", 3, 9), content="x = 1")
            await played.ask("Q", attach=[lines])
            assert [item.item for item in played.context.items][-1] == "rule:python"
            named = Item(id=item_id("file", "a.py#Learn.txt"), content="text")
            await played.ask("Q", attach=[named])
            assert [item.item for item in played.context.items] == ["file:a.py#Learn.txt"]

    run(body())


# -- guides that change ----------------------------------------------------------------------------


def test_a_guide_that_is_deleted_is_missing_and_not_used() -> None:
    async def body() -> None:
        source = GuideSourceFake(TONE, guide("rule", "hand", "manual"))
        async with Scene(guides=source, index=IndexFake()) as played:
            session = played.runner.session
            await session.add("rule:hand")
            await played.ask("Q1")
            source.listed = ()
            await played.ask("Q2")
            assert not played.context.items
            assert sorted(left(played)) == [("rule:hand", "missing"), ("rule:tone", "missing")]
            told = played.provider.bodies[-1]["messages"][-1]["content"]
            assert "No rules or references are in force from here on." in told
            assert [(e.item, e.missing) for e in await session.items()] == [("rule:hand", True)]
            await played.ask("Q3")
            # What a person put in stays wanted; what the agent had is told once.
            assert left(played) == [("rule:hand", "missing")]
            source.listed = (TONE, guide("rule", "hand", "manual"))
            await played.ask("Q4")
            assert [item.item for item in played.context.items] == ["rule:tone", "rule:hand"]
            assert left(played) == []
            await played.verify()

    run(body())


def test_a_guide_that_is_renamed_is_missing_under_its_old_name() -> None:
    async def body() -> None:
        source = GuideSourceFake(TONE)
        async with Scene(guides=source, index=IndexFake()) as played:
            await played.ask("Q1")
            source.listed = (guide("rule", "voice", text=TONE.text),)
            await played.ask("Q2")
            assert [item.item for item in played.context.items] == ["rule:voice"]
            assert left(played) == [("rule:tone", "missing")]

    run(body())


def test_what_is_missing_can_be_taken_out_and_then_is_not_spoken_of() -> None:
    async def body() -> None:
        source = GuideSourceFake(guide("rule", "hand", "manual"))
        async with Scene(guides=source, index=IndexFake()) as played:
            session = played.runner.session
            await session.add("rule:hand")
            await played.ask("Q1")
            source.listed = ()
            assert await session.remove("rule:hand")
            await played.ask("Q2")
            assert left(played) == []
            assert await session.items() == ()

    run(body())


def test_an_edited_guide_is_sent_once_as_a_new_version() -> None:
    async def body() -> None:
        source = GuideSourceFake(guide("rule", "tone", text="Be brief."))
        async with Scene(guides=source, index=IndexFake()) as played:
            await played.ask("Q1")
            source.listed = (guide("rule", "tone", text="Be kind."),)
            await played.ask("Q2")
            await played.ask("Q3")
            wire = str(played.provider.bodies[-1])
            assert wire.count("Be kind.") == 1
            assert wire.count("Be brief.") == 1
            assert played.context.agreement.broke is None
            await played.verify()

    run(body())


def test_an_agent_that_cannot_be_read_is_told_of_once_and_the_session_goes_on() -> None:
    class Broken(GuideSourceFake):
        broken = False

        async def guides(self) -> Guides:
            if self.broken:
                raise PermissionError("agent.yaml: permission denied")
            return await super().guides()

    async def body() -> None:
        source = Broken(TONE)
        async with Scene(guides=source, index=IndexFake()) as played:
            await played.ask("Q1")
            source.broken = True
            await played.ask("Q2")
            assert left(played) == [("rule:tone", "missing")]
            assert ["permission denied" in warning for warning in played.context.warnings] == [True]
            await played.ask("Q3")
            assert (left(played), played.context.warnings) == ([], ())
            source.broken = False
            await played.ask("Q4")
            assert [item.item for item in played.context.items] == ["rule:tone"]
            await played.verify()

    run(body())


# -- a turn goes on as it began (19) ---------------------------------------------------------------


def test_the_requests_of_a_turn_share_its_context_and_the_next_question_has_its_own() -> None:
    async def body() -> None:
        alike = {"ships": {"rule:ships": 0.8}, "taxes": {"rule:taxes": 0.7}}
        source = GuideSourceFake(TONE, *rules("ships", "taxes"))
        index = IndexFake(alike)
        approver = ApproverFake("allow_once")
        played = Scene(
            calling(("c1", "free", {}), ("c2", "asked", {})),
            guides=source, index=index, approver=approver,
            tools=[tool("free"), tool("asked", "required")],
        )  # fmt: skip
        async with played:
            await played.ask("about ships")
            first, second = (each.context for each in played.kept(RequestEntry))
            assert [_what(item) for item in second.items] == [_what(item) for item in first.items]
            assert second.tools == first.tools
            assert len(index.asked) == 1
            await played.ask("about taxes")
            assert list(chosen(played)) == ["taxes"]
            await played.verify()

    run(body())


def test_a_decision_after_a_restart_goes_on_with_the_context_of_its_question() -> None:
    async def body() -> None:
        index = IndexFake({"ships": {"rule:ships": 0.8}})
        played = Scene(
            calling(("c1", "asked", {})),
            guides=GuideSourceFake(TONE, *rules("ships")), index=index,
            tools=[tool("asked", "required")],
        )  # fmt: skip
        async with played:
            answer = await played.ask("about ships")
            assert answer.ending == "waiting"
            before = played.context
            asked = len(index.asked)
            await played.restart()
            await played.agent.decide("c1", "allow_once")
            answer = await played.go_on()
            assert answer.ending == "answered"
            assert [_what(item) for item in played.context.items] == [
                _what(item) for item in before.items
            ]
            assert played.context.tools == before.tools
            assert len(index.asked) == asked
            await played.verify()

    run(body())


def _what(each: ContextItem) -> tuple[object, ...]:
    """Why an item is there; where it stands may differ within a turn."""
    return (each.item, each.version, each.include, each.score, each.origin, each.source, each.level)


# -- what is stored --------------------------------------------------------------------------------


def test_the_context_is_stored_with_the_answer_and_is_the_same_after_opening_again() -> None:
    async def body() -> None:
        alike = {"find": {"rule:a": 0.9, "rule:b": 0.8, "rule:c": 0.3}}
        search = SearchSettings(top_n=2)
        async with scene(TONE, *rules("a", "b", "c"), alike=alike, guide_search=search) as played:
            answer = await played.ask("find it")
            assert answer.turn is not None
            before = answer.turn.context
            assert played.context == before
            await played.restart()
            assert played.context == before
            held = {item.item for item in await played.runner.session.items()}
            assert held <= {item.item for item in before.items}

    run(body())

"""Searching notes: passages that fit, as their notes hold them now."""

from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.clock import FakeClock
from tests.fakes.notes import NoteSourceFake, WordIndexFake
from tests.fakes.sessions import run

from lamina.core.selection.chosen_passages import ChosenPassage
from lamina.core.values.note import Hit, Note, NoteSearchResult, Passage, Scope, SearchTier
from lamina.engine.runners.note_search_tool import SearchTools, narrow_scope
from lamina.engine.sources.note_search import (
    WorkspaceSearch,
    is_in_scope,
    join_neighbours,
    merge_results,
)

HARBOUR = """\
---
tags: [sea/harbour]
---
# Berths

## North

The north quay has nine berths for ferries.

## South

The south quay is closed to ferries until spring.
"""
NOTES = {
    "sea/harbour.md": HARBOUR,
    "sea/ferry log.md": "The ferry Aurora sails at noon. #log\n",
    "land/trains.md": "Trains leave from platform four. #log/rail\n",
}


def searching(
    notes: dict[str, str] | None = None, **given: Any
) -> tuple[WorkspaceSearch, NoteSourceFake, WordIndexFake]:
    source = NoteSourceFake(NOTES if notes is None else notes, **given)
    index = WordIndexFake()
    return WorkspaceSearch(source, index), source, index


def test_a_hit_says_where_it_stands() -> None:
    async def body() -> None:
        search, _, _ = searching()
        found = await search.search("How many berths does the north quay have?")
        best = found.hits[0]
        assert (best.path, best.title, best.heading, best.anchor) == (
            "sea/harbour.md", "harbour", "Berths > North", "North",
        )  # fmt: skip
        assert best.item == "note:sea/harbour.md"
        assert "nine berths" in best.text
        lines = HARBOUR.split("\n")
        assert "\n".join(lines[best.start - 1 : best.end]) == best.text
        assert best.score is not None
        assert best.score > 0.15
        assert (found.searched, found.warnings) == (3, ())

    run(body())


def test_what_has_nothing_to_do_with_the_question_is_not_found() -> None:
    async def body() -> None:
        search, _, _ = searching()
        found = await search.search("Zebras?")
        assert found == NoteSearchResult(searched=3, tier=SearchTier(by="meaning"))
        assert (await search.search("  ")).hits == ()

    run(body())


@pytest.mark.parametrize(
    ("scope", "paths"),
    [
        (Scope(folders=("sea",)), {"sea/harbour.md", "sea/ferry log.md"}),
        (Scope(folders=("sea/", "land")), set(NOTES)),
        (Scope(folders=("se",)), set()),
        (Scope(tags=("log",)), {"sea/ferry log.md", "land/trains.md"}),
        (Scope(tags=("#LOG/rail",)), {"land/trains.md"}),
        (Scope(tags=("sea",), folders=("land",)), set()),
        (Scope(since=200.0), {"land/trains.md", "sea/ferry log.md"}),
        (Scope(until=200.0), {"sea/harbour.md"}),
        (Scope(since=100.0, until=300.0), {"sea/harbour.md", "sea/ferry log.md"}),
    ],
)
def test_only_notes_in_scope_are_searched(scope: Scope, paths: set[str]) -> None:
    async def body() -> None:
        times = {"sea/harbour.md": 100.0, "sea/ferry log.md": 200.0, "land/trains.md": 300.0}
        search, _, _ = searching(times=times)
        question = "Ferries, a ferry at noon, berths of the quay, trains and their platform"
        found = await search.search(question, scope=scope)
        assert {hit.path for hit in found.hits} == paths
        assert found.searched == len(paths)
        if not paths:
            assert found.warnings[0].startswith("no note is ")

    run(body())


def test_a_workspace_without_notes_says_so() -> None:
    async def body() -> None:
        search, _, index = searching({})
        found = await search.search("Anything?")
        why = "there are no notes here, so nothing was searched"
        assert found == NoteSearchResult(warnings=(why,), unsearched=why)
        assert not index.loaded

    run(body())


LONG = [" ".join(f"{word}{n}" for n in range(60)) for word in ("alpha", "beta", "gamma")]


def test_passages_that_follow_one_another_are_one_hit_in_the_order_of_their_lines() -> None:
    async def body() -> None:
        text = "# One\n\n" + "\n\n".join(LONG) + "\n\n# Two\n\n" + LONG[0].upper()
        search, source, _ = searching({"a.md": text})
        catalogue = await source.catalogue()
        assert len(catalogue.notes[0].passages) == 4
        found = await search.search("gamma7 beta9 alpha3", top=3)
        first, *rest = found.hits
        assert (first.start, first.end) == (1, 7)
        assert first.text == "\n".join(text.split("\n")[:7])
        # Under another heading it is another source.
        assert all(each.heading == "Two" for each in rest)

    run(body())


def test_parts_of_one_long_line_are_read_as_the_line_has_them() -> None:
    async def body() -> None:
        line = " ".join(f"The quay number {n} has {n} berths for ferries." for n in range(40))
        search, source, _ = searching({"a.md": line})
        assert len((await source.catalogue()).notes[0].passages) > 2
        found = await search.search("berths for ferries", per_note=3)
        assert [hit.text in line for hit in found.hits] == [True] * len(found.hits)
        assert {(hit.start, hit.end) for hit in found.hits} == {(1, 1)}

    run(body())


def test_one_note_gives_no_more_than_its_share() -> None:
    async def body() -> None:
        text = "\n\n".join(f"# Part {n}\n\nberths of quay {n}" for n in range(9))
        search, _, _ = searching({"a.md": text, "b.md": "Some berths."})
        found = await search.search("berths", per_note=2, top=5)
        assert [hit.path for hit in found.hits].count("a.md") == 2
        assert len((await search.search("berths", per_note=9, top=4)).hits) == 4

    run(body())


def test_notes_that_quote_one_another_give_a_passage_once() -> None:
    async def body() -> None:
        quoted = {f"week {n}.md": "The  north quay\nhas nine berths." for n in range(5)}
        search, _, _ = searching({**quoted, "own.md": "Nine berths, I say."})
        found = await search.search("How many berths does the north quay have?", top=2)
        assert [hit.path for hit in found.hits] == ["week 0.md", "own.md"]

    run(body())


def test_an_edit_is_seen_by_the_next_search_and_only_its_passages_are_read() -> None:
    async def body() -> None:
        search, source, index = searching()
        await search.search("berths")
        known = len(index.texts)
        await search.search("berths")
        assert len(index.asked) == 1
        assert index.loaded[0] is index.loaded[1]
        source.notes["sea/harbour.md"] = HARBOUR.replace("nine", "eleven")
        found = await search.search("How many berths does the north quay have?")
        assert "eleven berths" in found.hits[0].text
        assert len(index.asked[1]) == 1
        assert len(index.texts) == known + 1
        # What did not change is the same document.
        before, after = ({str(each.id): each for each in loaded} for loaded in index.loaded[1:])
        assert before["note:land/trains.md"] is after["note:land/trains.md"]

    run(body())


def test_a_note_that_was_only_touched_or_moved_is_not_read_again() -> None:
    async def body() -> None:
        search, source, index = searching()
        await search.search("berths")
        source.times["sea/harbour.md"] = 900.0
        found = await search.search("berths")
        assert found.hits[0].mtime == 900.0
        source.notes["harbour.md"] = source.notes.pop("sea/harbour.md")
        found = await search.search("berths")
        assert found.hits[0].path == "harbour.md"
        assert len(index.asked) == 1

    run(body())


def test_what_changes_while_it_is_searched_is_searched_again() -> None:
    async def body() -> None:
        search, source, _ = searching()
        changed = HARBOUR.replace("nine", "eleven")
        source.before_texts = [{"sea/harbour.md": changed}]
        found = await search.search("How many berths does the north quay have?")
        assert "eleven berths" in found.hits[0].text
        assert found.warnings == ()
        assert source.listed == 2

    run(body())


def test_what_keeps_changing_is_left_out_and_said() -> None:
    async def body() -> None:
        search, source, _ = searching()
        source.before_texts = [
            {"sea/harbour.md": HARBOUR.replace("nine", word)} for word in ("ten", "twelve")
        ]
        found = await search.search("Ferries of the north quay, and when does the ferry sail?")
        assert [hit.path for hit in found.hits if "nine" in hit.text] == []
        assert {hit.path for hit in found.hits} >= {"sea/ferry log.md"}
        assert "sea/harbour.md" in found.warnings[-1]

    run(body())


def test_a_question_that_leans_on_the_one_before_is_searched_with_it() -> None:
    async def body() -> None:
        search, _, index = searching()
        recent = ("How many berths does the north quay have?",)
        alone = await search.search("And then?")
        assert alone.hits == ()
        leaning = await search.search("And then?", recent=recent)
        assert leaning.hits[0].path == "sea/harbour.md"
        assert recent[0] in index.queries[-1]
        # One that speaks for itself is searched by itself.
        own = "Which platform do the trains to the mountains leave from in the morning?"
        await search.search(own, recent=recent)
        assert recent[0] not in index.queries[-1]

    run(body())


def test_what_goes_wrong_is_said_and_nothing_is_found() -> None:
    async def body() -> None:
        search, source, index = searching()
        index.fails = RuntimeError("the disk is full")
        found = await search.search("berths")
        assert found.hits == ()
        assert found.warnings == ("the notes were not searched: RuntimeError: the disk is full",)
        index.fails = None
        source.fails = OSError("gone")
        assert "gone" in (await search.search("berths")).warnings[0]
        source.fails = None
        assert (await search.search("berths")).hits

    run(body())


def test_without_vectors_words_find_and_that_is_said_once() -> None:
    async def body() -> None:
        search, source, index = searching()
        index.lexical = "no model"
        source.unreadable = ("secret.md: no permission",)
        found = await search.search("berths of the north quay")
        assert found.hits[0].path == "sea/harbour.md"
        assert found.hits[0].score is None
        assert found.warnings == (
            "not searched, because they could not be read: secret.md: no permission",
            "notes are searched by their words alone: no model",
        )
        assert (await search.search("berths")).warnings == ()

    run(body())


@pytest.mark.parametrize(
    ("lexical", "told"),
    [
        ("", "7 passages are searched by their words, not embedded yet"),
        ("7 are not", "notes are searched by their words alone: 7 are not"),
    ],
)
def test_what_there_was_no_time_for_is_said_with_what_to_do(lexical: str, told: str) -> None:
    async def body() -> None:
        search, _, index = searching()
        index.late, index.lexical = 7, lexical
        found = await search.search("berths of the north quay")
        assert found.late == 7
        assert found.warnings == (f"{told}; `lamina notes index` does that, once",)
        assert merge_results([found, await search.search("ferry")]).late == 7

    run(body())


def test_a_search_waits_as_long_as_it_is_told_to() -> None:
    async def body() -> None:
        search, _, index = searching()
        await search.search("berths")
        search.patience = None
        await search.search("ferry")
        await search.prepare()
        await search.prepare(3)
        assert index.patience == [10, None, None, 3]

    run(body())


def test_searches_at_the_same_time_read_every_text_once() -> None:
    async def body() -> None:
        search, _, index = searching()
        async with anyio.create_task_group() as group:
            for question in ("berths", "trains", "ferry"):
                group.start_soon(search.search, question)
        digests = [digest for asked in index.asked for digest in asked]
        assert len(digests) == len(set(digests)) == len(index.texts)

    run(body())


# -- joining --------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.data())
def test_joining_loses_no_passage_and_mixes_no_headings(data: st.DataObject) -> None:
    headings = data.draw(st.lists(st.sampled_from("ABC"), min_size=1, max_size=12))
    passages = tuple(
        Passage(2 * at + 1, 2 * at + 1, heading, heading, bytes([at]))
        for at, heading in enumerate(headings)
    )
    note = Note(path="a.md", title="a", digest="", passages=passages)
    places = data.draw(st.lists(st.integers(0, len(headings) - 1), unique=True))
    chosen = [
        ChosenPassage(document=0, place=place, fit=data.draw(st.floats(0, 1))) for place in places
    ]
    joined = join_neighbours(chosen, [note])
    runs = [[each.place for each in stretch.chosen] for stretch in joined]
    assert sorted(place for run in runs for place in run) == sorted(places)
    for places_of, stretch in zip(runs, joined, strict=True):
        assert len({passage.heading for passage in stretch.passages}) == 1
        assert places_of == list(range(places_of[0], places_of[-1] + 1))
    # The best stand first.
    firsts = [min(places.index(place) for place in run) for run in runs]
    assert firsts == sorted(firsts)


def test_two_searches_as_one_take_turns_and_name_nothing_twice() -> None:
    def hit(path: str) -> Hit:
        return Hit(item="note:" + path, path=path, title=path, text=path, start=1, end=1)  # type: ignore[arg-type]

    first = NoteSearchResult(hits=(hit("a"), hit("b"), hit("c")), searched=5, warnings=("w",))
    second = NoteSearchResult(hits=(hit("b"), hit("d")), searched=3, warnings=("w", "v"))
    merged = merge_results([first, second])
    assert [hit.path for hit in merged.hits] == ["a", "b", "d", "c"]
    assert (merged.searched, merged.warnings) == (5, ("w", "v"))


# -- the tool -------------------------------------------------------------------------------------


def test_the_tool_gives_one_block_that_explains_itself() -> None:
    async def body() -> None:
        search, _, _ = searching()
        tools = SearchTools(search, now=FakeClock().now)
        (offered,) = (await tools.toolset()).tools
        assert (offered.definition.name, offered.permission) == ("localSearch", "free")
        output = await tools.call("localSearch", {"query": "berths of the north quay"})
        assert not output.is_error
        for part in (
            "search_instruction",
            "search_documents",
            "source_catalogue",
            "citation_rules",
        ):
            assert f"<{part}>" in output.text
        assert "sea/harbour.md#North" in output.text

    run(body())


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "'query' is a required"),
        ({"query": 1}, "`query`"),
        ({"query": "x", "deep": True}, "do not fit"),
        ({"query": "x", "since": "yesterday"}, "'yesterday' is no day; write it as 2026-01-31"),
    ],
)
def test_a_wrong_call_of_the_tool_is_told(arguments: dict[str, Any], problem: str) -> None:
    async def body() -> None:
        search, _, _ = searching()
        output = await SearchTools(search, now=FakeClock().now).call("localSearch", arguments)
        assert output.is_error
        assert problem in output.text

    run(body())


def test_days_are_days_in_utc() -> None:
    async def body() -> None:
        day = 86_400.0
        search, _, _ = searching(times={"sea/harbour.md": day, "sea/ferry log.md": 3 * day})
        tools = SearchTools(search, now=FakeClock().now)
        asked = {"query": "ferries, ferry", "since": "1970-01-02", "until": "1970-01-03"}
        assert [hit.path for hit in (await tools.find(asked)).hits] == ["sea/harbour.md"] * 2
        asked = {"query": "ferries, ferry", "since": "1970-01-02T01:00:00+01:00"}
        assert {hit.path for hit in (await tools.find(asked)).hits} == {
            "sea/harbour.md", "sea/ferry log.md",
        }  # fmt: skip

    run(body())


NOTE = Note(path="sea/a.md", title="a", digest="", mtime=50.0, tags=("log/x",))


@settings(deadline=None)
@given(st.data())
def test_a_model_searches_no_further_than_it_may(data: st.DataObject) -> None:
    def scope() -> Scope:
        return Scope(
            folders=tuple(data.draw(st.lists(st.sampled_from(["sea", "sea/deep", "land", ""])))),
            tags=tuple(data.draw(st.lists(st.sampled_from(["log", "x", "rail"])))),
            since=data.draw(st.none() | st.floats(0, 100)),
            until=data.draw(st.none() | st.floats(0, 100)),
        )

    path = data.draw(st.sampled_from(["sea/a.md", "sea/deep/a.md", "land/a.md", "a.md"]))
    tags = tuple(data.draw(st.lists(st.sampled_from(["log/x", "rail", "other"]))))
    note = Note(path=path, title="a", digest="", mtime=data.draw(st.floats(0, 100)), tags=tags)
    allowed, asked = scope(), scope()
    if is_in_scope(note, narrow_scope(allowed, asked)):
        assert is_in_scope(note, allowed)

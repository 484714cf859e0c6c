"""What is in a session: what its agent always includes, what a person added, what they took out."""

import pytest
from tests.engine.runners.scenes import Scene
from tests.fakes.index import IndexFake
from tests.fakes.providers import calling, saying
from tests.fakes.selection import GuideSourceFake, guide
from tests.fakes.sessions import run
from tests.fakes.tools import tool

from lamina.core.values.agent import Guide
from lamina.core.values.entry import IncludeEntry
from lamina.core.values.selection import SearchSettings
from lamina.errors import RequestTooLong, UsageError

ALWAYS = (
    guide("rule", "zeal", level=10),
    guide("rule", "beta", level=500),
    guide("rule", "alpha", level=500),
    guide("reference", "terms", level=900),
    guide("reference", "atlas", level=900),
)
MANUAL = (guide("rule", "late", "manual"), guide("reference", "annex", "manual"))
FOUND = guide("rule", "found", "agent")


def scene(*guides: Guide, index: IndexFake | None = None, **given: object) -> Scene:
    index = index or IndexFake({"find": {"rule:found": 0.8}})
    return Scene(guides=GuideSourceFake(*guides), index=index, **given)  # type: ignore[arg-type]


async def held(scene: Scene) -> list[tuple[str, str]]:
    return [(item.item, item.include) for item in await scene.runner.session.items()]


def sent(scene: Scene) -> list[tuple[str, str]]:
    return [(item.item, item.include) for item in scene.context.items]


def left(scene: Scene) -> list[tuple[str, str]]:
    return [(omission.what, omission.reason) for omission in scene.context.left_out]


# -- the order of things (13) ----------------------------------------------------------------------


def test_a_new_session_has_its_references_then_its_rules_by_level_and_name_then_its_tools() -> None:
    async def body() -> None:
        async with scene(*ALWAYS, *MANUAL, FOUND, tools=[tool("b"), tool("a")]) as played:
            await played.ask("Hello")
            assert await held(played) == [
                ("reference:atlas", "always"),
                ("reference:terms", "always"),
                ("rule:zeal", "always"),
                ("rule:alpha", "always"),
                ("rule:beta", "always"),
                ("tool:fake/b", "always"),
                ("tool:fake/a", "always"),
            ]
            assert sent(played) == (await held(played))[:5]
            assert [each.item for each in played.context.tools if each.name != "read_result"] == [
                "tool:fake/b",
                "tool:fake/a",
            ]

    run(body())


def test_on_the_wire_references_stand_before_rules_in_their_order() -> None:
    async def body() -> None:
        async with scene(*ALWAYS) as played:
            await played.ask("Hello")
            system = played.provider.bodies[0]["messages"][0]["content"]
            places = [system.index(f"What {name} says") for name in
                      ("atlas", "terms", "zeal", "alpha", "beta")]  # fmt: skip
            assert places == sorted(places)

    run(body())


def test_what_is_added_by_hand_follows_in_the_order_of_the_calls_and_chosen_items_by_score() -> (
    None
):
    async def body() -> None:
        index = IndexFake({"find": {"rule:low": 0.71, "rule:high": 0.9, "reference:mid": 0.8}})
        found = [
            guide("rule", "low", "agent"),
            guide("rule", "high", "agent"),
            guide("reference", "mid", "agent"),
        ]
        async with scene(guide("rule", "tone"), *MANUAL, *found, index=index) as played:
            session = played.runner.session
            assert await session.add("rule:late")
            assert await session.add("ref:annex")
            await played.ask("find it")
            assert await held(played) == [
                ("rule:tone", "always"),
                ("rule:late", "manual"),
                ("reference:annex", "manual"),
            ]
            modes = {item.item: (item.include, item.score) for item in played.context.items}
            assert modes == {
                "rule:tone": ("always", None),
                "rule:late": ("manual", None),
                "reference:annex": ("manual", None),
                "rule:high": ("agent", 0.9),
                "reference:mid": ("agent", 0.8),
                "rule:low": ("agent", 0.71),
            }
            chosen = [e.item for e in played.context.items if e.include == "agent"]
            rules = [item for item in chosen if item.startswith("rule")]
            assert rules == ["rule:high", "rule:low"]

    run(body())


def test_adding_twice_and_removing_what_is_absent_answer_false_and_write_nothing() -> None:
    async def body() -> None:
        async with scene(*ALWAYS, *MANUAL, FOUND) as played:
            session = played.runner.session
            assert not await session.add("rule:zeal")
            assert not await session.remove("rule:late")
            assert played.kept(IncludeEntry) == []
            assert await session.add("rule:late")
            assert not await session.add("@rule:late")
            assert await session.remove("rule:late")
            assert not await session.remove("rule:late")
            assert await session.remove("rule:found")
            assert not await session.remove("rule:found")
            assert len(played.kept(IncludeEntry)) == 3

    run(body())


@pytest.mark.parametrize("what", ["tone", "note:a.md", "rule:", "rule", "", "@ref: "])
def test_what_names_no_rule_reference_or_tool_is_refused(what: str) -> None:
    async def body() -> None:
        async with scene(*ALWAYS) as played:
            with pytest.raises(UsageError, match="rule:NAME"):
                await played.runner.session.add(what)

    run(body())


def test_a_name_that_is_not_there_is_refused_with_the_nearest_one() -> None:
    async def body() -> None:
        async with scene(*ALWAYS, *MANUAL) as played:
            with pytest.raises(UsageError, match="did you mean rule:late"):
                await played.runner.session.add("rule:lat")
            with pytest.raises(UsageError, match="there is no rule 'xyzzy'; there are 4 others"):
                await played.runner.session.add("rule:xyzzy")

    run(body())


@pytest.mark.parametrize("what", ["rule:xyzzy", "ref:zeal", "tool:fake/none", "tool:none"])
def test_removing_what_there_is_not_answers_false_and_writes_nothing(what: str) -> None:
    async def body() -> None:
        async with scene(*ALWAYS, *MANUAL, tools=[tool("a")]) as played:
            assert not await played.runner.session.remove(what)
            assert played.kept(IncludeEntry) == []

    run(body())


def test_a_name_in_other_letters_is_the_same_name_unless_two_could_be_meant() -> None:
    async def body() -> None:
        guides = [guide("rule", n, "manual") for n in ("Stra\u00dfe", "caf\u00e9", "Go", "GO")]
        async with scene(*guides) as played:
            session = played.runner.session
            assert await session.add("rule:STRASSE")
            assert await session.add("rule:cafe\u0301")
            assert await session.add("rule:GO")
            with pytest.raises(UsageError, match="there is no rule 'go'"):
                await session.add("rule:go")
            assert [item for item, _ in await held(played)] == [
                "rule:Stra\u00dfe", "rule:caf\u00e9", "rule:GO",
            ]  # fmt: skip

    run(body())


# -- what was taken out (14) -----------------------------------------------------------------------


def test_an_always_item_that_was_removed_stays_out_over_restarts_and_forks() -> None:
    async def body() -> None:
        async with scene(guide("rule", "tone"), guide("rule", "units")) as played:
            await played.ask("Q1")
            assert await played.runner.session.remove("rule:tone")
            await played.ask("Q2")
            assert sent(played) == [("rule:units", "always")]
            await played.restart()
            await played.ask("Q3")
            assert sent(played) == [("rule:units", "always")]
            fork = await played.runner.session.fork("other")
            turn = await fork.prepare("Q4")
            assert [item.item for item in turn.context.items] == ["rule:units"]
            await fork.close()
            assert await played.runner.session.add("rule:tone")
            await played.ask("Q5")
            assert sorted(sent(played)) == [("rule:tone", "always"), ("rule:units", "always")]
            await played.verify()

    run(body())


def test_what_was_removed_is_found_by_no_search_relation_expansion_or_glob() -> None:
    async def body() -> None:
        out = guide("rule", "out", "agent", globs=("*.md",))
        index = IndexFake(
            {"find": {"rule:out": 0.95, "rule:found": 0.8}, "found": {"rule:out": 0.95}}
        )
        played = Scene(
            guides=GuideSourceFake(FOUND, out, guide("rule", "once")),
            index=index,
            relations={"rule:found": ["rule:out", "rule:once"]},
            guide_search=SearchSettings(expansion_depth=2),
        )
        played.workspace.notes["a.md"] = "text"
        async with played:
            session = played.runner.session
            assert await session.remove("rule:out")
            assert await session.remove("rule:once")
            await played.ask("find it", attach=["a.md"])
            assert index.loaded == [["rule:found"]]
            assert {item for item, _ in sent(played)} == {"note:a.md", "rule:found"}
            assert left(played) == []

    run(body())


def test_an_agent_item_added_by_hand_is_manual_has_no_score_and_is_not_searched() -> None:
    async def body() -> None:
        index = IndexFake({"find": {"rule:found": 0.8}})
        async with scene(FOUND, index=index) as played:
            await played.ask("find it")
            assert [(e.include, e.score) for e in played.context.items] == [("agent", 0.8)]
            assert await played.runner.session.add("rule:found")
            index.loaded.clear()
            await played.ask("find it again")
            (item,) = played.context.items
            assert (item.include, item.score, item.origin) == ("manual", None, "")
            assert item.reason == "added by hand"
            assert index.loaded == []
            assert await played.runner.session.remove("rule:found")
            await played.ask("find it once more")
            assert (sent(played), index.loaded) == ([], [])

    run(body())


def test_a_removed_tool_is_neither_offered_nor_run() -> None:
    async def body() -> None:
        async with scene(tools=[tool("a"), tool("b")]) as played:
            await played.ask("Q1")
            assert await played.runner.session.remove("tool:fake/b")
            await played.restart()
            played.plays(calling(("c1", "b", {})))
            await played.ask("Q2")
            assert played.host.called == []
            assert played.results == [
                "The tool was removed from this session; the call was not run."
            ]
            assert [each.item for each in played.context.tools if each.name != "read_result"] == [
                "tool:fake/a"
            ]
            await played.verify()

    run(body())


# -- mentions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Mind @rule:late, please.",
        "(@rule:late)",
        "@rule:late",
        '@rule:"late"',
        "As in @rule:late: be so.",
        "@rule:late,@ref:annex",
        "@rule:LATE!",
    ],
)
def test_a_mention_adds_by_hand_for_good(text: str) -> None:
    async def body() -> None:
        async with scene(*MANUAL) as played:
            await played.ask(text)
            assert ("rule:late", "manual") in sent(played)
            await played.ask("And now?")
            assert ("rule:late", "manual") in sent(played)
            assert left(played) == []
            assert played.history[0] == ("user", text)
            await played.verify()

    run(body())


@pytest.mark.parametrize(
    "text",
    [
        "Write to me@rule:late or @@rule:late",
        "a.b@ref:annex",
        "```\n@rule:late\n```\nWhat is that?",
        "~~~py\n@rule:late\n~~~",
        "What does `@rule:late` mean?",
        "What does ``x ` @rule:late`` mean?",
        "@rule: late",
        '@rule:"',
        "@rules:late",
    ],
)
def test_what_only_looks_like_a_mention_adds_nothing(text: str) -> None:
    async def body() -> None:
        async with scene(*MANUAL) as played:
            await played.ask(text)
            assert (sent(played), left(played)) == ([], [])
            assert played.kept(IncludeEntry) == []

    run(body())


def test_a_name_with_spaces_is_mentioned_in_quotes() -> None:
    async def body() -> None:
        async with scene(guide("reference", "house of terms", "manual")) as played:
            await played.ask('See @ref:"house of terms" and @reference:"house of terms".')
            assert sent(played) == [("reference:house of terms", "manual")]
            assert len(played.kept(IncludeEntry)) == 1

    run(body())


def test_a_mention_of_what_is_not_there_is_missing_in_that_request_and_joins_nothing() -> None:
    async def body() -> None:
        async with scene(*MANUAL) as played:
            await played.ask("By @rule:lat, what is this?")
            assert (sent(played), left(played)) == ([], [("rule:lat", "missing")])
            assert "lat" in played.provider.bodies[-1]["messages"][-1]["content"]
            await played.ask("And now?")
            assert left(played) == []
            assert await held(played) == []

    run(body())


def test_a_mention_brings_back_what_was_taken_out() -> None:
    async def body() -> None:
        async with scene(guide("rule", "tone"), FOUND) as played:
            session = played.runner.session
            await session.remove("rule:tone")
            await session.remove("rule:found")
            await played.ask("Mind @rule:tone and @rule:found")
            assert sorted(sent(played)) == [("rule:found", "manual"), ("rule:tone", "always")]

    run(body())


def test_a_mention_of_what_is_in_already_writes_nothing() -> None:
    async def body() -> None:
        async with scene(guide("rule", "tone")) as played:
            await played.ask("Mind @rule:tone.")
            assert sent(played) == [("rule:tone", "always")]
            assert played.kept(IncludeEntry) == []

    run(body())


def test_a_mention_survives_a_request_that_was_too_long() -> None:
    async def body() -> None:
        async with scene(*MANUAL, compaction_keep=60, compaction_summary=20) as played:
            for number in range(4):
                await played.ask(f"Q{number} " + "word " * 200)
            played.plays([RequestTooLong("too long")], saying("Done."))
            await played.ask("Mind @rule:late.")
            assert sent(played) == [("rule:late", "manual")]
            await played.ask("And now?")
            assert sent(played) == [("rule:late", "manual")]
            await played.verify()

    run(body())


def test_without_an_agent_nothing_is_mentioned() -> None:
    async def body() -> None:
        async with Scene() as played:
            await played.ask("Mind @rule:late.")
            assert (sent(played), left(played)) == ([], [])

    run(body())

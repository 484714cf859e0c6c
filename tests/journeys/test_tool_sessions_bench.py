"""The session of `bench/tool_sessions.py` with few tools and turns, and what its figures mean."""

from functools import partial
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace
from tests.fakes.embedder import FakeEmbedder

from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.core.values.selection import SearchSettings
from lamina.core.values.settings import Settings
from tool_sessions import ALL, EQUAL, EXACT, STICKY, unexplained, verdict
from tool_sessions_played import (
    MAX_TOOLS_OPENAI,
    Outcome,
    Question,
    Tool,
    Way,
    count_breaks,
    orders,
    play,
)

THINGS = ("weather", "train", "recipe", "invoice", "photo", "stock")
TOOLS = tuple(
    Tool(f"{verb}_{thing}", f"{verb} a {thing} and say so", thing, ("about",))
    for thing in THINGS
    for verb in ("find", "keep", "drop")
)
QUESTIONS = tuple(
    Question(
        f"Please find a {thing} and keep the {thing} for me",
        (f"find_{thing}", f"keep_{thing}"),
        {f"find_{thing}": (thing,), f"keep_{thing}": (thing,)},
        category="money" if thing in ("invoice", "stock") else "days",
        steps=f"1. find a {thing}\n2. keep the {thing}\n",
    )
    for thing in THINGS
)
# Few are chosen, and only once may they join a list that was sent.
FEW = SearchSettings(top_n=2, include_score=1.0)
TARGETS = ("openai:gpt-4o", "openai:gpt-5.6", "anthropic:claude-sonnet-5")


def played(target: str, way: Way, folder: Path, tools: tuple[Tool, ...] = TOOLS) -> Outcome:
    index = SqliteIndex(folder / f"{way.name}.sqlite", FakeEmbedder())
    try:
        return anyio.run(partial(play, target, way, "as written", QUESTIONS, tools, index))
    finally:
        index.close()


def way(name: str, **settings: object) -> Way:
    chosen = Settings(tool_search=FEW, whole_pool_tokens=0, **settings)  # type: ignore[arg-type]
    return Way(name=name, settings=chosen)


@pytest.mark.parametrize("target", TARGETS)
def test_a_session_is_accounted_for_by_what_stood_on_the_wire(target: str, tmp_path: Path) -> None:
    sticky = played(target, way(STICKY, tool_joins=1), tmp_path)
    joining = played(target, way("joining", tool_joins=None), tmp_path)
    exact = played(target, way(EXACT, tool_policy="exact"), tmp_path)
    everything = played(target, way(ALL, tool_policy="all"), tmp_path)
    # Two requests a turn: the calls, and the answer.
    assert [len(outcome.rows) for outcome in (sticky, joining, exact, everything)] == [12] * 4
    # Where the vendor loads tools late, a list that was sent does not move for those of a question.
    joins = 0 if target.startswith("anthropic:") else 1
    assert (sticky.breaks, joining.breaks, exact.breaks, everything.breaks) == (joins, 5, 5, 0)
    assert unexplained([sticky, joining, exact, everything]) == []
    # What cannot be in the list any more is described, and called all the same.
    assert [outcome.recall for outcome in (sticky, joining, exact, everything)] == [1.0] * 4
    assert (sticky.described, joining.described, exact.described) == (10 - 2 * joins, 0, 0)
    # `use_tool`, `find_tools` and `read_result` are in the list, too; the latter in every list.
    assert (sticky.most_tools, joining.most_tools) == (5 + 2 * joins, 13)
    assert (exact.most_tools, everything.most_tools) == (3, len(TOOLS) + 1)
    assert sticky.cost > 0
    assert sticky.total("cached") > joining.total("cached")


def test_a_list_that_openai_refuses_is_marked(tmp_path: Path) -> None:
    more = tuple(Tool(f"tool_{n}", f"does number {n}", "many") for n in range(MAX_TOOLS_OPENAI))
    everything = way(ALL, tool_policy="all")
    assert played("openai:gpt-4o", everything, tmp_path, TOOLS + more).refused
    assert not played("openai:gpt-4o", everything, tmp_path).refused
    assert not played("anthropic:claude-sonnet-5", everything, tmp_path, TOOLS + more).refused


def test_a_missed_target_is_said_with_its_figures(tmp_path: Path) -> None:
    sticky = played("openai:gpt-4o", way(STICKY, tool_joins=1), tmp_path)
    cheaper = replace(sticky, rows=sticky.rows[:1])
    missed = verdict([sticky, replace(cheaper, way=ALL), replace(cheaper, way=EQUAL, breaks=9)])
    assert [len(each) for each in missed.values()] == [0, 0, 1, 1]
    assert "openai:gpt-4o as written: $" in missed["at most 0.6x of the cost of all tools"][0]
    dear = replace(sticky, rows=sticky.rows * 2)
    short = replace(sticky, breaks=6, callable=1)
    missed = verdict([short, replace(dear, way=ALL), replace(dear, way=EQUAL)])
    assert list(missed.values()) == [
        ["openai:gpt-4o as written: 8.3%"], ["openai:gpt-4o as written: 6"], [], [],
    ]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_a_model_that_searches_finds_what_was_not_chosen(target: str, tmp_path: Path) -> None:
    none = Settings(tool_search=SearchSettings(top_n=0, include_score=1.0), whole_pool_tokens=0)
    takes = played(target, Way(name="takes", settings=none), tmp_path)
    looks = played(target, Way(name="looks", settings=none, searches=True), tmp_path)
    assert (takes.recall, looks.recall) == (0.0, 1.0)
    assert (looks.breaks, looks.most_tools) == (0, 3)
    assert looks.described_tokens == looks.found_tokens > takes.described_tokens == 0
    # It asks with the question and with both of its steps, if it misses something.
    assert 3 <= looks.searched <= 3 * len(QUESTIONS)


def test_breaks_are_told_from_growth_and_from_moved_markers() -> None:
    first = {"tools": [{"name": "a"}], "messages": [{"role": "user", "content": "Q"}]}
    marked = [{"type": "text", "text": "Q", "cache_control": {"type": "ephemeral"}}]
    grown = {
        "tools": [{"name": "a", "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": marked}, {"role": "assistant", "content": "A"}],
    }
    joined = {**grown, "tools": [{"name": "a"}, {"name": "b"}]}
    assert count_breaks([first, grown]) == 0
    assert count_breaks([first, grown, joined, joined]) == 1
    assert count_breaks([grown, first]) == 1


def test_the_orders_ask_the_same_questions() -> None:
    made = orders(QUESTIONS)
    assert [sorted(question.query for question in order) for order in made.values()] == [
        sorted(question.query for question in QUESTIONS)
    ] * 3
    assert len({tuple(question.query for question in order) for order in made.values()}) == 3
    assert [question.category for question in made["by topic"]] == ["days"] * 4 + ["money"] * 2

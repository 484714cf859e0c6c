"""Every request of a session as a row of plain data, for analysis."""

import json
from pathlib import Path
from typing import Any

import msgspec
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, run, talk

from lamina.core.audit.request_rows import list_request_rows

DOCS = Path(__file__).parents[3] / "docs" / "requests.md"


def plain(rows: Any) -> list[dict[str, Any]]:
    """The rows as somebody else reads them."""
    return [json.loads(msgspec.json.encode(row)) for row in rows]


def test_a_row_says_what_a_request_was_made_of_and_what_it_cost() -> None:
    async def body() -> None:
        world = World({"a.md": "AAA secret words", "b.md": "BBB"})
        session = await world.open(system="S", temperature=0.3)
        await session.pin("b.md")
        first = await session.prepare("Q1", attach=["a.md", "gone.md"])
        await first.commit(openai_reply("A1", input=40, cached=30))
        turn = await session.prepare("Q2")
        await turn.commit(openai_reply(None, calls=[("c", "find")]))
        await session.regenerate(first.id)
        rows = plain(await session.export_requests())
        assert [row["number"] for row in rows] == [1, 2, 3]
        assert [row["active"] for row in rows] == [False, False, True]
        one, two, three = rows
        assert (one["session"], one["request"], one["target"]) == (
            session.id, first.id, "fake:small"
        )  # fmt: skip
        assert one["options"] == {"temperature": 0.3}
        assert one["settings"]["temperature"] == 0.3
        by_label = {item["label"]: item for item in one["items"]}
        assert (by_label["a.md"]["kind"], by_label["a.md"]["mode"]) == ("note", "manual")
        assert by_label["a.md"]["tokens"] > 0
        assert by_label["b.md"]["pinned"]
        assert [(left["what"], left["reason"]) for left in one["left_out"]] == [
            ("note:gone.md", "missing")
        ]
        assert sum(one["layers"].values()) == one["tokens"]
        assert (one["usage"]["input"], one["usage"]["cached"]) == (40, 30)
        assert one["verdict"]["meaning"]
        # Nothing was said of the cache, and nothing of a price is known.
        assert two["usage"]["cached"] is None
        assert two["cost"] is None
        assert two["calls"] == ["find"]
        assert two["base"] == one["request"]
        assert (three["answered"], three["usage"], three["seconds"]) == (False, None, None)
        questions = [entry.id for entry in session.entries if entry.id == one["question"]]
        assert questions
        assert one["question"] != two["question"]
        assert "secret words" not in json.dumps(rows)

    run(body())


def test_requests_of_one_turn_have_the_same_question() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        turn = await session.prepare("Q1")
        turn = await turn.commit(openai_reply(None, calls=[("c", "find")]))
        await (await turn.resume({"c": "found"})).commit(openai_reply("A"))
        rows = await session.export_requests()
        assert len({row["question"] for row in rows}) == 1

    run(body())


def test_a_request_to_a_target_that_nobody_knows_is_told_as_far_as_it_is() -> None:
    async def body() -> None:
        world = World()
        session = await world.open("talk", system="S")
        await talk(session, "Q1")
        await session.close()
        from tests.fakes.book import OTHER, FakeBook

        (row,) = list_request_rows(await world.store.read("talk"), FakeBook(OTHER))
        assert (row["options"], row["layers"], row["cost"]) == (None, None, None)
        assert row["tokens"] > 0

    run(body())


def test_every_field_is_documented() -> None:
    async def body() -> None:
        session = await World().open(system="S")
        await talk(session, "Q1")
        (row,) = await session.export_requests()
        text = DOCS.read_text("utf-8")
        assert not [name for name in row if f"`{name}`" not in text]

    run(body())

"""Several searches as one: the same passage stands once, and overlapping ones are one."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.engine.sources.note_scenes import PlanScene
from tests.fakes.providers import calling, saying
from tests.fakes.sessions import run

from lamina.core.values.item import note_id
from lamina.core.values.note import Hit, NoteSearchResult
from lamina.engine.runners.citations import SEARCHED
from lamina.engine.sources.note_search import merge_results

PARAGRAPHS = [f"Paragraph {number} of the long note about quays.\n" for number in range(30)]


def cut(first: int, last: int, path: str = "long.md", score: float | None = 0.5) -> Hit:
    """The paragraphs from one to another, both included, as a search finds them."""
    text = "\n".join(PARAGRAPHS[first : last + 1]).strip()
    return Hit(
        item=note_id(path), path=path, title="long", text=text, score=score,
        start=2 * first + 1, end=2 * last + 1,
    )  # fmt: skip


def merge(*searches: list[Hit]) -> tuple[Hit, ...]:
    return merge_results([NoteSearchResult(hits=tuple(hits)) for hits in searches]).hits


def test_hits_that_overlap_are_one_at_the_place_of_the_better() -> None:
    other = cut(0, 0, path="other.md")
    merged = merge([cut(3, 6), other], [cut(5, 9, score=0.8)])
    assert merged == (replace(cut(3, 9), score=0.8), other)


def test_a_hit_within_another_does_not_stand_beside_it() -> None:
    assert merge([cut(4, 5)], [cut(2, 8)]) == (cut(2, 8),)
    assert merge([cut(2, 8)], [cut(4, 5)], [cut(8, 8)], [cut(2, 2)]) == (cut(2, 8),)


def test_a_hit_that_bridges_two_makes_one_of_three() -> None:
    assert merge([cut(1, 3), cut(7, 9)], [cut(3, 7)]) == (cut(1, 9),)


def test_a_text_that_two_notes_have_stands_once() -> None:
    assert merge([cut(1, 1)], [cut(1, 1, path="copy.md")]) == (cut(1, 1),)


def test_parts_of_one_line_are_joined_where_they_share_words_and_only_there() -> None:
    line = " ".join(f"Sentence {number} of a line without an end." for number in range(40))
    hit = cut(0, 0)
    first, second = replace(hit, text=line[:600]), replace(hit, text=line[300:900])
    third = replace(hit, text=line[900:1200])
    assert [each.text for each in merge([second], [first])] == [line[:900]]
    assert len(merge([first], [third])) == 2


def test_what_is_hidden_in_one_stays_hidden_in_both() -> None:
    one = replace(cut(1, 3), redacted=cut(1, 3).text.replace("2", "*"), secrets=("key",))
    (merged,) = merge([one], [cut(3, 4)])
    assert merged.text == cut(1, 4).text
    assert merged.safe == one.safe + cut(1, 4).text.removeprefix(cut(1, 3).text)
    assert merged.secrets == ("key",)


@given(st.lists(st.lists(st.tuples(st.integers(0, 25), st.integers(0, 4)), max_size=5), max_size=5))
def test_every_paragraph_that_was_found_stands_exactly_once(
    searches: list[list[tuple[int, int]]],
) -> None:
    merged = merge([], *[[cut(first, first + more) for first, more in hits] for hits in searches])
    text = "\n".join(hit.text for hit in merged)
    found = {
        number for hits in searches for first, more in hits
        for number in range(first, first + more + 1)
    }  # fmt: skip
    for number, paragraph in enumerate(PARAGRAPHS):
        assert text.count(paragraph.strip()) == (number in found)


def test_each_search_of_a_plan_sends_a_passage_once_under_one_number() -> None:
    async def body() -> None:
        long = "# Quays\n\n" + "\n".join(
            f"{each}{'More of it. ' * 20}\n" for each in PARAGRAPHS[:4]
        )
        calls = calling(
            ("a", "localSearch", {"query": "paragraph 1 of the long note"}),
            ("b", "localSearch", {"query": "paragraph 2 about quays"}),
            ("c", "localSearch", {"query": "long note quays"}),
        )
        async with PlanScene(calls, saying("So [^1]."), notes={"long.md": long}) as scene:
            answer = await scene.ask("What of the quays?")
            blocks = scene.asked.split("</localSearch>")[:-1]
            assert len(blocks) == 3
            for paragraph in PARAGRAPHS[:4]:
                assert all(block.count(paragraph.strip()) <= 1 for block in blocks)
            assert "Paragraph 1" in scene.asked
            assert "Paragraph 2" in scene.asked
            assert [each.number for each in answer.sources] == [1]
            (record,) = scene.noted(SEARCHED)
            assert {each["source"] for each in record["hits"]} == {1}

    run(body())

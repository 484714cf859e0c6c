"""What docs/queries.md shows of queries is what they come to."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lamina.core.notes.obsidian_search import PLACES
from lamina.core.notes.query.query_functions import FUNCTIONS
from lamina.core.notes.query.rendered_query import render_query
from lamina.core.notes.query.rows import FILE_FIELDS, ITEM_FIELDS
from lamina.core.notes.query.scanner import RESERVED_WORDS
from lamina.core.values.note import ListItem, Note
from lamina.errors import QueryError

PAGE = (Path(__file__).parents[2] / "docs" / "queries.md").read_text("utf-8")
BLOCKS = re.findall(
    r"^```(lamina-query|wrong)\n(.*?)^```\n\n```result\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE
)


def code(cell: str) -> list[str]:
    return re.findall(r"`(.*?)`", cell)


def read_tasks() -> list[ListItem]:
    """The tasks of the sentence below the table."""
    sentence = PAGE.split("`Harbour` has two tasks besides:", 1)[1].split("\n\n", 1)[0]
    return [ListItem(at, 1, -1, "-", task[3], task[6:]) for at, task in enumerate(code(sentence))]


def read_notes() -> tuple[Note, ...]:
    """The notes of the table at the head of the page."""
    table = PAGE.split("| path |", 1)[1].split("\n\n", 1)[0]
    notes = []
    for line in table.splitlines()[2:]:
        path, tags, properties, links = line.strip("|").split("|")
        values: dict[str, Any] = {}
        for spelled in code(properties):
            values |= yaml.safe_load(re.sub(r"([\d]{4}-.*)", r'"\1"', spelled))
        (name,) = code(path)
        note = Note(
            path=name,
            title=Path(name).stem,
            digest=name,
            size=40 if values.get("due") else 20,
            tags=tuple(code(tags)),
            links=tuple(code(links)),
            properties=values,
            items=tuple(read_tasks()) if name == "work/Harbour.md" else (),
        )
        notes.append(note)
    return tuple(notes)


@pytest.mark.parametrize(
    ("query", "result"), [(query, result) for kind, query, result in BLOCKS if kind != "wrong"]
)
def test_a_query_comes_to_what_is_shown(query: str, result: str) -> None:
    assert render_query(query, read_notes(), "Index.md") == result.removesuffix("\n")


@pytest.mark.parametrize(
    ("query", "result"), [(query, result) for kind, query, result in BLOCKS if kind == "wrong"]
)
def test_what_is_wrong_is_said_as_it_is_shown(query: str, result: str) -> None:
    with pytest.raises(QueryError) as caught:
        render_query(query, read_notes(), "Index.md")
    assert str(caught.value) == result.removesuffix("\n")


def test_every_query_of_the_page_has_its_result() -> None:
    assert len(BLOCKS) == len(re.findall(r"^```(?:lamina-query|wrong)$", PAGE, re.MULTILINE)) > 10


def test_all_fields_functions_places_and_reserved_words_are_told() -> None:
    assert set(re.findall(r"`file\.(\w+)`", PAGE)) == set(FILE_FIELDS)
    told = PAGE.split("## Functions", 1)[1].split("```", 1)[0]
    assert set(re.findall(r"\b(\w+)\(", told)) == set(FUNCTIONS)
    reserved = PAGE.split("names that mean something else, which", 1)[1].split(": write", 1)[0]
    assert set(code(reserved)) == RESERVED_WORDS
    items = PAGE.split("Items and tasks have", 1)[1].split(", as in", 1)[0]
    assert set(code(items)) - {"annotated"} <= set(ITEM_FIELDS)
    search = PAGE.split("## Search blocks", 1)[1].split("## ", 1)[0]
    assert {place for place in PLACES if f"{place}:" not in search} == {"ignore-case"}

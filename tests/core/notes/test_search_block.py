"""Searches as Obsidian writes them, over notes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import thorough

from lamina.core.notes.note_reader import read_note
from lamina.core.notes.obsidian_search import PLACES, find_hit, parse_search
from lamina.errors import QueryError

TEXTS = {
    "work/Harbour.md": "---\nstatus: draft\ncost: 120\nempty:\n---\n#project/water\nNorth quay at "
    "10:30\n\n# Tides\nebb and flow\n- [ ] call the pilot\n- [x] buy rope\n",
    "work/Lock.md": "---\nstatus: done\n---\n#project\nSouth Quay\nNorth\n",
    "sea/Pilot.md": "The pilot. See https://example.org/x.\n\ncall\nthe harbour\n",
}
NOTES = {path: read_note(path, text.encode()) for path, text in TEXTS.items()}


def found(search: str) -> list[str]:
    term = parse_search(search)
    hits = (find_hit(term, NOTES[path], text) for path, text in TEXTS.items())
    return [hit.path.partition("/")[2].removesuffix(".md") for hit in hits if hit]


@pytest.mark.parametrize(
    ("search", "names"),
    [
        ("quay", ["Harbour", "Lock"]),
        ("north quay", ["Harbour", "Lock"]),
        ('"north quay"', ["Harbour"]),
        ("HARBOUR", ["Harbour", "Pilot"]),
        ("rope OR south", ["Harbour", "Lock"]),
        ("quay -rope", ["Lock"]),
        ('quay -"south quay"', ["Harbour"]),
        ("pilot (rope OR example)", ["Harbour", "Pilot"]),
        ("-(quay OR rope)", ["Pilot"]),
        ("file:lock", ["Lock"]),
        ('path:"work/"', ["Harbour", "Lock"]),
        ("content:harbour", ["Pilot"]),
        ("tag:#project", ["Harbour", "Lock"]),
        ("tag:#project/water", ["Harbour"]),
        ("tag:proj", []),
        ("line:(call pilot)", ["Harbour"]),
        ("block:(call harbour)", ["Pilot"]),
        ("section:(ebb rope)", ["Harbour"]),
        ("section:(ebb quay)", []),
        ("task:rope", ["Harbour"]),
        ("task-todo:rope", []),
        ("task-done:rope", ["Harbour"]),
        ("match-case:South", ["Lock"]),
        ("match-case:south", []),
        ("[status]", ["Harbour", "Lock"]),
        ("[status:draft]", ["Harbour"]),
        ("[status:draft OR done]", ["Harbour", "Lock"]),
        ("-[status:draft] quay", ["Lock"]),
        ("[empty:null]", ["Harbour"]),
        ("[cost:>100]", ["Harbour"]),
        ("[cost:<100]", []),
        ('["status":done]', ["Lock"]),
        (r"/\d\d:\d\d/", ["Harbour"]),
        (r"file:/^l.*md$/", ["Lock"]),
        ("https://example.org/x", ["Pilot"]),
        ("path:work OR file:pilot", ["Harbour", "Lock", "Pilot"]),
    ],
)
def test_a_search_finds(search: str, names: list[str]) -> None:
    assert found(search) == names


def test_the_lines_that_fit_are_told() -> None:
    hit = find_hit(parse_search("call OR rope"), NOTES["work/Harbour.md"], TEXTS["work/Harbour.md"])
    assert hit is not None
    assert hit.lines == (11, 12)
    only = find_hit(parse_search("path:work"), NOTES["work/Lock.md"], TEXTS["work/Lock.md"])
    assert only is not None
    assert only.lines == ()


@pytest.mark.parametrize(
    ("search", "problem"),
    [
        ("", "there is nothing to search for"),
        ("sort:name", "there is no place 'sort:'; there are file:, path:, content:"),
        ("(a", "this ( is not closed"),
        ("a)", "this ) closes nothing"),
        ("[status:a", "this [ is not closed"),
        ("OR a", "expected something in front of OR"),
        ("path:", "expected something behind path:"),
        ("/(a+)+/", "may take for ever"),
        ('a "b', "is not closed"),
        ("(" * 100 + "a", "nested more than 20 deep"),
        ("-" * 100 + "a", "nested more than 20 deep"),
        ("path:" * 100 + "a", "nested more than 20 deep"),
    ],
)
def test_what_is_not_understood_is_named(search: str, problem: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_search(search)
    assert problem in str(caught.value)


PIECES = (*(f"{place}:" for place in PLACES), "a", '"b c"', "/x/", "OR", "-", "(", ")", "[a", "]",
          ":", "[p:v]", " ", "\n", "\\")  # fmt: skip


@thorough
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=2), max_size=10).map("".join))
def test_any_text_is_a_search_or_a_query_error(search: str) -> None:
    try:
        term = parse_search(search)
    except QueryError:
        return
    for path, text in TEXTS.items():
        find_hit(term, NOTES[path], text)

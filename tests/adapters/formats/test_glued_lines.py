"""Records that lost the line end between them, whole and torn (issue 16, B.14)."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.adapters.formats.reader import check_laws, conversation, find, take, whats
from tests.adapters.formats.samples import (
    CLAUDE,
    PI_HEADER,
    PI_V1,
    SAMPLES,
    lines,
    pi_answer,
    pi_said,
    text,
)
from tests.strategies import thorough

from lamina.adapters.formats.imported_session import ImportProblem
from lamina.adapters.formats.json_lines import LinePiece, read_lines, split_line
from lamina.core.values.entry import CustomEntry, TransformEntry

LINED = sorted(name for name in SAMPLES if name != "opencode")
SAID, ANSWERED, ASKED = (
    pi_said("u1", None, "one"),
    pi_answer("a1", "u1", text("two")),
    pi_said("u2", "a1", "three"),
)


def glued(*objects: object) -> bytes:
    return b"".join(lines(value)[:-1] for value in objects) + b"\n"


@pytest.mark.parametrize("name", LINED)
def test_gluing_any_two_lines_changes_nothing_but_a_notice(name: str) -> None:
    plain = take(SAMPLES[name])
    pieces = SAMPLES[name].split(b"\n")[:-1]
    for index in range(len(pieces) - 1):
        rows = [*pieces[:index], pieces[index] + pieces[index + 1], *pieces[index + 2 :]]
        data = b"\n".join(rows) + b"\n"
        session = take(data)
        assert session.entries == plain.entries
        notices = [problem for problem in session.problems if problem.what == "glued"]
        assert [notice.line for notice in notices] == [index + 1]
        rest = [problem.detail for problem in session.problems if problem.what != "glued"]
        assert rest == [problem.detail for problem in plain.problems]
        check_laws(session, data)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_that_is_one_line_is_known_by_what_it_holds(name: str) -> None:
    one_line = SAMPLES[name].replace(b"\n", b"")
    assert take(one_line).entries == take(SAMPLES[name]).entries


def test_a_compaction_on_the_line_of_another_record_counts() -> None:
    (compaction,) = find(take(CLAUDE), TransformEntry)
    pieces = CLAUDE.split(b"\n")
    (at,) = (index for index, piece in enumerate(pieces) if b"isCompactSummary" in piece)
    session = take(
        b"\n".join([*pieces[: at - 1], b"".join(pieces[at - 1 : at + 1]), *pieces[at + 1 :]])
    )
    assert find(session, TransformEntry) == [compaction]
    assert conversation(session) == conversation(take(CLAUDE))


def test_three_records_on_one_line_are_three_and_one_notice_says_so() -> None:
    session = take(lines(PI_HEADER) + glued(SAID, ANSWERED, ASKED))
    assert conversation(session) == [("user", "one"), ("assistant", "two"), ("user", "three")]
    assert session.problems == (
        ImportProblem(
            line=2,
            what="glued",
            detail="3 records on one line; all of them were read",
        ),
    )


def test_of_a_torn_record_and_a_whole_one_the_whole_one_is_read_and_the_other_kept() -> None:
    torn = lines(ANSWERED)[:60]
    data = lines(PI_HEADER, SAID) + torn + lines(ASKED)
    session = take(data)
    assert conversation(session) == [("user", "one"), ("user", "three")]
    assert [(p.line, p.what, p.detail) for p in session.problems] == [
        (3, "glued", "1 whole and 1 torn on one line; what is whole was read"),
        (3, "unreadable", "not a whole record; kept as its text"),
        (3, "missing_parent", "the parent 'a1' of 'u2' is not in the file"),
    ]  # fmt: skip
    assert [entry.data for entry in find(session, CustomEntry)] == [torn.decode().rstrip()]
    check_laws(session, data)


def test_of_a_whole_record_and_a_torn_one_at_the_end_the_first_is_read() -> None:
    session = take(lines(PI_HEADER) + glued(SAID)[:-1] + lines(ANSWERED)[:60])
    assert conversation(session) == [("user", "one")]
    assert whats(session) == ["glued", "torn"]


@pytest.mark.parametrize("name", LINED)
def test_wherever_a_record_is_cut_off_the_one_behind_it_is_read(name: str) -> None:
    pieces = SAMPLES[name].split(b"\n")[:-1]
    for index in range(len(pieces) - 1):
        # One more record that begins as the second one does: what a file is full of.
        rest = [*pieces[index + 2 :], pieces[index + 1]]
        expected = [json.loads(piece) for piece in [*pieces[:index], pieces[index + 1], *rest]]
        for cut in range(1, len(pieces[index])):
            row = pieces[index][:cut] + pieces[index + 1]
            file = read_lines(b"\n".join([*pieces[:index], row, *rest]) + b"\n")
            # A log may hold the body of its torn request, too, where others are bare bodies.
            values = [record.value for record in file.lines if record.value in expected]
            assert values == expected


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ('{"a":1{"b":2}', ['{"a":1', {"b": 2}]),
        ('{"a":"x{"b":2}', ['{"a":"x', {"b": 2}]),
        ('{"a":"x\\{"b":2}', ['{"a":"x\\', {"b": 2}]),
        ('{"a":tru{"b":2}{"c":3}', ['{"a":tru', {"b": 2}, {"c": 3}]),
        ('{"a":1{"b":2{"c":3}', ['{"a":1{"b":2', {"c": 3}]),
        ('{"a":1} \t{"b":2}', [{"a": 1}, {"b": 2}]),
        ('{"a":1}, 7', [{"a": 1}, ", 7"]),
        ('tail of one"}}{"b":2}', ['tail of one"}}', {"b": 2}]),
        # What a torn or a damaged record holds is no record.
        ('{"a":{"b":2}', ['{"a":{"b":2}']),
        ('{"a":[1,{"b":2}', ['{"a":[1,{"b":2}']),
        ('{"a":x,"c":{"b":2}}', ['{"a":x,"c":{"b":2}}']),
        # Unless it begins as records do.
        ('{"a":{"id":1,"at":2}', ['{"a":', {"id": 1, "at": 2}]),
        ('{"a":{"id":1,"at":2}{"b":2}', ['{"a":', {"id": 1, "at": 2}, {"b": 2}]),
    ],
)
def test_pieces_of_a_line(line: str, pieces: list[object]) -> None:
    assert [
        json.loads(piece.text) if piece.is_object else piece.text
        for piece in split_line(line, {("id", "at")})
    ] == pieces


@thorough
@given(st.text(alphabet='{}[]",:\\ 1tax\n'))
@example('{"":{"":0}')
def test_the_pieces_of_any_line_are_all_of_it(line: str) -> None:
    pieces = split_line(line, {("a",)})
    together = "".join(piece.text for piece in pieces)
    assert "".join(together.split()) == "".join(line.split())
    for piece in pieces:
        if piece.is_object:
            assert isinstance(json.loads(piece.text, strict=False), dict)


@pytest.mark.parametrize(
    "junk", ['[{"a":', '{"a":', '{"a":1', '{"a":1,{', '}{"a":', '{"type":"x","b":[{"type":1},']
)
def test_a_hostile_line_is_text_and_costs_little(junk: str) -> None:
    line = junk * 100_000
    assert split_line(line, {("type", "b")}) == [LinePiece(line, is_object=False)]


def v1_without(number: int) -> bytes:
    pieces = PI_V1.split(b"\n")
    return b"\n".join([*pieces[:number], b'{"type": "mess', *pieces[number + 1 :]])


def test_an_unreadable_line_of_a_version_one_file_moves_no_cut() -> None:
    kept = [("user", "counting"), ("user", "three"), ("user", "hooked")]
    for number in (0, 1, 2):  # the header, and what was compacted
        session = take(v1_without(number))
        assert conversation(session) == kept
        assert "unreadable" in whats(session)
    # The first one that was kept is gone: the cut is where it was.
    assert conversation(take(v1_without(3))) == [("user", "counting"), ("user", "hooked")]


def test_a_version_one_file_that_lost_its_header_keeps_the_right_messages() -> None:
    headless = PI_V1.split(b"\n", 1)[1]
    session = take(headless)
    assert whats(session) == ["no_header"]
    assert conversation(session) == [("user", "counting"), ("user", "three"), ("user", "hooked")]

"""Files in any state: nothing is raised but `UsageError`, and every line is somewhere."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.formats.reader import check_laws, conversation, find, state_of, take, whats
from tests.adapters.formats.samples import PI, PI_HEADER, SAMPLES, lines, pi_answer, pi_said, text
from tests.strategies import json_values, modest, thorough

from lamina.adapters.formats.imported_session import ImportedSession
from lamina.core.codec import canonical_bytes
from lamina.core.values.entry import CustomEntry
from lamina.errors import UsageError

LINED = {name: data for name, data in SAMPLES.items() if name != "opencode"}
samples = st.sampled_from(sorted(LINED.values()))


def try_to_take(data: bytes) -> ImportedSession | None:
    try:
        return take(data)
    except UsageError:
        return None


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A file after a crash, a bad disk and a careless editor."""
    pieces = draw(samples).split(b"\n")[:-1]
    for _ in range(draw(st.integers(1, 4))):
        match draw(st.integers(0, 6)):
            case 0:
                pieces = draw(st.permutations(pieces))
            case 1:
                at = draw(st.integers(0, len(pieces) - 1))
                pieces = [*pieces[:at], pieces[at], *pieces[at:]]
            case 2 if len(pieces) > 1:
                at = draw(st.integers(0, len(pieces) - 1))
                pieces = [*pieces[:at], *pieces[at + 1 :]]
            case 3:
                at = draw(st.integers(0, len(pieces) - 1))
                cut = draw(st.integers(0, len(pieces[at])))
                pieces = [*pieces[:at], pieces[at][:cut], *pieces[at + 1 :]]
            case 4:
                at = draw(st.integers(0, len(pieces) - 1))
                pieces = [*pieces[:at], draw(st.binary(max_size=30)), *pieces[at:]]
            case 5:
                at = draw(st.integers(0, len(pieces) - 1))
                pieces = [*pieces[:at], _flip(draw, pieces[at]), *pieces[at + 1 :]]
            case _:
                pieces = [*pieces, *draw(samples).split(b"\n")[:-1]]
    ending = draw(st.sampled_from([b"\n", b"\r\n"]))
    return ending.join(pieces)


def _flip(draw: st.DrawFn, piece: bytes) -> bytes:
    if not piece:
        return piece
    at = draw(st.integers(0, len(piece) - 1))
    return piece[:at] + bytes([draw(st.integers(0, 255))]) + piece[at + 1 :]


@st.composite
def distorted(draw: st.DrawFn) -> bytes:
    """A file whose objects hold other values than they should, at any depth."""
    objects = [json.loads(piece) for piece in draw(samples).split(b"\n")[:-1]]
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(objects) - 1))
        objects[at] = _distort(draw, objects[at])
    return lines(*objects)


def _distort(draw: st.DrawFn, value: Any) -> Any:
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(value)))
        if not draw(st.integers(0, 5)):
            return {name: field for name, field in value.items() if name != key}
        return {**value, key: _distort(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], _distort(draw, value[at]), *value[at + 1 :]]
    return draw(json_values)


@thorough
@given(st.binary(max_size=200))
def test_any_bytes_give_a_session_or_a_usage_error(data: bytes) -> None:
    session = try_to_take(data)
    if session:
        check_laws(session)


@thorough
@given(damaged())
def test_a_damaged_file_loses_no_line_silently(data: bytes) -> None:
    session = try_to_take(data)
    if session:
        check_laws(session, data)


@thorough
@given(distorted())
def test_values_of_any_kind_anywhere_are_read_or_kept(data: bytes) -> None:
    session = try_to_take(data)
    if session:
        check_laws(session, data)


@modest
@given(st.data())
def test_a_file_cut_anywhere_gives_what_stands_before_the_cut(data: st.DataObject) -> None:
    sample = data.draw(samples)
    cut = data.draw(st.integers(0, len(sample)))
    session = try_to_take(sample[:cut])
    if session:
        check_laws(session, sample[:cut])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_whole_file_keeps_every_law(name: str) -> None:
    session = take(SAMPLES[name])
    check_laws(session, LINED.get(name))
    assert session.entries[0].id == "000000"


@pytest.mark.parametrize("name", SAMPLES)
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(name: str) -> None:
    plain = take(SAMPLES[name])
    other = take(b"\xef\xbb\xbf" + SAMPLES[name].replace(b"\n", b"\r\n"))
    assert (other.entries, other.problems) == (plain.entries, plain.problems)


def test_a_utf_16_file_is_read_and_said_to_be_one() -> None:
    session = take(PI.decode().encode("utf-16"))
    assert whats(session) == ["encoding"]
    assert session.entries == take(PI).entries


SAID = pi_said("u1", None, "one")


def test_each_bad_line_is_one_problem_with_its_number_and_is_kept() -> None:
    data = lines(PI_HEADER, SAID) + b'[1, 2]\n{"type": \n\x00\x00\x00\n"text"\n{"type": "mess'
    session = take(data)
    assert [(p.line, p.what) for p in session.problems] == [
        (3, "not_an_object"), (4, "unreadable"), (5, "nul_bytes"), (6, "not_an_object"),
        (7, "torn"),
    ]  # fmt: skip
    lines_as_data = [entry.data for entry in find(session, CustomEntry)]
    assert lines_as_data == [[1, 2], '{"type":', "text", '{"type": "mess']
    assert conversation(session) == [("user", "one")]
    check_laws(session, data)


def test_an_entry_whose_parent_was_on_a_bad_line_follows_what_stands_before_it() -> None:
    data = lines(PI_HEADER, SAID) + b"{broken\n" + lines(pi_said("u3", "u2", "three"))
    session = take(data)
    assert whats(session) == ["unreadable", "missing_parent"]
    assert conversation(session) == [("user", "one"), ("user", "three")]


def test_bytes_that_are_not_utf_8_are_replaced_and_the_line_is_read() -> None:
    data = lines(PI_HEADER, SAID).replace(b'"one"', b'"o\xffe"')
    session = take(data)
    assert [(p.line, p.what) for p in session.problems] == [(2, "mended")]
    assert conversation(session) == [("user", "o\ufffde")]


def test_lone_surrogates_are_mended_everywhere_and_reported() -> None:
    surrogate = "\\ud800"
    line = json.dumps(pi_answer("a1", None, text("hi@"), odd={"k@": ["v@"]}))
    data = lines(PI_HEADER) + line.replace("@", surrogate).encode()
    session = take(data)
    assert [(p.line, p.what) for p in session.problems] == [(2, "mended")]
    assert "\ufffd" in conversation(session)[0][1]
    assert "k\ufffd" in str(session.entries[1].extra)
    check_laws(session, data)


def test_what_is_nested_too_deep_is_kept_as_its_text() -> None:
    deep = '{"type":"message","id":"u1","parentId":null,"x":' + "[" * 5000 + "]" * 5000 + "}"
    less = deep.replace("[" * 5000, "[" * 300).replace("]" * 5000, "]" * 300)
    for line in (deep, less):
        data = lines(PI_HEADER) + line.encode() + b"\n"
        session = take(data)
        assert whats(session) == ["unreadable"]
        assert find(session, CustomEntry)[0].data == line
        check_laws(session, data)


def test_numbers_that_json_has_no_word_for_become_text() -> None:
    data = lines(PI_HEADER) + json.dumps({**SAID, "a": float("nan"), "b": 1.0}).encode()
    data = data.replace(b'"b": 1.0', b'"b": 1e999')
    session = take(data)
    assert session.entries[1].extra["pi"]["a"] == "NaN"
    assert session.entries[1].extra["pi"]["b"] == "inf"
    check_laws(session, data)


def test_a_huge_line_is_a_line() -> None:
    long = "x" * 5_000_000
    assert conversation(take(lines(PI_HEADER, pi_said("u1", None, long)))) == [("user", long)]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"hello", b"[]", b'{"a": 1}\n', b"\x00" * 50])
def test_what_is_no_session_is_refused_with_the_formats_that_were_tried(data: bytes) -> None:
    with pytest.raises(UsageError, match=r"'a.jsonl'.*pi, Claude Code, Codex.*request log"):
        take(data)


def test_a_journal_of_our_own_is_not_taken_for_a_foreign_one() -> None:
    own = b"\n".join(map(canonical_bytes, take(PI).entries))
    with pytest.raises(UsageError):
        take(own)


def test_fifty_thousand_entries_are_read_in_one_pass_over_them() -> None:
    objects: list[Any] = [PI_HEADER]
    parent = None
    for number in range(25_000):
        objects.append(pi_said(f"u{number}", parent, "question"))
        objects.append(pi_answer(f"a{number}", f"u{number}", text("answer")))
        parent = f"a{number}"
    session = take(lines(*objects))
    assert len(session.entries) == 50_001
    assert len(state_of(session).envelope.cached) == 50_000

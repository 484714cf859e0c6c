"""Times as people say them, and notes that are of them."""

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.notes.time_ranges import is_of_time, name_times, note_dates, read_time_range
from lamina.core.values.note import Note, TimeRange
from lamina.errors import UsageError

# A Tuesday.
NOW = datetime(2026, 11, 17, 18, 30)


def day(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("today", "2026-11-17", "2026-11-18"),
        ("Yesterday", "2026-11-16", "2026-11-17"),
        ("this week", "2026-11-16", "2026-11-23"),
        ("last week", "2026-11-09", "2026-11-16"),
        ("this  month", "2026-11-01", "2026-12-01"),
        ("last month", "2026-10-01", "2026-11-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        # As people say it: up to today.
        ("past year", "2025-11-18", "2026-11-18"),
        ("the past week", "2026-11-11", "2026-11-18"),
        ("in the last two weeks", "2026-11-04", "2026-11-18"),
        ("the last few days", "2026-11-15", "2026-11-18"),
        ("past 24 hours", "2026-11-16T18:30:00", "2026-11-17T18:30:00"),
        ("Past day", "2026-11-16T18:30:00", "2026-11-17T18:30:00"),
        ("last 90 min", "2026-11-17T17:00:00", "2026-11-17T18:30:00"),
        ("2 days ago", "2026-11-15", "2026-11-16"),
        ("the day before yesterday", "2026-11-15", "2026-11-16"),
        ("two weeks ago", "2026-11-02", "2026-11-09"),
        ("a month ago", "2026-10-01", "2026-11-01"),
        ("3 hours ago", "2026-11-17T15:30:00", "2026-11-17T16:30:00"),
        ("last Monday", "2026-11-16", "2026-11-17"),
        ("last Tuesday", "2026-11-10", "2026-11-11"),
        ("on Tue", "2026-11-17", "2026-11-18"),
        ("Wednesday", "2026-11-11", "2026-11-12"),
        ("this Friday", "2026-11-20", "2026-11-21"),
        ("last weekend", "2026-11-14", "2026-11-16"),
        ("next week", "2026-11-23", "2026-11-30"),
        ("last quarter", "2026-07-01", "2026-10-01"),
        ("Q1 2026", "2026-01-01", "2026-04-01"),
        ("March 2026", "2026-03-01", "2026-04-01"),
        ("in Sept. 2025", "2025-09-01", "2025-10-01"),
        ("March", "2026-03-01", "2026-04-01"),
        ("December", "2025-12-01", "2026-01-01"),
        ("last November", "2025-11-01", "2025-12-01"),
        ("March 15, 2026", "2026-03-15", "2026-03-16"),
        ("15th of March", "2026-03-15", "2026-03-16"),
        ("24 December", "2025-12-24", "2025-12-25"),
        ("2026/03/15", "2026-03-15", "2026-03-16"),
        ("since last Monday", "2026-11-16", None),
        ("before March 2026", None, "2026-03-01"),
        ("from 2 weeks ago to yesterday", "2026-11-02", "2026-11-17"),
        ("between March and May 2025", "2025-03-01", "2025-06-01"),
        ({"startTime": "last Monday", "endTime": "today"}, "2026-11-16", "2026-11-18"),
        ("last 7 days", "2026-11-11", "2026-11-18"),
        ("the past 2 weeks", "2026-11-04", "2026-11-18"),
        ("last 9 months", "2026-02-18", "2026-11-18"),
        ("2026", "2026-01-01", "2027-01-01"),
        ("2026-02", "2026-02-01", "2026-03-01"),
        ("2026-12", "2026-12-01", "2027-01-01"),
        ("2026-02-28", "2026-02-28", "2026-03-01"),
        ("2026-01-05 to 2026-02-10", "2026-01-05", "2026-02-11"),
        ("from 2026-01 until 2026-03", "2026-01-01", "2026-04-01"),
        ("since 2026-01-05", "2026-01-05", None),
        ("after 2026-01-05", "2026-01-06", None),
        ("before last month", None, "2026-10-01"),
        ("until 2026-01-05", None, "2026-01-06"),
        ({"startTime": "2026-01-05", "endTime": "2026-01-07"}, "2026-01-05", "2026-01-08"),
        ({"startTime": "2026-01-05T12:00:00"}, "2026-01-05T12:00:00", None),
        ({"endTime": "yesterday"}, None, "2026-11-17"),
    ],
)
def test_a_time_has_a_beginning_and_an_end(words: Any, start: str | None, end: str | None) -> None:
    found = read_time_range(words, NOW)
    assert found is not None
    assert found.start == (None if start is None else day(start))
    assert found.end == (None if end is None else day(end))


def test_numbers_are_seconds_or_milliseconds_as_the_original_gives_them() -> None:
    start = day("2026-01-05")
    for ends in ({"startTime": start}, {"startTime": start * 1000}, {"startTime": {"epoch": start * 1000}}):  # noqa: E501  # fmt: skip
        found = read_time_range(ends, NOW)
        assert found == TimeRange(start=start, words="since 2026-01-05")


@pytest.mark.parametrize(
    "words",
    ["soon", "last 3 moons", "2026-13", "2026-02-30", "to", "0000", {"startTime": []},
     {"startTime": True}, {"endTime": 1e300}, "2026-03 to 2026-01", "last 99999 days",
     "31 February 2026", "last", "a while ago", "the", "Q5 2026"],
)  # fmt: skip
def test_what_is_no_time_is_an_error_that_says_so(words: Any) -> None:
    with pytest.raises(UsageError, match="`timeRange`: "):
        read_time_range(words, NOW)


@pytest.mark.parametrize("nothing", [None, "", "  ", {}, {"startTime": "", "endTime": None}])
def test_no_time_is_all_time(nothing: Any) -> None:
    assert read_time_range(nothing, NOW) is None


ENDS = st.dictionaries(
    st.sampled_from(["startTime", "endTime"]),
    st.none() | st.floats() | st.text(max_size=12) | st.dictionaries(st.just("epoch"), st.floats()),
)


@given(st.text(max_size=30) | ENDS)
def test_whatever_is_given_is_a_time_or_a_clear_error(value: Any) -> None:
    try:
        found = read_time_range(value, NOW)
    except UsageError:
        return
    assert found is None or found.start is not None or found.end is not None


def test_a_note_is_of_a_time_by_its_change_its_name_or_its_frontmatter() -> None:
    time = TimeRange(start=day("2026-01-01"), end=day("2026-02-01"))

    def note(path: str = "a.md", mtime: str = "2026-06-01", **properties: Any) -> Note:
        return Note(path=path, title="", digest="", mtime=day(mtime), properties=properties)

    assert is_of_time(note(mtime="2026-01-31T23:59:59"), time)
    assert is_of_time(note("daily/2026-01-31.md"), time)
    assert is_of_time(note("20260131 walk.md"), time)
    assert is_of_time(note(created="2026-01-01T08:00"), time)
    assert not is_of_time(note(mtime="2026-02-01"), time)
    assert not is_of_time(note("2026-01-31/index.md"), time)
    assert not is_of_time(note("9920260131.md", date="soon", created=7), time)
    assert list(note_dates(note("2026-99-99.md"))) == []


def test_a_time_in_words() -> None:
    start, end = day("2026-01-05"), day("2026-02-01T06:00:00")
    assert name_times(start, end) == "2026-01-05 to before 2026-02-01T06:00:00"
    assert name_times(None, start) == "before 2026-01-05"
    assert name_times(None, None) == ""

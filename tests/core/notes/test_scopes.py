"""Where to search, from what people write."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.notes.scopes import make_scope, read_moment
from lamina.core.values.note import Scope
from lamina.errors import UsageError

MOMENTS = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1)).map(
    lambda moment: moment.replace(fold=0)
)


@given(MOMENTS)
def test_a_moment_is_the_same_as_text_as_a_date_and_in_seconds(moment: datetime) -> None:
    seconds = moment.timestamp()
    assert read_moment(moment) == read_moment(moment.isoformat()) == seconds
    assert read_moment(seconds) == pytest.approx(seconds, abs=1e-5)


@given(st.dates(date(1971, 1, 1), date(2100, 1, 1)))
def test_a_day_begins_at_midnight(day: date) -> None:
    midnight = datetime(day.year, day.month, day.day)
    assert read_moment(day) == read_moment(day.isoformat()) == midnight.timestamp()


def test_a_moment_may_say_its_zone() -> None:
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    assert read_moment("2026-01-31T12:00:00Z") == moment.timestamp()


@given(st.text() | st.floats() | st.integers())
def test_what_is_no_moment_is_refused_with_a_sentence(moment: str | float) -> None:
    problem = ""
    try:
        read_moment(moment)
    except UsageError as error:
        problem = str(error)
    assert not problem or problem.startswith(f"{moment!r} is not a date: use ")


def test_one_name_and_several_are_taken() -> None:
    assert make_scope() == Scope()
    assert make_scope("runbooks/", "#oncall") == Scope(folders=("runbooks",), tags=("oncall",))
    assert make_scope(("a", "/"), iter(["b"])) == Scope(folders=("a", "/"), tags=("b",))


@given(st.lists(st.text()), st.lists(st.text()))
def test_a_name_limits_or_is_refused(folders: list[str], tags: list[str]) -> None:
    if not all(name.strip() for name in folders) or any(not tag.strip("# ") for tag in tags):
        with pytest.raises(UsageError, match="is not a"):
            make_scope(folders, [*tags, "#"])
    else:
        scope = make_scope(folders, tags)
        assert (len(scope.folders), len(scope.tags)) == (len(folders), len(tags))
        assert all(scope.folders)
        assert all(scope.tags)

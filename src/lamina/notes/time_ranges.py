"""Times as people say them, and the dates that notes have.

Laws: what `now` is comes in, as a moment without a zone: days are those of this machine. A range
reaches from the beginning of its first day up to the beginning of the day behind its last. What is
not understood is an error that says what is.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from lamina.errors import UsageError
from lamina.values.note import Note, TimeRange

KNOWN = (
    "today, yesterday, this week, last week (also month, year), last 7 days (also weeks, months, "
    "years), a day, month or year as 2026-01-31, 2026-01 or 2026, `A to B`, `since A`, `before A`"
)
_UNITS = ("day", "week", "month", "year")
_NAMED = re.compile(r"(this|current|last|previous|past)\s+(week|month|year)")
_COUNTED = re.compile(r"(?:the\s+)?(?:last|past|previous)\s+([0-9]{1,4})\s+(day|week|month|year)s?")
_PERIOD = re.compile(r"([0-9]{4})(?:-([0-9]{1,2}))?(?:-([0-9]{1,2}))?")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].+")
_BETWEEN = re.compile(r"(?:from\s+|between\s+)?(.+?)\s+(?:to|until|till|and|-|–|—)\s+(.+)")
_OPEN = re.compile(r"(since|after|from|before|until|till)\s+(.+)")
_DATE_IN_NAME = re.compile(r"(?<![0-9])([0-9]{4})-?([0-9]{2})-?([0-9]{2})(?![0-9])")
_DATE_KEYS = ("date", "created", "day")
# Numbers above this are milliseconds, as programs in JavaScript count.
_MILLISECONDS = 100_000_000_000


def read_time_range(value: object, now: datetime) -> TimeRange | None:
    """A range from words, or from `startTime` and `endTime`; None if there is nothing to read.

    Raises:
        UsageError: it is not understood.
    """
    if isinstance(value, Mapping):
        start = _read_end(value.get("startTime"), now, is_last=False)
        end = _read_end(value.get("endTime"), now, is_last=True)
        if start is None and end is None:
            return None
        return _checked(start, end, name_times(start, end))
    words = " ".join(str(value or "").split())
    if not words:
        return None
    start, end = _read_words(words.lower(), now)
    return _checked(start, end, words)


def name_times(start: float | None, end: float | None) -> str:
    """A time in words, by its days where it has whole ones; empty for all time."""
    first, last = (
        None if moment is None else _name_moment(datetime.fromtimestamp(moment))
        for moment in (start, end)
    )
    if first and last:
        return f"{first} to before {last}"
    return f"since {first}" if first else f"before {last}" if last else ""


def is_of_time(note: Note, time: TimeRange) -> bool:
    """Whether a note changed in a time, or has a date of then in its name or frontmatter."""
    return time.holds(note.mtime) or any(time.holds(_start_of(day)) for day in note_dates(note))


def note_dates(note: Note) -> Iterator[date]:
    """The days that a note says it is of."""
    for key in _DATE_KEYS:
        if (day := _read_date(note.properties.get(key))) is not None:
            yield day
    name = note.path.rpartition("/")[2]
    for match in _DATE_IN_NAME.finditer(name):
        if (day := _make_day(match[1], match[2], match[3])) is not None:
            yield day


def _checked(start: float | None, end: float | None, words: str) -> TimeRange:
    if start is not None and end is not None and start >= end:
        raise UsageError(f"`timeRange`: {words!r} ends before it begins")
    return TimeRange(start=start, end=end, words=words)


def _read_words(words: str, now: datetime) -> tuple[float | None, float | None]:
    if (days := _read_period(words, now)) is not None:
        return _moments(*days)
    if match := _COUNTED.fullmatch(words):
        tomorrow = now.date() + timedelta(days=1)
        return _moments(_back(tomorrow, int(match[1]), match[2]), tomorrow)
    if match := _BETWEEN.fullmatch(words):
        return _read_end(match[1], now, is_last=False), _read_end(match[2], now, is_last=True)
    if match := _OPEN.fullmatch(words):
        is_before = match[1] in ("before", "until", "till")
        moment = _read_end(match[2], now, is_last=match[1] in ("until", "till", "after"))
        return (None, moment) if is_before else (moment, None)
    raise UsageError(f"`timeRange`: {words!r} is no time that is understood; {KNOWN} are")


def _read_period(words: str, now: datetime) -> tuple[date, date] | None:
    """The first day of a period, and the one behind its last."""
    today = now.date()
    if words in ("today", "yesterday"):
        first = today - timedelta(days=words == "yesterday")
        return first, first + timedelta(days=1)
    if match := _NAMED.fullmatch(words):
        unit = match[2]
        first = _begin(today, unit)
        if match[1] in ("this", "current"):
            return first, _begin(_back(first, -1, unit), unit)
        return _back(first, 1, unit), first
    if match := _PERIOD.fullmatch(words):
        first_day = _make_day(match[1], match[2] or "1", match[3] or "1")
        if first_day is None:
            raise UsageError(f"`timeRange`: there is no day {words!r}")
        unit = "day" if match[3] else "month" if match[2] else "year"
        return first_day, _back(first_day, -1, unit)
    return None


def _read_end(value: object, now: datetime, *, is_last: bool) -> float | None:
    """One end of a range: a moment, or a period of which it is the beginning or, as the last one,
    the end."""
    if isinstance(value, Mapping):
        value = value.get("epoch")
    if value is None or value == "":
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if abs(value) > _MILLISECONDS else value
        if abs(seconds) < _MILLISECONDS / 10:
            return float(seconds)
    elif isinstance(value, str):
        words = value.strip().lower()
        if (days := _read_period(words, now)) is not None:
            return _moments(*days)[is_last]
        if _MOMENT.fullmatch(words) and (moment := _read_moment(value.strip())) is not None:
            return moment
    raise UsageError(f"`timeRange`: {value!r} is no time that is understood; {KNOWN} are")


def _read_moment(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _read_date(value: Any) -> date | None:
    """The day in a property, which may hold a time behind it."""
    match = _PERIOD.match(value) if isinstance(value, str) else None
    return _make_day(match[1], match[2], match[3]) if match and match[2] and match[3] else None


def _make_day(year: str, month: str, day: str) -> date | None:
    try:
        made = date(int(year), int(month), int(day))
    except ValueError:
        return None
    # Before that no clock of a computer has a number, and numbers in names mean something else.
    return made if made.year >= 1900 else None


def _begin(day: date, unit: str) -> date:
    """The first day of the week, month or year that a day is in; weeks begin on Monday."""
    match unit:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "year":
            return day.replace(month=1, day=1)
        case _:
            return day


def _back(day: date, count: int, unit: str) -> date:
    """So many units before a day; in a shorter month, its last day."""
    try:
        if unit in ("day", "week"):
            return day - timedelta(days=count * (7 if unit == "week" else 1))
        months = day.year * 12 + day.month - 1 - count * (12 if unit == "year" else 1)
        year, month = divmod(months, 12)
        for last in (day.day, 30, 29, 28):
            if (made := _make_day(str(year), str(month + 1), str(last))) is not None:
                return made
    except (OverflowError, ValueError):
        pass
    return date(1900, 1, 1)


def _moments(first: date, end: date) -> tuple[float, float]:
    return _start_of(first), _start_of(end)


def _start_of(day: date) -> float:
    return datetime(day.year, day.month, day.day).timestamp()


def _name_moment(moment: datetime) -> str:
    is_day = (moment.hour, moment.minute, moment.second) == (0, 0, 0)
    return moment.strftime("%Y-%m-%d" if is_day else "%Y-%m-%dT%H:%M:%S")

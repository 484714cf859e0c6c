"""Parses times in everyday language, and finds the dates of notes.

Laws: `now` is an argument, as a time without a zone: days are local to this machine. A range
extends from the start of its first day up to the start of the day after its last. An unrecognised
time is an error that lists the accepted formats. `Last week` is the one before this, `the past
week` the seven days up to today; hours are counted from now.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from lamina.core.values.note import Note, TimeRange
from lamina.errors import UsageError

KNOWN = (
    "today, yesterday, last Monday, this week, last week (also weekend, month, quarter, year), the "
    "past week, last 7 days, past 24 hours, 2 days ago (also weeks, months, years), March, March "
    "2026, 15 March 2026, Q1 2026, a day, month or year as 2026-01-31, 2026-01 or 2026, `A to B`, "
    "`since A`, `before A`"
)
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_NUMBERS = {
    "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "a": 1, "an": 1, "couple": 2, "few": 3,
}  # fmt: skip
# Each unit with the spellings that people use.
_UNITS = {
    "minute": "minutes?|mins?", "hour": "hours?|hrs?|h", "day": "days?|d", "week": "weeks?|wks?|w",
    "month": "months?", "quarter": "quarters?", "year": "years?|yrs?|y",
}  # fmt: skip
_SECONDS = {"minute": 60, "hour": 3600}
_DAYS = {"day": 1, "week": 7}
_MONTH_COUNTS = {"month": 1, "quarter": 3, "year": 12}

_UNIT = "(?:{})".format("|".join(f"(?P<{unit}>{forms})" for unit, forms in _UNITS.items()))
_COUNT = rf"(?:an?\s+)?(?P<count>[0-9]{{1,4}}|{'|'.join(_NUMBERS)})(?:\s+of)?\s*"
_MONTH = "(?P<month>{})".format("|".join(rf"{name[:3]}(?:{name[3:]}|t)?\.?" for name in _MONTHS))
_WEEKDAY = "(?P<weekday>{})".format("|".join(rf"{d[:3]}(?:{d[3:]})?" for d in _WEEKDAYS))
_WHICH = "(?P<which>this|current|last|previous|next|coming)"
_DAY_OF_MONTH = r"(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"

# Words without meaning before a time.
_LEAD = re.compile(r"(?:(?:in|on|at|during|within|over|for|of|the)\s+)+(?=\S)")
_BEFORE_YESTERDAY = re.compile(r"(?:the\s+)?day\s+before\s+yesterday")
_NAMED = re.compile(rf"{_WHICH}\s+(?P<unit>week|weekend|month|quarter|year)")
_ROLLING = re.compile(rf"(?:last|past|previous)\s+(?:{_COUNT})?{_UNIT}")
_AGO = re.compile(rf"{_COUNT}{_UNIT}\s+ago")
_NEAR_WEEKDAY = re.compile(rf"(?:{_WHICH}\s+)?{_WEEKDAY}")
_NEAR_MONTH = re.compile(rf"(?:{_WHICH}\s+)?{_MONTH}")
_OF_YEAR = re.compile(
    rf"(?:{_DAY_OF_MONTH}\s+(?:of\s+)?)?{_MONTH}(?:\s+of)?\s+(?P<year>[0-9]{{4}})"
)
_MONTH_FIRST = re.compile(rf"{_MONTH}\s+{_DAY_OF_MONTH}(?:\s+(?P<year>[0-9]{{4}}))?")
_DAY_FIRST = re.compile(rf"{_DAY_OF_MONTH}\s+(?:of\s+)?{_MONTH}")
_QUARTER = re.compile(r"(?:q([1-4])\s+(?:of\s+)?([0-9]{4})|([0-9]{4})[\s-]*q([1-4]))")
_PERIOD = re.compile(r"([0-9]{4})(?:[-/]([0-9]{1,2}))?(?:[-/]([0-9]{1,2}))?")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ].+")
_BETWEEN = re.compile(
    r"(?:from\s+|between\s+|since\s+)?(.+?)\s+(?:to|until|till|through|and|-|–|—)\s+(.+)"
)
_OPEN = re.compile(r"(since|after|from|before|until|till)\s+(.+)")
_YEAR = re.compile(r"(?<![0-9])[0-9]{4}(?![0-9])")
_DATE_IN_NAME = re.compile(r"(?<![0-9])([0-9]{4})-?([0-9]{2})-?([0-9]{2})(?![0-9])")
_DATE_KEYS = ("date", "created", "day")
# Larger numbers are milliseconds, as in JavaScript programs.
_MILLISECONDS = 100_000_000_000


def read_time_range(value: object, now: datetime) -> TimeRange | None:
    """Parse a range from words, or from `startTime` and `endTime`; return None if there is nothing
    to parse.

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
    """Describe a time range in words, in days if it consists of whole ones; empty for all time."""
    first, last = (
        None if moment is None else _name_moment(datetime.fromtimestamp(moment))
        for moment in (start, end)
    )
    if first and last:
        return f"{first} to before {last}"
    return f"since {first}" if first else f"before {last}" if last else ""


def is_of_time(note: Note, time: TimeRange) -> bool:
    """Return whether a note changed in a time range, or has a date within it in its name or
    frontmatter."""
    return time.holds(note.mtime) or any(time.holds(_start_of(day)) for day in note_dates(note))


def note_dates(note: Note) -> Iterator[date]:
    """Yield the dates of a note."""
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
    if (moments := _read_period(words, now)) is not None:
        return moments
    if match := _BETWEEN.fullmatch(words):
        end = _read_end(match[2], now, is_last=True)
        start = _read_end(match[1], now, is_last=False)
        year = _YEAR.search(match[2])
        if start and end and start >= end and year and not _YEAR.search(match[1]):
            # `March to May 2025`: the year is given once.
            start = _read_end(f"{match[1]} {year[0]}", now, is_last=False)
        return start, end
    if match := _OPEN.fullmatch(words):
        is_before = match[1] in ("before", "until", "till")
        moment = _read_end(match[2], now, is_last=match[1] in ("until", "till", "after"))
        return (None, moment) if is_before else (moment, None)
    raise UsageError(f"`timeRange`: {words!r} is no time that is understood; {KNOWN} are")


def _read_period(words: str, now: datetime) -> tuple[float, float] | None:
    """Return the start and end of a period."""
    words = re.sub(r"\s+", " ", words.replace(",", " ")).strip(" .!?")
    words = _LEAD.sub("", words, count=1) if _LEAD.match(words) else words
    if (moments := _read_hours(words, now)) is not None:
        return moments
    days = _read_days(words, now.date()) or _read_date_words(words, now.date())
    return None if days is None else _moments(*days)


def _read_hours(words: str, now: datetime) -> tuple[float, float] | None:
    """Parse a time counted in hours or minutes up to now; a single day is 24 hours."""
    for form, is_ago in ((_ROLLING, False), (_AGO, True)):
        if not (match := form.fullmatch(words)):
            continue
        count, unit = _counted(match)
        if unit == "day" and count == 1 and not is_ago:
            count, unit = 24, "hour"
        if seconds := _SECONDS.get(unit):
            start = now.timestamp() - count * seconds
            return start, start + seconds if is_ago else now.timestamp()
    return None


def _read_days(words: str, today: date) -> tuple[date, date] | None:
    """Parse a time relative to today: its first day, and the day after its last."""
    if words in ("today", "yesterday", "tomorrow"):
        first = today + timedelta(days=("yesterday", "today", "tomorrow").index(words) - 1)
        return first, first + timedelta(days=1)
    if _BEFORE_YESTERDAY.fullmatch(words):
        return today - timedelta(days=2), today - timedelta(days=1)
    if match := _NAMED.fullmatch(words):
        step = _steps(match["which"])
        if match["unit"] == "weekend":
            monday = _back(_begin(today, "week"), -step, "week")
            return monday + timedelta(days=5), monday + timedelta(days=7)
        return _whole(_back(_begin(today, match["unit"]), -step, match["unit"]), match["unit"])
    if match := _ROLLING.fullmatch(words):
        count, unit = _counted(match)
        tomorrow = today + timedelta(days=1)
        return _back(tomorrow, count, unit), tomorrow
    if match := _AGO.fullmatch(words):
        count, unit = _counted(match)
        return _whole(_begin(_back(today, count, unit), unit), unit)
    if match := _NEAR_WEEKDAY.fullmatch(words):
        number = [name[:3] for name in _WEEKDAYS].index(match["weekday"][:3])
        day = _begin(today, "week") + timedelta(days=number)
        if match["which"] in ("this", "current"):
            pass
        elif match["which"] in ("next", "coming"):
            day += timedelta(days=7 if day <= today else 0)
        elif day > today or (match["which"] and day == today):
            day -= timedelta(days=7)
        return _whole(day, "day")
    return None


def _read_date_words(words: str, today: date) -> tuple[date, date] | None:
    """Parse a calendar day, month or year. Without a year, it is the latest that has started."""
    if match := _PERIOD.fullmatch(words):
        first = _make_day(match[1], match[2] or "1", match[3] or "1")
        if first is None:
            raise UsageError(f"`timeRange`: there is no day {words!r}")
        return _whole(first, "day" if match[3] else "month" if match[2] else "year")
    if match := _QUARTER.fullmatch(words):
        year, number = match[2] or match[3], int(match[1] or match[4])
        quarter = _make_day(year, str(3 * number - 2), "1")
        return None if quarter is None else _whole(quarter, "quarter")
    if match := _NEAR_MONTH.fullmatch(words):
        first = date(today.year, _month_number(match["month"]), 1)
        step = _steps(match["which"]) if match["which"] else 0
        if step < 0 and first >= _begin(today, "month"):
            first = _back(first, 1, "year")
        elif step > 0 and first <= today:
            first = _back(first, -1, "year")
        elif not match["which"] and first > today:
            first = _back(first, 1, "year")
        return _whole(first, "month")
    for form in (_OF_YEAR, _MONTH_FIRST, _DAY_FIRST):
        if not (match := form.fullmatch(words)):
            continue
        found = match.groupdict()
        month, day, year = _month_number(found["month"]), found["day"], found.get("year")
        made = _make_day(year or str(today.year), str(month), day or "1")
        if made is not None and year is None and made > today:
            made = _make_day(str(today.year - 1), str(month), day or "1")
        if made is None:
            raise UsageError(f"`timeRange`: there is no day {words!r}")
        return _whole(made, "day" if day else "month")
    return None


def _counted(match: re.Match[str]) -> tuple[int, str]:
    """Return a count and its unit."""
    count = match["count"] or "1"
    unit = next(unit for unit in _UNITS if match[unit])
    return int(count) if count.isdigit() else _NUMBERS[count], unit


def _steps(which: str) -> int:
    return {"last": -1, "previous": -1, "next": 1, "coming": 1}.get(which, 0)


def _month_number(name: str) -> int:
    return [month[:3] for month in _MONTHS].index(name[:3]) + 1


def _whole(first: date, unit: str) -> tuple[date, date]:
    return first, _back(first, -1, unit)


def _read_end(value: object, now: datetime, *, is_last: bool) -> float | None:
    """Parse one end of a range: a time, or a period; of a period, the start or, for the last end,
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
        if (moments := _read_period(words, now)) is not None:
            return moments[is_last]
        if _MOMENT.fullmatch(words) and (moment := _read_moment(value.strip())) is not None:
            return moment
    raise UsageError(f"`timeRange`: {value!r} is no time that is understood; {KNOWN} are")


def _read_moment(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def _read_date(value: Any) -> date | None:
    """Return the date in a property, which may be followed by a time."""
    match = _PERIOD.match(value) if isinstance(value, str) else None
    return _make_day(match[1], match[2], match[3]) if match and match[2] and match[3] else None


def _make_day(year: str, month: str, day: str) -> date | None:
    try:
        made = date(int(year), int(month), int(day))
    except ValueError:
        return None
    # Earlier numbers are not computer clock times; numbers in names have other meanings.
    return made if made.year >= 1900 else None


def _begin(day: date, unit: str) -> date:
    """Return the first day of the week, month, quarter or year that contains a day; weeks start on
    Monday."""
    match unit:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=day.month - (day.month - 1) % 3, day=1)
        case "year":
            return day.replace(month=1, day=1)
        case _:
            return day


def _back(day: date, count: int, unit: str) -> date:
    """Return the day that many units earlier; in a shorter month, its last day."""
    try:
        if unit in _DAYS:
            return day - timedelta(days=count * _DAYS[unit])
        months = day.year * 12 + day.month - 1 - count * _MONTH_COUNTS[unit]
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

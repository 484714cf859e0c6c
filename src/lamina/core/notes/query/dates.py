"""Dates and spans of time: how they are spelled, and how one reckons with them.

Laws: a date has no zone; one that is spelled with a zone becomes the time in ours. Months and years
are as long as the calendar says where a date is at hand, and 30 and 365 days where none is. Nothing
here looks at a clock.
"""

import re
from calendar import monthrange
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from lamina.core.notes.query.values import TimeSpan, tidy

UNITS = ("years", "months", "weeks", "days", "hours", "minutes", "seconds", "milliseconds")
_SPELLINGS = {
    "years": ("year", "years", "yr", "yrs"),
    "months": ("month", "months", "mo", "mos"),
    "weeks": ("week", "weeks", "wk", "wks", "w"),
    "days": ("day", "days", "d"),
    "hours": ("hour", "hours", "hr", "hrs", "h"),
    "minutes": ("minute", "minutes", "min", "mins", "m"),
    "seconds": ("second", "seconds", "sec", "secs", "s"),
}
_UNIT_OF = {spelling: unit for unit, names in _SPELLINGS.items() for spelling in names}
_DATE = re.compile(
    r"(?P<year>\d{4})-(?P<month>\d{2})(?:-(?P<day>\d{2})(?:T(?P<hour>\d{2})(?::(?P<minute>\d{2})"
    r"(?::(?P<second>\d{2})(?:\.(?P<part>\d{1,6}))?)?)?(?P<zone>Z|[+-]\d{1,2}(?::?\d{2})?)?)?)?",
    re.ASCII,
)
_PARTS = {"year": 1, "month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0}
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
_NAMES = "|".join(sorted(_UNIT_OF, key=len, reverse=True))
_SPAN_PART = re.compile(rf"({_NUMBER})\s*({_NAMES})")
_SPAN_GAP = re.compile(r"\s*,?\s*")
MOST_SPAN_TEXT = 200
# What a unit is in the next smaller one, and in the smaller ones behind it.
_DAY_PARTS = (24, 24 * 60, 24 * 3_600, 24 * 3_600_000)
_SMALLER: dict[str, tuple[float, ...]] = {
    "years": (12, 52, 365, *(365 * part for part in _DAY_PARTS)),
    "months": (4, 30, *(30 * part for part in _DAY_PARTS)),
    "weeks": (7, *(7 * part for part in _DAY_PARTS)),
    "days": _DAY_PARTS,
    "hours": (60, 3_600, 3_600_000),
    "minutes": (60, 60_000),
    "seconds": (1_000,),
    "milliseconds": (),
}
_IN_MS = tuple((*_SMALLER[unit], 1)[-1] if unit == "milliseconds" else _SMALLER[unit][-1]
               for unit in UNITS)  # fmt: skip
SHORTHANDS = {
    "now", "today", "tomorrow", "yesterday", "sow", "start-of-week", "eow", "end-of-week", "som",
    "start-of-month", "eom", "end-of-month", "soy", "start-of-year", "eoy", "end-of-year",
}  # fmt: skip
_LONG = {"start-of-": "so", "end-of-": "eo"}


def read_date(text: str, zone: tzinfo | None = UTC) -> datetime | None:
    """The date that a text spells, from `2026-01` to `2026-01-31T12:30:15.250+02:00`; None if it
    spells none."""
    match = _DATE.fullmatch(text) if text[4:5] == "-" else None
    if match is None:
        return None
    year, month, day, hour, minute, second = (
        int(match[name] or least) for name, least in _PARTS.items()
    )
    part = int((match["part"] or "0").ljust(6, "0"))
    try:
        moment = datetime(year, month, day, hour, minute, second, part)
        offset = _read_zone(match["zone"])
        if offset is None:
            return moment
        return moment.replace(tzinfo=offset).astimezone(zone).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        return None


def _read_zone(spelling: str | None) -> tzinfo | None:
    if spelling is None:
        return None
    if spelling == "Z":
        return UTC
    hours, _, minutes = spelling[1:].partition(":")
    if len(hours) == 4:
        hours, minutes = hours[:2], hours[2:]
    span = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return timezone(-span if spelling[0] == "-" else span)


def find_date(text: str) -> datetime | None:
    """The first day within a text, as `2026-01-31` or `20260131`."""
    match = re.search(r"(\d{4})-(\d{2})-(\d{2})|(?<!\d)(\d{4})(\d{2})(\d{2})(?!\d)", text, re.ASCII)
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups() if part is not None)
    try:
        return datetime(year, month, day)
    except ValueError:
        return None


def read_span(text: str) -> TimeSpan | None:
    """The span of time that a text spells, as `6 hours, 4 min`; None if it spells none."""
    text = text.strip()
    if not text[:2].strip("-")[:1].isdigit() or len(text) > MOST_SPAN_TEXT:
        return None
    units = dict.fromkeys(UNITS, 0.0)
    at = 0
    while at < len(text):
        match = _SPAN_PART.match(text, at)
        if match is None:
            return None
        units[_UNIT_OF[match[2]]] += float(match[1])
        gap = _SPAN_GAP.match(text, match.end())
        at = gap.end() if gap else match.end()
    return make_span(units.values())


def make_span(units: Iterable[float]) -> TimeSpan:
    return TimeSpan(tuple(tidy(unit) for unit in units))


def milliseconds_of(span: TimeSpan) -> float:
    return sum(value * factor for value, factor in zip(span.units, _IN_MS, strict=True))


def convert(span: TimeSpan, unit: str) -> float:
    """All of a span in one unit."""
    place = UNITS.index(unit)
    total = 0.0
    for at, value in enumerate(span.units):
        if at < place:
            total += value * _SMALLER[UNITS[at]][place - at - 1]
        elif at > place:
            total += value / _SMALLER[unit][at - place - 1]
        else:
            total += value
    return tidy(total)


def normalize_span(span: TimeSpan) -> TimeSpan:
    """The same span with every unit as full as it gets: 90 minutes are 1 hour, 30 minutes."""
    units = list(span.units)
    sign = -1 if milliseconds_of(span) < 0 else 1
    for at in range(len(UNITS) - 1, 0, -1):
        factor = _SMALLER[UNITS[at - 1]][0]
        whole = units[at] * sign // factor
        units[at - 1] += whole * sign
        units[at] -= whole * factor * sign
    for at in range(len(UNITS) - 1):
        part = units[at] - int(units[at])
        units[at] -= part
        units[at + 1] += part * _SMALLER[UNITS[at]][0]
    return make_span(units)


def shift(date: datetime, span: TimeSpan, sign: int = 1) -> datetime:
    """A date, and a span later; with the sign -1 earlier.

    Raises:
        OverflowError: there is no such year.
    """
    years, months, weeks, days, hours, minutes, seconds, part = (sign * u for u in span.units)
    count = date.year * 12 + date.month - 1 + int(years) * 12 + int(months)
    year, month = divmod(count, 12)
    if not 1 <= year <= 9999:
        raise OverflowError(f"there is no year {year}")
    day = min(date.day, monthrange(year, month + 1)[1])
    rest = timedelta(days=365 * (years - int(years)) + 30 * (months - int(months)))
    later = date.replace(year=year, month=month + 1, day=day)
    return (
        later
        + rest
        + timedelta(
            weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=part
        )
    )


def difference(later: datetime, earlier: datetime) -> TimeSpan:
    """The span between two dates, in whole years, months, weeks and so on."""
    if later < earlier:
        return make_span(-unit for unit in difference(earlier, later).units)
    months = (later.year - earlier.year) * 12 + later.month - earlier.month
    start = shift(earlier, TimeSpan((0, months, 0, 0, 0, 0, 0, 0)))
    if start > later:
        months -= 1
        start = shift(earlier, TimeSpan((0, months, 0, 0, 0, 0, 0, 0)))
    rest = later - start
    milliseconds = rest.seconds * 1_000 + rest.microseconds / 1_000
    return normalize_span(
        make_span((months // 12, months % 12, 0, rest.days, 0, 0, 0, milliseconds))
    )


def find_shorthand(name: str, now: datetime) -> datetime:
    """The date that a word such as `today` or `eom` means."""
    for long, short in _LONG.items():
        if name.startswith(long):
            name = short + name.removeprefix(long)[0]
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    tick = timedelta(milliseconds=1)
    month_days = monthrange(today.year, today.month)[1]
    match name:
        case "now":
            return now
        case "today":
            return today
        case "tomorrow":
            return today + timedelta(days=1)
        case "yesterday":
            return today - timedelta(days=1)
        case "sow":
            return today - timedelta(days=today.weekday())
        case "eow":
            return today + timedelta(days=7 - today.weekday()) - tick
        case "som":
            return today.replace(day=1)
        case "eom":
            return today.replace(day=month_days) + timedelta(days=1) - tick
        case "soy":
            return today.replace(month=1, day=1)
        case _:
            return today.replace(month=12, day=31) + timedelta(days=1) - tick

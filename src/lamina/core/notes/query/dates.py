"""Parses, calculates and formats dates and time spans in queries.

Laws: a date has no zone; one that is spelled with a zone is converted to ours. The lengths of
months and years follow the calendar if a date is available; otherwise they are 30 and 365 days. No
clock is used. In a pattern such as `yyyy-MM-dd`, names of months and days are English, whatever the
language of the machine, so that the same query returns the same text everywhere. Letters without a
meaning, and quoted text, are literal.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Iterable
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
MAX_SPAN_TEXT = 200
# Each unit expressed in the next smaller one, and in the ones after it.
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
    """Parse a date, from `2026-01` to `2026-01-31T12:30:15.250+02:00`; return None if it is not
    one."""
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
    """Return the first day in a string, as `2026-01-31` or `20260131`."""
    match = re.search(r"(\d{4})-(\d{2})-(\d{2})|(?<!\d)(\d{4})(\d{2})(\d{2})(?!\d)", text, re.ASCII)
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups() if part is not None)
    try:
        return datetime(year, month, day)
    except ValueError:
        return None


def read_span(text: str) -> TimeSpan | None:
    """Parse a time span such as `6 hours, 4 min`; return None if it is not one."""
    text = text.strip()
    if not text[:2].strip("-")[:1].isdigit() or len(text) > MAX_SPAN_TEXT:
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
    """Convert an entire span to one unit."""
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
    """Return the same span with each unit as full as possible: 90 minutes are 1 hour, 30
    minutes."""
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
    """Return a date shifted by a span, backwards if the sign is -1.

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
    """Return the span between two dates, in whole years, months, weeks and so on."""
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
    """Return the date for a word such as `today` or `eom`."""
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


_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_TOKEN = re.compile(r"'[^']*'|([A-Za-z])\1*|.", re.DOTALL)
_EPOCH = datetime(1970, 1, 1)


def _hour12(date: datetime) -> int:
    return date.hour % 12 or 12


def _half(date: datetime) -> str:
    return "AM" if date.hour < 12 else "PM"


def _time(date: datetime, seconds: bool = False) -> str:
    tail = f":{date.second:02}" if seconds else ""
    return f"{_hour12(date)}:{date.minute:02}{tail} {_half(date)}"


def _long_day(date: datetime, names: int = 9, weekday: bool = False) -> str:
    front = f"{_DAYS[date.weekday()]}, " if weekday else ""
    return f"{front}{_MONTHS[date.month - 1][:names]} {date.day}, {date.year}"


def _short_day(date: datetime) -> str:
    return f"{date.month}/{date.day}/{date.year}"


_WRITERS: dict[str, Callable[[datetime], str]] = {
    "S": lambda d: str(d.microsecond // 1_000),
    "SSS": lambda d: f"{d.microsecond // 1_000:03}",
    "u": lambda d: f"{d.microsecond // 1_000:03}",
    "s": lambda d: str(d.second),
    "ss": lambda d: f"{d.second:02}",
    "m": lambda d: str(d.minute),
    "mm": lambda d: f"{d.minute:02}",
    "h": lambda d: str(_hour12(d)),
    "hh": lambda d: f"{_hour12(d):02}",
    "H": lambda d: str(d.hour),
    "HH": lambda d: f"{d.hour:02}",
    "a": _half,
    "d": lambda d: str(d.day),
    "dd": lambda d: f"{d.day:02}",
    **dict.fromkeys(("c", "E"), lambda d: str(d.isoweekday())),
    **dict.fromkeys(("ccc", "EEE"), lambda d: _DAYS[d.weekday()][:3]),
    **dict.fromkeys(("cccc", "EEEE"), lambda d: _DAYS[d.weekday()]),
    **dict.fromkeys(("ccccc", "EEEEE"), lambda d: _DAYS[d.weekday()][0]),
    **dict.fromkeys(("L", "M"), lambda d: str(d.month)),
    **dict.fromkeys(("LL", "MM"), lambda d: f"{d.month:02}"),
    **dict.fromkeys(("LLL", "MMM"), lambda d: _MONTHS[d.month - 1][:3]),
    **dict.fromkeys(("LLLL", "MMMM"), lambda d: _MONTHS[d.month - 1]),
    **dict.fromkeys(("LLLLL", "MMMMM"), lambda d: _MONTHS[d.month - 1][0]),
    "y": lambda d: str(d.year),
    "yy": lambda d: f"{d.year % 100:02}",
    "yyyy": lambda d: f"{d.year:04}",
    "yyyyyy": lambda d: f"{d.year:06}",
    "G": lambda _: "AD",
    "GG": lambda _: "Anno Domini",
    "kk": lambda d: f"{d.isocalendar().year % 100:02}",
    "kkkk": lambda d: f"{d.isocalendar().year:04}",
    "W": lambda d: str(d.isocalendar().week),
    "WW": lambda d: f"{d.isocalendar().week:02}",
    "o": lambda d: str(d.timetuple().tm_yday),
    "ooo": lambda d: f"{d.timetuple().tm_yday:03}",
    "q": lambda d: str((d.month + 2) // 3),
    "qq": lambda d: f"{(d.month + 2) // 3:02}",
    "X": lambda d: str(int((d - _EPOCH).total_seconds())),
    "x": lambda d: str((d - _EPOCH) // timedelta(milliseconds=1)),
    "D": _short_day,
    "DD": lambda d: _long_day(d, 3),
    "DDD": _long_day,
    "DDDD": lambda d: _long_day(d, weekday=True),
    "t": _time,
    "tt": lambda d: _time(d, seconds=True),
    "T": lambda d: f"{d.hour:02}:{d.minute:02}",
    "TT": lambda d: f"{d.hour:02}:{d.minute:02}:{d.second:02}",
    "f": lambda d: f"{_short_day(d)}, {_time(d)}",
    "ff": lambda d: f"{_long_day(d, 3)}, {_time(d)}",
    "fff": lambda d: f"{_long_day(d)} at {_time(d)}",
    "ffff": lambda d: f"{_long_day(d, weekday=True)} at {_time(d)}",
    "F": lambda d: f"{_short_day(d)}, {_time(d, seconds=True)}",
    "FF": lambda d: f"{_long_day(d, 3)}, {_time(d, seconds=True)}",
}


def format_date(date: datetime, pattern: str) -> str:
    """Return a date formatted by a pattern."""

    def write(token: re.Match[str]) -> str:
        writer = _WRITERS.get(token[0])
        return writer(date) if writer else _plain(token[0])

    return _TOKEN.sub(write, pattern)


def _plain(token: str) -> str:
    return token[1:-1] if token[0] == "'" and len(token) > 1 else token


_SPAN_LETTERS = dict(zip("yMwdhmsS", UNITS, strict=True))
# A word containing other letters is literal: `days`.
_SPAN_TOKEN = re.compile(
    r"'[^']*'|(?<![A-Za-z])(?![yMwdhmsS]+(?![A-Za-z]))[A-Za-z]+|(?P<run>[yMwdhmsS])(?P=run)*|.",
    re.DOTALL,
)


def format_span(span: TimeSpan, pattern: str) -> str:
    """Format a span by a pattern: whatever does not fit into the larger units in the pattern is in
    the smaller ones, so `h` alone contains all hours."""
    named = {token["run"] for token in _SPAN_TOKEN.finditer(pattern) if token["run"]}
    letters = [letter for letter in _SPAN_LETTERS if letter in named]
    amounts: dict[str, float] = {}
    rest = span
    for place, letter in enumerate(letters):
        unit = _SPAN_LETTERS[letter]
        total = convert(rest, unit)
        whole = int(total + 1e-9) if total >= 0 else -int(-total + 1e-9)
        amounts[letter] = whole
        if place < len(letters) - 1:
            smaller = _SPAN_LETTERS[letters[place + 1]]
            one = TimeSpan(tuple(1 if name == unit else 0 for name in UNITS))
            left = convert(rest, smaller) - whole * convert(one, smaller)
            rest = TimeSpan(tuple(left if name == smaller else 0 for name in UNITS))

    def write(token: re.Match[str]) -> str:
        if token["run"]:
            return str(int(amounts[token["run"]])).rjust(len(token[0]), "0")
        return _plain(token[0])

    return _SPAN_TOKEN.sub(write, pattern)


_NAMES_BY_LETTERS = {"MMM": _MONTHS, "MMMM": _MONTHS, "LLL": _MONTHS, "LLLL": _MONTHS, "EEE": _DAYS,
          "EEEE": _DAYS, "ccc": _DAYS, "cccc": _DAYS}  # fmt: skip
_READERS = {
    "yyyy": r"\d{4}", "yy": r"\d{2}", "y": r"\d{1,6}", "MM": r"\d{2}", "M": r"\d{1,2}",
    "LL": r"\d{2}", "L": r"\d{1,2}", "dd": r"\d{2}", "d": r"\d{1,2}", "HH": r"\d{2}",
    "H": r"\d{1,2}", "hh": r"\d{2}", "h": r"\d{1,2}", "mm": r"\d{2}", "m": r"\d{1,2}",
    "ss": r"\d{2}", "s": r"\d{1,2}", "SSS": r"\d{3}", "S": r"\d{1,3}", "a": r"[AaPp][Mm]",
    "x": r"-?\d{1,14}", "X": r"-?\d{1,11}", "W": r"\d{1,2}", "WW": r"\d{2}", "kkkk": r"\d{4}",
    "E": r"\d", "c": r"\d", "o": r"\d{1,3}", "ooo": r"\d{3}",
}  # fmt: skip


def read_by_format(text: str, pattern: str) -> datetime | None:
    """Parse a date by a pattern; return None if it does not match."""
    expression, letters = "", list[str]()
    for token in _TOKEN.finditer(pattern):
        if token[0] in _NAMES_BY_LETTERS:
            size = 3 if len(token[0]) == 3 else 9
            expression += f"({'|'.join(name[:size] for name in _NAMES_BY_LETTERS[token[0]])})"
        elif token[0] in _READERS:
            expression += f"({_READERS[token[0]]})"
        else:
            expression += re.escape(_plain(token[0]))
            continue
        letters.append(token[0])
    match = re.fullmatch(expression, text.strip(), re.IGNORECASE | re.ASCII)
    if match is None:
        return None
    try:
        return _build(dict(zip(letters, match.groups(), strict=True)))
    except (ValueError, OverflowError):
        return None


def _build(parts: dict[str, str]) -> datetime:
    for letter, factor in (("x", 1), ("X", 1_000)):
        if letter in parts:
            return _EPOCH + timedelta(milliseconds=int(parts[letter]) * factor)
    values: dict[str, int] = {}
    for token, spelling in parts.items():
        if token in _NAMES_BY_LETTERS:
            if _NAMES_BY_LETTERS[token] is _MONTHS:
                names = [name[:3].lower() for name in _MONTHS]
                values["M"] = names.index(spelling[:3].lower()) + 1
        elif token == "a":
            values["a"] = spelling.lower() == "pm"
        else:
            letter = "M" if token[0] == "L" else token[0]
            values[letter] = int(spelling)
    year = values.get("y", 1970)
    if "yy" in parts:
        year += 1900 if year > 60 else 2000
    if "W" in values:
        monday = datetime.fromisocalendar(values.get("k", year), values["W"], 1)
        return monday + timedelta(days=values.get("E", values.get("c", 1)) - 1)
    if "o" in values:
        return datetime(year, 1, 1) + timedelta(days=values["o"] - 1)
    hour = values.get("H", values.get("h", 0) % 12 + 12 * values.get("a", 0))
    return datetime(
        year, values.get("M", 1), values.get("d", 1), hour, values.get("m", 0),
        values.get("s", 0), values.get("S", 0) * 1_000,
    )  # fmt: skip

"""Dates by a pattern of letters, as `yyyy-MM-dd`: written and read.

Law: names of months and days are English, whatever the machine speaks, so that the same query gives
the same text everywhere. Letters that mean nothing stand for themselves; so does text in quotes.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta

from lamina.core.notes.query.dates import UNITS, convert
from lamina.core.notes.query.values import TimeSpan

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
    """A date by a pattern."""

    def write(token: re.Match[str]) -> str:
        writer = _WRITERS.get(token[0])
        return writer(date) if writer else _plain(token[0])

    return _TOKEN.sub(write, pattern)


def _plain(token: str) -> str:
    return token[1:-1] if token[0] == "'" and len(token) > 1 else token


_SPAN_LETTERS = dict(zip("yMwdhmsS", UNITS, strict=True))
# A word with other letters is a word: `days`.
_SPAN_TOKEN = re.compile(
    r"'[^']*'|(?<![A-Za-z])(?![yMwdhmsS]+(?![A-Za-z]))[A-Za-z]+|(?P<run>[yMwdhmsS])(?P=run)*|.",
    re.DOTALL,
)


def format_span(span: TimeSpan, pattern: str) -> str:
    """A span by a pattern: what does not fit into the larger units that it names is in the smaller
    ones, so that `h` alone has all hours."""
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


_NAMES = {"MMM": _MONTHS, "MMMM": _MONTHS, "LLL": _MONTHS, "LLLL": _MONTHS, "EEE": _DAYS,
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
    """The date that a text spells by a pattern; None if it does not."""
    expression, letters = "", list[str]()
    for token in _TOKEN.finditer(pattern):
        if token[0] in _NAMES:
            size = 3 if len(token[0]) == 3 else 9
            expression += f"({'|'.join(name[:size] for name in _NAMES[token[0]])})"
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
        if token in _NAMES:
            if _NAMES[token] is _MONTHS:
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

"""What the functions and operators of queries come to, as Dataview's own pages show it."""

from datetime import datetime
from typing import Any

import pytest

from lamina.core.notes.query.compiler import Compiler
from lamina.core.notes.query.evaluator import evaluate_expression
from lamina.core.notes.query.note_index import QueryNotes
from lamina.core.notes.query.parser import parse_expression
from lamina.core.notes.query.query_functions import FUNCTIONS
from lamina.core.notes.query.work_limit import WorkLimit
from lamina.core.values.note import Note
from lamina.errors import QueryError

NOTES = QueryNotes((
    Note(path="a.md", title="a", digest="a", properties={"text": "x" * 3_000, "n": 3}),
    Note(path="days/2021-04-16.md", title="2021-04-16", digest="b"),
))  # fmt: skip


def value(text: str) -> Any:
    compiler = Compiler(NOTES, "a.md", datetime(2026, 1, 6, 12, 30), WorkLimit())
    return evaluate_expression(parse_expression(text), compiler)


TRUE = r"""
lower(["YES", "NO"]) = ["yes", "no"]
upper("a") = "A"
replace(["yes", "ree"], "e", "a") = ["yas", "raa"]
object("a", 4, "c", "yes") = {a: 4, c: "yes"}
array("a", "b") = list("a", "b")
date("2020-04-18") = date(2020-04-18)
date([[2021-04-16]]) = date(2021-04-16)
date("12/31/2022", "MM/dd/yyyy") = date(2022-12-31)
date("210313", "yyMMdd") = date(2021-03-13)
date("946778645000", "x") = date(2000-01-02T02:04:05)
date("3 Jan 2022", "d MMM yyyy") = date(2022-01-03)
date("no date") = null
dur("8 minutes, 4 seconds") = dur(8 minutes, 4 seconds)
dur(dur(8 minutes)) = dur(8 minutes)
dur(1second 2min 3h) = dur(1 s, 2 m, 3 h)
number("18 years") = 18
number("hmm") = null
string(18) = "18"
string(dur(8 hours)) = "8 hours"
string(date(2021-08-15)) = "August 15, 2021"
string(date(2021-08-15T09:05)) = "9:05 AM - August 15, 2021"
string([1, ["a"]]) = "1, [a]"
meta(link("Hello", "Goodbye")).display = "Goodbye"
meta(embed([[Hello.png]])).embed
typeof(elink("www.example.org", "Example")) = "widget"
typeof([1]) + typeof({}) + typeof(dur(1 d)) + typeof([[x]]) = "arrayobjectdurationlink"
round(16.555555, 2) = 16.56
round(-2.5) = -2
trunc(-93.33333) = -93
floor(-93.33333) = -94
ceil(-93.33333) = -93
min([1, 2, 3]) = 1
max("a", "ab", "abc") = "abc"
max(null, 3) = 3
sum([1, 2, 3]) = 6
sum([]) = null
sum(["a", 1]) = "a1"
product([1, 2, 3]) = 6
reduce([100, 20, 3], "-") = 77
reduce(["⭐", 3], "*") = "⭐⭐⭐"
reduce([1, null, 2], (a, b) => a + b) = 3
average([1, 2]) = 1.5
average([dur(1 h), dur(2 h)]) = dur(90 m)
minby([1, 2, 3], (k) => 0 - k) = 3
maxby([1, 2, 3], (k) => 0 - k) = 1
icontains("Hello", "Lo") and !contains("Hello", "Lo")
contains(["this", "example"], "ex") and !econtains(["this", "example"], "ex")
contains({key: 1}, "key") and !contains({key: 1}, "1")
contains(["a", "b"], ["a", "z"]) = [true, false]
containsword(["word", "Words"], "Word") = [true, false]
containsword("Hello there!", "HeLLo")
extract({a: 1, b: 2}, "a") = {a: 1}
sort(list("a", "b", "aa")) = list("a", "aa", "b")
sort([1, 2, 3], (k) => 0 - k) = [3, 2, 1]
reverse(list(1, 2, 3)) = list(3, 2, 1)
length([1, 2]) + length("abc") + length({a: 1}) + length(null) = 6
nonnull([null, false]) = [false]
firstvalue([null, 2, 3]) = 2
all([1, 2, 3], (x) => x > 0) and !all(true, false)
any(list(1, 2, 3), (x) => x > 2) and !any(false, false)
none([]) and none([true], (x) => x = false)
join(list(1, 2, 3), " ") = "1 2 3"
join(list()) = ""
filter([1, 2, 3], (x) => x >= 2) = [2, 3]
map(["yes", "no"], (x) => x + "?") = ["yes?", "no?"]
flat(list(1, list(21, 22), list(list(311, 312))), 4) = list(1, 21, 22, 311, 312)
flat([1, [2, [3]]]) = [1, 2, [3]]
slice([1, 2, 3, 4, 5], -2) = [4, 5]
unique([1, 2, 1]) = [1, 2]
regextest("what", "what's up dog?") and !regexmatch("what", "what's up dog?")
regexmatch("\w+", "hello")
regexreplace("Suite 1000", "\d+", "-") = "Suite -"
regexreplace("2022-01", "(\d+)-(?<m>\d+)", "$2/$1 $<m>") = "01/2022 01"
regextest("x", null) = false
replace("The big dog", "big", "small") = "The small dog"
split("hello there world", "(t?here)") = list("hello ", "there", " world")
split("hello there world", "( )(x)?") = list("hello", " ", "", "there", " ", "", "world")
split("a, b, c", ", ", 2) = ["a", "b"]
startswith("path/to", "path/") and endswith("path/to", "to")
padleft("yes", 5, "!") + padright("yes", 5, "!") = "!!yesyes!!"
substring("hello", 2, 4) + substring("hello", 2) = "llllo"
truncate("Hello there!", 8) = "Hello..."
truncate("Hello there!", 8, "/") = "Hello t/"
default(list(1, 2, null), 3) = list(1, 2, 3)
ldefault(list(1, 2, null), 3) = list(1, 2, null)
choice([true, false], "a", "b") = ["a", "b"]
hash("a", "b") = hash("a", "b") and hash("a") != hash("b")
striptime(date(2022-01-05T10:00)) = date(2022-01-05)
dateformat(date(2022-01-05T13:08:09), "yyyy-MM-dd HH:mm:ss") = "2022-01-05 13:08:09"
dateformat(date(2022-01-05), "cccc, d. LLLL kkkk-'W'WW") = "Wednesday, 5. January 2022-W01"
dateformat([date(2022-01-05)], "MMM") = ["Jan"]
durationformat(dur("3 days 7 hours 43 seconds"), "ddd'd' hh'h' ss's'") = "003d 07h 43s"
durationformat(dur("365 days 5 hours 49 minutes"), "yyyy ddd hh mm ss") = "0001 000 05 49 00"
durationformat(dur("2000 years"), "M months") = "24000 months"
currencyformat(123456.789, "EUR") = "€123,456.79"
localtime(date(2022-01-05)) = date(2022-01-05)
meta([[My Project#Next Actions]]).path = "My Project"
meta([[P#^9b]]) = {display: null, embed: false, path: "P", subpath: "9b", type: "block"}
date(2021-03-31) + dur(1 month) = date(2021-04-30)
date(2024-02-29) - dur(1 yr) = date(2023-02-28)
date(2021-08-15) - date(2020-07-10) = dur(1 year, 1 month, 5 days)
(date(2021-01-03) - date(2021-01-01)).hours = 48
dur(90 m).hours = 1.5
dur(1 d) * 2 - dur(1 d) / 2 = dur(36 h)
date(2026-01-06).weekyear = 2 and date(2026-01-06).weekday = 2
date(today) = date(2026-01-06) and date(now) = date(2026-01-06T12:30)
date(sow) = date(2026-01-05) and date(eom) > date(2026-01-31) and date(soy) = date(2026-01-01)
date(tomorrow) - date(yesterday) = dur(2 d)
[1] + [2] = [1, 2] and {a: 1} + {b: 2} = {a: 1, b: 2}
"a" + 1 + null + [2] = "a1-2"
"ab" * 2 = "abab" and 7 % 4 = 3 and 1 / 4 = 0.25
null + null = null and date(today) - null = null
{a: {b: [5]}}.a.b[0] = 5 and "abc"[1] = "b" and [1][7] = null
{EN: "English"}["EN"] = "English"
((x) => {EN: "English"}[x])("EN") = "English"
[{a: 1}, {a: 2}].a = [1, 2]
[[a]].n = 3
this.n + n = 6
row.n = 3
[[2021-04-16]].file.day = date(2021-04-16)
"2" in ["1", "2"] and "b" in "abc" and !("z" in {a: 1})
"""


@pytest.mark.parametrize("text", TRUE.strip().splitlines())
def test_it_is_so(text: str) -> None:
    assert value(text) is True


def test_every_function_is_shown_above() -> None:
    assert {name for name in FUNCTIONS if f"{name}(" not in TRUE} == {"display"}
    assert value('display(link("a", "b"))') == "b"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('1 + lower("a") - 1', "string - number has no value"),
        ("lower(3)", "lower() does not take number"),
        ("null + 1", "null + number has no value"),
        ("3(1)", "number cannot be called"),
        ("date(2026-01-31) + dur(9999 years)", "there is no year 12025"),
        ('regextest("(", "a")', "'(' is no pattern that is understood"),
    ],
)
def test_what_has_no_value_says_why(text: str, problem: str) -> None:
    with pytest.raises(QueryError, match="line 1, column 1") as caught:
        value(text)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*$",
        "(a*)*b",
        "(.*)*",
        "(x+x+)+y",
        "((ab)?)+c",
        "(a?){50}a{50}",
        "(a{1,9}){9}",
    ],
)
def test_a_pattern_that_may_take_for_ever_is_refused(pattern: str) -> None:
    with pytest.raises(QueryError, match="may take for ever"):
        value(f'regextest("{pattern}", this.text)')


def test_a_pattern_of_many_repeats_is_used_on_short_texts_only() -> None:
    assert value('regextest(".*a.*b.*c.*", "xxaxxbxxc")') is True
    with pytest.raises(QueryError, match=r"may take too long for a text of 3,000 characters"):
        value('regextest(".*a.*b.*c.*", this.text)')
    assert value('regextest("[0-9]+ m", this.text)') is False


@pytest.mark.parametrize(
    "text",
    [
        'length("x" * 100000000) <= 100000',
        'length(padleft("x", 100000000)) <= 100000',
        'length(replace("xxxxxxxxxx", "", "y" * 1000)) <= 100000',
        "999999999999999 * 999999999999999 > 1",
        "1 / 0 > 1",
    ],
)
def test_nothing_grows_without_bounds(text: str) -> None:
    assert value(text) is True


def test_work_without_end_is_refused() -> None:
    digits = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    text = "x"
    for _ in range(7):
        text = f"map({digits}, (x) => {text})"
    with pytest.raises(QueryError, match="takes more than 3,000,000 steps"):
        value(text)

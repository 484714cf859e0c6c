"""`lamina log --requests` and `--request`: what was sent, against what was sent before."""

import json
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from inline_snapshot import snapshot
from tests.apps.cli.inside import error, lamina, output
from tests.fakes.clock import FakeClock
from tests.fakes.files import session_file
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import note

from lamina import Session, Settings, ToolDefinition, open_session
from lamina.apps.wiring import default_store
from lamina.core.values.item import Item, Picture, note_id
from lamina.core.values.message import ToolText

TARGET = "openai:gpt-4o"
SEARCH = ToolDefinition(name="search", description="Searches.")
MAY = note("plan.md", "# Plan\n\nThe pier opens in May.\nTickets cost 3.\n")
JUNE = note("plan.md", "# Plan\n\nThe pier opens in June.\nTickets cost 3.\n")


class Talk:
    """A session and its clock."""

    def __init__(self, session: Session, clock: FakeClock) -> None:
        self.session = session
        self.clock = clock

    async def ask(
        self, text: str, *attach: Item, answer: str = "Noted.", cached: int = 0, **given: Any
    ) -> None:
        self.clock.pass_by(20)
        turn = await self.session.prepare(text, attach=attach, **given)
        self.clock.pass_by(2.5)
        await turn.commit(openai_reply(answer, input=turn.prompt.tokens, cached=cached))


def keep(notes: Path, talk: Callable[[Talk], Awaitable[None]], **given: Any) -> Path:
    """Makes the session `pier`, and returns its file."""

    async def body() -> None:
        clock = FakeClock()
        given.setdefault("system", "Answer from the notes.\nBe brief.")
        async with await open_session(
            "pier", workspace=notes, target=TARGET, clock=clock, **given
        ) as session:
            await talk(Talk(session, clock))

    anyio.run(body)
    return session_file(notes, "pier")


async def all_kinds(talk: Talk) -> None:
    """A note, the note again, the note changed, a tool call, an idle hour, a branch, a question
    that was left, and one that waits."""
    session = talk.session
    await talk.ask("When does the pier open?", MAY, answer="In May.")
    await talk.ask("And the tickets?", MAY, answer="3.")
    await talk.ask("Still in May?", JUNE, answer="No:\nin June.")
    turn = await session.prepare("Is it on the web?")
    turn = await turn.commit(openai_reply(None, calls=[("c1", "search")], input=300, cached=0))
    turn = await turn.resume({"c1": "Nothing\nfound."})
    await turn.commit(openai_reply("It is not.", input=330, cached=0))
    talk.clock.pass_by(3_600)
    await talk.ask("Where were we?", JUNE)
    await session.navigate("000006")
    await talk.ask("Who sells them?")
    await session.prepare("Are you there?")
    await session.prepare("Hello?")


def shown(notes: Path, *options: str) -> str:
    return output("log", "pier", *options, cwd=notes)


def difference(notes: Path, *options: str) -> str:
    """What is shown from the comparison on."""
    said = shown(notes, *options)
    return said[said.rindex("\n## ") + 1 :]


# -- the list -----------------------------------------------------------------------------------


def test_all_requests_are_listed_with_what_came_of_them(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    assert shown(notes, "--requests") == snapshot("""\
#  entry   when            target         tokens  match  new  cached  outcome
1  000003  11-06 21:20:20  openai:gpt-4o     106      0  106       0  the first request
2  000007  11-06 21:20:42  openai:gpt-4o     144    106   38       0  too short to be cached · not on the active path
3  00000c  11-06 21:21:05  openai:gpt-4o     239    144   95       0  too short to be cached · not on the active path
4  000010  11-06 21:21:07  openai:gpt-4o     258    239   19       0  too short to be cached · not on the active path
5  000014  11-06 21:21:07  openai:gpt-4o     288    258   30       0  too short to be cached · not on the active path
6  000019  11-06 22:21:27  openai:gpt-4o     230     34  196       0  the cache no longer held it · not on the active path
7  00001f  11-06 22:21:50  openai:gpt-4o     128     34   94       0  the cache no longer held it
8  000023  11-06 22:21:52  openai:gpt-4o     143    128   15          never answered · not on the active path
9  000025  11-06 22:21:52  openai:gpt-4o     141    128   13          not answered yet
""")


def test_the_list_for_machines_names_the_request_each_is_compared_with(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    rows = json.loads(shown(notes, "--requests", "--json"))["requests"]
    assert [row["number"] for row in rows] == list(range(1, 10))
    assert [row["base_number"] for row in rows] == [None, 1, 2, 3, 4, 5, 1, 7, 7]
    assert [row["active"] for row in rows] == [True, *[False] * 5, True, False, True]
    assert [row["open"] for row in rows] == [*[False] * 8, True]
    assert [row["answered"] for row in rows] == [*[True] * 7, False, False]


# -- one request --------------------------------------------------------------------------------


def test_the_first_request_is_all_new(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    assert shown(notes, "--request", "1") == snapshot("""\
# Request 1 of 9

entry    000003 of session pier, 2026-11-06 21:20:20
target   openai:gpt-4o, lazy
size     106 tokens of 111,616 (window 128,000, 16,384 reserved for the answer)
usage    106 in, 0 cached, 5 out
cache    the first request
answer   In May. [stop, after 2.5 s]

| layer      | segments | tokens | stay | new |
|------------|---------:|-------:|-----:|----:|
| tools      |        1 |     22 |    0 |  22 |
| L1 system  |        1 |     12 |    0 |  12 |
| L3 turn    |        2 |     66 |    0 |  66 |
| L5 message |        1 |      6 |    0 |   6 |
| all        |        5 |    106 |    0 | 106 |

Boundary: the first request of this session.

## Items

| item    | placed in             | tokens | priority | included | why                      |
|---------|-----------------------|-------:|---------:|----------|--------------------------|
| plan.md | this message, in full |     56 |        5 | manual   | attached to this message |

## Tools

| tool   | tokens | included |
|--------|-------:|----------|
| search |     22 | always   |

## The first request on its path

+ tools       tools      tool:search                22  search: Searches.
+ L1 system   system     system:system              12  Answer from the notes. …(+1 line)
+ L3 turn     user       note:plan.md@88e95158      60  <note_context> …(+12 lines)
+ L3 turn     user       frame:000002                6  --- …(+2 lines)
+ L5 message  user       message:000002              6  When does the pier open?
""")


def test_a_note_that_is_only_named_is_not_sent_again(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    assert shown(notes, "--request", "2") == snapshot("""\
# Request 2 of 9

entry    000007 of session pier, 2026-11-06 21:20:42
target   openai:gpt-4o, lazy
size     144 tokens of 111,616 (window 128,000, 16,384 reserved for the answer)
usage    144 in, 0 cached, 5 out
cache    too short to be cached (106 tokens could be in the cache; nothing under 1,024 is kept); expected 0, reported 0
answer   3. [stop, after 2.5 s]
note     not on the active path

| layer      | segments | tokens | stay | new |
|------------|---------:|-------:|-----:|----:|
| tools      |        1 |     22 |   22 |   0 |
| L1 system  |        1 |     12 |   12 |   0 |
| L2 library |        1 |     60 |   60 |   0 |
| L3 turn    |        2 |     27 |    0 |  27 |
| L4 history |        3 |     19 |   12 |   7 |
| L5 message |        1 |      4 |    0 |   4 |
| all        |        9 |    144 |  106 |  38 |

## Items

| item    | placed in                      | tokens | priority | included | why                      |
|---------|--------------------------------|-------:|---------:|----------|--------------------------|
| plan.md | above, where it was first sent |     56 |        5 | manual   | attached to this message |

## Tools

| tool   | tokens | included |
|--------|-------:|----------|
| search |     22 | always   |

## Compared with request 1 (000003)

= 5 segments, 106 tokens unchanged: tools … L4 history
+ L4 history  assistant  message:000004       7  In May.
+ L3 turn     user       names:000006        21  Context attached to this message: …(+3 lines)
+ L3 turn     user       frame:000006         6  --- …(+2 lines)
+ L5 message  user       message:000006       4  And the tickets?
""")


def test_a_note_that_changed_is_shown_with_its_changed_lines(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    assert shown(notes, "--request", "3") == snapshot("""\
# Request 3 of 9

entry    00000c of session pier, 2026-11-06 21:21:05
target   openai:gpt-4o, lazy
size     239 tokens of 111,616 (window 128,000, 16,384 reserved for the answer)
usage    239 in, 0 cached, 5 out
cache    too short to be cached (144 tokens could be in the cache; nothing under 1,024 is kept); expected 0, reported 0
answer   No: …(+1 line) [stop, after 2.5 s]
note     not on the active path

| layer      | segments | tokens | stay | new |
|------------|---------:|-------:|-----:|----:|
| tools      |        1 |     22 |   22 |   0 |
| L1 system  |        1 |     12 |   12 |   0 |
| L2 library |        1 |     60 |   60 |   0 |
| L3 turn    |        3 |     85 |    0 |  85 |
| L4 history |        7 |     56 |   50 |   6 |
| L5 message |        1 |      4 |    0 |   4 |
| all        |       14 |    239 |  144 |  95 |

## Items

| item    | placed in             | tokens | priority | included | why                      |
|---------|-----------------------|-------:|---------:|----------|--------------------------|
| plan.md | this message, in full |     56 |        5 | manual   | attached to this message |

## Tools

| tool   | tokens | included |
|--------|-------:|----------|
| search |     22 | always   |

## Compared with request 2 (000007)

= 9 segments, 144 tokens unchanged: tools … L4 history
+ L4 history  assistant  message:000008              6  3.
+ L3 turn     user       names:00000b               22  Changed since it was last shown; the version below replaces the one above: …(+1 line)
+ L3 turn     user       note:plan.md@853dd8f1      57
    now above note:plan.md@88e95158:
    @@ -7,5 +7,5 @@
     # Plan

    -The pier opens in May.
    +The pier opens in June.
     Tickets cost 3.

+ L3 turn     user       frame:00000b                6  --- …(+2 lines)
+ L5 message  user       message:00000b              4  Still in May?
""")


def test_the_request_behind_a_tool_call_adds_the_call_and_its_result(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    calling = shown(notes, "--request", "4")
    assert "\nanswer   calls search {} [tool_calls, after 0.0 s]\n" in calling
    assert shown(notes, "--request", "5") == snapshot("""\
# Request 5 of 9

entry    000014 of session pier, 2026-11-06 21:21:07
target   openai:gpt-4o, lazy
size     288 tokens of 111,616 (window 128,000, 16,384 reserved for the answer)
usage    330 in, 0 cached, 5 out
cache    too short to be cached (296 tokens could be in the cache; nothing under 1,024 is kept); expected 0, reported 0
answer   It is not. [stop, after 0.0 s]
note     not on the active path

| layer      | segments | tokens | stay | new |
|------------|---------:|-------:|-----:|----:|
| tools      |        1 |     22 |   22 |   0 |
| L1 system  |        1 |     12 |   12 |   0 |
| L2 library |        2 |    117 |  117 |   0 |
| L4 history |       13 |    127 |   97 |  30 |
| L5 message |        1 |     10 |   10 |   0 |
| all        |       18 |    288 |  258 |  30 |

## Tools

| tool   | tokens | included |
|--------|-------:|----------|
| search |     22 | always   |

## Compared with request 4 (000010)

= 16 segments, 258 tokens unchanged: tools … L5 message
+ L4 history  assistant  message:000011      14  calls search {}
+ L4 history  tool       message:000013      16  search: Nothing …(+1 line)
""")


def test_a_boundary_is_shown_with_its_reason_where_the_prefix_moves(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    assert shown(notes, "--request", "6") == snapshot("""\
# Request 6 of 9

entry    000019 of session pier, 2026-11-06 22:21:27
target   openai:gpt-4o, lazy
size     230 tokens of 111,616 (window 128,000, 16,384 reserved for the answer)
usage    230 in, 0 cached, 5 out
cache    the cache no longer held it (3620 s since the last request; entries live 300 s); expected 0, reported 0
answer   Noted. [stop, after 2.5 s]
note     not on the active path

| layer      | segments | tokens | stay | new |
|------------|---------:|-------:|-----:|----:|
| tools      |        1 |     22 |   22 |   0 |
| L1 system  |        1 |     12 |   12 |   0 |
| L2 library |        2 |     69 |    0 |  69 |
| L3 turn    |        2 |     27 |    0 |  27 |
| L4 history |       10 |     96 |    0 |  96 |
| L5 message |        1 |      4 |    0 |   4 |
| all        |       17 |    230 |   34 | 196 |

Boundary: 3620 s since the last request; the cache lives 300 s.

History is processed again: 96 tokens for $0.000240.

## Items

| item    | placed in      | tokens | priority | included | why                      |
|---------|----------------|-------:|---------:|----------|--------------------------|
| plan.md | system library |     56 |        5 | manual   | attached to this message |

## Tools

| tool   | tokens | included |
|--------|-------:|----------|
| search |     22 | always   |

## Left out

| what         | reason     | detail                                |
|--------------|------------|---------------------------------------|
| note:plan.md | superseded | plan.md: 1 earlier version(s) removed |

## Compared with request 5 (000014)

= 2 segments, 34 tokens unchanged: tools … L1 system
! the prefix moves here (L2 library, system:library): 3620 s since the last request; the cache lives 300 s
- L2 library  user       note:plan.md@88e95158      60  <note_context> …(+12 lines)
- L4 history  user       frame:000002                6  --- …(+2 lines)
- L4 history  user       message:000002              6  When does the pier open?
+ L2 library  system     system:library             13  ## Context Library …(+2 lines)
+ L2 library  system     note:plan.md@853dd8f1      56  <note_context> …(+12 lines)
+ L4 history  user       message:000002             10  When does the pier open?  (same text, joined differently to the text before it)
= 1 segment, 7 tokens unchanged but after the change, so processed again: L4 history
- L4 history  user       names:000006               21  Context attached to this message: …(+3 lines)
- L4 history  user       frame:000006                6  --- …(+2 lines)
- L4 history  user       message:000006              4  And the tickets?
+ L4 history  user       message:000006              8  And the tickets?  (same text, joined differently to the text before it)
= 1 segment, 6 tokens unchanged but after the change, so processed again: L4 history
- L4 history  user       names:00000b               22  Changed since it was last shown; the version below replaces the one above: …(+1 line)
- L2 library  user       note:plan.md@853dd8f1      57  <note_context> …(+12 lines)
- L4 history  user       frame:00000b                6  --- …(+2 lines)
- L4 history  user       message:00000b              4  Still in May?
+ L4 history  user       message:00000b              8  Still in May?  (same text, joined differently to the text before it)
= 4 segments, 49 tokens unchanged but after the change, so processed again: L4 history
+ L4 history  assistant  message:000015              8  It is not.
+ L3 turn     user       names:000018               21  Context attached to this message: …(+3 lines)
+ L3 turn     user       frame:000018                6  --- …(+2 lines)
+ L5 message  user       message:000018              4  Where were we?
""")


def test_a_branch_is_compared_with_the_request_it_goes_on_from(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    assert shown(notes, "--request", "7") == snapshot("""\
# Request 7 of 9

entry    00001f of session pier, 2026-11-06 22:21:50
target   openai:gpt-4o, lazy
size     128 tokens of 111,616 (window 128,000, 16,384 reserved for the answer)
usage    128 in, 0 cached, 5 out
cache    the cache no longer held it (3642 s since the last request; entries live 300 s); expected 0, reported 0
answer   Noted. [stop, after 2.5 s]

| layer      | segments | tokens | stay | new |
|------------|---------:|-------:|-----:|----:|
| tools      |        1 |     22 |   22 |   0 |
| L1 system  |        1 |     12 |   12 |   0 |
| L2 library |        2 |     69 |    0 |  69 |
| L4 history |        2 |     17 |    0 |  17 |
| L5 message |        1 |      8 |    0 |   8 |
| all        |        7 |    128 |   34 |  94 |

Boundary: 3642 s since the last request; the cache lives 300 s.

History is processed again: 17 tokens for $0.000043.

## Tools

| tool   | tokens | included |
|--------|-------:|----------|
| search |     22 | always   |

## Compared with request 1 (000003), the last answered one on its path

= 2 segments, 34 tokens unchanged: tools … L1 system
! the prefix moves here (L2 library, system:library): 3642 s since the last request; the cache lives 300 s
- L3 turn     user       note:plan.md@88e95158      60  <note_context> …(+12 lines)
- L3 turn     user       frame:000002                6  --- …(+2 lines)
- L5 message  user       message:000002              6  When does the pier open?
+ L2 library  system     system:library             13  ## Context Library …(+2 lines)
+ L2 library  system     note:plan.md@88e95158      56  <note_context> …(+12 lines)
+ L4 history  user       message:000002             10  When does the pier open?  (same text, joined differently to the text before it)
+ L4 history  assistant  message:000004              7  In May.
+ L5 message  user       message:00001e              8  Who sells them?
""")


def test_a_request_that_was_never_answered_is_shown_as_such(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    assert shown(notes, "--request", "8") == snapshot("""\
# Request 8 of 9

entry    000023 of session pier, 2026-11-06 22:21:52
target   openai:gpt-4o, lazy
size     143 tokens of 111,616 (window 128,000, 16,384 reserved for the answer)
answer   none
note     never answered
note     not on the active path

| layer      | segments | tokens | stay | new |
|------------|---------:|-------:|-----:|----:|
| tools      |        1 |     22 |   22 |   0 |
| L1 system  |        1 |     12 |   12 |   0 |
| L2 library |        2 |     69 |   69 |   0 |
| L4 history |        4 |     32 |   25 |   7 |
| L5 message |        1 |      8 |    0 |   8 |
| all        |        9 |    143 |  128 |  15 |

## Tools

| tool   | tokens | included |
|--------|-------:|----------|
| search |     22 | always   |

## Compared with request 7 (00001f)

= 7 segments, 128 tokens unchanged: tools … L4 history
+ L4 history  assistant  message:000020       7  Noted.
+ L5 message  user       message:000022       8  Are you there?
""")
    assert difference(notes, "--request", "last") == snapshot("""\
## Compared with request 7 (00001f), the last answered one on its path

= 7 segments, 128 tokens unchanged: tools … L4 history
+ L4 history  assistant  message:000020       7  Noted.
+ L5 message  user       message:000024       6  Hello?
""")


def test_a_changed_system_part_is_shown_line_by_line(notes: Path) -> None:
    async def change(talk: Talk) -> None:
        await talk.ask("When?", MAY)
        text = "Answer from the notes.\nBe very brief."
        await talk.session.set_system("system", text, reason="too many words")
        await talk.ask("Why?")

    keep(notes, change)
    assert difference(notes, "--request", "2") == snapshot("""\
## Compared with request 1 (000003)

! the prefix moves here (L1 system, system:system): too many words
- L1 system   system     system:system              12  Answer from the notes. …(+1 line)
- L3 turn     user       note:plan.md@88e95158      60  <note_context> …(+12 lines)
- L3 turn     user       frame:000002                6  --- …(+2 lines)
- L5 message  user       message:000002              2  When?
+ L1 system   system     system:system              13
    replaces system:system:
    @@ -1,2 +1,2 @@
     Answer from the notes.
    -Be brief.
    +Be very brief.
+ L2 library  system     system:library             13  ## Context Library …(+2 lines)
+ L2 library  system     note:plan.md@88e95158      56  <note_context> …(+12 lines)
+ L4 history  user       message:000002              6  When?  (same text, joined differently to the text before it)
+ L4 history  assistant  message:000004              7  Noted.
+ L5 message  user       message:000008              6  Why?
""")


def test_a_compaction_shows_what_gave_way_to_the_summary(notes: Path) -> None:
    async def compact(talk: Talk) -> None:
        for number in range(10):
            await talk.ask(f"Question {number}? " + "tide " * 150, answer="ebb " * 150)
        assert (await talk.session.compact()).changed
        await talk.ask("And now?")

    settings = Settings(window=6_000)
    keep(notes, compact, settings=settings)
    assert shown(notes, "--request", "11") == snapshot("""\
# Request 11 of 11

entry    00002b of session pier, 2026-11-06 21:24:05
target   openai:gpt-4o, lazy
size     2,356 tokens of 4,500 (window 6,000, 1,500 reserved for the answer)
usage    2,356 in, 0 cached, 5 out
cache    the prefix moved, and the cache served what was left of it (moved at message:summary: as expected); expected 0, reported 0
answer   Noted. [stop, after 2.5 s]

| layer      | segments | tokens | stay |   new |
|------------|---------:|-------:|-----:|------:|
| L1 system  |        1 |     12 |   12 |     0 |
| L4 history |       13 |  2,337 |    0 | 2,337 |
| L5 message |        1 |      7 |    0 |     7 |
| all        |       15 |  2,356 |   12 | 2,344 |

Boundary: compaction (manual).

## Left out

| what    | reason  | detail                                                        |
|---------|---------|---------------------------------------------------------------|
| history | history | 8 earlier messages gave way to a summary: compaction (manual) |

## Compared with request 10 (000026)

= 1 segment, 12 tokens unchanged: L1 system
! the prefix moves here (L4 history, message:summary): compaction (manual)
- L4 history  user       message:000001      159  Question 0? tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide ti…
- L4 history  assistant  message:000003      155  ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb…
- L4 history  user       message:000005      159  Question 1? tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide ti…
- L4 history  assistant  message:000007      155  ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb…
- L4 history  user       message:000009      159  Question 2? tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide ti…
- L4 history  assistant  message:00000b      155  ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb…
- L4 history  user       message:00000d      159  Question 3? tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide tide ti…
- L4 history  assistant  message:00000f      155  ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb…
+ L4 history  user       message:summary     453  [Earlier messages were removed. What they were about:] …(+35 lines)
= 11 segments, 1,729 tokens unchanged but after the change, so processed again: L4 history
+ L4 history  assistant  message:000027      155  ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb ebb…
+ L5 message  user       message:00002a        7  And now?
""")


def test_eager_moves_the_note_and_says_so(notes: Path) -> None:
    async def twice(talk: Talk) -> None:
        await talk.ask("When?", MAY)
        await talk.ask("Tickets?", MAY)

    keep(notes, twice, settings=Settings(promotion="eager"))
    assert shown(notes, "--request", "2") == snapshot("""\
# Request 2 of 2

entry    000008 of session pier, 2026-11-06 21:20:42
target   openai:gpt-4o, eager
size     128 tokens of 111,616 (window 128,000, 16,384 reserved for the answer)
usage    128 in, 0 cached, 5 out
cache    too short to be cached (12 tokens could be in the cache; nothing under 1,024 is kept); expected 0, reported 0
answer   Noted. [stop, after 2.5 s]

| layer      | segments | tokens | stay | new |
|------------|---------:|-------:|-----:|----:|
| L1 system  |        1 |     12 |   12 |   0 |
| L2 library |        2 |     69 |    0 |  69 |
| L3 turn    |        2 |     32 |    0 |  32 |
| L4 history |        2 |     13 |    0 |  13 |
| L5 message |        1 |      2 |    0 |   2 |
| all        |        8 |    128 |   12 | 116 |

Boundary: eager promotion into the library.

## Items

| item    | placed in      | tokens | priority | included | why                      |
|---------|----------------|-------:|---------:|----------|--------------------------|
| plan.md | system library |     56 |        5 | manual   | attached to this message |

## Compared with request 1 (000003)

= 1 segment, 12 tokens unchanged: L1 system
! removed here: content that was only for that request and never cached; eager promotion into the library
- L3 turn     user       note:plan.md@88e95158      60  <note_context> …(+12 lines)
+ L2 library  system     system:library             13  ## Context Library …(+2 lines)
+ L2 library  system     note:plan.md@88e95158      56  <note_context> …(+12 lines)
+ L4 history  user       message:000002              6  When?
+ L4 history  assistant  message:000004              7  Noted.
+ L3 turn     user       names:000007               26  Context attached to this message: …(+3 lines)
= 1 segment, 6 tokens unchanged but after the change, so processed again: L3 turn
- L5 message  user       message:000002              2  When?
+ L5 message  user       message:000007              2  Tickets?
""")


def test_text_for_one_request_only_goes_away_without_a_broken_prefix(notes: Path) -> None:
    async def planned(talk: Talk) -> None:
        await talk.ask("When?", tool_texts=[ToolText(name="search", text="In May.")])
        await talk.ask("Sure?")

    keep(notes, planned)
    assert difference(notes, "--request", "2") == snapshot("""\
## Compared with request 1 (000003)

= 1 segment, 12 tokens unchanged: L1 system
! removed here: content that was only for that request and never cached
- L3 turn     user       tool_texts          17  # Additional context: …(+4 lines)
- L3 turn     user       frame:000001         6  --- …(+2 lines)
- L5 message  user       message:000001       2  When?
+ L4 history  user       message:000001       6  When?  (same text, joined differently to the text before it)
+ L4 history  assistant  message:000004       7  Noted.
+ L5 message  user       message:000006       6  Sure?
""")


def test_another_target_is_said_to_have_a_cache_of_its_own(notes: Path) -> None:
    async def switch(talk: Talk) -> None:
        await talk.ask("When?")
        await talk.session.prepare("Why?", target="anthropic:claude-opus-5")

    keep(notes, switch)
    assert difference(notes, "--request", "2") == snapshot("""\
## Compared with request 1 (000002)

That went to openai:gpt-4o, which has a different cache.

= 2 segments, 20 tokens unchanged: L1 system … L4 history
+ L4 history  assistant  message:000003       8  Noted.
+ L5 message  user       message:000005       6  Why?
""")


def test_what_a_person_does_while_an_answer_is_awaited_does_not_hide_it(notes: Path) -> None:
    async def meanwhile(talk: Talk) -> None:
        turn = await talk.session.prepare("When?")
        await talk.session.rename("Piers")
        await turn.commit(openai_reply("In May."))
        await talk.session.prepare("And then?")
        await talk.session.rename("Piers and towers")

    keep(notes, meanwhile)
    assert shown(notes, "--requests") == snapshot("""\
#  entry   when            target         tokens  match  new  cached  outcome
1  000002  11-06 21:20:00  openai:gpt-4o      18      0   18       ?  the provider did not report its cache use
2  000007  11-06 21:20:00  openai:gpt-4o      32     18   14          not answered yet
""")
    assert "\nanswer   In May. [stop, after 0.0 s]\n" in shown(notes, "--request", "1")


def test_an_answer_that_broke_off_and_a_question_asked_again_are_marked(notes: Path) -> None:
    async def trouble(talk: Talk) -> None:
        for number in range(10):
            await talk.ask(f"Question {number}? " + "tide " * 150, answer="ebb " * 150)
        turn = await talk.session.prepare("And now?")
        turn = await turn.retry_smaller()
        await turn.commit(openai_reply("Now it", stop=None))

    keep(notes, trouble, settings=Settings(window=6_000))
    assert shown(notes, "--requests").splitlines()[-2:] == snapshot(
        [
            "11  00002a  11-06 21:23:45  openai:gpt-4o   3,159  2,997    162          never answered · not on the active path",
            "12  00002d  11-06 21:23:45  openai:gpt-4o   2,356     12  2,344       ?  the provider did not report its cache use · sent again, shorter: the provider rejected it as too long · the answer broke off",
        ]
    )
    assert "## Compared with request 10 (000026), the last answered one" in shown(
        notes, "-r", "last"
    )


def test_nothing_is_shortened_in_full(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    assert difference(notes, "--request", "3", "--full") == snapshot("""\
## Compared with request 2 (000007)

= 9 segments, 144 tokens unchanged: tools … L4 history
= tools       tools      tool:search                22
    search: Searches.
= L1 system   system     system:system              12
    Answer from the notes.
    Be brief.
= L2 library  user       note:plan.md@88e95158      60
    <note_context>
    <title>plan</title>
    <path>plan.md</path>
    <ctime>Unknown</ctime>
    <mtime>Unknown</mtime>
    <content>
    # Plan

    The pier opens in May.
    Tickets cost 3.

    </content>
    </note_context>
= L4 history  user       frame:000002                6
    ---

    [User query]:
= L4 history  user       message:000002              6
    When does the pier open?
= L4 history  assistant  message:000004              7
    In May.
= L4 history  user       names:000006               21
    Context attached to this message:
    - plan.md

    Find them in the context above.
= L4 history  user       frame:000006                6
    ---

    [User query]:
= L4 history  user       message:000006              4
    And the tickets?
+ L4 history  assistant  message:000008              6
    3.
+ L3 turn     user       names:00000b               22
    Changed since it was last shown; the version below replaces the one above:
    - plan.md
+ L3 turn     user       note:plan.md@853dd8f1      57
    now above note:plan.md@88e95158:
    @@ -1,13 +1,13 @@
     <note_context>
     <title>plan</title>
     <path>plan.md</path>
     <ctime>Unknown</ctime>
     <mtime>Unknown</mtime>
     <content>
     # Plan

    -The pier opens in May.
    +The pier opens in June.
     Tickets cost 3.

     </content>
     </note_context>
+ L3 turn     user       frame:00000b                6
    ---

    [User query]:
+ L5 message  user       message:00000b              4
    Still in May?
""")


def test_a_long_difference_is_cut_unless_all_is_asked_for(notes: Path) -> None:
    before = note("log.md", "\n".join(f"line {number}" for number in range(100)))
    after = note("log.md", "\n".join(f"row {number}" for number in range(100)))

    async def edit(talk: Talk) -> None:
        await talk.ask("See?", before)
        await talk.ask("See?", after)

    keep(notes, edit)
    assert "    … 165 more lines; --full shows all\n" in shown(notes, "--request", "2")
    assert "\n    +row 99\n" in shown(notes, "--request", "2", "--full")


# -- which request ------------------------------------------------------------------------------


def test_a_request_is_found_by_number_from_either_end_and_by_its_entries(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    second = shown(notes, "--request", "2")
    # The question's request, its answer and what that cost.
    for name in ("000007", "000008", "000009", "-8"):
        assert shown(notes, "--request", name) == second, name
    assert shown(notes, "--request", "last") == shown(notes, "--request", "-1")
    assert shown(notes, "-r", "c") == shown(notes, "-r", "00000c")


@pytest.mark.parametrize("wrong", ["0", "10", "-10", "000001", "first", ""])
def test_a_wrong_number_is_an_error_that_says_how_many_there_are(notes: Path, wrong: str) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    said = error("log", "pier", "--request", wrong, cwd=notes)
    assert said == (
        f"error: no request {wrong!r}: the session has 9 requests, numbered from 1; -1 or 'last' "
        f"is the last one, an entry's id works as well, and --requests lists them\n"
    )


def test_a_session_without_requests_says_so(notes: Path) -> None:
    async def nothing(talk: Talk) -> None:
        await talk.session.rename("Empty")

    keep(notes, nothing)
    assert shown(notes, "--requests") == "This session has no requests.\n"
    assert error("log", "pier", "--request", "1", cwd=notes) == snapshot(
        "error: the session has no requests that could be shown\n"
    )


def test_views_exclude_one_another(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    for options in (("--requests", "-r", "1"), ("--tree", "-r", "1"), ("--wire",)):
        code, out, _ = lamina("log", "pier", *options, cwd=notes)
        assert (code, out) == (2, "")


# -- for machines -------------------------------------------------------------------------------


def test_a_request_for_machines_holds_every_segment_with_its_status(notes: Path) -> None:
    keep(notes, all_kinds, tools=[SEARCH])
    data = json.loads(shown(notes, "--request", "3", "--json"))
    assert (data["number"], data["of"], data["base_number"]) == (3, 9, 2)
    assert (data["proven"], data["problems"], data["damage"]) == (True, [], [])
    assert data["usage"]["input"] == data["tokens"]
    assert data["context"]["agreement"]["tokens"] == data["agree"]
    statuses = [segment["status"] for segment in data["segments"]]
    assert statuses == ["kept"] * (len(statuses) - 5) + ["added"] * 5
    changed = data["segments"][-3]
    assert (changed["source"], changed["supersedes"]["source"]) == snapshot(
        ("note:plan.md@853dd8f1", "note:plan.md@88e95158")
    )
    assert "The pier opens in June." in changed["text"]
    assert sum(layer["new"] for layer in data["layers"]) == data["new"]


def test_the_wire_form_is_what_was_sent(notes: Path) -> None:
    sent: list[dict[str, Any]] = []

    async def send(talk: Talk) -> None:
        picture = await default_store(notes).put_blob(b"image")
        seen = Picture(digest=picture, media_type="image/png", width=10, height=10)
        pictured = Item(id=note_id("seen.md"), content="Seen.", pictures=(seen,))
        for target in (TARGET, "anthropic:claude-opus-5", "gemini:gemini-3-pro"):
            turn = await talk.session.prepare("What is it?", attach=[pictured], target=target)
            sent.append(turn.request())

    keep(notes, send, tools=[SEARCH])
    for number, body in enumerate(sent, 1):
        wire = json.loads(shown(notes, "-r", str(number), "--wire"))
        assert wire == json.loads(json.dumps(body, default=_base64))


def _base64(value: object) -> str:
    assert isinstance(value, bytes)
    return b64encode(value).decode()


def test_an_image_that_is_gone_is_named_and_the_rest_is_shown(notes: Path) -> None:
    digest = ""

    async def send(talk: Talk) -> None:
        nonlocal digest
        digest = await default_store(notes).put_blob(b"image")
        seen = Picture(digest=digest, media_type="image/png", width=10, height=10)
        await talk.ask("What?", Item(id=note_id("seen.md"), content="Seen.", pictures=(seen,)))

    path = keep(notes, send)
    (blob,) = path.parent.parent.glob("blobs/*/*")
    blob.unlink()
    code, out, err = lamina("log", "pier", "-r", "1", "--wire", cwd=notes)
    assert code == 1
    assert json.loads(out)["messages"][-1]["content"][-1]["text"].endswith("What?")
    assert err.startswith(
        f"differs from what was sent: an image is missing and replaced by a sentence: blob {digest!r} cannot"
    )
    # The view of layers needs no bytes of images.
    assert "image/png 10x10 6105d6cc" in shown(notes, "-r", "1")


# -- damage -------------------------------------------------------------------------------------


def test_a_request_that_is_not_as_it_was_sent_says_so(notes: Path) -> None:
    path = keep(notes, all_kinds, tools=[SEARCH])
    path.write_bytes(path.read_bytes().replace(b'"text":"In May."', b'"text":"In Mai."', 1))
    assert shown(notes, "--request", "2") == snapshot("""\
# Request 2 of 9

entry    000007 of session pier, 2026-11-06 21:20:42
target   openai:gpt-4o, lazy
size     144 tokens of 111,616 (window 128,000, 16,384 reserved for the answer)
usage    144 in, 0 cached, 5 out
cache    too short to be cached (106 tokens could be in the cache; nothing under 1,024 is kept); expected 0, reported 0
answer   3. [stop, after 2.5 s]
note     not on the active path

! this request is shown otherwise than it was sent: it differs at segment 5 (L3, names:000006); 9 segments were recorded, 8 are rebuilt

| layer      | segments | tokens | stay | new |
|------------|---------:|-------:|-----:|----:|
| tools      |        1 |     22 |   22 |   0 |
| L1 system  |        1 |     12 |   12 |   0 |
| L2 library |        1 |     60 |   60 |   0 |
| L3 turn    |        2 |     27 |    0 |  27 |
| L4 history |        2 |     12 |   12 |   0 |
| L5 message |        1 |      4 |    0 |   4 |
| all        |        8 |    137 |  106 |  31 |

## Items

| item    | placed in                      | tokens | priority | included | why                      |
|---------|--------------------------------|-------:|---------:|----------|--------------------------|
| plan.md | above, where it was first sent |     56 |        5 | manual   | attached to this message |

## Tools

| tool   | tokens | included |
|--------|-------:|----------|
| search |     22 | always   |

## Compared with request 1 (000003)

= 5 segments, 106 tokens unchanged: tools … L4 history
+ L3 turn     user       names:000006        21  Context attached to this message: …(+3 lines)
+ L3 turn     user       frame:000006         6  --- …(+2 lines)
+ L5 message  user       message:000006       4  And the tickets?

## Damage (3)

- checksum: line 5, byte 2,238: the checksum does not fit; the line begins '{"at":1794000022.5,"id":"000004","message":{"blocks":[{"text'
- missing_entries: line 6, byte 2,422: in front of it is missing: 000004
- missing_parent: line 6, byte 2,422: the parent '000004' of entry '000005' is missing; put behind '000003'
""")
    code, _, err = lamina("log", "pier", "-r", "2", "--wire", cwd=notes)
    assert (code, err) == snapshot(
        (
            1,
            "differs from what was sent: this request is shown otherwise than it was sent: it differs at segment 5 (L3, names:000006); 9 segments were recorded, 8 are rebuilt\n",
        )
    )


def test_a_request_whose_base_is_lost_is_shown_without_it(notes: Path) -> None:
    path = keep(notes, all_kinds, tools=[SEARCH])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line for line in lines if b'"id":"000007"' not in line))
    assert shown(notes, "--requests") == snapshot("""\
#  entry   when            target         tokens  match  new  cached  outcome
1  000003  11-06 21:20:20  openai:gpt-4o     106      0  106       0  the first request
2  00000c  11-06 21:21:05  openai:gpt-4o     239    144   95       0  too short to be cached · not on the active path
3  000010  11-06 21:21:07  openai:gpt-4o     258    239   19       0  too short to be cached · not on the active path
4  000014  11-06 21:21:07  openai:gpt-4o     288    258   30       0  too short to be cached · not on the active path
5  000019  11-06 22:21:27  openai:gpt-4o     230     34  196       0  the cache no longer held it · not on the active path
6  00001f  11-06 22:21:50  openai:gpt-4o     128     34   94       0  the cache no longer held it
7  000023  11-06 22:21:52  openai:gpt-4o     143    128   15          never answered · not on the active path
8  000025  11-06 22:21:52  openai:gpt-4o     141    128   13          not answered yet
request 000007 is lost; only its reply is left

## Damage (3)

- incomplete_write: line 7, byte 2,687: a write ended early: 1 more entry was to follow
- missing_entries: line 8, byte 3,019: in front of it is missing: 000007
- missing_parent: line 8, byte 3,019: the parent '000007' of entry '000008' is missing; put behind '000006'
""")
    assert shown(notes, "--request", "00000c") == snapshot("""\
# Request 2 of 8

entry    00000c of session pier, 2026-11-06 21:21:05
target   openai:gpt-4o, lazy
size     239 tokens of 111,616 (window 128,000, 16,384 reserved for the answer)
usage    239 in, 0 cached, 5 out
cache    too short to be cached (144 tokens could be in the cache; nothing under 1,024 is kept); expected 0, reported 0
answer   No: …(+1 line) [stop, after 2.5 s]
note     not on the active path

! request '000007', which it was compared with, is lost: what went away cannot be shown
! the digests of its first 9 segments are lost with an earlier request: they cannot be proven
! this request is shown otherwise than it was sent: its options or parameters are not those that were sent

| layer      | segments | tokens | stay | new |
|------------|---------:|-------:|-----:|----:|
| tools      |        1 |     22 |   22 |   0 |
| L1 system  |        1 |     12 |   12 |   0 |
| L2 library |        1 |     60 |   60 |   0 |
| L3 turn    |        3 |     85 |    0 |  85 |
| L4 history |        7 |     56 |   50 |   6 |
| L5 message |        1 |      4 |    0 |   4 |
| all        |       14 |    239 |  144 |  95 |

## Items

| item    | placed in             | tokens | priority | included | why                      |
|---------|-----------------------|-------:|---------:|----------|--------------------------|
| plan.md | this message, in full |     56 |        5 | manual   | attached to this message |

## Tools

| tool   | tokens | included |
|--------|-------:|----------|
| search |     22 | always   |

## Compared with request 000007, which is lost

= 9 segments, 144 tokens unchanged: tools … L4 history
+ L4 history  assistant  message:000008              6  3.
+ L3 turn     user       names:00000b               22  Changed since it was last shown; the version below replaces the one above: …(+1 line)
+ L3 turn     user       note:plan.md@853dd8f1      57
    now above note:plan.md@88e95158:
    @@ -7,5 +7,5 @@
     # Plan

    -The pier opens in May.
    +The pier opens in June.
     Tickets cost 3.

+ L3 turn     user       frame:00000b                6  --- …(+2 lines)
+ L5 message  user       message:00000b              4  Still in May?

## Damage (4)

- incomplete_write: line 7, byte 2,687: a write ended early: 1 more entry was to follow
- missing_entries: line 8, byte 3,019: in front of it is missing: 000007
- missing_parent: line 8, byte 3,019: the parent '000007' of entry '000008' is missing; put behind '000006'
- not_applicable: entry '000009' no longer applies: reply '000009' answers request '000007', which is not open
""")


def test_no_line_that_is_lost_makes_a_view_fail(notes: Path) -> None:
    path = keep(notes, all_kinds, tools=[SEARCH])
    lines = path.read_bytes().splitlines(keepends=True)
    for missing in range(len(lines)):
        path.write_bytes(b"".join(lines[:missing] + lines[missing + 1 :]))
        rows = json.loads(shown(notes, "--requests", "--json"))["requests"]
        for row in rows:
            data = json.loads(shown(notes, "-r", row["id"], "--json"))
            assert shown(notes, "-r", row["id"], "--full")
            code, _, err = lamina("log", "pier", "-r", row["id"], "--wire", cwd=notes)
            assert (code, bool(err)) in ((0, False), (1, True))
            assert code == 0 or not data["proven"]

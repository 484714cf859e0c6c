"""Answers on a terminal while they come: what is final, what is drawn anew, what is escaped."""

import io

import anyio
import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lamina.apps.cli.chat.markdown import draw_markdown, split_blocks, split_finished
from lamina.apps.cli.chat.turn_view import Tail, TurnView
from lamina.apps.cli.screen import Screen, ScreenLine
from lamina.apps.cli.terminal_text import one_line, visible
from lamina.core.values.event import (
    BlockDelta,
    BlockEnded,
    BlockStarted,
    Event,
    PromptProgress,
    RequestRetried,
    ToolStarted,
    TurnEnded,
    WarningIssued,
)
from lamina.core.values.message import ToolCall

MARKDOWN = """# A heading

A paragraph that is *much* longer than the line of a small terminal, with `code` in it.
A second line of it.

- one item
- another item that goes on for more than a line

```python
def answer() -> int:

    return 42
```

> A quote

1. first

2. second

The end.
"""
PIECES = st.text(alphabet="ab *_`#->|1.\n\t<&;[](\\", max_size=60)


class Glass:
    """A small terminal to look at."""

    def __init__(self, width: int = 40, height: int = 10) -> None:
        self.file = io.StringIO()
        console = Console(
            file=self.file, width=width, height=height, force_terminal=True,
            color_system="standard", highlight=False, markup=False, emoji=False,
            legacy_windows=False,
        )  # fmt: skip
        self.screen = Screen(console, live=True)
        self.console = console
        self._seen = pyte.HistoryScreen(width, height, history=1_000, ratio=0.5)
        # A file has no driver that returns the carriage.
        self._seen.set_mode(pyte.modes.LNM)
        self._stream = pyte.Stream(self._seen)

    def look(self) -> list[str]:
        """Everything that was shown, without blank lines at its end."""
        self._stream.feed(self.file.getvalue())
        self.file.seek(0)
        self.file.truncate()
        columns = range(self._seen.columns)
        above = ["".join(line[x].data for x in columns) for line in self._seen.history.top]
        lines = [line.rstrip() for line in [*above, *self._seen.display]]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def resize(self, width: int, height: int) -> None:
        self.look()
        self._seen.resize(height, width)
        self.console.size = (width, height)


def plain(lines: list[ScreenLine]) -> list[str]:
    """Lines as they are seen."""
    glass = Glass(200, 100)
    glass.screen.write("".join(f"{line}\n" for line in lines))
    return glass.look()


def draw(glass: Glass, *events: Event) -> list[str]:
    """What is shown if every event is a frame of its own."""
    drawing = TurnView(glass.screen, set())
    for event in events:
        drawing.take(event)
        drawing.refresh()
    drawing.take(TurnEnded(ending="answered", answer=""))
    return glass.look()


def stream(text: str, size: int, kind: str = "text") -> list[Event]:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return [
        BlockStarted(index=0, kind=kind),  # type: ignore[arg-type]
        *(BlockDelta(index=0, text=piece) for piece in pieces),
        BlockEnded(index=0),
    ]


# -- blocks --------------------------------------------------------------------------------------


@given(PIECES)
def test_blocks_are_the_whole_text(text: str) -> None:
    assert "".join(split_blocks(text)) == (text if text.strip() else "")


@given(PIECES)
def test_what_is_finished_and_the_rest_are_the_whole_text(text: str) -> None:
    done, rest = split_finished(text)
    assert done + rest == text
    assert not done or done.endswith("\n")


@given(PIECES, PIECES)
def test_what_is_finished_stays_finished(text: str, more: str) -> None:
    assert split_finished(text + more)[0].startswith(split_finished(text)[0])


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("One", ""),
        ("One\n\nTwo", ""),
        ("One\n\nTwo\n", "One\n\n"),
        ("1. a\n\n2", ""),
        ("1. a\n\n2. b\n", ""),
        ("- a\n\nb\n", "- a\n\n"),
        ("```\na\n\nb\n", ""),
        ("```\na\n```\nb\n", "```\na\n```\n"),
        ("Title\n---\nText\n", "Title\n---\n"),
        ("| a |\n|---|\n| 1 |\n", ""),
    ],
)
def test_a_block_is_finished_once_another_has_begun_in_a_whole_line(text: str, done: str) -> None:
    assert split_finished(text)[0] == done


# -- drawing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 17, 1_000])
def test_an_answer_that_comes_in_pieces_looks_as_one_that_came_at_once(size: int) -> None:
    glass = Glass()
    whole = plain(draw_markdown(Glass().screen, MARKDOWN))
    assert draw(glass, *stream(MARKDOWN, size)) == whole


def test_an_answer_longer_than_the_screen_is_there_whole_and_once() -> None:
    text = "\n".join(f"- item {number}" for number in range(60))
    shown = draw(Glass(), *stream(text, 7))
    assert shown == [f" • item {number}" for number in range(60)]


def test_a_code_block_longer_than_the_screen_is_there_whole_and_once() -> None:
    code = "\n".join(f"line_{number} = {number}" for number in range(40))
    shown = draw(Glass(), *stream(f"```python\n{code}\n```\n", 5))
    assert [line.strip() for line in shown] == code.splitlines()


def test_only_lines_that_changed_are_written() -> None:
    glass = Glass(80, 24)
    tail = Tail(glass.screen)
    lines = [ScreenLine(f"line {number}") for number in range(10)]
    tail.draw(lines)
    glass.look()
    tail.draw([*lines[:-1], ScreenLine("line 9 goes on")])
    assert glass.file.getvalue().count("line") == 1
    tail.draw([*lines[:-1], ScreenLine("line 9 goes on")])
    assert glass.file.getvalue().count("line") == 1


def test_a_terminal_that_became_narrower_keeps_no_leftovers_below() -> None:
    glass = Glass(40, 20)
    tail = Tail(glass.screen)
    tail.draw([ScreenLine("x" * 30)])
    glass.resize(20, 20)
    glass.look()
    tail.draw([ScreenLine("y" * 10)])
    # The line takes two rows by now: both are gone up.
    assert "\x1b[2A" in glass.file.getvalue()


@pytest.mark.parametrize("width", [20, 100])
def test_nothing_is_lost_when_the_terminal_is_resized_in_the_middle(width: int) -> None:
    items = [f"{number} is the number of this item here" for number in range(40)]
    glass = Glass(30, 10)
    drawing = TurnView(glass.screen, set())
    for place, event in enumerate(stream("\n".join(f"- {item}" for item in items), 9)):
        if place == 100:
            glass.resize(width, 10)
        drawing.take(event)
        drawing.refresh()
    shown = " ".join(" ".join(glass.look()).split())
    assert [item for item in items if item not in shown] == []


def test_the_progress_of_reading_disappears_with_the_first_word() -> None:
    glass = Glass()
    drawing = TurnView(glass.screen, set())
    drawing.take(PromptProgress(done=512, total=3_210))
    drawing.refresh()
    assert glass.look() == ["reading 512 of 3,210 tokens …"]
    drawing.take(BlockStarted(index=0, kind="text"))
    drawing.take(BlockDelta(index=0, text="Hello"))
    drawing.refresh()
    assert glass.look() == ["Hello"]


def test_thinking_calls_and_words_follow_one_another() -> None:
    call = ToolCall(id="c", name="find", arguments='{"what": "' + "x" * 80 + '"}')
    shown = draw(
        Glass(), *stream("Hm,\nwell.", 2, "thinking"), *stream("Let me look.", 3),
        ToolStarted(call=call, label="fs · find"), *stream("Found.", 2),
    )  # fmt: skip
    assert shown[:3] == ["Hm,", "well.", ""]
    assert shown[3] == "Let me look."
    assert shown[4].startswith('→ fs · find {"what": "xxx')
    assert shown[4].endswith("…")
    assert shown[5:] == ["", "Found."]


def test_what_is_sent_anew_takes_the_place_of_what_came_before() -> None:
    shown = draw(
        Glass(), *stream("Void.", 2)[:-1], RequestRetried(reason="too long"), *stream("Good.", 9)
    )
    assert shown == ["(sent again, smaller: too long)", "", "Good."]


def test_a_warning_is_told_once() -> None:
    assert draw(Glass(), WarningIssued(text="careful"), WarningIssued(text="careful")) == [
        "! careful"
    ]


def test_events_wait_while_a_person_is_asked() -> None:
    glass = Glass()
    drawing = TurnView(glass.screen, set())
    with drawing.paused():
        drawing.take(WarningIssued(text="meanwhile"))
        assert glass.look() == []
    assert glass.look() == ["! meanwhile"]


def test_words_are_drawn_although_nothing_else_comes() -> None:
    glass = Glass()

    async def body() -> None:
        drawing = TurnView(glass.screen, set())
        async with anyio.create_task_group() as group:
            group.start_soon(drawing.keep_drawing)
            drawing.take(BlockStarted(index=0, kind="text"))
            drawing.take(BlockDelta(index=0, text="Hello"))
            for _ in range(500):
                if glass.look() == ["Hello"]:
                    break
                await anyio.sleep(0.01)
            assert glass.look() == ["Hello"]
            group.cancel_scope.cancel()

    anyio.run(body)


# -- escaping --------------------------------------------------------------------------------------


@given(st.text())
def test_no_text_steers_a_terminal(text: str) -> None:
    shown = visible(text)
    assert not [c for c in shown if c not in "\n\t" and (ord(c) < 32 or 127 <= ord(c) < 160)]
    assert visible(shown) == shown
    shown.encode("utf-8")


@given(st.lists(st.sampled_from(["&#27;", "&#x9b;", "\x1b", "[31m", "a", "*", "`", "\n", "<b>"])))
def test_no_markdown_makes_codes_for_a_terminal(parts: list[str]) -> None:
    glass = Glass()
    glass.console.no_color = True
    drawn = "".join(draw_markdown(glass.screen, "".join(parts)))
    codes = {"\x1b[0m", "\x1b[1m", "\x1b[3m", "\x1b[2m"}
    for code in codes:
        drawn = drawn.replace(code, "")
    left = [part[:4] for part in drawn.split("\x1b")[1:]]
    # What is left are styles of rich's own: digits and semicolons up to an m.
    assert all(part[0] == "[" and part[1:].lstrip("0123456789;")[:1] in ("m", "") for part in left)
    assert "\x9b" not in drawn
    assert "\x1b[31m" not in drawn


def test_nothing_of_a_text_is_left_out() -> None:
    text = "A <div>tag</div>, a [link](http://x.org/y), &amp; an ![image](z.png)\n\n<note>\nin\n</note>"
    shown = " ".join(" ".join(draw(Glass(80, 24), *stream(text, 4))).split())
    for part in ("<div>tag</div>", "http://x.org/y", "&", "image", "<note> in </note>"):
        assert part in shown


def test_a_line_is_cut_by_columns_not_by_characters() -> None:
    assert one_line("a\n b\tc") == "a b c"
    assert one_line("漢字漢字漢字", 7) == "漢字漢…"
    assert one_line("\x1b[31m", 20) == r"\x1b[31m"

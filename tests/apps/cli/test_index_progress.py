"""How far indexing is, on a terminal and elsewhere."""

import io

from rich.console import Console

from lamina.apps.cli.index_progress import LONG, IndexProgress


def told(terminal: bool, *steps: tuple[int, int], at_most: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80)
    progress = IndexProgress(console, at_most=at_most)
    for done, total in steps:
        progress(done, total)
    progress.stop()
    return out.getvalue()


def test_a_few_chunks_are_not_worth_a_word() -> None:
    assert told(True, (0, LONG - 1), (LONG - 1, LONG - 1)) == ""
    assert told(False, (0, LONG * 3), (LONG, LONG * 3)) == ""


def test_many_are_told_in_a_few_lines_where_nothing_can_be_redrawn() -> None:
    steps = [(done, 1000) for done in range(0, 1001, 50)]
    assert told(False, *steps) == "indexing 1,000 chunks\n25%\n50%\n75%\n"


def test_a_bar_is_drawn_on_a_terminal_and_goes_when_it_is_done() -> None:
    shown = told(True, (0, 1000), (500, 1000), (1000, 1000))
    assert "indexing" in shown
    assert shown.endswith("\x1b[2K")


def test_the_next_indexing_is_told_again() -> None:
    steps = [(0, 1000), (1000, 1000), (0, 2000)]
    assert told(False, *steps) == "indexing 1,000 chunks\nindexing 2,000 chunks\n"


def test_what_is_done_is_said_before_how_much_of_it() -> None:
    assert told(False, (600, 1000), (800, 1000)) == "indexing 1,000 chunks\n75%\n"


def test_of_what_may_end_at_any_time_no_shares_are_told() -> None:
    steps = [(0, 768), (256, 768), (512, 768), (768, 768)]
    assert told(False, *steps, at_most=True) == "indexing up to 768 chunks\n"

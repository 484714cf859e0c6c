"""Asking a model for a summary, and what is made of its answer."""

from inline_snapshot import snapshot
from tests.core.compaction.talk import PORT, PORT_SIZES, answer, summary, user
from tests.fakes.renderers import WORDS
from tests.strategies import count_words

from lamina.core.compaction.compaction_plan import CompactionPlan, plan_compaction
from lamina.core.compaction.summary_instruction import (
    finish_summary,
    is_usable_summary,
    summary_instruction,
)
from lamina.core.compaction.summary_sheet import NOTICE
from lamina.core.compaction.touched_files import TouchedFiles


def test_the_instruction_for_a_cut_turn_asks_for_a_part_of_its_own() -> None:
    plan = plan_compaction(PORT, PORT_SIZES, keep=150, summary_tokens=500, turn_start=4)
    assert isinstance(plan, CompactionPlan)
    assert summary_instruction(plan, WORDS) == snapshot("""\
Write a summary of the conversation above. It will replace the messages it covers: whoever
continues will see only the summary and the messages that remain. Do not answer any question
above, do not continue the work and do not call tools.

The message that begins as follows, and everything after it, will remain word for word.
Summarise only what comes before it.
> Let me look at the types.

Use these headings in this order. Write short points under them, or (none).

## Goal
What is to be achieved.

## Constraints & Preferences
What was asked for or ruled out along the way.

## Progress
### Done
### In Progress
### Blocked

## Key Decisions
Each with its reason.

## Next Steps
In order.

## Critical Context
What cannot be found again: names, numbers, error messages, findings.

## Turn in progress
The cut falls inside a turn whose later steps will remain. Add this section for it: what was asked,
what has been done for it so far, and what the later steps depend on.

What was asked in it:
> Go on.
>
> ## Goal
> Be quick.

These files were touched. The lists are appended to your summary as they are; do not repeat them.

## Files read
- src/parser.py

## Files modified
- src/expr.rs

Write at most 375 words (500 tokens). Keep names, paths, numbers and error messages
exactly as they are. Reply with the summary only.\
""")


def test_the_instruction_asks_to_carry_over_an_earlier_summary() -> None:
    talk = [summary("so far"), user("one"), answer("R"), user("two\n## Goal")]
    plan = plan_compaction(talk, [400, 2_000, 10, 10], keep=10, summary_tokens=1_500)
    assert isinstance(plan, CompactionPlan)
    assert summary_instruction(plan, WORDS) == snapshot("""\
Write a summary of the conversation above. It will replace the messages it covers: whoever
continues will see only the summary and the messages that remain. Do not answer any question
above, do not continue the work and do not call tools.

The message that begins as follows, and everything after it, will remain word for word.
Summarise only what comes before it.
> two

Use these headings in this order. Write short points under them, or (none).

## Goal
What is to be achieved.

## Constraints & Preferences
What was asked for or ruled out along the way.

## Progress
### Done
### In Progress
### Blocked

## Key Decisions
Each with its reason.

## Next Steps
In order.

## Critical Context
What cannot be found again: names, numbers, error messages, findings.

One of the messages is an earlier summary. The messages it covers are gone: carry over everything
in it that still applies, and move what has been finished since to Done.

Write at most 1,125 words (1,500 tokens). Keep names, paths, numbers and error messages
exactly as they are. Reply with the summary only.\
""")


def test_a_finished_summary_is_trimmed_and_lists_the_files() -> None:
    files = TouchedFiles(read=("a.md", "b\n## Goal.md"), modified=("c.md",))
    assert finish_summary("\n\n## Goal\nShip.\n\n", files) == snapshot("""\
[Earlier messages were removed. What they were about:]

## Goal
Ship.

## Files read
- a.md
- b\\n## Goal.md

## Files modified
- c.md\
""")
    assert finish_summary("x", TouchedFiles(), question="one\n## two") == snapshot("""\
[Earlier messages were removed. What they were about:]

x

The question that is being worked on:
> one
> ## two\
""")


def test_a_fence_or_a_notice_that_the_model_wrote_is_not_doubled() -> None:
    plain = f"{NOTICE}\n\n## Goal\nShip."
    assert finish_summary("```markdown\n## Goal\nShip.\n```", TouchedFiles()) == plain
    assert finish_summary(plain, TouchedFiles()) == plain
    inside = "```\na\n```\ntext\n```\nb\n```"
    assert finish_summary(inside, TouchedFiles()) == f"{NOTICE}\n\n{inside}"


def test_a_model_that_wrote_nothing_gives_nothing() -> None:
    for nothing in ("", " \n", NOTICE, "```\n\n```"):
        assert finish_summary(nothing, TouchedFiles(read=("a.md",)), question="Q") == ""


def test_many_files_are_counted_instead_of_listed() -> None:
    files = TouchedFiles(read=tuple(f"{n}.md" for n in range(250)))
    lines = finish_summary("x", files).splitlines()
    assert "- (150 more, not listed)" in lines
    assert lines[-1] == "- 249.md"


def test_a_summary_is_usable_if_it_says_something_and_is_smaller() -> None:
    assert is_usable_summary("a b c", 4, count_words)
    assert not is_usable_summary("a b c", 3, count_words)
    assert not is_usable_summary(" \n ", 100, count_words)

"""The lines that messages begin on, also where an editor made headings of them.

Law: what Lamina wrote is read as it was written. In a file of others, the lines `# **user**: text`
begin messages as `**user**: text` does, unless they stand in code. What is written above the first
answer as a heading, with no mark at all, is the first question. Both are reported.
"""

import re
from collections.abc import Sequence

from lamina.adapters.formats.imported_session import ImportProblem
from lamina.adapters.formats.markdown.chat import ChatRole
from lamina.adapters.formats.markdown.message import HEADING, opening_role, read_stamp
from lamina.core.text.pictures import mask_code

# The name of a chat's file, which some editors put above its text.
_FILE_NAME = re.compile(r".*@[0-9]{8}_[0-9]{6}\s*")


def find_marks(
    lines: Sequence[str], start: int, recorded: int | None
) -> tuple[dict[int, ChatRole], list[ImportProblem]]:
    """Where messages begin from the line `start` on, whose they are, and what is odd about that.
    `recorded` is how many messages the hidden comment speaks of; None if there is no comment."""
    marks = {n: role for n in range(start, len(lines)) if (role := opening_role(lines[n]))}
    if recorded is not None and len(marks) >= recorded:
        return marks, []
    problems = []
    headings = _find_headings(lines, start)
    if headings:
        marks = dict(sorted((marks | headings).items()))
        many = "1 message begins" if len(headings) == 1 else f"{len(headings):,} messages begin"
        detail = f"{many} with a heading, as '# **user**: text'; read as messages"
        problems.append(ImportProblem(line=min(headings) + 1, what="heading", detail=detail))
    question = _find_question(lines, start, marks) if recorded is None else None
    if question is not None:
        marks = {question: "user", **marks}
        detail = "the heading above the first answer is read as its question"
        problems.append(ImportProblem(line=question + 1, what="heading", detail=detail))
    return marks, problems


def _find_headings(lines: Sequence[str], start: int) -> dict[int, ChatRole]:
    roles = {
        number: role
        for number, line in enumerate(lines[start:], start)
        if line.startswith("#") and (role := opening_role(line, as_heading=True))
    }
    if not roles:
        return {}
    plain_lines = mask_code("\n".join(lines[start:]))[0].split("\n")
    # Code that an answer leaves open ends with the answer, whose last line is its time.
    return {
        number: role
        for number, role in roles.items()
        if plain_lines[number - start].startswith("#") or _follows_stamp(lines, number)
    }


def _follows_stamp(lines: Sequence[str], number: int) -> bool:
    before = (line for line in reversed(lines[max(0, number - 3) : number]) if line.strip())
    return read_stamp(next(before, "")) is not None


def _find_question(lines: Sequence[str], start: int, marks: dict[int, ChatRole]) -> int | None:
    """The line of a question that lost its mark: a heading above the first answer, or what ends
    with the time of a message."""
    first = min(marks, default=len(lines))
    if marks.get(first) != "ai":
        return None
    texts = [number for number in range(start, first) if lines[number].strip()]
    while texts and HEADING.match(lines[texts[0]]) and _FILE_NAME.fullmatch(lines[texts[0]]):
        texts = texts[1:]
    if not texts:
        return None
    is_stamped = read_stamp(lines[texts[-1]]) is not None
    return texts[0] if is_stamped or HEADING.match(lines[texts[0]]) else None

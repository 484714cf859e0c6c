"""A session's branches: every entry, and the questions with their follow-ups."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lamina.apps.views.journal_log import describe_entry
from lamina.apps.views.plain_text import shorten
from lamina.core.values.entry import Entry, MessageEntry
from lamina.engine.session.session import Session
from lamina.engine.session.tree import labels_of
from lamina.errors import UsageError

SUMMARY = 200


def describe_tree(session: Session) -> dict[str, Any]:
    """Every entry in order of writing, with the active branch."""
    entries = session.entries
    active = {entry.id for entry in session.path}
    labels = labels_of(entries)
    rows = []
    for entry in entries:
        kind, text = describe_entry(entry)
        rows.append(
            {
                "id": entry.id,
                "parent": entry.parent,
                "kind": kind,
                "summary": shorten((text.splitlines() or [""])[0], SUMMARY),
                "active": entry.id in active,
                "label": labels.get(entry.id, ""),
            }
        )
    return {"leaf": session.state.leaf, "entries": rows}


def questions_of(session: Session) -> list[MessageEntry]:
    """All questions on every branch, in the order they were asked."""
    return [
        entry
        for entry in session.entries
        if isinstance(entry, MessageEntry) and entry.message.role == "user"
    ]


LAST = "last"


def find_question(session: Session, word: str) -> MessageEntry:
    """Find a question by its entry id; `last` means the last one on the path.

    Raises:
        UsageError: there is no such question.
    """
    questions = questions_of(session)
    if word == LAST:
        on_path = {entry.id for entry in session.path}
        questions = [entry for entry in questions if entry.id in on_path]
        if not questions:
            raise UsageError("there are no questions on this path yet")
        return questions[-1]
    for entry in questions:
        if entry.id == word or entry.id.lstrip("0") == word.lstrip("0"):
            return entry
    raise UsageError(
        f"{word!r} is not a question of session {session.id}; "
        f"`lamina log {session.id} --tree` lists them"
    )


class QuestionRow(Struct, frozen=True, kw_only=True):
    """A question in the tree. Branches are indented by `depth`; the continuation is not."""

    id: str
    text: str
    depth: int
    active: bool
    label: str = ""


def list_questions(session: Session) -> list[QuestionRow]:
    """All questions in reading order: branches first, then the continuation."""
    entries = {entry.id: entry for entry in session.entries}
    active = {entry.id for entry in session.path}
    labels = labels_of(session.entries)
    behind: dict[str, list[MessageEntry]] = {}
    for question in questions_of(session):
        behind.setdefault(_asked_before(question, entries), []).append(question)
    rows: list[QuestionRow] = []
    pile = _pile(behind.get("", []), 0, active)
    while pile:
        question, depth = pile.pop()
        rows.append(
            QuestionRow(
                id=question.id,
                text=question.message.text,
                depth=depth,
                active=question.id in active,
                label=labels.get(question.id, ""),
            )
        )
        pile += _pile(behind.get(question.id, []), depth, active)
    return rows


def _pile(
    questions: list[MessageEntry], depth: int, active: set[str]
) -> list[tuple[MessageEntry, int]]:
    """Stack the questions with their indentation, the first one on top; the one that the session
    continues with comes last and is not indented."""
    pile = sorted(questions, key=lambda question: question.id in active)
    return [(entry, depth + (place > 0)) for place, entry in enumerate(reversed(pile))]


def _asked_before(question: Entry, entries: Mapping[str, Entry]) -> str:
    at = entries.get(question.parent or "")
    while at is not None:
        if isinstance(at, MessageEntry) and at.message.role == "user":
            return at.id
        at = entries.get(at.parent or "")
    return ""

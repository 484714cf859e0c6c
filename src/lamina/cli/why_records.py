"""What was found in notes, and what was planned, for one request; as the journal has it.

Law: a record that is not of a form we know is shown as nothing, and breaks nothing.
"""

from typing import Any

from rich.console import ConsoleRenderable
from rich.text import Text

from lamina.cli.terminal_text import one_line
from lamina.journal import Journal
from lamina.runners.citations import SEARCHED
from lamina.runners.plan import PLANNED
from lamina.values.entry import CustomEntry


def find_record(journal: Journal, kind: str, request: str) -> dict[str, Any] | None:
    """The last record of a kind for a request."""
    said = [
        entry.data
        for entry in journal.entries.values()
        if isinstance(entry, CustomEntry) and entry.kind == kind and isinstance(entry.data, dict)
    ]
    own = [data for data in said if data.get("request") == request]
    return own[-1] if own else None


def find_search_record(journal: Journal, request: str) -> dict[str, Any] | None:
    return find_record(journal, SEARCHED, request)


def find_plan_record(journal: Journal, request: str) -> dict[str, Any] | None:
    return find_record(journal, PLANNED, request)


def draw_found(record: dict[str, Any] | None) -> list[ConsoleRenderable]:
    """The passages that went along with a question, each with the number it is cited by."""
    if record is None:
        return []
    hits = _rows(record.get("hits"))
    searched = record.get("searched", 0)
    lines = [Text(), Text(f"Found in {searched:,} notes ({len(hits)})", style="bold underline")]
    for hit in hits:
        score = hit.get("score")
        fit = f"{score:.2f}" if isinstance(score, int | float) else "words"
        place = f"{hit.get('path', '?')}#L{hit.get('start', '?')}-L{hit.get('end', '?')}"
        lines.append(Text(f"{fit:>5} [^{hit.get('source', '?')}] {one_line(place)}"))
    if left := len(_rows(record.get("without_room"))):
        lines.append(Text(f"{left} more had no room", style="dim"))
    return list(lines)


def draw_planned(record: dict[str, Any] | None) -> list[ConsoleRenderable]:
    """The calls of a plan, and what came of them."""
    if record is None:
        return []
    calls = _rows(record.get("calls"))
    lines = [Text(), Text(f"Planned calls ({len(calls)})", style="bold underline")]
    for call in calls:
        said = f"{call.get('name', '?')} {call.get('arguments', '')}"
        lines.append(Text(f"{call.get('outcome', '?')!s:>8} {one_line(said, 160)}"))
    return list(lines)


def _rows(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []

"""A session of many messages, written as Claude Code would have and imported."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from tests.browser.browser import run_apart

from lamina.apps.wiring.session_importer import import_data

START = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


def lines(messages: int) -> bytes:
    """Questions and answers by turns; each says which it is."""
    rows = []
    for at in range(messages):
        is_question = at % 2 == 0
        text = f"Question {at}: what of berth {at % 12}?"
        if not is_question:
            text = f"Answer {at}. Berth **{at % 12}** is free.\n\n- from noon\n- until `18:00`\n"
        content = text if is_question else [{"type": "text", "text": text}]
        rows.append(
            {
                "type": "user" if is_question else "assistant",
                "uuid": f"u{at}",
                "parentUuid": f"u{at - 1}" if at else None,
                "sessionId": "long",
                "timestamp": (START + timedelta(seconds=at)).isoformat(),
                "message": {"role": "user" if is_question else "assistant", "content": content}
                | ({} if is_question else {"model": "claude-sonnet-5", "id": f"m{at}"}),
            }
        )
    return b"\n".join(json.dumps(row).encode() for row in rows) + b"\n"


def write_long_session(folder: Path, messages: int, session: str = "long") -> None:
    """A session of the folder with this many messages."""
    importing = partial(
        import_data, lines(messages), name="long.jsonl", session=session, workspace=folder,
        target="openai:gpt-5",
    )  # fmt: skip
    run_apart(importing)

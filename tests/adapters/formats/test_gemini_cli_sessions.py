"""Sessions of Gemini CLI and of OpenCode's stores, as sessions of ours."""

import json
from typing import Any

import pytest
from tests.doctor import request_samples as samples
from tests.doctor.request_samples import AT, gemini_message

from lamina.adapters.formats.detection import import_session
from lamina.core.values.entry import CustomEntry, MessageEntry


def imported(*values: Any) -> tuple[list[MessageEntry], list[CustomEntry]]:
    data = "".join(json.dumps(value) + "\n" for value in values).encode()
    session = import_session(data, name="session-1.json", session="s")
    assert not session.problems
    entries = session.entries
    return (
        [entry for entry in entries if isinstance(entry, MessageEntry)],
        [entry for entry in entries if isinstance(entry, CustomEntry)],
    )


@pytest.mark.parametrize(
    "values", [(samples.GEMINI,), (samples.GEMINI_INFO, *samples.GEMINI_MESSAGES)]
)
def test_messages_calls_results_and_usage_come_in(values: tuple[Any, ...]) -> None:
    messages, data = imported(*values)
    assert [m.message.role for m in messages] == ["user", "assistant", "tool", "assistant"]
    asked, called, result, answer = messages
    assert asked.message.text == "x"
    assert [call.name for call in called.message.calls] == ["read"]
    assert result.message.blocks[0].text == "8 m"  # type: ignore[union-attr]
    assert answer.usage is not None
    assert (answer.usage.input, answer.usage.cached, answer.usage.output) == (21_000, 0, 10)
    assert answer.model == "gemini:gemini-3-pro"
    # What the program told its user is not what the model saw.
    assert [entry.kind for entry in data] == ["gemini_cli.info"]


def test_the_last_line_of_a_message_counts_and_what_was_taken_back_is_data() -> None:
    again = gemini_message("1", "user", 0) | {"content": [{"text": "really"}]}
    wrong = gemini_message("9", "user", 3) | {"content": "oops"}
    changed = {"$set": {"summary": "Depths", "lastUpdated": AT.format(4)}}
    first = gemini_message("1", "user", 0)
    messages, data = imported(samples.GEMINI_INFO, first, again, wrong, {"$rewindTo": "9"}, changed)
    assert [m.message.text for m in messages] == ["really"]
    taken_back = [entry.data["content"] for entry in data if "content" in entry.data]
    assert taken_back == ["x", "oops"]
    assert {"$rewindTo": "9"} in [entry.data for entry in data]

"""Writes a small invented session of each kind on request, without real data.

Law: the files are always the same, so that readers of the docs see the same output.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC).timestamp()
# A morning with Claude Code: seconds since the previous request, tokens read, written and fresh,
# and what preceded it. `turn` is a question, `loop` stands for tool results.
_MORNING: tuple[tuple[int, int, int, int, str], ...] = (
    (0, 14_120, 21_480, 4, "turn"), (14, 35_600, 3_210, 1, "loop"),
    (11, 38_810, 5_904, 1, "loop"), (19, 44_714, 2_180, 1, "loop"),
    (95, 46_894, 1_420, 4, "turn"), (16, 48_314, 7_730, 1, "loop"),
    (22, 56_044, 4_118, 1, "loop"), (2_710, 14_120, 46_960, 4, "turn"),
    (13, 61_080, 3_350, 1, "loop"), (18, 64_430, 6_012, 1, "loop"),
    (41, 14_120, 57_840, 4, "skill"), (15, 71_960, 2_904, 1, "loop"),
    (20, 74_864, 8_116, 1, "loop"), (9, 82_980, 3_040, 1, "loop"),
    (88, 86_020, 1_996, 4, "turn"), (17, 88_016, 5_233, 1, "loop"),
    (25, 93_249, 4_871, 1, "loop"), (640, 14_120, 85_430, 4, "turn"),
    (12, 99_550, 2_660, 1, "loop"), (21, 102_210, 3_775, 1, "loop"),
)  # fmt: skip
_POLICY = "You answer questions about the harbour. Cite the tide table. " * 120
_TOOLS = ("berths", "pilots", "tides")


@contextmanager
def sample_files() -> Iterator[list[str]]:
    """Yield the sample's paths, which exist only inside the `with` block."""
    with TemporaryDirectory(prefix="lamina-sample-") as name:
        folder = Path(name)
        _write(folder / "claude-code-sample.jsonl", _transcript())
        _write(folder / "request-log-sample.jsonl", _request_log())
        yield [name]


def _write(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def _transcript() -> list[dict[str, Any]]:
    """Return a transcript with figures, but without the bytes sent."""
    lines: list[dict[str, Any]] = []
    at, last = START, None

    def put(kind: str, **fields: Any) -> None:
        nonlocal last
        uuid = f"sample-{len(lines)}"
        lines.append({
            "type": kind, "uuid": uuid, "parentUuid": last, "isSidechain": False,
            "sessionId": "sample-morning", "version": "2.2.1", "timestamp": _time(at), **fields,
        })  # fmt: skip
        last = uuid

    for number, (gap, read, written, fresh, step) in enumerate(_MORNING):
        at += gap
        result = [{"type": "tool_result", "tool_use_id": f"t{number}", "content": "..."}]
        content: Any = "..." if step == "turn" else result
        put("user", message={"role": "user", "content": content})
        at += 4
        follows_skill = number + 1 < len(_MORNING) and _MORNING[number + 1][4] == "skill"
        name = "Skill" if follows_skill else "Read"
        put("assistant", requestId=f"req_{number}", message={
            "id": f"msg_{number}", "role": "assistant", "model": "claude-opus-4-6",
            "content": [{"type": "tool_use", "id": f"t{number + 1}", "name": name, "input": {}}],
            "usage": {
                "input_tokens": fresh, "cache_read_input_tokens": read,
                "cache_creation_input_tokens": written, "output_tokens": 180,
            },
        })  # fmt: skip
    return lines


def _request_log() -> list[dict[str, Any]]:
    """Return a request log with bytes: a clock in the system prompt, then reordered tools."""
    lines: list[dict[str, Any]] = []
    messages: list[dict[str, Any]] = []
    at = START + 3_600
    for number in range(6):
        messages = [*messages, {"role": "user", "content": f"Question {number}? " + "Tide. " * 400}]
        clock = "10:00:07" if number < 3 else "10:04:41"
        order = _TOOLS if number < 5 else (*reversed(_TOOLS),)
        tools = [
            {"type": "function", "function": {"name": name, "description": "Looks it up. " * 60}}
            for name in order
        ]
        system = {"role": "system", "content": f"{_POLICY}It is now {clock}."}
        read, total = _FIGURES[number]
        lines.append({
            "timestamp": _time(at), "ended_at": _time(at + 3), "session_id": "sample-log",
            "provider": "openai",
            "request": {
                "body": {"model": "gpt-5", "messages": [system, *messages], "tools": tools}
            },
            "response": {"status_code": 200, "body": {"usage": {
                "prompt_tokens": total, "completion_tokens": 40,
                "prompt_tokens_details": {"cached_tokens": read},
            }}},
        })  # fmt: skip
        messages = [*messages, {"role": "assistant", "content": "Low at noon. " * 20}]
        at += 60
    return lines


# Tokens read, and total tokens: the clock changes at the fourth request, the order of the tools at
# the sixth.
_FIGURES = (
    (0, 3_140), (3_072, 4_190), (4_096, 5_240), (2_176, 6_290), (6_272, 7_340), (0, 8_390),
)  # fmt: skip

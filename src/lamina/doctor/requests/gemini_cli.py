"""Requests of Gemini CLI's sessions: an answer with `tokens` is one request, whose `input` includes
what was cached."""

from collections.abc import Iterator, Sequence
from typing import Any

from lamina.adapters.formats.gemini_cli import read_gemini_session, read_gemini_usage
from lamina.adapters.formats.json_lines import JsonLine, list_in, object_in, parse_moment, text_in
from lamina.doctor.observed_request import ObservedRequest, StepKind
from lamina.doctor.requests.record_lines import ReadProblems

SOURCE = "gemini_cli"


def read_gemini_cli(
    lines: Sequence[JsonLine], name: str, problems: ReadProblems
) -> Iterator[ObservedRequest]:
    """The requests of a session."""
    session = read_gemini_session(lines)
    id = session.id or name
    agent = name if text_in(session.info, "kind") == "subagent" else ""
    parent, step, sent_at, blocks, thought = "", "turn", None, 0, False
    kind: StepKind
    events: list[str] = []
    for record in session.records:
        value = record.value
        at = parse_moment(value.get("timestamp"))
        if value.get("type") != "gemini":
            if value.get("type") == "user":
                step, sent_at = "turn", at
                blocks += 1
                events += ["image"] * _has_image(value.get("content"))
            continue
        problems.check_figures(record.line, object_in(value, "tokens"))
        usage = read_gemini_usage(object_in(value, "tokens"))
        calls = list_in(value, "toolCalls")
        if usage is not None and usage.input:
            kind = "turn" if step == "turn" else "loop"
            request = f"{id}/{text_in(value, 'id') or record.line}"
            yield ObservedRequest(
                source=SOURCE, session=id, id=request, usage=usage, depth="transcript",
                at=sent_at or at, ended=at, provider="gemini", model=text_in(value, "model"),
                agent=agent, parent=parent, step=kind, blocks=blocks or None, thought=thought,
                events=tuple(dict.fromkeys(events)), file=name, line=record.line,
            )  # fmt: skip
            parent, events = request, []
        step, blocks, thought = "loop", len(calls), bool(list_in(value, "thoughts"))
        moments = [parse_moment(call.get("timestamp")) for call in calls if isinstance(call, dict)]
        sent_at = max((moment for moment in moments if moment is not None), default=at)


def _has_image(content: Any) -> bool:
    parts = content if isinstance(content, list) else []
    return any(isinstance(part, dict) and "inlineData" in part for part in parts)

"""Requests of Copilot CLI's events.

Laws: an `assistant.usage` event is one request, and `inputTokens` includes what was cached. Files
without such events have sums at best, which name no request.
"""

from typing import BinaryIO

from msgspec import Struct

from lamina.adapters.formats.json_lines import Object, count_in, parse_moment
from lamina.core.values.usage import Usage
from lamina.doctor.observed_request import ObservedRequest, StepKind
from lamina.doctor.requests.record_lines import ReadProblems, RecordLines, figures_of

SOURCE = "copilot_cli"


class CopilotData(Struct, rename="camel", omit_defaults=True):
    session_id: str | None = None
    model: str | None = None
    new_model: str | None = None
    selected_model: str | None = None
    reasoning_effort: str | None = None
    input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    cache_read_tokens: int | float | None = None
    cache_write_tokens: int | float | None = None
    duration: int | float | None = None
    parent_tool_call_id: str | None = None


class CopilotLine(Struct):
    type: str | None = None
    id: str | None = None
    timestamp: str | float | None = None
    data: CopilotData | None = None


def read_copilot_cli(stream: BinaryIO, name: str, problems: ReadProblems) -> list[ObservedRequest]:
    """The requests of an event file."""
    session, model = name, ""
    requests: list[ObservedRequest] = []
    step: StepKind = ""
    events: list[str] = []
    for number, line in RecordLines(stream, CopilotLine, problems):
        data, at = line.data or CopilotData(), parse_moment(line.timestamp)
        match line.type:
            case "session.start" | "session.resume":
                session = data.session_id or session
                model = data.selected_model or model
            case "session.model_change":
                model = data.new_model or model
            case "session.compaction_complete" | "session.truncation":
                events.append("compaction")
            case "user.message":
                step = "turn"
            case "tool.execution_complete":
                step = step or "loop"
            case "abort":
                events.append("interruption")
            case "assistant.usage":
                figures = figures_of(data)
                problems.check_figures(number, figures)
                request = _request(
                    session, name, number, line, data, figures, at, model, step, events
                )
                if request is not None:
                    requests.append(request)
                    step, events = "", []
            case _:
                pass
    return requests


def _request(
    session: str, name: str, number: int, line: CopilotLine, data: CopilotData, figures: Object,
    at: float | None, model: str, step: StepKind, events: list[str],
) -> ObservedRequest | None:  # fmt: skip
    total = count_in(figures, "inputTokens")
    if not total:
        return None
    model = data.model or model
    took = count_in(figures, "duration") / 1000
    return ObservedRequest(
        source=SOURCE, session=session, id=f"{session}/{line.id or number}", depth="transcript",
        usage=Usage(
            input=total, cached=count_in(figures, "cacheReadTokens"),
            written=count_in(figures, "cacheWriteTokens"), output=count_in(figures, "outputTokens"),
            cache_reported="cacheReadTokens" in figures,
        ),
        at=at - took if at is not None else None, ended=at, model=model,
        agent=data.parent_tool_call_id or "", step=step or "loop",
        parameters=(("effort", data.reasoning_effort),) if data.reasoning_effort else (),
        events=tuple(dict.fromkeys(events)), file=name, line=number,
    )  # fmt: skip

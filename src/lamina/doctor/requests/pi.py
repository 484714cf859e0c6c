"""Requests of pi's sessions.

Laws: an answer with usage is one request; `input` is without what was cached. Entries hang on their
parents; in files without ids each hangs on the one before.
"""

from typing import BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.content import read_usage
from lamina.adapters.formats.json_lines import Object, parse_moment
from lamina.doctor.observed_request import ObservedRequest, StepKind
from lamina.doctor.requests.record_lines import ReadProblems, RecordLabels, RecordLines, figures_of

SOURCE = "pi"


class PiBlock(Struct):
    type: str = ""


class PiUsage(Struct, rename="camel", omit_defaults=True):
    input: int | float | None = None
    output: int | float | None = None
    cache_read: int | float | None = None
    cache_write: int | float | None = None


class PiRecord(Struct):
    role: str | None = None
    content: list[PiBlock] | str | None = None
    provider: str | None = None
    model: str | None = None
    usage: PiUsage | None = None
    timestamp: str | float | None = None


class PiLine(Struct, rename="camel"):
    type: str | None = None
    id: str | None = None
    parent_id: str | None = None
    timestamp: str | float | None = None
    thinking_level: str | None = None
    message: PiRecord | None = None


class _PiTrail(Struct, frozen=True):
    request: str = ""
    at: float | None = None
    step: StepKind = ""
    blocks: int = 0
    thought: bool = False
    level: str = ""
    events: tuple[str, ...] = ()


def read_pi(stream: BinaryIO, name: str, problems: ReadProblems) -> list[ObservedRequest]:
    """The requests of a session."""
    session = name
    requests: list[ObservedRequest] = []
    trails: dict[str, _PiTrail] = {}
    labels = RecordLabels()
    last = _PiTrail()
    for number, line in RecordLines(stream, PiLine, problems):
        if line.type == "session":
            session = line.id or session
            last = replace(last, level=line.thinking_level or last.level)
            continue
        trail = trails.get(line.parent_id, last) if line.parent_id else last
        at = parse_moment(line.timestamp)
        message = line.message
        if message is not None and message.role == "assistant":
            figures = figures_of(message.usage)
            problems.check_figures(number, figures)
            label = labels.next(number)
            request = _request(session, name, number, label, message, figures, trail, at)
            if request is not None:
                requests.append(request)
                blocks = message.content if isinstance(message.content, list) else []
                thought = any(block.type == "thinking" for block in blocks)
                trail = _PiTrail(
                    request=request.id, at=at, blocks=len(blocks), thought=thought,
                    level=trail.level,
                )  # fmt: skip
        else:
            trail = _extend(trail, line, at)
        if line.id:
            trails[line.id] = trail
        last = trail
    return requests


def _extend(trail: _PiTrail, line: PiLine, at: float | None) -> _PiTrail:
    match line.type:
        case "thinking_level_change":
            return replace(trail, level=line.thinking_level or trail.level)
        case "compaction" | "branch_summary":
            return replace(trail, events=(*trail.events, "compaction"))
        case "context_transform":
            return replace(trail, events=(*trail.events, "results_cleared"))
        case "message" | "custom_message" if line.message is not None or at is not None:
            role = line.message.role if line.message else "user"
            content = line.message.content if line.message else None
            parts = content if isinstance(content, list) else [PiBlock(type="text")]
            has_image = any(part.type == "image" for part in parts)
            step: StepKind = "turn" if role != "toolResult" else trail.step or "loop"
            events = (*trail.events, "image") if has_image else trail.events
            return replace(
                trail, at=at or trail.at, step=step, blocks=trail.blocks + len(parts), events=events
            )
        case _:
            return trail


def _request(
    session: str, name: str, number: int, label: str, message: PiRecord, figures: Object,
    trail: _PiTrail, at: float | None,
) -> ObservedRequest | None:  # fmt: skip
    usage = read_usage(figures)
    if usage is None or not usage.input:
        return None
    began = parse_moment(message.timestamp)
    return ObservedRequest(
        source=SOURCE, session=session, id=f"{session}/{label}", usage=usage,
        depth="transcript", at=trail.at or began or at, ended=at, provider=message.provider or "",
        model=message.model or "", parent=trail.request, step=trail.step,
        blocks=trail.blocks or None, thought=trail.thought,
        parameters=(("thinking level", trail.level),) if trail.level else (),
        events=tuple(dict.fromkeys(trail.events)), file=name, line=number,
    )  # fmt: skip

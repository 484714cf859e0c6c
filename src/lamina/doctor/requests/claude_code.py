"""Requests of Claude Code's transcripts, with those of its subagents.

Laws: lines with one `message.id` are one request, and its usage is that of the last of them. The
request before it is the nearest answer among its ancestors, whatever stands in between; a side
chain or a subagent's file is a conversation of its own.
"""

from typing import Any, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.content import read_usage
from lamina.adapters.formats.json_lines import parse_moment
from lamina.doctor.observed_request import ObservedRequest, StepKind
from lamina.doctor.requests.record_lines import ReadProblems, RecordLines, figures_of

SOURCE = "claude_code"
_INTERRUPTED = "[Request interrupted"
# How a line's attachment names a change of the tools.
_DELTA = "_delta"


class ClaudeBlock(Struct):
    type: str = ""
    name: str = ""
    text: str | None = None


class ClaudeWrites(Struct, omit_defaults=True):
    ephemeral_1h_input_tokens: int | float | None = None


class ClaudeUsage(Struct, omit_defaults=True):
    input_tokens: int | float | None = None
    cache_creation_input_tokens: int | float | None = None
    cache_read_input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    cache_creation: ClaudeWrites | None = None


class ClaudeMessage(Struct):
    id: str | None = None
    model: str | None = None
    content: list[ClaudeBlock] | str | None = None
    usage: ClaudeUsage | None = None


class ClaudeAttachment(Struct):
    type: str | None = None


class ClaudeThinking(Struct):
    level: str | None = None
    maxThinkingTokens: int | None = None  # noqa: N815 - the file's name for it


class ClaudeLine(Struct, rename="camel"):
    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    request_id: str | None = None
    timestamp: str | float | None = None
    version: str | None = None
    permission_mode: str | None = None
    message: ClaudeMessage | None = None
    attachment: ClaudeAttachment | None = None
    thinking_metadata: ClaudeThinking | None = None


class _Trail(Struct, frozen=True):
    """What happened on a path since the last request on it."""

    request: str = ""
    at: float | None = None
    step: StepKind = ""
    blocks: int = 0
    thought: bool = False
    events: tuple[str, ...] = ()
    permission: str = ""
    thinking: str = ""


_START = _Trail()


def read_claude_code(stream: BinaryIO, name: str, problems: ReadProblems) -> list[ObservedRequest]:
    """The requests of a transcript."""
    reader = _Reader(name, problems)
    for number, line in RecordLines(stream, ClaudeLine, problems):
        reader.add(number, line)
    return list(reader.requests.values())


class _Reader:
    def __init__(self, name: str, problems: ReadProblems) -> None:
        self._name, self._problems = name, problems
        self.requests: dict[str, ObservedRequest] = {}
        self._trails: dict[str, _Trail] = {}
        # Where each agent got to, for lines whose parent is missing.
        self._last: dict[str, _Trail] = {}

    def add(self, number: int, line: ClaudeLine) -> None:
        if line.uuid is None:
            return
        agent = line.agent_id or ("side chain" if line.is_sidechain else "")
        parent = line.parent_uuid or line.logical_parent_uuid
        trail = self._trails.get(parent) if parent else None
        if trail is None:
            trail = self._last.get(agent, _START) if parent else _START
        at = parse_moment(line.timestamp)
        if line.type == "assistant" and line.message is not None and line.message.id:
            trail = self._answer(number, line, line.message, trail, at, agent)
        else:
            trail = _extend(trail, line, at)
        self._trails[line.uuid] = trail
        self._last[agent] = trail

    def _answer(
        self, number: int, line: ClaudeLine, message: ClaudeMessage, trail: _Trail,
        at: float | None, agent: str,
    ) -> _Trail:  # fmt: skip
        assert message.id is not None
        name = f"{message.id}/{line.request_id or ''}"
        blocks = message.content if isinstance(message.content, list) else []
        thought = any(block.type in ("thinking", "redacted_thinking") for block in blocks)
        events = ("skill",) if any(block.name == "Skill" for block in blocks) else ()
        earlier = self.requests.get(name)
        figures = figures_of(message.usage)
        self._problems.check_figures(number, figures)
        usage = read_usage(figures)
        if earlier is not None:
            if usage is not None and usage.input:
                self.requests[name] = replace(earlier, usage=usage, ended=at or earlier.ended)
        elif usage is not None and usage.input and not (message.model or "").startswith("<"):
            self.requests[name] = ObservedRequest(
                source=SOURCE, session=line.session_id or self._name, id=name, usage=usage,
                depth="transcript", at=trail.at or at, ended=at, provider="anthropic",
                model=message.model or "", agent=agent, parent=trail.request, step=trail.step,
                blocks=trail.blocks or None, thought=trail.thought, events=trail.events,
                parameters=(("thinking", trail.thinking),) if trail.thinking else (),
                version=line.version or "", file=self._name, line=number,
            )  # fmt: skip
        else:
            return trail
        is_same = trail.request == name
        return _Trail(
            request=name,
            at=at or trail.at,
            blocks=len(blocks) + (trail.blocks if is_same else 0),
            thought=thought or (is_same and trail.thought),
            events=(*trail.events, *events) if is_same else events,
            permission=trail.permission,
            thinking=trail.thinking,
        )


def _extend(trail: _Trail, line: ClaudeLine, at: float | None) -> _Trail:
    """The path with a line that is no answer."""
    step, blocks, events = trail.step, trail.blocks, list(trail.events)
    fields: dict[str, Any] = {}
    if line.type == "user" and line.message is not None:
        content = line.message.content
        parts = content if isinstance(content, list) else [ClaudeBlock(type="text")]
        text = content if isinstance(content, str) else next(
            (part.text for part in parts if part.text), ""
        )  # fmt: skip
        is_result = any(part.type == "tool_result" for part in parts)
        if not is_result and not line.is_meta:
            step = "turn"
        elif not step:
            step = "loop"
        blocks += len(parts)
        if text and text.startswith(_INTERRUPTED):
            events.append("interruption")
        if text and "<command-name>" in text[:200]:
            events.append("command")
        if any(part.type == "image" for part in parts):
            events.append("image")
        if line.is_compact_summary:
            events.append("compaction")
        if line.permission_mode:
            if trail.permission and trail.permission != line.permission_mode:
                events.append("permission")
            fields["permission"] = line.permission_mode
        if line.thinking_metadata is not None:
            fields["thinking"] = _thinking(line.thinking_metadata)
    elif line.subtype == "compact_boundary":
        events.append("compaction")
    elif line.subtype == "microcompact_boundary":
        events.append("results_cleared")
    elif line.attachment is not None and (line.attachment.type or "").endswith(_DELTA):
        events.append("tools")
    return replace(
        trail, at=at or trail.at, step=step, blocks=blocks, events=tuple(dict.fromkeys(events)),
        **fields,
    )  # fmt: skip


def _thinking(thinking: ClaudeThinking) -> str:
    if thinking.level:
        return thinking.level
    budget = thinking.maxThinkingTokens
    return "" if budget is None else str(budget)

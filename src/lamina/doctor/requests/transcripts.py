"""Reads requests from the sessions of other programs: Claude Code, Codex, pi, Copilot CLI, OpenCode
and Gemini CLI. `adapters/formats` defines their files; this module determines the content and time
of each request.

Laws: usage belongs to one request, never to several. Everything between two answers was sent with
the later one. A file that is read line by line is never entirely in memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats import claude_code, codex, copilot_cli, gemini_cli, opencode, pi
from lamina.adapters.formats.claude_code import (
    ClaudeBlock,
    ClaudeLine,
    ClaudeMessage,
    ClaudeThinking,
)
from lamina.adapters.formats.codex import CodexLine, CodexPayload
from lamina.adapters.formats.content import provider_of, read_openai_usage, read_usage
from lamina.adapters.formats.copilot_cli import CopilotData, CopilotLine, read_copilot_usage
from lamina.adapters.formats.gemini_cli import read_gemini_session, read_gemini_usage
from lamina.adapters.formats.json_lines import (
    JsonLine,
    count_in,
    list_in,
    object_in,
    parse_moment,
    text_in,
)
from lamina.adapters.formats.opencode import read_opencode_usage
from lamina.adapters.formats.pi import PiBlock, PiLine
from lamina.doctor.observed_request import ObservedRequest, StepKind
from lamina.doctor.requests.record_lines import (
    ReadProblems,
    RecordLabels,
    RecordLines,
    figures_of,
)


class _Trail(Struct, frozen=True):
    """The events on a path since its last request, for files in which each line names its
    predecessor."""

    request: str = ""
    at: float | None = None
    step: StepKind = ""
    blocks: int = 0
    thought: bool = False
    events: tuple[str, ...] = ()
    permission: str = ""
    thinking: str = ""


_START = _Trail()


# -- Claude Code -----------------------------------------------------------------------------------

_INTERRUPTED = "[Request interrupted"
# The suffix of the type of attachments that change the tools.
_DELTA = "_delta"


def read_claude_code(stream: BinaryIO, name: str, problems: ReadProblems) -> list[ObservedRequest]:
    """Read the requests of a transcript, including those of its subagents.

    Lines with the same `message.id` are one request, with the usage of the last of them. The
    previous request is the nearest answer among its ancestors, whatever is in between; a side chain
    or a subagent's file is a separate conversation.
    """
    reader = _ClaudeReader(name, problems)
    for number, line in RecordLines(stream, ClaudeLine, problems):
        reader.add(number, line)
    return list(reader.requests.values())


class _ClaudeReader:
    def __init__(self, name: str, problems: ReadProblems) -> None:
        self._name, self._problems = name, problems
        self.requests: dict[str, ObservedRequest] = {}
        self._trails: dict[str, _Trail] = {}
        # The latest trail of each agent, for lines with a missing parent.
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
            trail = _with_claude_line(trail, line, at)
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
                source=claude_code.SOURCE, session=line.session_id or self._name, id=name,
                usage=usage, depth="transcript", at=trail.at or at, ended=at, provider="anthropic",
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


def _with_claude_line(trail: _Trail, line: ClaudeLine, at: float | None) -> _Trail:
    """Return the trail extended by a line that is not an answer."""
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
            fields["thinking"] = _claude_thinking(line.thinking_metadata)
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


def _claude_thinking(thinking: ClaudeThinking) -> str:
    if thinking.level:
        return thinking.level
    budget = thinking.maxThinkingTokens
    return "" if budget is None else str(budget)


# -- Codex -----------------------------------------------------------------------------------------


def read_codex(stream: BinaryIO, name: str, problems: ReadProblems) -> list[ObservedRequest]:
    """Read the requests of a rollout.

    A `token_count` event with a changed total is one request. The answer of the first and the input
    of the second are between two such events.
    """
    reader = _CodexReader(name, problems)
    for number, line in RecordLines(stream, CodexLine, problems):
        if line.payload is not None:
            reader.add(number, line.type or "", line.payload, parse_moment(line.timestamp))
    return reader.requests


class _Sent(Struct):
    """The content that one request sent to the model."""

    at: float | None = None
    step: StepKind = ""
    blocks: int = 0
    events: tuple[str, ...] = ()


class _CodexReader:
    def __init__(self, name: str, problems: ReadProblems) -> None:
        self.requests: list[ObservedRequest] = []
        self._name, self._problems = name, problems
        # A separate thread within a session, such as a subagent's.
        self._session, self._thread = name, ""
        self._model = self._effort = self._version = ""
        self._provider = "openai"
        self._total = -1
        # Results precede the count of the request that called for them: once the model has begun to
        # answer, items belong to the next request.
        self._now, self._next = _Sent(), _Sent()
        self._is_answered = False

    def add(self, number: int, kind: str, payload: CodexPayload, at: float | None) -> None:
        match kind:
            case "session_meta":
                if self._thread:
                    # The file repeats the headers of the sessions from which it was forked.
                    return
                self._thread = payload.id or self._name
                self._session = payload.session_id or self._thread
                self._provider = payload.model_provider or self._provider
                self._version = payload.cli_version or self._version
            case "turn_context":
                self._model = payload.model or self._model
                mode = payload.collaboration_mode
                settings = mode.settings if mode else None
                effort = payload.effort or (settings.reasoning_effort if settings else None)
                self._effort = effort or self._effort
            case "compacted":
                self._note("compaction")
            case "response_item":
                self._item(payload, at)
            case "event_msg":
                self._event(number, payload, at)
            case _:
                pass

    @property
    def _sent(self) -> _Sent:
        return self._next if self._is_answered else self._now

    def _note(self, event: str) -> None:
        self._sent.events = (*self._sent.events, event)

    def _item(self, payload: CodexPayload, at: float | None) -> None:
        kind, sent = payload.type or "", self._sent
        if kind == "message" and payload.role == "user":
            sent.step, sent.at = "turn", at
            parts = payload.content if isinstance(payload.content, list) else []
            if any(part.type == "input_image" for part in parts):
                self._note("image")
        elif kind.endswith("_output"):
            sent.step, sent.at = sent.step or "loop", at
        elif kind in ("reasoning", "function_call", "custom_tool_call", "local_shell_call") or (
            kind == "message" and payload.role == "assistant"
        ):
            self._is_answered = True
            self._next.blocks += 1
            return
        sent.blocks += 1

    def _event(self, number: int, payload: CodexPayload, at: float | None) -> None:
        if payload.type == "context_compacted":
            self._note("compaction")
        elif payload.type == "turn_aborted":
            self._note("interruption")
        if payload.type != "token_count" or payload.info is None:
            return
        total = payload.info.total_token_usage
        figures = figures_of(payload.info.last_token_usage)
        so_far = count_in(figures_of(total), "total_tokens") if total else self._total + 1
        usage = read_openai_usage(figures)
        if usage is None or so_far == self._total or not usage.input:
            return
        self._problems.check_figures(number, figures)
        self._total = so_far
        sent, self._now, self._next = self._now, self._next, _Sent()
        self._is_answered = False
        thread = self._thread or self._name
        self.requests.append(ObservedRequest(
            source=codex.SOURCE, session=self._session, id=f"{thread}/{so_far}/{at}",
            agent=thread if self._thread and thread != self._session else "",
            usage=usage, depth="transcript", at=sent.at or at, ended=at, provider=self._provider,
            model=self._model, step=sent.step or ("loop" if self.requests else "turn"),
            blocks=sent.blocks or None, thought=True,
            parameters=(("effort", self._effort),) if self._effort else (),
            events=tuple(dict.fromkeys(sent.events)), version=self._version, file=self._name,
            line=number,
        ))  # fmt: skip


# -- pi --------------------------------------------------------------------------------------------


def read_pi(stream: BinaryIO, name: str, problems: ReadProblems) -> list[ObservedRequest]:
    """Read the requests of a session: each answer with usage is one. Entries follow their parents;
    in files without ids, each follows the preceding one."""
    session = name
    requests: list[ObservedRequest] = []
    trails: dict[str, _Trail] = {}
    labels = RecordLabels()
    last = _START
    for number, line in RecordLines(stream, PiLine, problems):
        if line.type == "session":
            session = line.id or session
            last = replace(last, thinking=line.thinking_level or last.thinking)
            continue
        trail = trails.get(line.parent_id, last) if line.parent_id else last
        at = parse_moment(line.timestamp)
        message = line.message
        if message is not None and message.role == "assistant":
            figures = figures_of(message.usage)
            problems.check_figures(number, figures)
            label, usage = labels.next(number), read_usage(figures)
            if usage is not None and usage.input:
                began = parse_moment(message.timestamp)
                request = ObservedRequest(
                    source=pi.SOURCE, session=session, id=f"{session}/{label}", usage=usage,
                    depth="transcript", at=trail.at or began or at, ended=at,
                    provider=message.provider or "", model=message.model or "",
                    parent=trail.request, step=trail.step, blocks=trail.blocks or None,
                    thought=trail.thought, events=tuple(dict.fromkeys(trail.events)),
                    parameters=(("thinking level", trail.thinking),) if trail.thinking else (),
                    file=name, line=number,
                )  # fmt: skip
                requests.append(request)
                blocks = message.content if isinstance(message.content, list) else []
                trail = _Trail(
                    request=request.id, at=at, blocks=len(blocks), thinking=trail.thinking,
                    thought=any(block.type == "thinking" for block in blocks),
                )  # fmt: skip
        else:
            trail = _with_pi_line(trail, line, at)
        if line.id:
            trails[line.id] = trail
        last = trail
    return requests


def _with_pi_line(trail: _Trail, line: PiLine, at: float | None) -> _Trail:
    """Return the trail extended by a line that is not an answer."""
    match line.type:
        case "thinking_level_change":
            return replace(trail, thinking=line.thinking_level or trail.thinking)
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


# -- Copilot CLI -----------------------------------------------------------------------------------


def read_copilot_cli(stream: BinaryIO, name: str, problems: ReadProblems) -> list[ObservedRequest]:
    """Read the requests in an event file: each `assistant.usage` event is one. Files without such
    events have at best sums, which are not requests."""
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
                usage = read_copilot_usage(figures)
                if not usage.input:
                    continue
                took = count_in(figures, "duration") / 1000
                requests.append(ObservedRequest(
                    source=copilot_cli.SOURCE, session=session, id=f"{session}/{line.id or number}",
                    usage=usage, depth="transcript", at=at - took if at is not None else None,
                    ended=at, model=data.model or model, agent=data.parent_tool_call_id or "",
                    step=step or "loop", events=tuple(dict.fromkeys(events)), file=name,
                    parameters=(("effort", data.reasoning_effort),) if data.reasoning_effort
                    else (), line=number,
                ))  # fmt: skip
                step, events = "", []
            case _:
                pass
    return requests


# -- OpenCode --------------------------------------------------------------------------------------


def read_opencode(
    document: Mapping[str, Any], name: str, problems: ReadProblems
) -> Iterator[ObservedRequest]:
    """Yield the requests of one session, `{info, messages: [{info, parts}]}`, from an export, a
    folder or the database. Each finished step is one request, as is each message without steps."""
    about = object_in(document, "info")
    own = text_in(about, "id") or name
    # A subagent's session names its parent session.
    session = text_in(about, "parentID") or own
    agent = own if session != own else ""
    last, blocks, thought = "", 0, False
    step: StepKind = ""
    sent_at: float | None = None
    events: list[str] = []
    for index, message in enumerate(list_in(document, "messages")):
        info = object_in(message, "info") if isinstance(message, dict) else {}
        parts = [part for part in list_in(message, "parts") if isinstance(part, dict)]
        times = object_in(info, "time")
        if info.get("role") == "user":
            step, sent_at = "turn", parse_moment(times.get("created"))
            blocks += len(parts)
            if any(text_in(part, "mime").startswith("image/") for part in parts):
                events.append("image")
            events += ["compaction"] * any(part.get("type") == "compaction" for part in parts)
            continue
        if info.get("role") != "assistant":
            continue
        events += ["compaction"] * (info.get("summary") is True)
        steps = [part for part in parts if part.get("type") == "step-finish"]
        figures = [object_in(part, "tokens") for part in steps] or [object_in(info, "tokens")]
        created = parse_moment(times.get("created"))
        for place, tokens in enumerate(figures):
            problems.check_figures(None, tokens)
            usage = read_opencode_usage(tokens)
            if usage is None or not usage.input:
                continue
            request = f"{own}/{text_in(info, 'id') or index}/{place}"
            yield ObservedRequest(
                source=opencode.SOURCE, session=session, id=request, usage=usage,
                depth="transcript", at=(sent_at or created) if not place else created,
                ended=parse_moment(times.get("completed")),
                provider=provider_of(text_in(info, "providerID")), model=text_in(info, "modelID"),
                agent=agent, parent=last, step=step or "loop", blocks=blocks or None,
                thought=thought, events=tuple(dict.fromkeys(events)), file=name, line=index + 1,
            )  # fmt: skip
            last, step, events, sent_at = request, "loop", [], None
            blocks = 0
        blocks += len(parts)
        thought = any(part.get("type") == "reasoning" for part in parts)


# -- Gemini CLI ------------------------------------------------------------------------------------


def read_gemini_cli(
    lines: Sequence[JsonLine], name: str, problems: ReadProblems
) -> Iterator[ObservedRequest]:
    """Yield the requests of a session: each answer with `tokens` is one."""
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
                source=gemini_cli.SOURCE, session=id, id=request, usage=usage, depth="transcript",
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

"""Requests of Codex's rollouts.

Laws: a `token_count` event whose total moved is one request; `input_tokens` includes what was
cached. Between two of them stands what the first answered and what the second was sent.
"""

from typing import BinaryIO

from msgspec import Struct

from lamina.adapters.formats.content import read_openai_usage
from lamina.adapters.formats.json_lines import count_in, parse_moment
from lamina.doctor.observed_request import ObservedRequest, StepKind
from lamina.doctor.requests.record_lines import ReadProblems, RecordLines, figures_of

SOURCE = "codex"


class CodexTokens(Struct, omit_defaults=True):
    input_tokens: int | float | None = None
    cached_input_tokens: int | float | None = None
    output_tokens: int | float | None = None
    total_tokens: int | float | None = None


class CodexInfo(Struct):
    total_token_usage: CodexTokens | None = None
    last_token_usage: CodexTokens | None = None


class CodexSettings(Struct):
    reasoning_effort: str | None = None


class CodexMode(Struct):
    settings: CodexSettings | None = None


class CodexPart(Struct):
    type: str = ""


class CodexPayload(Struct):
    type: str | None = None
    role: str | None = None
    id: str | None = None
    session_id: str | None = None
    model: str | None = None
    effort: str | None = None
    cli_version: str | None = None
    model_provider: str | None = None
    collaboration_mode: CodexMode | None = None
    info: CodexInfo | None = None
    content: list[CodexPart] | str | None = None


class CodexLine(Struct):
    timestamp: str | float | None = None
    type: str | None = None
    payload: CodexPayload | None = None


def read_codex(stream: BinaryIO, name: str, problems: ReadProblems) -> list[ObservedRequest]:
    """The requests of a rollout."""
    reader = _Reader(name, problems)
    for number, line in RecordLines(stream, CodexLine, problems):
        if line.payload is not None:
            reader.add(number, line.type or "", line.payload, parse_moment(line.timestamp))
    return reader.requests


class _Sent(Struct):
    """What went to the model with one request."""

    at: float | None = None
    step: StepKind = ""
    blocks: int = 0
    events: tuple[str, ...] = ()


class _Reader:
    def __init__(self, name: str, problems: ReadProblems) -> None:
        self.requests: list[ObservedRequest] = []
        self._name, self._problems = name, problems
        # A thread of its own within a session, as subagents have.
        self._session, self._thread = name, ""
        self._model = self._effort = self._version = ""
        self._provider = "openai"
        self._total = -1
        # Results stand in front of the count of the request that called for them: what comes once
        # the model has begun to answer goes with the next one.
        self._now, self._next = _Sent(), _Sent()
        self._is_answered = False

    def add(self, number: int, kind: str, payload: CodexPayload, at: float | None) -> None:
        match kind:
            case "session_meta":
                if self._thread:
                    # The file repeats the heads of the sessions it was forked from.
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
            source=SOURCE, session=self._session, id=f"{thread}/{so_far}/{at}",
            agent=thread if self._thread and thread != self._session else "",
            usage=usage, depth="transcript", at=sent.at or at, ended=at, provider=self._provider,
            model=self._model, step=sent.step or ("loop" if self.requests else "turn"),
            blocks=sent.blocks or None, thought=True,
            parameters=(("effort", self._effort),) if self._effort else (),
            events=tuple(dict.fromkeys(sent.events)), version=self._version, file=self._name,
            line=number,
        ))  # fmt: skip

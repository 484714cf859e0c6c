"""Requests of logs: bodies with their answers or usage, LiteLLM's payloads, and usage alone.

Laws: the bytes of a body are compared with those of the request it goes on from as soon as it is
read, and then forgotten. Sessions are told apart by their ids, where a log has them, else by the
longest known chain of messages. A line that is neither body nor usage is reported.
"""

from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lamina.adapters.formats.content import provider_of, read_openai_usage, read_usage
from lamina.adapters.formats.json_lines import (
    Object,
    count_in,
    object_in,
    parse_json,
    parse_moment,
    text_in,
)
from lamina.adapters.formats.request_bodies import looks_like_body, read_stream
from lamina.core.values.usage import Usage
from lamina.doctor.observed_request import ObservedRequest, PromptChange, RecordedPrompt
from lamina.doctor.prompt_comparison import Lineage, compare_prompts, judge_markers
from lamina.doctor.requests.prompt_parts import read_prompt
from lamina.doctor.requests.record_lines import ReadProblems, RecordLabels

SOURCE = "request_log"
_SESSION_KEYS = (
    "session", "session_id", "sessionId", "conversation_id", "thread_id", "trace_id",
    "litellm_session_id",
)  # fmt: skip
# Sessions whose newest bodies are kept at a time.
_MAX_OPEN = 200
_AGENT_KEYS = ("agent", "agent_id", "agentId")


class LoggedRequest(Struct, frozen=True, kw_only=True):
    """One line of a log, unwrapped; `body` is empty where it holds usage alone."""

    body: Object
    answer: Object
    usage: Usage
    # The vendor's, of which the usage is made.
    figures: Object
    provider: str
    model: str
    at: float | None
    ended: float | None
    session: str = ""
    agent: str = ""
    id: str = ""


def unwrap_line(value: Object) -> LoggedRequest | None:
    """What a line of a log holds; None if it is neither a body with usage nor usage."""
    if "startTime" in value and ("custom_llm_provider" in value or "call_type" in value):
        return _unwrap_litellm(value)
    request, response = object_in(value, "request"), object_in(value, "response")
    body = read_body(value.get("body")) or read_body(request.get("body", request.get("body_raw")))
    body = body or read_body(request) or read_body(value)
    answer = _as_answer(response.get("body", response.get("body_raw"))) or _as_answer(response)
    answer = answer or _as_answer(value.get("answer"))
    figures = _figures_in(value, response, answer)
    usage = read_figures(figures)
    if usage is None:
        return None
    began = parse_moment(request.get("timestamp")) or _moment(
        value, "timestamp", "at", "started_at", "start_time", "startTime", "time", "created_at"
    )
    ended = parse_moment(response.get("timestamp")) or _moment(
        value, "ended_at", "end_time", "endTime", "completed_at"
    )
    model = (
        text_in(body, "model")
        or text_in(value, "model")
        or text_in(answer, "model", "modelVersion")
    )
    return LoggedRequest(
        body=body, answer=answer, usage=usage, figures=figures, model=model.rpartition("/")[2],
        provider=provider_of(text_in(value, "provider", "custom_llm_provider"))
        or _provider_of_body(body, value, answer),
        at=began, ended=ended, session=_first(value, request, body, _SESSION_KEYS),
        agent=_first(value, request, body, _AGENT_KEYS),
        id=text_in(value, "id", "request_id") or text_in(answer, "id", "responseId"),
    )  # fmt: skip


def _unwrap_litellm(value: Object) -> LoggedRequest | None:
    """LiteLLM's `StandardLoggingPayload`."""
    metadata = object_in(value, "metadata")
    figures = object_in(metadata, "usage_object") or object_in(
        object_in(value, "response"), "usage"
    )  # fmt: skip
    usage = read_figures(figures)
    if usage is None and count_in(value, "prompt_tokens"):
        usage = Usage(
            input=count_in(value, "prompt_tokens"), output=count_in(value, "completion_tokens"),
            cache_reported=False,
        )  # fmt: skip
    if usage is None:
        return None
    parameters = object_in(value, "model_parameters")
    messages = value.get("messages")
    model = text_in(value, "model")
    body: Object = {"model": model, **parameters, "messages": messages}
    if not isinstance(messages, list) or not messages:
        body = {}
    return LoggedRequest(
        body=body, answer=object_in(value, "response"), usage=usage, figures=figures,
        model=model.rpartition("/")[2], provider=provider_of(text_in(value, "custom_llm_provider")),
        at=parse_moment(value.get("startTime")), ended=parse_moment(value.get("endTime")),
        session=_first(value, metadata, object_in(metadata, "requester_metadata"), _SESSION_KEYS),
        id=text_in(value, "id"),
    )  # fmt: skip


def _first(*values: Any) -> str:
    *objects, keys = values
    for value in objects:
        for place in (value, object_in(value, "metadata")):
            if found := text_in(place, *keys):
                return found
    return ""


def _moment(value: Mapping[str, Any], *keys: str) -> float | None:
    return next((at for key in keys if (at := parse_moment(value.get(key))) is not None), None)


def read_body(value: Any) -> Object:
    """The body of a request to a model, as it is or as its text; empty if it is none."""
    if isinstance(value, str):
        value = _parse(value)
    if not isinstance(value, dict):
        return {}
    is_gemini = isinstance(value.get("contents"), list)
    return value if is_gemini or looks_like_body(value) else {}


def _as_answer(value: Any) -> Object:
    if isinstance(value, str):
        parsed = _parse(value)
        if not isinstance(parsed, dict):
            stream = read_stream(value)
            parsed = stream.body if stream else None
        value = parsed
    if isinstance(value, list):
        # Gemini's streams are lists of answers, the last of which has the sum.
        value = value[-1] if value else None
    return value if isinstance(value, dict) else {}


def _parse(text: str) -> Any:
    try:
        return parse_json(text.encode("utf-8", "replace"))[0]
    except ValueError:
        return None


def _figures_in(*values: Mapping[str, Any]) -> Object:
    """The first figures of any vendor's form; empty if there are none."""
    for value in values:
        for key in ("usage", "usageMetadata", "usage_metadata"):
            figures = object_in(value, key)
            if read_figures(figures) is not None:
                return figures
    return {}


def read_figures(figures: Mapping[str, Any]) -> Usage | None:
    """Usage in the form of any vendor."""
    if "promptTokenCount" in figures or "prompt_token_count" in figures:
        cached = ("cachedContentTokenCount", "cached_content_token_count")
        output = count_in(figures, "candidatesTokenCount", "candidates_token_count")
        return Usage(
            input=count_in(figures, "promptTokenCount", "prompt_token_count"),
            cached=count_in(figures, *cached),
            output=output + count_in(figures, "thoughtsTokenCount", "thoughts_token_count"),
        )
    if "cache_read_input_tokens" in figures and "prompt_tokens" not in figures:
        return read_usage(figures)
    if "prompt_tokens" in figures or "input_tokens_details" in figures:
        usage = read_openai_usage(figures)
        written = count_in(figures, "cache_creation_input_tokens")
        return replace(usage, written=written) if usage and written else usage
    if "input_tokens" in figures:
        return read_openai_usage(figures)
    if "cacheRead" in figures:
        return read_usage(figures)
    return None


def _provider_of_body(body: Object, value: Object, answer: Object) -> str:
    if "contents" in body or "usageMetadata" in answer or "usageMetadata" in value:
        return "gemini"
    if object_in(answer, "usage").get("cache_read_input_tokens") is not None:
        return "anthropic"
    if object_in(value, "usage").get("cache_read_input_tokens") is not None:
        return "anthropic"
    return ""


class LogReader:
    """The requests of a log, one line after the other."""

    def __init__(
        self,
        name: str,
        problems: ReadProblems,
        source: str = SOURCE,
        *,
        reports_others: bool = True,
    ) -> None:
        self._name, self._source = name, source
        # Whether a line that is no request is a problem.
        self._reports_others = reports_others
        self._problems = problems
        self._labels = RecordLabels()
        # Of the sessions that were written to last.
        self._lineages: OrderedDict[str, Lineage] = OrderedDict()
        # The session and the agent that each request turned out to be of.
        self._homes: dict[str, tuple[str, str]] = {}
        self._recent: deque[tuple[ObservedRequest, RecordedPrompt]] = deque(maxlen=8)
        self.requests: list[ObservedRequest] = []

    def add(self, number: int, value: Any) -> None:
        logged = unwrap_line(value) if isinstance(value, dict) else None
        if logged is None:
            if self._reports_others:
                self._problems.add(number, "unexpected", "neither a request with usage nor usage")
            return
        self._problems.check_figures(number, logged.figures)
        label = self._labels.next(number)
        id = f"{self._name}/{label}/{logged.id}"
        request = ObservedRequest(
            source=self._source, session=logged.session or self._name, id=id, usage=logged.usage,
            depth="bodies" if logged.body else "usage", at=logged.at, ended=logged.ended,
            provider=logged.provider, model=logged.model, agent=logged.agent, file=self._name,
            line=number, is_own=True,
        )  # fmt: skip
        if logged.body:
            request = self._compare(request, logged, label)
        self.requests.append(request)

    def _compare(
        self, request: ObservedRequest, logged: LoggedRequest, label: str
    ) -> ObservedRequest:
        prompt = read_prompt(logged.body)
        key = f"{logged.session}\x1f{logged.agent}"
        lineage = self._lineages.pop(key, None) or Lineage(is_one_session=bool(logged.session))
        self._lineages[key] = lineage
        if len(self._lineages) > _MAX_OPEN:
            self._lineages.popitem(last=False)
        before = lineage.add(request.id, prompt)
        if before is None:
            if not logged.session:
                request = replace(request, session=f"{self._name}#{label}")
            request = self._begin(request, prompt, is_named=bool(logged.session))
        else:
            change = compare_prompts(before.prompt, prompt)
            if change.cause is None:
                change = judge_markers(change, before.prompt, prompt)
            request = replace(
                request, parent=before.id, change=change, parameters=prompt.parameters,
                session=self._homes.get(before.id, (request.session, ""))[0],
                agent=self._homes.get(before.id, ("", request.agent))[1],
            )  # fmt: skip
        self._homes[request.id] = (request.session, request.agent)
        self._recent.append((request, prompt))
        return request

    def _begin(
        self, request: ObservedRequest, prompt: RecordedPrompt, *, is_named: bool
    ) -> ObservedRequest:
        """A request that goes on from none. What it shares with one that is still being answered
        is what it could not read yet; where no ids tell sessions apart, the two belong together."""
        best: PromptChange | None = None
        for other, other_prompt in self._recent:
            if not _overlap(request, other) or (is_named and other.session != request.session):
                continue
            change = compare_prompts(other_prompt, prompt)
            if best is None or change.shared > best.shared:
                best = PromptChange(shared=change.shared, size=change.size)
                if not is_named and 2 * change.shared > change.size:
                    request = replace(request, session=other.session, agent=request.id)
        return replace(request, is_root=True, change=best, parameters=prompt.parameters)


def _overlap(request: ObservedRequest, other: ObservedRequest) -> bool:
    if request.at is None or other.at is None or other.ended is None:
        return False
    return other.at <= request.at < other.ended and request.model == other.model

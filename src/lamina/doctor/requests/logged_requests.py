"""Reads requests with recorded bodies: request logs, and HAR files from browsers and proxies.

Laws: a body's bytes are compared with those of the request it continues as soon as it is read, and
then discarded. Sessions are distinguished by their ids if a log has them, else by the longest known
chain of messages. A log line that is neither a body nor usage is reported; in a HAR file, unrelated
traffic is skipped.
"""

from base64 import b64decode
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from lamina.adapters.formats.json_lines import (
    Object,
    count_in,
    list_in,
    object_in,
    parse_moment,
    text_in,
)
from lamina.adapters.formats.request_log import SOURCE, LoggedRequest, as_body, unwrap_line
from lamina.doctor.observed_request import ObservedRequest, PromptChange, RecordedPrompt
from lamina.doctor.prompt_comparison import Lineage, compare_prompts, judge_markers
from lamina.doctor.requests.prompt_parts import read_prompt
from lamina.doctor.requests.record_lines import ReadProblems, RecordLabels

HAR = "har"
_SESSION_HEADERS = ("x-lamina-session", "x-session-id", "session_id", "x-claude-code-session-id")
# The number of sessions whose newest bodies are kept at a time.
_MAX_OPEN = 200


class LogReader:
    """A reader of the requests in a log, line by line."""

    def __init__(
        self,
        name: str,
        problems: ReadProblems,
        source: str = SOURCE,
        *,
        reports_others: bool = True,
    ) -> None:
        self._name, self._source = name, source
        # Whether a line that is not a request is reported as a problem.
        self._reports_others = reports_others
        self._problems = problems
        self._labels = RecordLabels()
        # The lineages of the most recent sessions.
        self._lineages: OrderedDict[str, Lineage] = OrderedDict()
        # The session and agent to which each request was assigned.
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
        """Begin a conversation. A request cannot yet read content that it shares with one that is
        still being answered; if no ids distinguish sessions, the two belong together."""
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


# -- HAR -------------------------------------------------------------------------------------------


def looks_like_har(value: Object) -> bool:
    return isinstance(object_in(value, "log").get("entries"), list)


def har_lines(document: Mapping[str, Any], problems: ReadProblems) -> Iterator[tuple[int, Object]]:
    """Yield the entries as numbered request-log lines, in order of sending. A model's answer with
    broken base64 is reported."""
    entries = [
        (number, entry)
        for number, entry in enumerate(list_in(object_in(document, "log"), "entries"), 1)
        if isinstance(entry, dict) and object_in(object_in(entry, "request"), "postData")
    ]
    entries.sort(key=lambda pair: parse_moment(pair[1].get("startedDateTime")) or 0.0)
    for number, entry in entries:
        request, response = object_in(entry, "request"), object_in(entry, "response")
        text = text_in(object_in(request, "postData"), "text")
        began = parse_moment(entry.get("startedDateTime"))
        ended = began + count_in(entry, "time") / 1000 if began is not None else None
        headers = {
            text_in(header, "name").lower(): text_in(header, "value")
            for header in list_in(request, "headers")
            if isinstance(header, dict)
        }
        answer = _answer_text(object_in(response, "content"))
        if answer is None:
            if as_body(text):
                problems.add(number, "unreadable", "the answer's base64 is broken")
            continue
        session = next((headers[name] for name in _SESSION_HEADERS if headers.get(name)), "")
        yield (
            number,
            {
                "request": {"timestamp": began, "body_raw": text},
                "response": {"timestamp": ended, "body_raw": answer},
                "session": session,
                "model": _model_in(text_in(request, "url")),
            },
        )


def _answer_text(content: Mapping[str, Any]) -> str | None:
    """Return the text of an answer; None if its base64 is broken."""
    text = text_in(content, "text")
    if text_in(content, "encoding").lower() != "base64":
        return text
    try:
        return b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
    except ValueError:
        return None


def _model_in(url: str) -> str:
    """Return the model named in a URL, as Gemini does."""
    _, found, rest = url.partition("/models/")
    return rest.partition(":")[0].partition("?")[0] if found else ""

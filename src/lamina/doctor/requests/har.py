"""Requests of HAR files, as browsers and proxies record them.

Laws: an entry whose body is a request to a model and whose answer reports usage is one request; the
others are nobody's business and are passed over. Answers may be in base64; one to a model whose
base64 is broken is reported.
"""

from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

from lamina.adapters.formats.json_lines import (
    Object,
    count_in,
    list_in,
    object_in,
    parse_moment,
    text_in,
)
from lamina.doctor.requests.record_lines import ReadProblems
from lamina.doctor.requests.request_log import read_body

SOURCE = "har"
_SESSION_HEADERS = ("x-lamina-session", "x-session-id", "session_id", "x-claude-code-session-id")


def looks_like_har(value: Object) -> bool:
    return isinstance(object_in(value, "log").get("entries"), list)


def har_lines(document: Mapping[str, Any], problems: ReadProblems) -> Iterator[tuple[int, Object]]:
    """The entries as lines of a request log, with their numbers, in order of sending."""
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
            if read_body(text):
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
    """What was answered; None if its base64 is broken."""
    text = text_in(content, "text")
    if text_in(content, "encoding").lower() != "base64":
        return text
    try:
        return b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
    except ValueError:
        return None


def _model_in(url: str) -> str:
    """Gemini names its model in the address."""
    _, found, rest = url.partition("/models/")
    return rest.partition(":")[0].partition("?")[0] if found else ""

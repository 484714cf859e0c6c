"""Requests of HAR files, as browsers and proxies record them.

Law: an entry whose body is a request to a model and whose answer reports usage is one request; the
others are nobody's business and are passed over.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lamina.formats.json_fields import Object, count_in, list_in, object_in, parse_moment, text_in

SOURCE = "har"
_SESSION_HEADERS = ("x-lamina-session", "x-session-id", "session_id", "x-claude-code-session-id")


def looks_like_har(value: Object) -> bool:
    return isinstance(object_in(value, "log").get("entries"), list)


def har_lines(document: Mapping[str, Any]) -> Iterator[tuple[int, Object]]:
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
        session = next((headers[name] for name in _SESSION_HEADERS if headers.get(name)), "")
        yield (
            number,
            {
                "request": {"timestamp": began, "body_raw": text},
                "response": {
                    "timestamp": ended,
                    "body_raw": text_in(object_in(response, "content"), "text"),
                },
                "session": session,
                "model": _model_in(text_in(request, "url")),
            },
        )


def _model_in(url: str) -> str:
    """Gemini names its model in the address."""
    _, found, rest = url.partition("/models/")
    return rest.partition(":")[0].partition("?")[0] if found else ""

"""What a search of the web answers, read and screened. The form is told in docs/web-search.md.

Laws: an answer is data of strangers. A result counts only with an address that pages could be
fetched from by anybody; texts are short, and characters that nobody sees are told of. What is left
out is counted.
"""

import re

import msgspec
from msgspec import Struct

from lamina.adapters.pages.addresses import read_address
from lamina.adapters.pages.allowed_hosts import judge_name
from lamina.adapters.pages.answers import fetch_failure
from lamina.core.codec import mend_text
from lamina.core.text.characters import describe_hidden, find_hidden
from lamina.core.values.web import FoundPage, FoundPages, UnfetchedResource, WebRules

MOST_RESULTS = 10
# Characters of a title or a date, of a snippet, and of a content.
LONGEST_LINE = 200
LONGEST_SNIPPET = 1_000
LONGEST_CONTENT = 4_000
FORM = '{"results": [{"title": ..., "url": ..., "snippet": ...}]}'
_PUBLIC = WebRules(access="public")
# Control characters, which no text needs.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class _Result(Struct):
    url: str = ""
    title: str | None = None
    snippet: str | None = None
    content: str | None = None
    date: str | None = None


class _Answer(Struct):
    results: list[msgspec.Raw]


def read_found(data: bytes | str) -> FoundPages:
    """The results in an answer.

    Raises:
        FetchFailure: it does not have the form.
    """
    try:
        results = msgspec.json.decode(data, type=_Answer).results
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        detail = f"the search did not answer in the form {FORM}: {error}"
        raise fetch_failure("unreadable", detail) from error
    pages: dict[str, FoundPage] = {}
    refused = 0
    for raw in results[: 4 * MOST_RESULTS]:
        page = _read_result(raw)
        if page is None:
            refused += 1
        elif len(pages) < MOST_RESULTS:
            pages.setdefault(page.url, page)
    warnings = [f"{page.url}: {hidden}" for page in pages.values() if (hidden := _hidden(page))]
    if refused:
        count = "a result" if refused == 1 else f"{refused} results"
        warnings.append(f"{count} without a public web address, or not in the form, left out")
    return FoundPages(pages=tuple(pages.values()), warnings=tuple(warnings))


def _hidden(page: FoundPage) -> str:
    findings = find_hidden("\n".join((page.title, page.snippet, page.content, page.date)))
    return describe_hidden(findings) if findings else ""


def _read_result(raw: msgspec.Raw) -> FoundPage | None:
    try:
        result = msgspec.json.decode(raw, type=_Result)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    address = read_address(result.url.strip())
    if isinstance(address, UnfetchedResource):
        return None
    if isinstance(judge_name(address, _PUBLIC), UnfetchedResource):
        return None
    return FoundPage(
        title=_clean(result.title, LONGEST_LINE) or address.host,
        url=address.url,
        snippet=_clean(result.snippet, LONGEST_SNIPPET),
        content=_clean(result.content, LONGEST_CONTENT),
        date=_clean(result.date, LONGEST_LINE),
    )


def _clean(text: str | None, longest: int) -> str:
    """A text without control characters, cut to its length."""
    shown = _CONTROLS.sub("", mend_text((text or "")[: 2 * longest])).strip()
    return shown if len(shown) <= longest else f"{shown[: longest - 1].rstrip()}…"

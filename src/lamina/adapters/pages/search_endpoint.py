"""Searches the web over an HTTP endpoint, in the format described in docs/web-search.md.

Laws: the endpoint is an address given by a person, judged like a page's address, and no redirect is
followed. The key goes only there, and over the web only encrypted. Errors repeat only the address's
host. A response is untrusted data: a result counts only with a public address; strings are short,
and invisible characters are reported. Results that are left out are counted.
"""

import re
import ssl
from collections.abc import Mapping

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct

from lamina.adapters.files.extras import install_hint
from lamina.adapters.pages.addresses import Address, read_address
from lamina.adapters.pages.allowed_hosts import judge_addresses, judge_name
from lamina.adapters.pages.fetch_answers import REDIRECTS, FetchFailure, fetch_failure, judge_status
from lamina.adapters.pages.fetcher import Resolve, WebLimits, find_addresses, resolve
from lamina.core.codec import mend_text
from lamina.core.text.characters import describe_hidden, find_hidden
from lamina.core.values.web_access import FoundPage, FoundPages, UnfetchedResource, WebRules
from lamina.errors import UsageError

MAX_RESULTS = 10
# Maximum characters of a title or date, of a snippet, and of content.
LONGEST_LINE = 200
LONGEST_SNIPPET = 1_000
LONGEST_CONTENT = 4_000
FORM = '{"results": [{"title": ..., "url": ..., "snippet": ...}]}'
_PUBLIC = WebRules(access="public")
# Control characters, which no string needs.
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
    """Read the results in a response.

    Raises:
        FetchFailure: its format is invalid.
    """
    try:
        results = msgspec.json.decode(data, type=_Answer).results
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        detail = f"the search did not answer in the form {FORM}: {error}"
        raise fetch_failure("unreadable", detail) from error
    pages: dict[str, FoundPage] = {}
    refused = 0
    for raw in results[: 4 * MAX_RESULTS]:
        page = _read_result(raw)
        if page is None:
            refused += 1
        elif len(pages) < MAX_RESULTS:
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
    """Return a string without control characters, truncated to `longest`."""
    shown = _CONTROLS.sub("", mend_text((text or "")[: 2 * longest])).strip()
    return shown if len(shown) <= longest else f"{shown[: longest - 1].rstrip()}…"


MAX_BYTES = 1_000_000
_AGENT = "Lamina (a person allowed this search)"


class SearchEndpoint:
    """A search endpoint at `url`. `headers` are sent along, for example one with a key.

    Raises:
        UsageError: `url` is not a web address.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        limits: WebLimits | None = None,
        resolve: Resolve = resolve,
        context: ssl.SSLContext | None = None,
    ) -> None:
        address = read_address(url.strip())
        if isinstance(address, UnfetchedResource):
            raise UsageError(f"the web cannot be searched there: {address.detail}")
        for name, value in (headers or {}).items():
            if not (value.isascii() and value.isprintable() and name.replace("-", "").isalnum()):
                raise UsageError(f"the header {name!r} for the search holds what no header can")
        self.address: Address = address
        self._headers: dict[bytes | str, bytes | str] = dict((headers or {}).items())
        self._limits = limits or WebLimits()
        self._resolve = resolve
        self._context = context

    @property
    def name(self) -> str:
        """The destination of queries, for display."""
        return self.address.host

    async def search(self, query: str, limit: int) -> FoundPages | UnfetchedResource:
        """Search for a query, or return why that failed."""
        try:
            with anyio.fail_after(self._limits.total_s):
                return await self._ask({"query": query, "limit": limit})
        except FetchFailure as failure:
            return failure.why
        except TimeoutError:
            seconds = self._limits.total_s
            detail = f"{self.name} took longer than {seconds:g} s"
            return UnfetchedResource(reason="unreadable", detail=detail)

    async def _ask(self, question: Mapping[str, object]) -> FoundPages:
        try:
            from httpcore2 import default_ssl_context

            from lamina.adapters.pages.exchange import FetchRequest, connect_tcp, exchange
        except ModuleNotFoundError as error:
            detail = f"searching the web needs the package {error.name!r}: {install_hint('pages')}"
            raise fetch_failure("unreadable", detail) from error
        address = self.address
        # A person named this address, so it may be local.
        rules = WebRules(access="listed", allow_hosts=(f"private:{address.host}:{address.port}",))
        reach = judge_name(address, rules)
        if isinstance(reach, UnfetchedResource):
            raise FetchFailure(reach)
        ips = await find_addresses(address, self._resolve)
        zone = judge_addresses(address, reach, ips)
        if isinstance(zone, UnfetchedResource):
            raise FetchFailure(zone)
        if address.scheme == "http" and zone == "public":
            raise fetch_failure("refused", f"{self.name} is on the web: name it with https")
        if address.scheme == "https" and self._context is None:
            self._context = await anyio.to_thread.run_sync(default_ssl_context)
        request = FetchRequest(
            accept="application/json",
            accepts_type=lambda kind: kind in ("application/json", ""),
            limit=MAX_BYTES,
            headers={
                "User-Agent": _AGENT,
                "Content-Type": "application/json",
                **self._headers,
            },
            body=msgspec.json.encode(question),
            connect_s=self._limits.connect_s,
            read_s=self._limits.read_s,
        )
        answer = await exchange(address, ips, request, connect=connect_tcp, context=self._context)
        if answer.status in REDIRECTS:
            raise fetch_failure("refused", f"{self.name} redirects; name where it leads instead")
        judge_status(answer)
        if answer.media_type not in ("application/json", ""):
            raise fetch_failure("unreadable", f"{self.name} sends {answer.media_type}, not JSON")
        return read_found(answer.data)

"""An endpoint that searches the web: what it is asked, and what of its answer counts."""

import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.pages.local_server import PUBLIC, Asked, Names, Route, answer, redirect, serving

from lamina.adapters.pages.fetch_answers import FetchFailure
from lamina.adapters.pages.fetcher import WebLimits
from lamina.adapters.pages.search_endpoint import (
    LONGEST_SNIPPET,
    MAX_RESULTS,
    SearchEndpoint,
    read_found,
)
from lamina.core.values.web_access import FoundPage, FoundPages, UnfetchedResource
from lamina.errors import UsageError

HARBOUR = {
    "title": "The harbour", "url": "https://harbour.example/berths#north", "rank": 1,
    "snippet": "Nine berths.", "content": "Nine berths for ferries.", "date": "2026-05-01",
}  # fmt: skip


def results(*found: Any, **headers: str) -> Route:
    body = json.dumps({"results": found, "took": 3}).encode()
    said = answer(200, body, Content_Type="application/json", **headers)
    return lambda _: said


def search(route: Route, **given: Any) -> tuple[FoundPages | UnfetchedResource, list[Asked]]:
    with serving({"/search": route}) as server:
        endpoint = SearchEndpoint(f"http://127.0.0.1:{server.port}/search", **given)
        found = anyio.run(endpoint.search, "north quay", 5)
        return found, server.asked


def refused(route: Route, **given: Any) -> str:
    found, _ = search(route, **given)
    assert isinstance(found, UnfetchedResource)
    return found.detail


def test_a_query_goes_out_as_json_with_the_key_and_pages_come_back() -> None:
    found, (asked,) = search(results(HARBOUR), headers={"X-Key": "secret"})
    assert json.loads(asked.body) == {"query": "north quay", "limit": 5}
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["x-key"] == "secret"
    assert found == FoundPages(
        pages=(
            FoundPage(
                title="The harbour", url="https://harbour.example/berths", snippet="Nine berths.",
                content="Nine berths for ferries.", date="2026-05-01",
            ),
        )
    )  # fmt: skip


def test_only_addresses_of_public_pages_count_and_the_others_are_counted() -> None:
    wrong = [
        "javascript:alert(1)", "http://169.254.169.254/latest", "http://localhost/admin",
        "http://10.0.0.1/", "https://user:key@example.org/", "file:///etc/passwd", "", "x",
        "http://printer/", "https://example.org\\@evil.example/",
    ]  # fmt: skip
    found = read_found(json.dumps({"results": [{"url": url} for url in wrong] + [HARBOUR, 7]}))
    assert [page.url for page in found.pages] == ["https://harbour.example/berths"]
    assert found.warnings == (
        "11 results without a public web address, or not in the form, left out",
    )


def test_texts_are_short_and_what_nobody_sees_is_told() -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    page = HARBOUR | {"snippet": "x" * 9_999 + "\x1b[2J", "title": f"A\x00 title{hidden}"}
    found = read_found(json.dumps({"results": [page] * 3}))
    (first,) = found.pages
    assert len(first.snippet) == LONGEST_SNIPPET
    assert first.title.startswith("A title")
    assert "https://harbour.example/berths: " in found.warnings[0]


def test_there_are_never_more_results_than_may_be() -> None:
    many = [HARBOUR | {"url": f"https://example.org/{number}"} for number in range(500)]
    assert len(read_found(json.dumps({"results": many})).pages) == MAX_RESULTS


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", '{"results": 1}', '{"results": ', "[" * 100_000, "\ud800"]
)
def test_what_has_not_the_form_is_refused(body: str) -> None:
    with pytest.raises(FetchFailure, match=r"did not answer in the form \{"):
        read_found(body)


@given(st.recursive(st.none() | st.floats() | st.text(max_size=20), lambda inner: st.lists(inner)
       | st.dictionaries(st.sampled_from(["results", "url", "title", "date"]), inner)))  # fmt: skip
def test_whatever_comes_is_pages_or_a_clear_error(value: Any) -> None:
    try:
        found = read_found(json.dumps(value))
    except FetchFailure:
        return
    assert all(page.url.startswith("http") for page in found.pages)


def test_what_a_server_does_wrong_is_told_in_a_line() -> None:
    assert refused(lambda _: answer(500, b"")).startswith("127.0.0.1")
    assert refused(redirect("https://elsewhere.example/")) == (
        "127.0.0.1 redirects; name where it leads instead"
    )
    html = answer(200, b"<html>", Content_Type="text/html")
    assert refused(lambda _: html) == "127.0.0.1 sends text/html, not JSON"
    large = answer(200, b"x" * 1_000_001, Content_Type="application/json")
    assert refused(lambda _: large) == "127.0.0.1 sends more than 1 MB"
    assert "form" in refused(lambda _: answer(200, b"{}", Content_Type="application/json"))


def test_a_server_that_never_answers_is_left() -> None:
    def wait(_: Asked) -> bytes:
        server.closing.wait(10)
        return b""

    with serving({"/search": wait}) as server:
        endpoint = SearchEndpoint(
            f"http://127.0.0.1:{server.port}/search", limits=WebLimits(total_s=0.1)
        )
        found = anyio.run(endpoint.search, "q", 5)
        server.closing.set()
    assert isinstance(found, UnfetchedResource)
    assert found.detail == "127.0.0.1 took longer than 0.1 s"


@pytest.mark.parametrize(
    "url", ["", "search.example", "ftp://x.example/", "https://a:b@x.example/"]
)
def test_what_is_no_address_is_refused_at_once(url: str) -> None:
    with pytest.raises(UsageError, match="the web cannot be searched there"):
        SearchEndpoint(url)


def test_a_header_cannot_hold_another_one() -> None:
    with pytest.raises(UsageError, match="holds what no header can"):
        SearchEndpoint("https://x.example/", headers={"X-Key": "a\r\nHost: evil.example"})


def test_nothing_goes_to_the_web_unencrypted_or_to_where_clouds_keep_secrets() -> None:
    async def ask(url: str, ip: str) -> str:
        names = Names(search_example=[(ip,)])
        found = await SearchEndpoint(url, resolve=names.resolve).search("q", 5)
        assert isinstance(found, UnfetchedResource)
        return found.detail

    assert "name it with https" in anyio.run(ask, "http://search.example/", PUBLIC)
    assert "never fetched" in anyio.run(ask, "https://search.example/", "169.254.169.254")
    assert "never fetched" in anyio.run(ask, "http://169.254.169.254/", "")

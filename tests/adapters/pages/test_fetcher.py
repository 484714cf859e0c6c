"""What is allowed is fetched, from real servers on the loopback."""

import gzip
import logging
import ssl
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import anyio
import pytest
from inline_snapshot import snapshot
from tests.adapters.pages.certificates import certificate, trusting
from tests.adapters.pages.local_server import (
    OTHER_PUBLIC,
    PUBLIC,
    PUBLIC_V6,
    Asked,
    Line,
    LocalServer,
    Names,
    answer,
    page,
    redirect,
    serving,
)

from lamina.adapters.pages import WebFetcher, WebLimits
from lamina.adapters.pages.exchange import find_unpacker
from lamina.core.values.item import LoadedItem
from lamina.core.values.request import LeftOut
from lamina.core.values.web_access import FetchedResource, UnfetchedResource, WebRules

pytestmark = pytest.mark.anyio

ANY = WebRules(access="public")


class Time:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def server() -> Iterator[LocalServer]:
    with serving({"/": page("hello"), "/other": page("other")}) as server:
        yield server


def allowing(server: LocalServer, host: str = "127.0.0.1") -> WebRules:
    return WebRules(access="listed", allow_hosts=(f"{host}:{server.port}",))


async def fetch(
    server: LocalServer, path: str = "/", web: WebFetcher | None = None
) -> LoadedItem | LeftOut:
    web = web or WebFetcher()
    return await web.page(f"http://127.0.0.1:{server.port}{path}", allowing(server))


async def read(server: LocalServer, path: str = "/", web: WebFetcher | None = None) -> LoadedItem:
    reading = await fetch(server, path, web)
    assert isinstance(reading, LoadedItem), reading
    return reading


async def fail(server: LocalServer, path: str = "/", web: WebFetcher | None = None) -> LeftOut:
    left = await fetch(server, path, web)
    assert isinstance(left, LeftOut)
    assert left.what == f"url:http://127.0.0.1:{server.port}{path}"
    return left


@pytest.mark.parametrize("access", ["listed", "public"])
@pytest.mark.parametrize(
    ("host", "entry"),
    [
        ("127.0.0.1", "127.0.0.1:{port}"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "private:127.0.0.1"),
        ("localhost", "localhost:{port}"),
        ("localhost", "LocalHost."),
        ("app.localhost", "app.localhost"),
        ("app.localhost", "*.localhost:{port}"),
        ("wiki.corp", "private:wiki.corp"),
        ("wiki.corp", "private:wiki.corp:{port}"),
        ("wiki.corp", "private:*.corp"),
        ("nas", "private:nas"),
        ("bücher.corp", "private:bücher.corp"),
        ("xn--bcher-kva.corp", "private:bücher.corp"),
    ],
)
async def test_a_listed_host_inside_is_fetched(
    host: str, entry: str, access: str, server: LocalServer
) -> None:
    rules = WebRules(access=access, allow_hosts=(entry.format(port=server.port),))  # type: ignore[arg-type]
    reading = await WebFetcher(resolve=Names().resolve).page(f"http://{host}:{server.port}/", rules)
    assert isinstance(reading, LoadedItem), reading
    assert reading.item.content == "hello"
    assert server.connections == 1


async def test_localhost_is_found_by_the_system_itself(server: LocalServer) -> None:
    url = f"http://localhost:{server.port}/"
    reading = await WebFetcher().page(url, allowing(server, "localhost"))
    assert isinstance(reading, LoadedItem), reading
    assert reading.item.id == f"url:{url}"


async def test_a_public_page_is_asked_for_plainly(server: LocalServer) -> None:
    line = Line(server)
    names = Names(open_example=[(PUBLIC_V6, PUBLIC)])
    web = WebFetcher(resolve=names.resolve, connect=line.connect)
    reading = await web.page("http://OPEN.example:80?q=a b&p=ü|[1]#part", ANY)
    assert isinstance(reading, LoadedItem), reading
    assert reading.item.id == "url:http://open.example/?q=a b&p=ü|[1]"
    assert line.connected[-1] == (PUBLIC, 80)
    assert server.asked[-1].path == "/?q=a%20b&p=%C3%BC|[1]"
    assert server.asked[-1].headers == snapshot(
        {
            "host": "open.example",
            "user-agent": "lamina (a person attached this page)",
            "accept": "text/html,application/xhtml+xml,text/markdown,text/plain,application/pdf,"
            "*/*;q=0.5",
            "accept-encoding": "gzip, deflate",
            "connection": "close",
        }
    )


async def test_the_environment_has_no_say_in_where_a_request_goes(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert (await read(server)).item.content == "hello"


async def test_the_next_address_is_tried_if_one_does_not_answer(server: LocalServer) -> None:
    class Half(Line):
        async def connect(self, ip: str, port: int, within: float):  # type: ignore[no-untyped-def]
            if ip == OTHER_PUBLIC:
                self.connected.append((ip, port))
                from lamina.adapters.pages.exchange import connect_tcp

                # Nobody listens there.
                return await connect_tcp("127.0.0.1", 1, within)
            return await super().connect(ip, port, within)

    line = Half(server)
    names = Names(open_example=[(OTHER_PUBLIC, PUBLIC)])
    reading = await WebFetcher(resolve=names.resolve, connect=line.connect).page(
        "http://open.example", ANY
    )
    assert isinstance(reading, LoadedItem), reading
    assert line.connected == [(OTHER_PUBLIC, 80), (PUBLIC, 80)]


# Redirects.


async def test_redirects_are_followed_and_change_no_identity(server: LocalServer) -> None:
    server.routes["/a"] = redirect("/b", 301)
    server.routes["/b"] = redirect(f"http://127.0.0.1:{server.port}/c?x=1", 307)
    server.routes["/c"] = redirect("other", 308)
    reading = await read(server, "/a")
    assert reading.item.content == "other"
    assert reading.item.id == f"url:http://127.0.0.1:{server.port}/a"
    assert server.paths == ["/a", "/b", "/c?x=1", "/other"]


async def test_five_redirects_are_followed_and_six_are_not(server: LocalServer) -> None:
    for number in range(1, 7):
        server.routes[f"/{number}"] = redirect(f"/{number - 1}" if number > 1 else "/")
    assert (await read(server, "/5")).item.content == "hello"
    left = await fail(server, "/6")
    assert left.reason == "unreadable"
    assert "more than 5 redirects" in left.detail


async def test_a_redirect_without_a_place_is_unreadable(server: LocalServer) -> None:
    server.routes["/go"] = lambda _: answer(302, b"")
    assert "does not say where" in (await fail(server, "/go")).detail


async def test_an_allowed_server_does_not_lead_to_one_that_is_not(server: LocalServer) -> None:
    with serving({"/": page("secret")}) as victim:
        for host in ("127.0.0.1", "localhost", "[::1]", "127.1"):
            server.routes["/go"] = redirect(f"http://{host}:{victim.port}/")
            assert (await fail(server, "/go")).reason == "refused"
        assert victim.connections == 0


async def test_cookies_are_neither_kept_nor_sent(server: LocalServer) -> None:
    server.routes["/set"] = lambda _: answer(302, b"", Location="/", Set_Cookie="id=1")
    await read(server, "/set")
    assert all("cookie" not in asked.headers for asked in server.asked)


# Sizes and times.


async def test_a_body_over_the_limit_is_not_taken(server: LocalServer) -> None:
    web = WebFetcher(limits=WebLimits(page_bytes=1_000))
    server.routes["/just"] = page("x" * 1_000)
    server.routes["/over"] = page("x" * 1_001)
    assert len((await read(server, "/just", web)).item.content) == 1_000
    left = await fail(server, "/over", web)
    assert left.reason == "unreadable"
    assert "more than 0.001 MB" in left.detail


async def test_a_body_without_an_end_is_left(server: LocalServer) -> None:
    sent = [0]

    def endless(_: Asked) -> Iterable[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        while not server.closing.is_set():
            sent[0] += 1
            yield b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n"

    server.routes["/endless"] = endless
    left = await fail(server, "/endless", WebFetcher(limits=WebLimits(page_bytes=100_000)))
    assert "more than 0.1 MB" in left.detail


@pytest.mark.parametrize("coding", ["gzip", "deflate", "x-gzip"])
async def test_a_bomb_is_not_unpacked(coding: str, server: LocalServer) -> None:
    plain = b"\0" * 50_000_000
    packed = zlib.compress(plain) if coding == "deflate" else gzip.compress(plain, 9, mtime=0)
    assert len(packed) < 60_000
    server.routes["/bomb"] = lambda _: answer(
        200, packed, Content_Type="text/html", Content_Encoding=coding
    )
    assert "more than 5 MB" in (await fail(server, "/bomb")).detail


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_no_more_is_unpacked_than_one_byte_over_the_limit(coding: str) -> None:
    plain = b"x" * 1_000_000
    packed = zlib.compress(plain) if coding == "deflate" else gzip.compress(plain, mtime=0)
    assert len(find_unpacker(coding, 1_000, "a.example").feed(packed)) == 1_001


def _raw(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(b"hello", mtime=0)),
        ("GZip", gzip.compress(b"hel", mtime=0) + gzip.compress(b"lo", mtime=0)),
        ("deflate", zlib.compress(b"hello")),
        ("deflate", _raw(b"hello")),
        ("identity", b"hello"),
        ("", b"hello"),
    ],
)
async def test_packed_bodies_are_unpacked(coding: str, body: bytes, server: LocalServer) -> None:
    server.routes["/packed"] = lambda _: answer(
        200, body, Content_Type="text/plain", Content_Encoding=coding
    )
    assert (await read(server, "/packed")).item.content == "hello"


@pytest.mark.parametrize(
    ("coding", "body", "said"),
    [
        ("gzip", b"hello", "broken body"),
        ("gzip", gzip.compress(b"hello" * 99, mtime=0)[:-9], "broke off"),
        ("deflate", b"\xff\xff\xff", "broken body"),
        ("br", b"hello", "'br'"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"hello", mtime=0), mtime=0), "'gzip, gzip'"),
    ],
)
async def test_a_body_that_cannot_be_unpacked_is_unreadable(
    coding: str, body: bytes, said: str, server: LocalServer
) -> None:
    server.routes["/packed"] = lambda _: answer(
        200, body, Content_Type="text/plain", Content_Encoding=coding
    )
    assert said in (await fail(server, "/packed")).detail


async def test_a_server_that_says_nothing_is_left(server: LocalServer) -> None:
    def silent(_: Asked) -> bytes:
        server.closing.wait()
        return b""

    server.routes["/silent"] = silent
    left = await fail(server, "/silent", WebFetcher(limits=WebLimits(read_s=0.05)))
    assert left.detail == snapshot("127.0.0.1 stopped answering")
    left = await fail(server, "/silent", WebFetcher(limits=WebLimits(total_s=0.05)))
    assert left.detail == snapshot("127.0.0.1 took longer than 0.05 s")


async def test_a_server_that_drips_is_left_when_the_time_is_up(server: LocalServer) -> None:
    def drip(_: Asked) -> Iterable[bytes]:
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n"
        while not server.closing.wait(0.01):
            yield b"x"

    server.routes["/drip"] = drip
    left = await fail(server, "/drip", WebFetcher(limits=WebLimits(total_s=0.1, read_s=5)))
    assert "took longer than 0.1 s" in left.detail


async def test_headers_without_an_end_are_left(server: LocalServer) -> None:
    def endless(_: Asked) -> Iterable[bytes]:
        yield b"HTTP/1.1 200 OK\r\n"
        while not server.closing.is_set():
            yield b"X-Padding: " + b"x" * 10_000 + b"\r\n"

    server.routes["/endless"] = endless
    assert "did not answer as a web server" in (await fail(server, "/endless")).detail


async def test_a_name_that_takes_for_ever_to_look_up_is_left() -> None:
    async def never(host: str, port: int) -> tuple[str, ...]:
        await anyio.sleep_forever()
        raise AssertionError

    web = WebFetcher(resolve=never, limits=WebLimits(total_s=0.05))
    left = await web.page("https://slow.example/", ANY)
    assert isinstance(left, LeftOut)
    assert left.reason == "unreadable"


async def test_a_fetch_that_is_cancelled_leaves_nothing_behind(server: LocalServer) -> None:
    server.routes["/silent"] = lambda _: (b"" for _ in iter(server.closing.wait, True))
    web = WebFetcher()
    with anyio.move_on_after(0.05) as scope:
        await fetch(server, "/silent", web)
    assert scope.cancelled_caught
    server.routes["/silent"] = page("now")
    assert (await read(server, "/silent", web)).item.content == "now"


# What goes wrong.


@pytest.mark.parametrize(
    ("status", "reason", "said"),
    [
        (404, "missing", "is not there"),
        (410, "missing", "is not there"),
        (401, "unreadable", "401: it wants a login"),
        (403, "unreadable", "403"),
        (429, "unreadable", "too often"),
        (500, "unreadable", "500: the server failed"),
        (503, "unreadable", "503"),
        (418, "unreadable", "418"),
        (204, "unreadable", "204"),
        (206, "unreadable", "206"),
        (300, "unreadable", "300"),
        (304, "unreadable", "304"),
    ],
)
async def test_what_a_status_comes_to(
    status: int, reason: str, said: str, server: LocalServer
) -> None:
    body = b"" if status in (204, 304) else b"a page about the error"
    server.routes["/x"] = lambda _: answer(status, body, Content_Type="text/plain")
    left = await fail(server, "/x")
    assert left.reason == reason
    assert said in left.detail


async def test_a_closed_port_and_an_unknown_name_are_told_apart() -> None:
    with serving({}) as gone:
        pass
    assert (await fail(gone)).detail == f"nothing answers at 127.0.0.1, port {gone.port}"
    left = await WebFetcher().page("https://no-such-host.invalid/", ANY)
    assert isinstance(left, LeftOut)
    assert left.reason == "unreadable"
    assert "no-such-host.invalid" in left.detail


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.7\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\nContent-Type: text/plain\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    ],
)
async def test_what_is_no_web_server_is_unreadable(said: bytes, server: LocalServer) -> None:
    server.routes["/x"] = lambda _: said
    assert (await fail(server, "/x")).reason == "unreadable"


@pytest.mark.parametrize(
    "kind", ["image/png", "application/zip", "video/mp4", "application/octet-stream", "font/woff2"]
)
async def test_a_type_without_text_is_named(kind: str, server: LocalServer) -> None:
    server.routes["/x"] = lambda _: answer(200, b"x", Content_Type=kind)
    left = await fail(server, "/x")
    assert left.reason == "unreadable"
    assert kind in left.detail


async def test_errors_and_logs_hold_no_more_of_an_address_than_its_host(
    server: LocalServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.routes["/broken"] = lambda _: answer(500, b"")
    left = await fail(server, "/broken?key=hunter2")
    await read(server, "/?key=hunter2")
    refused = await WebFetcher().page("http://10.0.0.1/?key=hunter2", ANY)
    assert isinstance(refused, LeftOut)
    assert "hunter2" not in left.detail + refused.detail + caplog.text


# Pictures.


async def test_a_picture_is_brought_as_it_is(server: LocalServer) -> None:
    data = bytes(range(256))
    server.routes["/go"] = redirect("/x.png")
    server.routes["/x.png"] = lambda _: answer(200, data, Content_Type="Image/PNG; x=1")
    url = f"http://127.0.0.1:{server.port}"
    fetched = await WebFetcher().picture(f"{url}/go", allowing(server), 256)
    assert fetched == FetchedResource(url=f"{url}/x.png", media_type="image/png", data=data)
    small = await WebFetcher().picture(f"{url}/go", allowing(server), 255)
    assert isinstance(small, UnfetchedResource)
    assert small.reason == "unreadable"


async def test_what_is_no_picture_is_not_one(server: LocalServer) -> None:
    url = f"http://127.0.0.1:{server.port}/"
    said = await WebFetcher().picture(url, allowing(server), 1_000)
    assert said == UnfetchedResource(
        reason="unreadable", detail="127.0.0.1 sends text/plain, which is not a picture"
    )
    missing = await WebFetcher().picture(f"{url}none", allowing(server), 1_000)
    assert isinstance(missing, UnfetchedResource)
    assert missing.reason == "missing"


# Once per while.


async def test_a_page_is_fetched_once_while_it_is_fresh(server: LocalServer) -> None:
    clock = Time()
    web = WebFetcher(seconds=clock)
    first = await read(server, "/", web)
    server.routes["/"] = page("changed")
    clock.now += 599
    assert await read(server, "/#part", web) is first
    assert server.connections == 1
    clock.now += 2
    assert (await read(server, "/", web)).item.content == "changed"


async def test_other_rules_do_not_see_what_was_kept(server: LocalServer) -> None:
    web = WebFetcher()
    url = f"http://127.0.0.1:{server.port}/"
    await read(server, "/", web)
    for rules in (WebRules(), ANY, WebRules(access="listed", allow_hosts=("x.example",))):
        left = await web.page(url, rules)
        assert isinstance(left, LeftOut)
        assert left.reason == "refused"


async def test_what_was_kept_under_wider_rules_is_not_given_under_narrower_ones(
    server: LocalServer,
) -> None:
    web = WebFetcher(resolve=Names().resolve)
    url = f"http://wiki.corp:{server.port}/"
    wide = WebRules(access="listed", allow_hosts=("private:wiki.corp",))
    narrow = WebRules(access="listed", allow_hosts=("wiki.corp",))
    assert isinstance(await web.page(url, wide), LoadedItem)
    left = await web.page(url, narrow)
    assert isinstance(left, LeftOut)
    assert left.reason == "refused"
    assert server.connections == 1


async def test_many_at_once_fetch_a_page_once(server: LocalServer) -> None:
    web = WebFetcher()
    readings: list[LoadedItem] = []

    async def one() -> None:
        readings.append(await read(server, "/", web))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(one)
    assert len(readings) == 20
    assert server.connections == 1


async def test_failures_are_not_kept(server: LocalServer) -> None:
    web = WebFetcher()
    await fail(server, "/later", web)
    server.routes["/later"] = page("here")
    assert (await read(server, "/later", web)).item.content == "here"


@pytest.mark.parametrize("name", ["etag", "last-modified"])
async def test_an_unchanged_page_stays_the_same_reading(name: str, server: LocalServer) -> None:
    asks = {"etag": "if-none-match", "last-modified": "if-modified-since"}

    def versioned(asked: Asked) -> bytes:
        if asked.headers.get(asks[name]) == '"v1"':
            return answer(304, b"", Content_Length="5")
        return answer(200, b"hello", Content_Type="text/plain", **{name: '"v1"'})

    server.routes["/go"] = redirect("/page")
    server.routes["/page"] = versioned
    clock = Time()
    web = WebFetcher(seconds=clock)
    first = await read(server, "/go", web)
    for _ in range(2):
        clock.now += 601
        assert await read(server, "/go", web) is first
    assert server.paths == ["/go", "/page"] * 3
    # Only the address that gave it is told of it.
    assert all(asks[name] not in asked.headers for asked in server.asked[::2])


async def test_a_page_that_cannot_be_had_again_is_as_it_was_and_says_so(
    server: LocalServer,
) -> None:
    clock = Time()
    web = WebFetcher(seconds=clock)
    first = await read(server, "/", web)
    server.routes["/"] = lambda _: answer(503, b"")
    clock.now += 601
    later = await read(server, "/", web)
    assert later.item == first.item
    assert later.warnings == (
        "it is as it was fetched earlier: 127.0.0.1 answered 503: the server failed",
    )
    clock.now += 20
    assert await read(server, "/", web) == later
    assert server.connections == 2
    server.routes["/"] = page("back")
    clock.now += 20
    assert (await read(server, "/", web)).warnings == ()
    server.routes.clear()
    clock.now += 601
    assert (await fail(server, "/", web)).reason == "missing"


async def test_the_web_serves_one_event_loop_after_another(server: LocalServer) -> None:
    web = WebFetcher()

    def run(path: str) -> LoadedItem:
        return anyio.run(read, server, path, web)

    assert (await anyio.to_thread.run_sync(run, "/")).item.content == "hello"
    assert (await anyio.to_thread.run_sync(run, "/other")).item.content == "other"
    assert (await read(server, "/", web)).item.content == "hello"


# Encryption.


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("keys"), "safe.example")


@pytest.fixture
def safe(keys: Path) -> Iterator[LocalServer]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(keys / "server.pem")
    with serving({"/": page("encrypted")}, context) as server:
        yield server


async def test_the_name_is_checked_against_the_certificate(keys: Path, safe: LocalServer) -> None:
    names = Names(safe_example=[(PUBLIC,)], other_example=[(PUBLIC,)])
    line = Line(safe)
    web = WebFetcher(resolve=names.resolve, connect=line.connect, context=trusting(keys))
    reading = await web.page("https://safe.example/", ANY)
    assert isinstance(reading, LoadedItem), reading
    assert reading.item.content == "encrypted"
    assert safe.asked[0].headers["host"] == "safe.example"
    assert line.connected == [(PUBLIC, 443)]
    left = await web.page("https://other.example/", ANY)
    assert isinstance(left, LeftOut)
    assert left.detail == snapshot(
        "the certificate of other.example is not valid: Hostname mismatch, "
        "certificate is not valid for 'other.example'."
    )
    assert len(safe.asked) == 1


async def test_a_certificate_of_nobody_is_not_believed(safe: LocalServer) -> None:
    web = WebFetcher(resolve=Names(safe_example=[(PUBLIC,)]).resolve, connect=Line(safe).connect)
    left = await web.page("https://safe.example/", ANY)
    assert isinstance(left, LeftOut)
    assert "certificate of safe.example is not valid" in left.detail
    assert safe.asked == []


async def test_encryption_is_not_given_up_on_the_way(keys: Path, safe: LocalServer) -> None:
    safe.routes["/go"] = redirect("http://safe.example/")
    line = Line(safe)
    names = Names(safe_example=[(PUBLIC,)])
    web = WebFetcher(resolve=names.resolve, connect=line.connect, context=trusting(keys))
    left = await web.page("https://safe.example/go", ANY)
    assert isinstance(left, LeftOut)
    assert left.reason == "refused"
    assert left.detail == snapshot("safe.example redirects to safe.example without encryption")
    assert len(line.connected) == 1


async def test_a_server_without_encryption_is_told(server: LocalServer) -> None:
    web = WebFetcher(resolve=Names(plain_example=[(PUBLIC,)]).resolve, connect=Line(server).connect)
    left = await web.page("https://plain.example/", ANY)
    assert isinstance(left, LeftOut)
    assert "could not be reached with encryption" in left.detail


# What is not installed.


@pytest.mark.parametrize("package", ["httpcore2", "trafilatura", "lxml", "webencodings"])
async def test_what_is_not_installed_is_said(
    package: str, server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    server.routes["/x"] = lambda _: answer(200, b"<html><p>Hi", Content_Type="text/html")
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "lamina.adapters.pages.exchange", raising=False)
    left = await fail(server, "/x")
    assert left.reason == "unreadable"
    assert "pip install 'lamina-context[pages]'" in left.detail

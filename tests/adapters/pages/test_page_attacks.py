"""The table of attacks: none of them makes a connection.

A real server listens on the loopback and counts; an audit hook of the interpreter counts every
connection of this process beside it.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from tests.adapters.pages.local_server import (
    PUBLIC,
    Line,
    LocalServer,
    Names,
    page,
    redirect,
    serving,
)

from lamina.adapters.pages import WebFetcher
from lamina.core.values.request import LeftOut
from lamina.core.values.web_access import UnfetchedResource, WebRules

pytestmark = pytest.mark.anyio

ANY = WebRules(access="public")
_connects: list[object] = []
_watching = [False]


def _watch(event: str, args: tuple[Any, ...]) -> None:
    if _watching[0] and event in ("socket.connect", "socket.sendto"):
        _connects.append(args[1])


# There is no way to take a hook back; it does nothing unless a test watches.
sys.addaudithook(_watch)


@pytest.fixture
def connects() -> Iterator[list[object]]:
    """Every address that this process connects to during a test."""
    _connects.clear()
    _watching[0] = True
    yield _connects
    _watching[0] = False


@pytest.fixture(scope="module")
def victim() -> Iterator[LocalServer]:
    """What must not be reached."""
    with serving({"/": page("secret"), "/secret": page("secret")}) as server:
        yield server


@pytest.fixture(scope="module")
def outside() -> Iterator[LocalServer]:
    """What plays the internet."""
    with serving({}) as server:
        yield server


# Hosts that are this machine, or that somebody reads as this machine.
LOOPBACK = (
    "127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.0.0.2", "127.255.255.254",
    "127.000.000.001", "0177.0.0.1", "0177.0.0.01", "00000177.1", "0x7f.0.0.1", "0x7f.1",
    "0x7f000001", "0X7F000001", "2130706433", "017700000001", "127.0.0.0x1", "0x7f.0.0.0x1",
    "6425673729", "127.0.0.1.0x0", "0", "0.0.0.0", "0.0.0.0.", "0x0", "00", "0.1", "0.0.0.1",
    "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[::7f00:1]", "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]",
    "[2002:7f00:0001::1]", "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[2001:470:1::5efe:7f00:1]",
    "[2001:470:1::200:5efe:7f00:1]", "[::1%25lo]", "[::1%lo]", "[fe80::1%25eth0]", "[fe80::1]",
    "[::1].", "[127.0.0.1]", "[v1.::1]", "[]", "[::1", "::1", "[::1]x", "localhost", "LOCALHOST",
    "localhost.", "foo.localhost", "localhost.localdomain", "loopback", "ip6-localhost",
    "box.local", "app.internal", "x.home.arpa", "x.onion", "１２７.０.０.１",
    "１２７。０。０。１", "127。0。0。1", "127．0．0．1", "①②⑦.⓪.⓪.①", "ⓛocalhost",
    "ｌｏｃａｌｈｏｓｔ", "localhoſt", "loc\u00adalhost", "127.0.0.1\u200b",
    "\u0661\u0662\u0667.0.0.1", "%31%32%37.0.0.1", "127%2e0%2e0%2e1",
    "%6c%6f%63%61%6c%68%6f%73%74", "127.0.0.1%00.example.com", "127.0.0.1%2f.example.com", "%00",
    "%5b::1%5d", "127.0.0.1\\.example.com", "example.com\\@127.0.0.1", "127.0.0.1 .example.com",
    " 127.0.0.1", "127.0.0.1\t", "127.\t0.0.1", "127.0.0.1\x00", "127.0.0.1\x0b", "local\nhost",
    "local\rhost", "127..0.0.1", ".127.0.0.1", "", ".", "..", "-", "*", "a..b", "-x.example",
    "x-.example", "x" * 64 + ".example", "example.com@127.0.0.1", "user:pass@127.0.0.1",
    "@127.0.0.1", "127.0.0.1:80@example.com", "user@example.com", "127.0.0.1#@example.com",
    "rebound.example", "xn--80ak6aa92e.example", "127.0.0.1.nip.example", "under_score.example",
)  # fmt: skip
# Other places that are not the internet.
ELSEWHERE = (
    "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1", "192.168.255.1",
    "100.64.0.1", "100.127.255.255", "169.254.0.1", "169.254.169.254", "169.254.170.2",
    "2852039166", "0xa9fea9fe", "0xA9.0xFE.0xA9.0xFE", "0251.0376.0251.0376", "169.254.43518",
    "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]", "[fd00:ec2::254]", "[fd00:ec2::23]", "[fd20:ce::254]", "[fd00:42::42]",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "192.0.0.1", "192.0.2.1", "198.51.100.7",
    "203.0.113.9", "198.18.0.1", "198.19.255.255", "192.88.99.1", "224.0.0.1", "239.255.255.250",
    "240.0.0.1", "255.255.255.255", "0.1.2.3", "[fc00::1]", "[fd12:3456::1]", "[fec0::1]",
    "[ff02::1]", "[2001:db8::1]", "[3fff::1]", "[100::1]", "[2001:2::1]", "[2001:10::1]",
    "[5f00::1]", "[4000::1]", "metadata.google.internal", "METADATA.google.internal.",
    "metadata.goog", "metadata", "instance-data.ec2.internal", "metadata.tencentyun.com",
    "metadata.platformequinix.com", "intranet", "nas", "wiki.corp.internal",
)  # fmt: skip
# Whole addresses that are odd beside their host.
WHOLE = (
    "ftp://127.0.0.1/", "file:///etc/passwd", "file://127.0.0.1/etc/passwd",
    "gopher://127.0.0.1/_x", "dict://127.0.0.1:11211/stat", "ws://127.0.0.1/",
    "data:text/plain,secret", "javascript:alert(1)", "jar:http://127.0.0.1!/", "http:127.0.0.1",
    "http:/127.0.0.1", "http:///127.0.0.1", "//127.0.0.1", "http://", "http:///", "http://?x",
    "http://#x", "", " ", "://127.0.0.1", "http://:80/", "http://127.0.0.1:0/",
    "http://127.0.0.1:99999/", "http://127.0.0.1:-1/", "http://127.0.0.1:8x/",
    "http://127.0.0.1:８０/", "http://127.0.0.1:/", "http://127.0.0.1: 80/", "http://[::1]:x/",
    "http:\\\\127.0.0.1\\", "http:/\\127.0.0.1/", "\\\\127.0.0.1\\share",
    "http://a\ud800.example/", "http://example.com:22/", "http://example.com:25/",
    "http://example.com:6379/", "http://example.com:11211/", "https://example.com:6667/",
    "http://example.com:21/", "mailto:a@example.com", "http://" + "a" * 9_000,
    "view-source:http://127.0.0.1/", "unix:/var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/info", "127.0.0.1", "localhost",
)  # fmt: skip
HOSTS = LOOPBACK + ELSEWHERE


def test_the_table_is_long() -> None:
    assert len(set(HOSTS)) == len(HOSTS)
    assert len(set(HOSTS)) + len(set(WHOLE)) >= 200


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", HOSTS)
async def test_no_spelling_of_a_host_inside_is_connected_to(
    host: str, scheme: str, victim: LocalServer, connects: list[object]
) -> None:
    names = Names()
    web = WebFetcher(resolve=names.resolve)
    url = f"{scheme}://{host}:{victim.port}/secret"
    left = await web.page(url, ANY)
    picture = await web.picture(url, ANY, 1_000)
    assert isinstance(left, LeftOut)
    assert isinstance(picture, UnfetchedResource)
    assert left.reason == picture.reason == "refused"
    assert (connects, victim.connections, victim.asked) == ([], 0, [])


@pytest.mark.parametrize("url", WHOLE)
async def test_no_odd_address_is_connected_to(
    url: str, victim: LocalServer, connects: list[object]
) -> None:
    left = await WebFetcher(resolve=Names().resolve).page(url, ANY)
    assert isinstance(left, LeftOut)
    assert left.reason == "refused"
    assert left.what.encode()
    assert (connects, victim.connections) == ([], 0)


@pytest.mark.parametrize(
    "url", ["http://op\nen.example/", "http://open.example/\ta", "http://a\\b"]
)
async def test_an_address_is_not_tidied_before_it_is_judged(
    url: str, connects: list[object]
) -> None:
    names = Names(open_example=[(PUBLIC,)])
    left = await WebFetcher(resolve=names.resolve).page(url, ANY)
    assert isinstance(left, LeftOut)
    assert "read in different ways" in left.detail
    assert (names.asked, connects) == ([], [])


@pytest.mark.parametrize("host", HOSTS)
async def test_no_redirect_leads_inside(
    host: str, victim: LocalServer, outside: LocalServer, connects: list[object]
) -> None:
    # A control cannot be in a header: no server can say it.
    plain = "".join(character for character in host if character not in "\x00\x0b\n\r\t ")
    outside.routes["/go"] = redirect(f"http://{plain}:{victim.port}/secret")
    line = Line(outside)
    names = Names(open_example=[(PUBLIC,)])
    web = WebFetcher(resolve=names.resolve, connect=line.connect)
    left = await web.page("http://open.example/go", ANY)
    assert isinstance(left, LeftOut)
    assert left.reason == "refused", left.detail
    assert line.connected == [(PUBLIC, 80)]
    assert connects == [("127.0.0.1", outside.port)]
    assert victim.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "location",
    [
        "//127.0.0.1:{port}/secret", "///127.0.0.1:{port}/secret", "\\\\127.0.0.1:{port}\\secret",
        "file:///etc/passwd", "ftp://127.0.0.1/", "http:127.0.0.1", "//user@open.example/",
        "http://open.example:6379/", "javascript:1", "data:text/plain,x", "http://[::1/",
    ],
)  # fmt: skip
async def test_no_way_of_redirecting_leads_inside(
    status: int, location: str, victim: LocalServer, outside: LocalServer, connects: list[object]
) -> None:
    outside.routes["/go"] = redirect(location.format(port=victim.port), status)
    line = Line(outside)
    web = WebFetcher(resolve=Names(open_example=[(PUBLIC,)]).resolve, connect=line.connect)
    left = await web.page("http://open.example/go", ANY)
    assert isinstance(left, LeftOut)
    # `http:127.0.0.1` is a path on the same host to whoever follows the standard: not there.
    assert left.reason in ("refused", "missing"), left.detail
    assert {ip for ip, _ in line.connected} == {PUBLIC}
    assert victim.connections == 0


@pytest.mark.parametrize(
    "answers",
    [
        ("127.0.0.1",), (PUBLIC, "127.0.0.1"), ("127.0.0.1", PUBLIC), (PUBLIC, "::1"),
        (PUBLIC, "10.0.0.1"), (PUBLIC, "169.254.169.254"), (PUBLIC, "::ffff:127.0.0.1"),
        (PUBLIC, "64:ff9b::7f00:1"), (PUBLIC, "fe80::1%eth0"), (PUBLIC, "fd00:ec2::254"),
        (PUBLIC, "0.0.0.0"), (PUBLIC, "100.64.0.1"), (PUBLIC, "2002:7f00:1::"), (PUBLIC, "junk"),
        (PUBLIC, "127.1"), (PUBLIC, "2130706433"), (PUBLIC, ""),
    ],
)  # fmt: skip
async def test_one_address_inside_is_enough_to_refuse_a_name(
    answers: tuple[str, ...], connects: list[object]
) -> None:
    names = Names(mixed_example=[answers])
    left = await WebFetcher(resolve=names.resolve).page("https://mixed.example/", ANY)
    assert isinstance(left, LeftOut)
    assert left.reason == "refused"
    assert (names.asked, connects) == (["mixed.example"], [])


async def test_what_was_judged_is_what_is_connected_to_though_the_name_moves(
    victim: LocalServer, outside: LocalServer, connects: list[object]
) -> None:
    outside.routes["/"] = page("fine")
    line = Line(outside)
    names = Names(moving_example=[(PUBLIC,), ("127.0.0.1",)])
    reading = await WebFetcher(resolve=names.resolve, connect=line.connect).page(
        "http://moving.example", ANY
    )
    assert not isinstance(reading, LeftOut)
    assert names.asked == ["moving.example"]
    assert line.connected == [(PUBLIC, 80)]


async def test_a_redirect_to_the_same_name_is_looked_up_and_judged_again(
    victim: LocalServer, outside: LocalServer, connects: list[object]
) -> None:
    outside.routes["/go"] = redirect(f"http://moving.example:{victim.port}/secret")
    line = Line(outside)
    names = Names(moving_example=[(PUBLIC,), ("127.0.0.1",)])
    left = await WebFetcher(resolve=names.resolve, connect=line.connect).page(
        "http://moving.example/go", ANY
    )
    assert isinstance(left, LeftOut)
    assert left.reason == "refused"
    assert names.asked == ["moving.example", "moving.example"]
    assert victim.connections == 0


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16", "0.0.0.0",
        "[::]", "metadata.google.internal", "224.0.0.1", "[fe80::1]", "[::ffff:127.0.0.1]",
        "[2002:7f00:1::]", "[64:ff9b::a9fe:a9fe]", "0x7f.1", "127.1",
    ],
)  # fmt: skip
async def test_some_places_are_never_fetched_also_if_they_are_listed(
    host: str, connects: list[object]
) -> None:
    for prefix in ("", "private:"):
        rules = WebRules(access="listed", allow_hosts=(f"{prefix}{host}", f"{prefix}{host}:8080"))
        for port in (80, 8080):
            left = await WebFetcher(resolve=Names().resolve).page(f"http://{host}:{port}/", rules)
            assert isinstance(left, LeftOut)
            assert left.reason == "refused"
    assert connects == []


@pytest.mark.parametrize("secret", ["169.254.169.254", "fd00:ec2::254", "fe80::1", "0.0.0.0"])
async def test_a_private_name_does_not_open_what_is_never_fetched(
    secret: str, connects: list[object]
) -> None:
    rules = WebRules(access="listed", allow_hosts=("private:wiki.corp",))
    left = await WebFetcher(resolve=Names(wiki_corp=[(secret,)]).resolve).page(
        "http://wiki.corp/", rules
    )
    assert isinstance(left, LeftOut)
    assert left.reason == "refused"
    assert connects == []


@pytest.mark.parametrize(
    ("entries", "url"),
    [
        (("example.com",), "http://example.com.evil.example/"),
        (("example.com",), "http://evilexample.com/"),
        (("example.com",), "http://sub.example.com/"),
        (("*.example.com",), "http://example.com/"),
        (("*.example.com",), "http://evilexample.com/"),
        (("*.0.0.1",), "http://127.0.0.1/"),
        (("example.com:8080",), "http://example.com:8081/"),
        (("example.com:443",), "http://example.com/"),
        (("example.com",), "http://example.com:25/"),
        (("127.0.0.1:1",), "http://127.0.0.1:8000/"),
        (("127.0.0.1",), "http://127.0.0.2/"),
        (("127.0.0.1",), "http://localhost/"),
        (("127.0.0.1",), "http://[::1]/"),
        (("localhost",), "http://127.0.0.1/"),
        (("localhost",), "http://localhost.evil.example/"),
        (("*",), "http://example.com/"),
        (("",), "http://example.com/"),
        (("http://example.com/",), "http://example.com/"),
        (("10.0.0.0/8",), "http://10.0.0.1/"),
        (("private:",), "http://10.0.0.1/"),
        (("com",), "http://example.com/"),
        (("*.com.",), "http://127.0.0.1/"),
        (("user@example.com",), "http://example.com/"),
        ((), "http://example.com/"),
    ],
)
async def test_a_listed_host_opens_nothing_beside_itself(
    entries: tuple[str, ...], url: str, connects: list[object]
) -> None:
    names = Names()
    rules = WebRules(access="listed", allow_hosts=entries)
    left = await WebFetcher(resolve=names.resolve).page(url, rules)
    assert isinstance(left, LeftOut)
    assert left.reason == "refused"
    assert (names.asked, connects) == ([], [])


@pytest.mark.parametrize("entry", ["wiki.example", "*.example", "wiki.example:80"])
async def test_a_listed_name_means_public_addresses_only(
    entry: str, connects: list[object]
) -> None:
    rules = WebRules(access="listed", allow_hosts=(entry,))
    left = await WebFetcher(resolve=Names(wiki_example=[("10.1.2.3",)]).resolve).page(
        "http://wiki.example/", rules
    )
    assert isinstance(left, LeftOut)
    assert "'private:wiki.example'" in left.detail
    assert connects == []


async def test_localhost_means_this_machine_only(connects: list[object]) -> None:
    rules = WebRules(access="listed", allow_hosts=("localhost",))
    for elsewhere in ("10.0.0.1", PUBLIC, "169.254.169.254"):
        web = WebFetcher(resolve=Names(localhost=[(elsewhere,)]).resolve)
        left = await web.page("http://localhost/", rules)
        assert isinstance(left, LeftOut)
        assert left.reason == "refused"
    assert connects == []


async def test_nothing_is_looked_up_while_the_web_is_off(connects: list[object]) -> None:
    names = Names()
    rules = WebRules(access="off", allow_hosts=("example.com", "127.0.0.1"))
    for url in ("https://example.com/", "http://127.0.0.1/"):
        left = await WebFetcher(resolve=names.resolve).page(url, rules)
        picture = await WebFetcher(resolve=names.resolve).picture(url, rules, 1_000)
        assert isinstance(left, LeftOut)
        assert isinstance(picture, UnfetchedResource)
        assert left.reason == picture.reason == "refused"
        assert "off" in left.detail
        assert "allow_hosts" in left.detail
    assert (names.asked, connects) == ([], [])


async def test_a_public_page_does_not_redirect_into_a_listed_private_one(
    victim: LocalServer, outside: LocalServer, connects: list[object]
) -> None:
    outside.routes["/go"] = redirect(f"http://127.0.0.1:{victim.port}/secret")
    rules = WebRules(access="public", allow_hosts=(f"127.0.0.1:{victim.port}",))
    web = WebFetcher(resolve=Names(open_example=[(PUBLIC,)]).resolve, connect=Line(outside).connect)
    left = await web.page("http://open.example/go", rules)
    assert isinstance(left, LeftOut)
    assert left.reason == "refused"
    assert "attach that address itself" in left.detail
    assert victim.connections == 0


async def test_the_password_of_an_address_is_repeated_nowhere() -> None:
    left = await WebFetcher(resolve=Names().resolve).page("https://me:hunter2@example.com/x", ANY)
    assert isinstance(left, LeftOut)
    assert "hunter2" not in left.what + left.detail
    assert left.what == "url:https://example.com/x"

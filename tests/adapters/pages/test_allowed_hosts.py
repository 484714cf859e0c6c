"""The laws of what is judged before anything is fetched."""

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lamina.adapters.pages.addresses import Address, read_address
from lamina.adapters.pages.allowed_hosts import judge_addresses, judge_name, read_allowed_host
from lamina.adapters.pages.networks import classify_address, parse_ip
from lamina.core.values.web_access import UnfetchedResource, WebRules

IPV4 = st.integers(0, 2**32 - 1).map(IPv4Address)
IPV6 = st.integers(0, 2**128 - 1).map(IPv6Address)


def address(url: str) -> Address:
    found = read_address(url)
    assert isinstance(found, Address), found
    return found


@given(IPV4)
@example(IPv4Address("100.64.0.0"))
@example(IPv4Address("192.0.0.9"))
def test_no_ipv4_address_is_public_that_is_not_global(ip: IPv4Address) -> None:
    if classify_address(ip).zone == "public":
        assert ip.is_global
        assert not ip.is_multicast


@given(IPV6)
@example(IPv6Address("2001:4860:4860::8888"))
def test_no_ipv6_address_is_public_outside_of_the_unicast_block(ip: IPv6Address) -> None:
    if classify_address(ip).zone == "public" and not str(ip).startswith("64:ff9b::"):
        assert ip.is_global
        assert 0x2000 <= int(ip) >> 112 <= 0x3FFF
        assert ip.sixtofour is None
        assert ip.teredo is None


@given(IPV4)
@example(IPv4Address("127.0.0.1"))
@example(IPv4Address("8.8.8.8"))
def test_what_is_wrapped_in_ipv6_is_no_better_than_what_is_inside(ip: IPv4Address) -> None:
    inner = int(ip)
    nat64 = classify_address(IPv6Address((0x64FF9B << 96) | inner))
    assert nat64 == classify_address(ip)
    for wrapped in (
        (0xFFFF << 32) | inner,  # mapped
        (0xFFFF << 48) | inner,  # translated
        (0x2002 << 112) | (inner << 80) | 1,  # 6to4
        (0x20010000 << 96) | (inner ^ 0xFFFFFFFF),  # Teredo
        (0x2001_0470 << 96) | (0x5EFE << 32) | inner,  # ISATAP
        (0x2001_0470 << 96) | (0x02005EFE << 32) | inner,
    ):
        assert classify_address(IPv6Address(wrapped)).zone == "never"
    if inner > 1:
        assert classify_address(IPv6Address(inner)).zone == "never"  # compatible


@pytest.mark.parametrize(
    "public",
    ["8.8.8.8", "1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "198.20.0.1", "11.0.0.1",
     "2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888", "64:ff9b::8.8.8.8"],
)  # fmt: skip
def test_what_is_public_is_public(public: str) -> None:
    assert classify_address(ip_address(public)).zone == "public"


@given(st.text(max_size=60))
@example("127.1")
@example("::1%eth0")
def test_an_ip_has_one_spelling(text: str) -> None:
    found = parse_ip(text)
    assert found is None or ":" in text or str(found) == text


@pytest.mark.parametrize("zoned", ["::1%lo", "fe80::1%eth0", "2606:4700::1111%1"])
def test_an_ip_with_a_zone_is_none(zoned: str) -> None:
    assert parse_ip(zoned) is None


@pytest.mark.parametrize("odd", ["\\", "\n", "\t", "\r", "\0", "\x7f", "\x85", "\ud800"])
def test_what_programs_read_in_different_ways_is_not_read(odd: str) -> None:
    for url in (f"http://a.example/{odd}x", f"http://a{odd}.example/", f"ht{odd}tp://a.example/"):
        assert isinstance(read_address(url), UnfetchedResource)


@given(
    st.one_of(
        st.text(max_size=80),
        st.from_regex(r"https?://[a-z0-9.-]{1,12}(:[0-9]{1,4})?(/[^#]{0,12})?", fullmatch=True),
        st.text(alphabet="/:@[]%.0127fx#?\\ab-_。１ \t", max_size=40).map("http://{}".format),
    )
)
@example("http://[::1]:80")
@example("http://a:80:80/")
@example("https://EXAMPLE.com.:443/a b?c#d")
def test_an_address_that_was_read_is_read_the_same_again(text: str) -> None:
    found = read_address(text)
    if isinstance(found, UnfetchedResource):
        return
    assert read_address(found.url) == found
    assert found.host.isascii()
    assert found.host == found.host.lower()
    assert not set(found.host) & set("/\\@#?%[] \t\n\0")
    assert found.target.isascii()
    assert found.target.startswith("/")
    assert not set(found.target) & set(" \r\n\t\0")
    # Either an address in its usual form, or nothing that a resolver takes for one.
    if found.ip is None:
        last = found.host.rpartition(".")[2]
        assert not last.isdigit()
        assert not last.startswith("0x") or any(
            letter not in "0123456789abcdefx" for letter in last
        )


@given(st.text(max_size=40))
@example("*.com")
@example("private:*.corp:80")
@example("[::1]:80")
@example("fd00::1")
def test_a_listed_entry_allows_only_names_it_spells(text: str) -> None:
    entry = read_allowed_host(text)
    if entry is None:
        return
    assert entry.host in text.lower() or not text.isascii() or ":" in entry.host
    assert not entry.matches(address("http://unrelated.example/"))


@pytest.mark.parametrize(
    ("entry", "urls"),
    [
        ("example.com", ["http://example.com/", "https://EXAMPLE.com.:8443/x"]),
        ("Example.COM:8080", ["http://example.com:8080/"]),
        ("*.example.com", ["http://a.example.com/", "https://a.b.example.com/"]),
        ("bücher.example", ["http://xn--bcher-kva.example/", "http://BÜCHER.example"]),
        ("::1", ["http://[::1]/", "http://[0:0:0:0:0:0:0:1]:8080/"]),
        ("[::1]:8080", ["http://[::1]:8080/"]),
        ("private:fd00::5", ["http://[fd00::5]/"]),
        ("10.0.0.5", ["http://10.0.0.5/"]),
        ("smtp.example:25", ["http://smtp.example:25/"]),
    ],
)
def test_an_entry_names_what_it_says(entry: str, urls: list[str]) -> None:
    rules = WebRules(access="listed", allow_hosts=(entry,))
    for url in urls:
        assert not isinstance(judge_name(address(url), rules), UnfetchedResource)


@given(st.lists(IPV4 | IPV6, min_size=1, max_size=4))
def test_a_public_host_has_public_addresses_only(ips: list[IPv4Address | IPv6Address]) -> None:
    judged = judge_addresses(address("http://a.example/"), "public", [str(ip) for ip in ips])
    if any(classify_address(ip).zone != "public" for ip in ips):
        assert isinstance(judged, UnfetchedResource)
    else:
        assert judged == "public"


def test_a_refusal_says_which_rule_would_allow_it() -> None:
    def refusal(url: str, rules: WebRules) -> str:
        judged = judge_name(address(url), rules)
        assert isinstance(judged, UnfetchedResource)
        return judged.detail

    listed = WebRules(access="listed", allow_hosts=("a.example", "https://b.example/"))
    assert refusal("https://b.example/x", listed) == (
        "b.example is not among the allowed hosts; list 'b.example' in allow_hosts "
        "(not hosts: 'https://b.example/'; an entry is a name, name:port or an address)"
    )
    assert refusal("http://localhost:8000/", WebRules(access="public")) == (
        "localhost is a name of this machine or network; list 'localhost:8000' in allow_hosts "
        "if it is meant"
    )
    assert refusal("https://a.example/", WebRules()) == (
        "fetching from the web is off; a.example is fetched with the setting web: listed and "
        "'a.example' in allow_hosts, or with web: public if it is a public host"
    )

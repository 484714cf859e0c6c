"""Parses web addresses, once and strictly.

Law: connections go to exactly the host that was judged. There is no second parser: addresses that
this one does not understand are refused, even where a browser would guess.
"""

import re
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from lamina.adapters.pages.networks import Ip, parse_ip
from lamina.core.values.web_access import UnfetchedResource

Scheme = Literal["http", "https"]
DEFAULT_PORTS: dict[Scheme, int] = {"http": 80, "https": 443}
MAX_URL = 8_192
_SCHEMES: dict[str, Scheme] = {"http": "http", "https": "https"}

_WHOLE = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^#]*)", re.IGNORECASE | re.DOTALL)
_HOST_AND_PORT = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
# Control characters, which some programs skip, and the backslash, which some read as a slash.
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MAX_NAME = 253
# Left unescaped in paths and queries; `%` because it was escaped before.
_UNESCAPED = "/?:@!$&'()*+,;=-._~%[]|"


class Address(Struct, frozen=True, kw_only=True):
    """A request's destination. `host` is a name in lower-case ASCII without a final dot, or an IP
    address, which is then also in `ip`."""

    scheme: Scheme
    host: str
    port: int
    target: str
    ip: Ip | None = None

    @property
    def authority(self) -> str:
        """The host as written in a URL and in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def read_address(url: str) -> Address | UnfetchedResource:
    """Parse the address in `url`, or return why nothing is fetched from it. Only the host is ever
    repeated: the rest may contain a secret."""
    if refusal := refuse_odd_url(url):
        return refusal
    whole = _WHOLE.fullmatch(url.partition("#")[0])
    if whole is None:
        return refuse("it is not a web address; one looks like https://example.com/page")
    scheme = _SCHEMES.get(whole[1].lower())
    authority, rest = whole[2], whole[3]
    if scheme is None:
        return refuse(f"only http and https are fetched, not {whole[1].lower()}")
    if "@" in authority:
        return refuse("the address holds a user name or password; those are never sent")
    host_and_port = _HOST_AND_PORT.fullmatch(authority)
    if host_and_port is None:
        return refuse(f"{authority!r} is not a host with an optional port")
    port = int(host_and_port[2]) if host_and_port[2] else DEFAULT_PORTS[scheme]
    if not 0 < port < 65_536:
        return refuse(f"port {port} does not exist")
    host = read_host(host_and_port[1])
    if isinstance(host, UnfetchedResource):
        return host
    target = quote(rest if rest.startswith("/") else f"/{rest}", safe=_UNESCAPED)
    return Address(scheme=scheme, host=host, port=port, target=target, ip=parse_ip(host))


def refuse_odd_url(url: str) -> UnfetchedResource | None:
    """Return why `url` must not even be parsed; None if it may be."""
    if len(url) > MAX_URL:
        return refuse(f"the address is longer than {MAX_URL:,} characters")
    if _SURROGATE.search(url):
        return refuse("the address holds a lone surrogate, which cannot be sent")
    if odd := _ODD.search(url):
        return refuse(f"the address holds {odd[0]!r}, which programs read in different ways")
    return None


def read_host(text: str) -> str | UnfetchedResource:
    """Return a host in its canonical spelling, or the reason for refusing it."""
    if text.startswith("["):
        address = parse_ip(text[1:-1])
        if address is None or address.version == 4:
            return refuse(f"{text!r} is not an IPv6 address (a zone such as %eth0 is not taken)")
        return str(address)
    name = text.lower().removesuffix(".")
    if not name:
        return refuse("the address names no host")
    if not name.isascii():
        ascii_name = _encode_name(name)
        if ascii_name is None or _NUMBER.fullmatch(ascii_name.rpartition(".")[2]):
            return refuse(f"{text!r} is not a host name")
        name = ascii_name
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        if parse_ip(name) is None:
            return refuse(
                f"{text!r} is an address in an unusual spelling; "
                f"write it as four numbers from 0 to 255, without zeros in front"
            )
        return name
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        return refuse(f"{text!r} is not a host name")
    return name


def _encode_name(name: str) -> str | None:
    """Encode a name with non-ASCII letters for the domain name system."""
    import idna

    try:
        return idna.encode(name, uts46=True, std3_rules=True).decode("ascii").removesuffix(".")
    except UnicodeError:
        return None


def refuse(detail: str) -> UnfetchedResource:
    return UnfetchedResource(reason="refused", detail=detail)

"""Web addresses, read once and strictly.

Law: the host that is judged is the host that is connected to. There is no second parser: what this
one does not understand is refused, also where a browser would guess.
"""

import re
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from lamina.pages.networks import Ip, parse_ip
from lamina.values.web import UnfetchedResource

Scheme = Literal["http", "https"]
DEFAULT_PORTS: dict[Scheme, int] = {"http": 80, "https": 443}
MAX_URL = 8_192
_SCHEMES: dict[str, Scheme] = {"http": "http", "https": "https"}

_WHOLE = re.compile(r"([a-z][a-z0-9+.-]*)://([^/?#]*)([^#]*)", re.IGNORECASE | re.DOTALL)
_PLACE = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
# Controls, which some programs skip, and the slash that only some take for one.
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MAX_NAME = 253
# In a path and a query as they stand; `%` because it was escaped before it came here.
_KEPT = "/?:@!$&'()*+,;=-._~%[]|"


class Address(Struct, frozen=True, kw_only=True):
    """Where a request goes. `host` is a name in ASCII and lower case without a dot at its end, or
    an address, which then is `ip` as well."""

    scheme: Scheme
    host: str
    port: int
    target: str
    ip: Ip | None = None

    @property
    def place(self) -> str:
        """The host as it stands in a URL and in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.place}{self.target}"


def read_address(url: str) -> Address | UnfetchedResource:
    """The address in `url`, or why it is none that is fetched from. Never repeats more of it than
    its host: the rest may hold a secret."""
    if odd := refuse_odd_url(url):
        return odd
    whole = _WHOLE.fullmatch(url.partition("#")[0])
    if whole is None:
        return _refused("it is not a web address; one looks like https://example.com/page")
    scheme = _SCHEMES.get(whole[1].lower())
    authority, rest = whole[2], whole[3]
    if scheme is None:
        return _refused(f"only http and https are fetched, not {whole[1].lower()}")
    if "@" in authority:
        return _refused("the address holds a user name or password; those are never sent")
    place = _PLACE.fullmatch(authority)
    if place is None:
        return _refused(f"{authority!r} is not a host with an optional port")
    port = int(place[2]) if place[2] else DEFAULT_PORTS[scheme]
    if not 0 < port < 65_536:
        return _refused(f"port {port} does not exist")
    host = read_host(place[1])
    if isinstance(host, UnfetchedResource):
        return host
    target = quote(rest if rest.startswith("/") else f"/{rest}", safe=_KEPT)
    return Address(scheme=scheme, host=host, port=port, target=target, ip=parse_ip(host))


def refuse_odd_url(url: str) -> UnfetchedResource | None:
    """Why `url` is not even read, if it is not."""
    if len(url) > MAX_URL:
        return _refused(f"the address is longer than {MAX_URL:,} characters")
    if _SURROGATE.search(url):
        return _refused("the address holds a lone surrogate, which cannot be sent")
    if odd := _ODD.search(url):
        return _refused(f"the address holds {odd[0]!r}, which programs read in different ways")
    return None


def read_host(text: str) -> str | UnfetchedResource:
    """A host in its one spelling, or why it has none."""
    if text.startswith("["):
        address = parse_ip(text[1:-1])
        if address is None or address.version == 4:
            return _refused(f"{text!r} is not an IPv6 address (a zone such as %eth0 is not taken)")
        return str(address)
    name = text.lower().removesuffix(".")
    if not name:
        return _refused("the address names no host")
    if not name.isascii():
        spelled = _spelled(name)
        if spelled is None or _NUMBER.fullmatch(spelled.rpartition(".")[2]):
            return _refused(f"{text!r} is not a host name")
        name = spelled
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        if parse_ip(name) is None:
            return _refused(
                f"{text!r} is an address in an unusual spelling; "
                f"write it as four numbers from 0 to 255, without zeros in front"
            )
        return name
    if len(name) > _MAX_NAME or not _NAME.fullmatch(name):
        return _refused(f"{text!r} is not a host name")
    return name


def _spelled(name: str) -> str | None:
    """A name of other letters as the name system has it."""
    import idna

    try:
        return idna.encode(name, uts46=True, std3_rules=True).decode("ascii").removesuffix(".")
    except UnicodeError:
        return None


def _refused(detail: str) -> UnfetchedResource:
    return UnfetchedResource(reason="refused", detail=detail)

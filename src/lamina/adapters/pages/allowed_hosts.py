"""Decides which hosts the rules allow.

Law: a host is judged by its name before it is looked up, and by all of its addresses before
connecting to any of them. A host that no rule allows is refused, and the refusal names the rule
that would allow it.
"""

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from lamina.adapters.pages.addresses import DEFAULT_PORTS, Address, read_host, refuse
from lamina.adapters.pages.networks import Ip, Zone, classify_address, parse_ip
from lamina.core.values.web_access import UnfetchedResource, WebRules

# The addresses that a host may have: public ones, this machine's, or all that can ever be allowed.
Reach = Literal["public", "loopback", "private"]

# Host names under which clouds serve their secrets; some have public addresses.
_SECRET_NAMES = frozenset({
    "metadata", "metadata.google.internal", "metadata.goog", "instance-data",
    "instance-data.ec2.internal", "metadata.tencentyun.com", "metadata.platformequinix.com",
    "metadata.packet.net", "rancher-metadata",
})  # fmt: skip
# Names reserved for local hosts, whatever their addresses.
_NEAR = ("localhost", "localdomain", "local", "internal", "home.arpa", "onion")
# Ports of services other than the web, above those that only an administrator can serve. Some of
# these services would execute a request as commands.
_OTHER_SERVICES = frozenset({
    1433, 1521, 1719, 1720, 1723, 2049, 2375, 2376, 3306, 3389, 3659, 4045, 4190, 5060, 5061, 5432,
    5900, 6000, 6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211, 27017,
})  # fmt: skip
_FIRST_FREE_PORT = 1024
_ENTRY = re.compile(r"(private:)?(\*\.)?(\[[^\]]*\]|[^:\[\]*/@]+)(?::([0-9]{1,5}))?")
_PRIVATE = "private:"


class AllowedHost(Struct, frozen=True, kw_only=True):
    """A listed host. Without a port, it covers every web port."""

    host: str
    port: int | None = None
    ip: Ip | None = None
    below: bool = False
    private: bool = False

    def matches(self, address: Address) -> bool:
        if self.port not in (None, address.port):
            return False
        if self.below:
            return address.ip is None and address.host.endswith(f".{self.host}")
        return address.host == self.host


def read_allowed_host(text: str) -> AllowedHost | None:
    """Read an entry of `allow_hosts`; None if invalid."""
    plain = text.strip().lower()
    # An IPv6 address may be listed without the brackets required in a URL.
    bare = plain.removeprefix(_PRIVATE)
    if bare.count(":") > 1 and not bare.startswith("["):
        plain = plain.replace(bare, f"[{bare}]")
    match = _ENTRY.fullmatch(plain)
    if match is None:
        return None
    host = read_host(match[3])
    if isinstance(host, UnfetchedResource):
        return None
    ip = parse_ip(host)
    port = int(match[4]) if match[4] else None
    if (match[2] and ip is not None) or (port is not None and not 0 < port < 65_536):
        return None
    return AllowedHost(host=host, port=port, ip=ip, below=bool(match[2]), private=bool(match[1]))


def judge_name(address: Address, rules: WebRules) -> Reach | UnfetchedResource:
    """Return the addresses that the host may have, or why nothing is fetched from it."""
    if rules.access == "off":
        return refuse(
            f"fetching from the web is off; {address.host} is fetched with the setting web: listed "
            f"and {_listing(address)} in allow_hosts, or with web: public if it is a public host"
        )
    if address.host in _SECRET_NAMES:
        return refuse(f"{address.host} serves the secrets of a cloud; it is never fetched")
    if address.ip is not None and (kind := classify_address(address.ip)).zone == "never":
        return refuse(f"{address.host} is {kind.what}; it is never fetched")
    entries = [entry for entry in map(read_allowed_host, rules.allow_hosts) if entry is not None]
    matching_hosts = [entry for entry in entries if entry.matches(address)]
    if not any(entry.port for entry in matching_hosts) and not _is_web_port(address.port):
        return refuse(
            f"port {address.port} is not one of the web; list {_listing(address)} in allow_hosts "
            f"if it is meant"
        )
    if matching_hosts:
        return _reach(address, matching_hosts)
    if rules.access == "listed":
        return refuse(
            f"{address.host} is not among the allowed hosts; list {_listing(address)} in "
            f"allow_hosts{_describe_misread(rules)}"
        )
    if near := _nearness(address):
        return refuse(
            f"{address.host} is {near}; list {_listing(address)} in allow_hosts if it is meant"
            f"{_describe_misread(rules)}"
        )
    return "public"


def judge_addresses(address: Address, reach: Reach, ips: Sequence[str]) -> Zone | UnfetchedResource:
    """Return the host's zone. One forbidden address is enough to refuse the host, since the
    connection might go to any of them."""
    zones: set[Zone] = set()
    for text in ips:
        ip = parse_ip(text)
        if ip is None:
            return refuse(f"{address.host} has the address {text!r}, which is not used")
        kind = classify_address(ip)
        zones.add(kind.zone)
        if kind.zone == "never":
            return refuse(f"{address.host} has {text}, {kind.what}; it is never fetched")
        if not _reaches(reach, kind.zone):
            hint = f"; list {_listing(address, _PRIVATE)} in allow_hosts if it is meant"
            return refuse(
                f"{address.host} has {text}, {kind.what}"
                f"{hint if reach == 'public' and address.ip is None else ''}"
            )
    if not zones:
        return UnfetchedResource(reason="unreadable", detail=f"{address.host} has no address")
    return "public" if zones == {"public"} else "private"


def judge_redirect(before: Address, after: Address) -> UnfetchedResource | None:
    """Return why a redirect between two addresses is not followed; None if it is."""
    if before.scheme == "https" and after.scheme == "http":
        return refuse(f"{before.host} redirects to {after.host} without encryption")
    return None


def judge_redirect_zones(
    before: Address, zone: Zone, after: Address, next_zone: Zone
) -> UnfetchedResource | None:
    """Return why a redirect between two zones is not followed; None if it is. The web may not
    redirect into a private network, even if a person may go there."""
    if zone == "public" and next_zone != "public":
        return refuse(
            f"{before.host} redirects to {after.host}, which is not public; attach that address "
            f"itself if it is meant"
        )
    return None


def _reach(address: Address, hosts: Sequence[AllowedHost]) -> Reach:
    if address.ip is not None or any(entry.private for entry in hosts):
        return "private"
    return "loopback" if _is_below(address.host, "localhost") else "public"


def _reaches(reach: Reach, zone: Zone) -> bool:
    if reach == "loopback":
        return zone == "loopback"
    return zone == "public" or reach == "private"


def _nearness(address: Address) -> str:
    """Return why a host is not public, judging by its name; empty if it may be public."""
    if address.ip is not None:
        kind = classify_address(address.ip)
        return "" if kind.zone == "public" else kind.what
    if any(_is_below(address.host, near) for near in _NEAR):
        return "a name of this machine or network"
    return "" if "." in address.host else "a name without a domain"


def _is_below(host: str, name: str) -> bool:
    return host == name or host.endswith(f".{name}")


def _is_web_port(port: int) -> bool:
    if port < _FIRST_FREE_PORT:
        return port in DEFAULT_PORTS.values()
    return port not in _OTHER_SERVICES


def _listing(address: Address, prefix: str = "") -> str:
    return repr(f"{prefix}{address.authority}")


def _describe_misread(rules: WebRules) -> str:
    """List invalid entries, which explains why they have no effect."""
    wrong = [repr(entry) for entry in rules.allow_hosts if read_allowed_host(entry) is None]
    if not wrong:
        return ""
    return f" (not hosts: {', '.join(wrong)}; an entry is a name, name:port or an address)"

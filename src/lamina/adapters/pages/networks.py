"""Classifies IP addresses by network zone.

Law: an address is public only if no entry here says otherwise. An IPv6 address that wraps another
is judged by the inner one, or refused.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Literal

from msgspec import Struct

# Public; this machine's; this network's; never allowed by any rule.
Zone = Literal["public", "loopback", "private", "never"]
Ip = IPv4Address | IPv6Address


class AddressKind(Struct, frozen=True, kw_only=True):
    """An address's zone, and its description in a refusal."""

    zone: Zone
    what: str


def _range(
    zone: Zone, what: str, *networks: str
) -> tuple[AddressKind, list[IPv4Network | IPv6Network]]:
    return AddressKind(zone=zone, what=what), [ip_network(network) for network in networks]


# The first range that contains the address counts.
_RANGES = (
    _range(
        "never", "an address that a cloud serves its secrets from",
        "169.254.169.254/32",  # Amazon, Azure, Google, Oracle, OpenStack and others
        "169.254.170.2/32", "169.254.170.23/32",  # Amazon, for containers
        "169.254.42.42/32", "169.254.0.23/32",  # Scaleway, Tencent
        "100.100.100.200/32",  # Alibaba
        "168.63.129.16/32",  # Azure's own server of a machine, though it looks public
        "192.0.0.192/32",  # Oracle
        "fd00:ec2::/32",  # Amazon
        "fd20:ce::254/128",  # Google
        "fd00:c1::a9fe:a9fe/128",  # Oracle
        "fd00:42::42/128",  # Scaleway
    ),
    _range("never", "a link-local address", "169.254.0.0/16", "fe80::/10"),
    _range("never", "an address of no host", "0.0.0.0/8", "::/128"),
    _range("never", "a broadcast address", "255.255.255.255/32"),
    _range("never", "a multicast address", "224.0.0.0/4", "ff00::/8"),
    _range("never", "a reserved address", "240.0.0.0/4", "192.0.0.0/24", "192.88.99.0/24",
           "100::/64", "5f00::/16"),
    _range("never", "an address for documentation", "192.0.2.0/24", "198.51.100.0/24",
           "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    _range("never", "a site-local address", "fec0::/10"),
    _range("loopback", "a loopback address", "127.0.0.0/8", "::1/128"),
    _range("private", "a private address", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
           "fc00::/7"),
    _range("private", "an address shared behind a carrier (CGNAT)", "100.64.0.0/10"),
    _range("private", "an address for benchmarks", "198.18.0.0/15"),
    _range("never", "an IPv4 address in an IPv6 spelling", "::ffff:0:0/96", "::ffff:0:0:0/96",
           "::/96"),
    _range("never", "a tunnel to an IPv4 address", "2002::/16", "2001::/32", "64:ff9b:1::/48"),
    _range("never", "a reserved address", "2001::/23"),
)  # fmt: skip
# The prefix through which a network without IPv4 reaches the rest of the internet.
_NAT64 = ip_network("64:ff9b::/96")
_IPV6_UNICAST = ip_network("2000::/3")
_IN_IPV4 = 0xFFFFFFFF
# The middle of an ISATAP tunnel address, with the "unique" bit off and on.
_ISATAP = (0x00005EFE, 0x02005EFE)
_PUBLIC = AddressKind(zone="public", what="a public address")
_RESERVED = AddressKind(zone="never", what="a reserved address")


def classify_address(address: Ip) -> AddressKind:
    """Return the zone of `address`."""
    if address in _NAT64:
        return classify_address(IPv4Address(int(address) & _IN_IPV4))
    for kind, networks in _RANGES:
        if any(address in network for network in networks):
            return kind
    if isinstance(address, IPv6Address):
        if (int(address) >> 32) & _IN_IPV4 in _ISATAP:
            return AddressKind(zone="never", what="a tunnel to an IPv4 address")
        if address not in _IPV6_UNICAST:
            return _RESERVED
    # Python's own registry may include newer ranges.
    return _PUBLIC if address.is_global else _RESERVED


def parse_ip(text: str) -> Ip | None:
    """Parse an address in its usual spelling; None for anything else, including addresses with a
    zone."""
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None

"""Rules on where a client connects from: networks and host names. A user without an address fits them all."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import regex

from services.common.access.asked import Asked, Principal
from services.common.access.expression import MOST_KEPT, fits
from services.common.errors import SyntaxFault
from services.common.expression_size import check_size

_OCTETS = 4


class NameUnknown(Exception):
    """The name of the client's host is not known: a rule that names hosts cannot be followed."""


def from_network(networks: frozenset[str]) -> Callable[[Principal, Asked], bool]:
    """Each as `192.168.1.0/24`, `192.168.1.0/255.255.255.0`, `192.168.*` or one address. Raises SyntaxFault."""
    known = [_network(each) for each in sorted(networks)]

    def inside(principal: Principal, _: Asked) -> bool:
        if not principal.host:
            return True
        address = ip_address(principal.host.partition("%")[0])
        if isinstance(address, IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        return any(address in network for network in known)

    return inside


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(_without_star(text) if text.endswith("*") else text, strict=False)
    except ValueError:
        raise SyntaxFault(f"Not a network: {text}") from None


def _without_star(text: str) -> str:
    octets = [each for each in text.removesuffix("*").split(".") if each]
    return f"{'.'.join((octets + ['0'] * _OCTETS)[:_OCTETS])}/{8 * len(octets)}"


def from_hostname(names: frozenset[str]) -> Callable[[Principal, Asked], bool]:
    """Regular expressions, each for a whole name; matching raises NameUnknown. Raises SyntaxFault."""
    whole = [f"^(?:{each})$" for each in sorted(names)]
    for each in whole:
        try:
            check_size(each, MOST_KEPT, MOST_KEPT)
            regex.compile(each)
        except (ValueError, regex.error) as error:
            raise SyntaxFault(f"Not a regular expression: {each}: {error}") from None

    def called(principal: Principal, _: Asked) -> bool:
        if not principal.host:
            return True
        if not principal.host_name:
            raise NameUnknown
        return any(fits(each, principal.host_name) for each in whole)

    return called

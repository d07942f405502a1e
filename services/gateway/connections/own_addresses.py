"""The addresses at which one gateway listens, where others listen as well: the kernel refuses it none of them twice.

Clients of two of its ports would come to one or the other by chance, whatever the terms of each.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple


class Address(NamedTuple):
    """An IP address, and a port's number."""

    host: str
    port: int

    def meets(self, other: Address) -> bool:
        """Whether one has clients of the other's; 0 is a port of its own each time."""
        one, another = ip_address(self.host), ip_address(other.host)
        if not self.port or self.port != other.port or one.version != another.version:
            return False
        return one == another or one.is_unspecified or another.is_unspecified


class OwnAddresses:
    """Of all ports of a gateway."""

    def __init__(self) -> None:
        self._taken: list[Address] = []

    def take(self, host: str, port: int) -> Address:
        """From now on; raises OSError, as the kernel would, where another port has it."""
        address = Address(host, port)
        if any(map(address.meets, self._taken)):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        self._taken.append(address)
        return address

    def leave(self, addresses: Iterable[Address]) -> None:
        """Others may have these."""
        for each in addresses:
            self._taken.remove(each)

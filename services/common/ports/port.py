"""Ports: where gateways listen, for which clients, for how many. Some come from settings, others are set at run time.

The latter are kept in the store as configuration records of kind `port`; every gateway follows them.
"""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

RECORD_KIND: Final = "port"
AMQP: Final = "amqp"
AMQPS: Final = "amqps"
OF_SETTINGS: Final = (AMQP, AMQPS)
"""Names of those that the settings describe."""
PLAIN: Final = "plain"
"""In place of a transport: a protocol on the socket itself."""

_ADDRESS = re.compile(r"[0-9.]+|.*:.*", re.DOTALL)
_NAME = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?", re.IGNORECASE)


def _host(value: str) -> str:
    if _ADDRESS.fullmatch(value):
        ip_address(value)
    elif value and not _NAME.fullmatch(value):
        raise ValueError(f"{value!r} is neither an address nor a name")
    return value


def _each_once(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


_Names = Annotated[
    tuple[Annotated[str, Field(min_length=1, max_length=64)], ...], Field(max_length=32), AfterValidator(_each_once)
]


class Terms(BaseModel):
    """Its address, and which clients may connect there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: Annotated[
        str,
        Field(max_length=255, description="address, or name, to listen on; empty: all of IPv4 and of IPv6"),
        AfterValidator(_host),
    ] = ""
    port: Annotated[int, Field(ge=1, le=65535)]
    transports: Annotated[
        _Names,
        Field(description=f"what a client may begin with, {PLAIN} for a protocol as it is; empty: all there are"),
    ] = ()
    protocols: Annotated[
        _Names, Field(min_length=1, description="what is spoken there, told by first bytes; the first answers all else")
    ] = ("amqp-0-9", "amqp-1-0")
    mechanisms: Annotated[_Names, Field(description="of those that are offered, best first; empty: all of them")] = ()
    authentication_provider: Annotated[
        str, Field(max_length=255, description="the authentication provider of this port; empty: as the settings say")
    ] = ""
    most: Annotated[int, Field(ge=0, description="connections at once, in each gateway; 0: as the gateway says")] = 0
    unsecured_passwords: Annotated[
        bool | None,
        Field(description="whether passwords may come unencrypted from other machines; none: as the settings say"),
    ] = None


class Port(Terms):
    """One port. The record's key is the name, its value `to_json()`."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Annotated[str, Field(min_length=1, max_length=255)]
    host: str = ""
    """The gateway that listens there finds out if it is valid: settings are not judged here."""
    port: Annotated[int, Field(ge=0, le=65535)]
    """0, in settings: one that is free."""

    @property
    def unsecured(self) -> bool:
        """Whether a protocol may be spoken without a transport that is secure."""
        return not self.transports or PLAIN in self.transports

    def takes(self, transport: str) -> bool:
        """Whether a client may begin with it."""
        return not self.transports or transport in self.transports

    @property
    def address(self) -> str:
        """For people."""
        return host_and_port(self.host or "*", self.port)

    def to_json(self) -> bytes:
        """The record's value."""
        return self.model_dump_json(exclude_defaults=True).encode()

    @classmethod
    def from_json(cls, value: bytes) -> Port:
        """The port in a record's value; raises ValidationError when it is none."""
        return cls.model_validate_json(value)


def host_and_port(host: str, port: int) -> str:
    """host:port; an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def read_address(text: str) -> tuple[str, str]:
    """Host and port of host:port, the host in brackets where it has colons; `*`, or none, means everywhere.

    Raises ValueError where there is no port.
    """
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isascii() or not port.isdigit() or (":" in host and not bracketed):
        raise ValueError(f"{text!r}: HOST:PORT is wanted, such as 0.0.0.0:5673, [::1]:5673, or *:5673 for everywhere")
    host = host[1:-1] if bracketed else host
    return "" if host == "*" else host, port

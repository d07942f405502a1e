"""Which gateway listens where, as each says in transient records of kind `port_state`, and all of that together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field

from services.common.ports.port import OF_SETTINGS, Port

RECORD_KIND = "port_state"

NOT_SAID = "has not said yet"


class Served(BaseModel):
    """A port as one gateway has it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    port: Port
    at: tuple[str, ...] = ()
    trouble: str = ""
    amiss: str = ""
    """What is wrong though it listens."""


class Account(BaseModel):
    """One gateway; the record's key is the instance, its value this as JSON."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    instance: str
    served: tuple[Served, ...]
    address: str = ""
    """Where the gateway's gRPC is; empty: it is older, and does not say."""


class Where(BaseModel):
    """What became of a port in one gateway."""

    model_config = ConfigDict(frozen=True)

    gateway: str
    at: tuple[str, ...] = Field((), description="host:port of each socket that listens; none: it does not listen")
    trouble: str = Field("", description="why not")
    amiss: str = Field("", description="what is wrong though it listens, as with its certificate")


class Listed(BaseModel):
    """A port, and the gateways that serve it, or should."""

    model_config = ConfigDict(frozen=True)

    port: Port
    of_settings: bool = Field(description="of HOPLINE_AMQP_PORT or HOPLINE_AMQPS_PORT: it cannot be changed or removed")
    gateways: tuple[Where, ...]


def listed(ports: Iterable[Port], accounts: Iterable[Account], gateways: Iterable[str]) -> list[Listed]:
    """Those of the settings, then the others by name; `gateways` are those that live."""
    said = {each.instance: each.served for each in accounts}
    living = {name: said.get(name) for name in sorted(gateways)}
    return [
        *_of_settings(living),
        *(
            Listed(port=port, of_settings=False, gateways=tuple(_where(port, *each) for each in living.items()))
            for port in sorted(ports, key=lambda port: port.name)
        ),
    ]


def _of_settings(living: Mapping[str, tuple[Served, ...] | None]) -> list[Listed]:
    """Gateways may have settings of their own: each of their ports is listed once."""
    found: dict[Port, list[Where]] = {}
    for gateway, served in living.items():
        for each in served or ():
            if each.port.name in OF_SETTINGS:
                found.setdefault(each.port, []).append(_told(gateway, each))
    ports = sorted(found, key=lambda port: (port.name, port.port))
    return [Listed(port=port, of_settings=True, gateways=tuple(found[port])) for port in ports]


def _where(port: Port, gateway: str, served: tuple[Served, ...] | None) -> Where:
    its = next((each for each in served or () if each.port == port), None)
    if its is None:  # it has not heard of the port as it is now, or just came
        return Where(gateway=gateway, trouble=NOT_SAID)
    return _told(gateway, its)


def _told(gateway: str, served: Served) -> Where:
    return Where(gateway=gateway, at=served.at, trouble=served.trouble, amiss=served.amiss)

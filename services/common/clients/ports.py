"""Operators' ports, and what gateways say of all ports: records in the store, for the command line and mgmt."""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterable

from pydantic import ValidationError

from services.common import plugins, watchers
from services.common.authentication.described import RECORD_KIND as PROVIDER_KIND
from services.common.authentication.described import without_options
from services.common.clients.calls import Client
from services.common.clients.overtaken import decided_again
from services.common.clients.store import StoreClient
from services.common.errors import AccessRefused, NotFound, PreconditionFailed, SyntaxFault
from services.common.ports import port as ports
from services.common.ports import state
from services.common.ports.port import OF_SETTINGS, PLAIN, Port, Terms
from services.common.ports.state import Account, Listed, listed
from services.rpc.store_pb2 import Record

# Fields of a port's terms that name plug-ins, and the group of those plug-ins.
_KINDS = {"transports": "transports", "protocols": "protocols", "mechanisms": "sasl_mechanisms"}


class Ports:
    """Every call raises the BrokerError that the store answered with, or Unavailable."""

    def __init__(self, store: StoreClient, providers: Container[str] | None = None) -> None:
        """`providers` are those of the settings' file; if given, a port must name one of them, or of the store's."""
        self._store = store
        self._providers = providers

    async def put(self, name: str, terms: Terms) -> Port:
        """Adds a port, or replaces the one of that name; gateways open it a moment later, and say so.

        Raises SyntaxFault if it names something unknown, PreconditionFailed if another port has its address, be it one
        of the settings in all gateways, and AccessRefused if a port of the settings has that name.
        """
        _check_name(name)
        _check_kinds(terms)
        await self._check_provider(terms.authentication_provider)
        port = Port(name=name, **terms.model_dump(exclude_unset=True))
        _check_address(port, await self._everywhere())
        await self._put(port)
        return port

    @decided_again
    async def _put(self, port: Port) -> None:
        read = await self._store.read_records(ports.RECORD_KIND)
        _check_address(port, _ports_in(read.records))
        record = Record(kind=ports.RECORD_KIND, key=port.name, value=port.to_json())
        await self._store.put_records([record], unchanged=read.unchanged)

    async def _everywhere(self) -> list[Port]:
        """Those of the settings that every gateway that lives has: what is at their addresses could be opened nowhere.

        One that has told of no port yet, as one that has just come, may have others, or none.
        """
        found, gateways = await self._served()
        return [each.port for each in found if each.of_settings and len(each.gateways) == len(gateways)]

    async def has_provider(self, name: str) -> bool:
        """Whether there is an authentication provider of that name: on record, or of a kind that needs no options."""
        if without_options(name):
            return True
        return any(each.key == name for each in await self._store.list_records([PROVIDER_KIND]))

    async def _check_provider(self, name: str) -> None:
        if not name or self._providers is None or name in self._providers or await self.has_provider(name):
            return
        raise SyntaxFault(f"authentication_provider: there is no '{name}'; add it first, as hopline providers add does")

    async def remove(self, name: str) -> None:
        """Raises NotFound if there is no such port. Its open connections stay open."""
        _check_name(name)
        if all(each.key != name for each in await self._store.list_records([ports.RECORD_KIND])):
            raise NotFound(f"no port '{name}'")
        await self._store.put_records(deletes=[Record(kind=ports.RECORD_KIND, key=name)])

    async def ports(self) -> list[Listed]:
        """All ports, with the gateways that serve them."""
        return (await self._served())[0]

    async def _served(self) -> tuple[list[Listed], list[str]]:
        """The same, and the gateways that live."""
        records = await self._store.list_records([ports.RECORD_KIND, state.RECORD_KIND, watchers.RECORD_KIND])
        accounts = [Account.model_validate_json(each.value) for each in records if each.kind == state.RECORD_KIND]
        routed = (each for each in records if each.kind == watchers.RECORD_KIND)
        gateways = [each.key for each in routed if watchers.role_in(each.value) == "gateway"]
        return listed(_ports_in(records), accounts, gateways), gateways


class PortsClient(Ports, Client):
    """Ports over a connection of their own to the store."""

    def __init__(self, address: str) -> None:
        super().__init__(StoreClient(address))

    async def close(self) -> None:
        """Ends the connection."""
        await self._store.close()


def _ports_in(records: Iterable[Record]) -> list[Port]:
    """Without those that cannot be read: gateways report these, and `remove` removes them."""
    found = []
    for each in records:
        with contextlib.suppress(ValidationError):
            found += [Port.from_json(each.value)] if each.kind == ports.RECORD_KIND else []
    return found


def _check_name(name: str) -> None:
    if name in OF_SETTINGS:
        setting = f"HOPLINE_{name.upper()}_PORT"
        raise AccessRefused(f"port '{name}' comes from the setting {setting}, and can only be changed there")


def _check_kinds(terms: Terms) -> None:
    for field, group in _KINDS.items():
        there = ((PLAIN,) if field == "transports" else ()) + plugins.names(group)
        unknown = [each for each in getattr(terms, field) if each not in there]
        if unknown:
            raise SyntaxFault(f"{field}: there is no {', '.join(unknown)}; there are {', '.join(there)}")


def _check_address(port: Port, others: Iterable[Port]) -> None:
    for other in others:
        if other.name != port.name and other.port == port.port and _meet(other.host, port.host):
            raise PreconditionFailed(f"port '{other.name}' is at {other.address} already")


def _meet(one: str, other: str) -> bool:
    return one == other or not one or not other

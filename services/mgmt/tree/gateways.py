"""Connections: asked of all gateways that are alive, at the addresses that they advertise."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from services.common.audit.audit import Audit
from services.common.clients.calls import result, stream
from services.common.containment import contained
from services.common.errors import BrokerError, NotFound, Unavailable
from services.common.grpc_channel import connect
from services.mgmt.tree.mirror import Mirror
from services.mgmt.tree.recorded import record
from services.rpc import gateway_pb2 as pb
from services.rpc.gateway_pb2_grpc import GatewayStub

if TYPE_CHECKING:
    from services.rpc.gateway_pb2_grpc import GatewayAsyncStub

_DEADLINE: Final = 5.0  # seconds
_ROLE: Final = "gateway"
_LONGEST_REASON: Final = 200  # bytes: AMQP 0-9-1 has 255 for it, and for what is said before

log = structlog.get_logger()


class Heard(NamedTuple):
    """What those say that answered in time, by name of gateway; and who did not."""

    connections: list[pb.Connection]
    silent: frozenset[str]


class Gateways:
    """`mirror` has the gateways that are alive, and their records."""

    def __init__(self, mirror: Mirror, audit: Audit) -> None:
        self._mirror = mirror
        self._audit = audit

    def members(self) -> Mapping[str, str]:
        """Names of all that follow the topology, with their roles."""
        return {key: kept.value["role"] for key, kept in sorted(self._mirror.tables["watcher"].items())}

    def addresses(self) -> Iterator[tuple[str, str]]:
        """Those of an older version say none, and are left out."""
        said = self._mirror.tables["port_state"]
        for name, role in self.members().items():
            address = said[name].value.get("address") if name in said else None
            if role == _ROLE and address:
                yield name, address

    async def connections(self) -> list[pb.Connection]:
        """By name of gateway. One that does not answer in time is left out."""
        return (await self.heard()).connections

    async def heard(self) -> Heard:
        """The same, with the names of those that are left out."""
        there = list(self.addresses())
        told = await asyncio.gather(*(self._of(*each) for each in there))
        silent = (name for (name, _), its in zip(there, told, strict=True) if its is None)
        return Heard([each for its in told if its for each in its], frozenset(silent))

    async def connection(self, name: str) -> pb.Connection | None:
        """One, with the consumers of its sessions; None where it is gone, or its gateway does not answer."""
        gateway = gateway_of(name)
        if (address := dict(self.addresses()).get(gateway)) is None:
            return None
        return next(iter(await self._of(gateway, address, name) or ()), None)

    async def close(self, name: str, reason: str) -> None:
        """Raises NotFound where no gateway has it, Unavailable where its gateway does not answer.

        Of a long reason the client is told the beginning.
        """
        told = reason.encode()[:_LONGEST_REASON].decode(errors="ignore")
        address = dict(self.addresses()).get(gateway_of(name))
        if address is None:
            raise NotFound(f"no connection '{name}'")
        channel = connect(address)
        stub: GatewayAsyncStub = GatewayStub(channel)
        try:
            await result(stub.Close(pb.CloseRequest(name=name, reason=told), timeout=_DEADLINE))
        finally:
            await channel.close()
        record(self._audit, "connection", "closed", name)

    async def reset_limits(self, virtual_host: str | None) -> None:
        """Of the rules of a virtual host, or of the broker. Raises Unavailable where a gateway does not do it."""
        there = list(self.addresses())
        done = await asyncio.gather(*(_reset_at(address, virtual_host) for _, address in there))
        if failed := [name for (name, _), well in zip(there, done, strict=True) if not well]:
            raise Unavailable(f"{', '.join(failed)} counts on: it does not answer; try again")

    async def _of(self, name: str, address: str, connection: str = "") -> list[pb.Connection] | None:
        """None where it does not answer: half of its connections would look as if the others had gone."""
        channel = connect(address)
        stub: GatewayAsyncStub = GatewayStub(channel)
        found: list[pb.Connection] = []
        try:
            async for told in stream(stub.Connections(pb.ConnectionsRequest(name=connection), timeout=_DEADLINE)):
                found += told.connections
        except BrokerError as failure:
            log.info("a gateway does not list its connections", gateway=name, reason=failure.text)
        except Exception as fault:  # noqa: BLE001 - the others have said theirs
            contained("listing connections", fault, gateway=name)
        else:
            return found
        finally:
            await channel.close()
        return None


async def _reset_at(address: str, virtual_host: str | None) -> bool:
    channel = connect(address)
    stub: GatewayAsyncStub = GatewayStub(channel)
    try:
        await result(stub.ResetLimits(pb.ResetLimitsRequest(virtual_host=virtual_host), timeout=_DEADLINE))
    except BrokerError:
        return False
    finally:
        await channel.close()
    return True


def gateway_of(connection: str) -> str:
    """Names of connections begin with their gateway's origin."""
    return f"{_ROLE}-{connection.partition('.')[0]}"

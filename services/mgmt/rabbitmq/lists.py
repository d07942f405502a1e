"""Lists for the command line: rows that fit, in an order, in pages between which others are served."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

from services.common.errors import NotFound, SyntaxFault
from services.common.patterns import fits
from services.mgmt.rabbitmq.columns import in_order, in_place, value_in
from services.mgmt.rabbitmq.connected import channels, connection
from services.mgmt.rabbitmq.counted import Counted
from services.mgmt.rabbitmq.described import described
from services.mgmt.rabbitmq.objects import Row
from services.mgmt.rabbitmq.plain import written
from services.mgmt.rabbitmq.sections import Broker
from services.rpc import objects_pb2 as pb
from services.rpc.gateway_pb2 import Connection

_PAGE: Final = 200
"""Rows: so many are told in some milliseconds."""


class Rows(NamedTuple):
    """Of a kind. `tell` makes of one what is told of it; `quick` are columns that can be had without."""

    rows: Iterable[Row]
    tell: Callable[[Row], Row] = dict
    quick: Mapping[str, Callable[[Row], Any]] = {}

    def column(self, name: str) -> Callable[[Row], Any]:
        """What a row has in it."""
        return value_in(name, self.tell, self.quick)


async def pages(broker: Broker, request: pb.ListRequest) -> AsyncGenerator[pb.Page, None]:
    """At least one. Raises SyntaxFault for a column that there is not, NotFound for a virtual host."""
    listed = await _listed(broker, request)
    found = [row async for row in _fitting(listed, request)]
    if request.sort:
        found = await in_order(found, listed.column(request.sort), descending=request.descending)
    elif request.kind != pb.CONNECTION:  # those are as they have come
        found = await in_place(found)
    found = found[: request.most or None]
    for start in range(0, len(found) or 1, _PAGE):
        rows = [written(listed.tell(row)) for row in found[start : start + _PAGE]]
        yield pb.Page(rows=rows, total=len(found))
        await asyncio.sleep(0)


async def whole(broker: Broker, request: pb.ShowRequest) -> Row:
    """One queue, exchange or connection, with what belongs to it. Raises NotFound."""
    if request.kind not in _WHOLE:
        raise SyntaxFault("queues, exchanges and connections are shown one by one, and nothing else")
    await broker.objects.known(counted=request.kind == pb.QUEUE)
    return await _WHOLE[request.kind](broker, request)


# ------------------------------------------------------------------ which rows


async def _listed(broker: Broker, request: pb.ListRequest) -> Rows:
    if request.kind not in _LISTED:
        raise SyntaxFault("there is no list of that kind")
    await broker.objects.known(counted=request.kind in {pb.QUEUE, pb.CONSUMER})
    if request.HasField("virtual_host"):
        broker.objects.check_virtual_host(request.virtual_host)
        return await _LISTED[request.kind](broker, [request.virtual_host])
    return await _LISTED[request.kind](broker, broker.objects.virtual_hosts())


async def _fitting(listed: Rows, request: pb.ListRequest) -> AsyncIterator[Row]:
    wanted = [(listed.column(name), pattern) for name, pattern in request.fits.items()]
    async for row in _with_pauses(listed.rows, lambda row: _check_columns(listed.tell(row), request)):
        if all(fits(_text(value_of(row)), pattern) for value_of, pattern in wanted):
            yield row


async def _with_pauses(rows: Iterable[Row], first: Callable[[Row], None] = lambda _: None) -> AsyncIterator[Row]:
    """`first` is told the first of them."""
    for number, row in enumerate(rows):
        if not number:
            first(row)
        yield row
        if not (number + 1) % _PAGE:
            await asyncio.sleep(0)


def _check_columns(told: Row, request: pb.ListRequest) -> None:
    for name in filter(None, (request.sort, *request.fits)):
        if name.split(".")[0] not in told:  # what is below it, the first row need not have
            raise SyntaxFault(f"there is no column '{name}'; there are {', '.join(told)}")


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, bool) else "" if value is None else str(value)


async def _queues(broker: Broker, hosts: list[str]) -> Rows:
    counted = Counted(broker)
    rows = (row for host in hosts for row in broker.objects.each_queue(host))
    return Rows(rows, counted.queue, counted.quick)


async def _exchanges(broker: Broker, hosts: list[str]) -> Rows:
    return Rows(row for host in hosts for row in broker.objects.exchanges(host))


async def _bindings(broker: Broker, hosts: list[str]) -> Rows:
    return Rows(row for host in hosts for row in broker.objects.each_binding(host))


async def _policies(broker: Broker, hosts: list[str]) -> Rows:
    return Rows(row for host in hosts for row in broker.objects.governed.rows(host, operator=False))


async def _operator_policies(broker: Broker, hosts: list[str]) -> Rows:
    return Rows(row for host in hosts for row in broker.objects.governed.rows(host, operator=True))


async def _consumers(broker: Broker, hosts: list[str]) -> Rows:
    counted = Counted(broker)

    def rows() -> Iterator[Row]:
        for host in hosts:
            for queue in broker.objects.each_queue(host):
                yield from (counted.consumer(queue, each) for each in counted.consumers_of(queue))

    return Rows(rows())


async def _connections(broker: Broker, hosts: list[str]) -> Rows:
    there = set(hosts)
    told = await broker.house.gateways.connections()
    return Rows(connection(each) for each in told if each.virtual_host in there)


async def _virtual_hosts(broker: Broker, hosts: list[str]) -> Rows:
    return Rows({"name": host, **described(broker.house, host)} for host in hosts)


_LISTED: Final = {
    pb.QUEUE: _queues,
    pb.EXCHANGE: _exchanges,
    pb.BINDING: _bindings,
    pb.CONSUMER: _consumers,
    pb.CONNECTION: _connections,
    pb.POLICY: _policies,
    pb.OPERATOR_POLICY: _operator_policies,
    pb.VIRTUAL_HOST: _virtual_hosts,
}


# ------------------------------------------------------------------ one


async def _queue(broker: Broker, request: pb.ShowRequest) -> Row:
    objects, where = broker.objects, (request.virtual_host, request.name)
    its = _with_pauses(objects.bindings_to_queue(*where))
    return {**Counted(broker).queue_and_consumers(objects.queue(*where)), "bindings": [each async for each in its]}


async def _exchange(broker: Broker, request: pb.ShowRequest) -> Row:
    """With what leads on from it, and to it: what does both is told once."""
    row = broker.objects.exchange(request.virtual_host, request.name)
    where = request.virtual_host, row["name"]
    to_it = (each for each in broker.objects.bindings_to_exchange(*where) if each["source"] != row["name"])
    its = _with_pauses(chain(broker.objects.bindings_from(*where), to_it))
    return {**row, "bindings": [each async for each in its]}


async def _connection(broker: Broker, request: pb.ShowRequest) -> Row:
    found = await connection_of(broker, request.name)
    return {**connection(found), "channel_details": channels([found])}


async def connection_of(broker: Broker, name: str) -> Connection:
    """Raises NotFound."""
    found = next((each for each in await broker.house.gateways.connections() if each.name == name), None)
    if found is None:
        raise NotFound(f"no connection '{name}'")
    return found


_WHOLE: Final = {pb.QUEUE: _queue, pb.EXCHANGE: _exchange, pb.CONNECTION: _connection}

"""The topology's values as the contract's messages (proto/router.proto)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from services.common.arguments import changed
from services.common.topology.definitions import Exchange, Queue
from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.life import of_connection
from services.common.topology.records import BINDING, EXCHANGE, Record, RecordKey
from services.common.topology.slots import first_slots
from services.router.topology.effects import News
from services.router.topology.virtual_host import VirtualHost
from services.rpc import router_pb2

_A_FRAME = 1000  # queues, or records


def queue_message(queue: Queue) -> router_pb2.QueueDefinition:
    return router_pb2.QueueDefinition(
        id=queue.id,
        virtual_host=queue.virtual_host,
        name=queue.name,
        partition=queue.partition,
        durable=queue.durable,
        exclusive_to=queue.exclusive_to,
        auto_delete=queue.auto_delete,
        arguments=changed.now(queue.arguments, queue.changed),
        type=queue.type,
        policy=queue.policy,
        unused=queue.life.unused if queue.life.unused.is_made else "",
        kept=bool(queue.life.maker),
        owner=None if queue.owner == of_connection(queue.exclusive_to) else router_pb2.Party(**queue.owner._asdict()),
    )


def exchange_message(exchange: Exchange) -> router_pb2.ExchangeDefinition:
    return router_pb2.ExchangeDefinition(
        virtual_host=exchange.virtual_host,
        name=exchange.name,
        type=exchange.type,
        durable=exchange.durable,
        auto_delete=exchange.auto_delete,
        internal=exchange.internal,
        arguments=exchange.arguments,
    )


def news_frame(version: int, news: News, *, evaluates: bool = False) -> router_pb2.TopologyFrame:
    """What a watcher that knows everything before `news` needs in order to know `version`."""
    return router_pb2.TopologyFrame(
        version=version,
        queues=map(queue_message, news.queues.values()),
        deleted_queues=first_slots(news.deleted_queues),
        virtual_hosts=[name for name, exists in news.virtual_hosts.items() if exists],
        deleted_virtual_hosts=[name for name, exists in news.virtual_hosts.items() if not exists],
        forget=_forget_messages(news),
        records=_record_messages(_evaluated(news.records.items())) if evaluates else (),
    )


def _forget_messages(news: News) -> Iterator[router_pb2.Forget]:
    for (virtual_host, exchange), keys in news.forget.items():
        if keys is None:
            yield router_pb2.Forget(virtual_host=virtual_host, exchange=exchange, all_keys=True)
            continue
        for key in keys:
            yield router_pb2.Forget(virtual_host=virtual_host, exchange=exchange, routing_key=key)


def snapshot_frames(
    version: int,
    virtual_hosts: Iterable[str],
    queues: Iterable[Queue],
    place_ttl_ms: int,
    records: Iterable[tuple[RecordKey, Record]] | None = None,
) -> list[router_pb2.TopologyFrame]:
    """Everything that a watcher keeps, in as many frames as it takes; `records` of the topology if it evaluates."""
    messages = [queue_message(queue) for queue in queues]
    frames = [
        router_pb2.TopologyFrame(
            version=version, snapshot=True, place_ttl_ms=place_ttl_ms, queues=messages[first : first + _A_FRAME]
        )
        for first in range(0, len(messages) or 1, _A_FRAME)
    ]
    frames[0].virtual_hosts.extend(virtual_hosts)
    if records is not None:
        frames += _snapshot_of_records(version, _evaluated(records), place_ttl_ms)
        for frame in frames:
            frame.evaluated = True
    frames[-1].last = True
    return frames


def record_frames(
    version: int, records: Iterable[tuple[RecordKey, Record]], place_ttl_ms: int
) -> list[router_pb2.TopologyFrame]:
    """Everything that a router needs to evaluate as the one that writes does, in as many frames as it takes."""
    frames = _snapshot_of_records(version, records, place_ttl_ms)
    frames[-1].last = True
    return frames


def _snapshot_of_records(
    version: int, records: Iterable[tuple[RecordKey, Record]], place_ttl_ms: int
) -> list[router_pb2.TopologyFrame]:
    messages = _record_messages(records)
    return [
        router_pb2.TopologyFrame(
            version=version, snapshot=True, place_ttl_ms=place_ttl_ms, records=messages[first : first + _A_FRAME]
        )
        for first in range(0, len(messages) or 1, _A_FRAME)
    ]


def records_frame(version: int, news: News) -> router_pb2.TopologyFrame:
    """What a router that follows needs in order to know `version`."""
    return router_pb2.TopologyFrame(version=version, records=_record_messages(news.records.items()))


_Kept = TypeVar("_Kept", bound=Record | None)


def _evaluated(records: Iterable[tuple[RecordKey, _Kept]]) -> Iterator[tuple[RecordKey, _Kept]]:
    """What a watcher needs besides queues and virtual hosts to say where messages go."""
    return (each for each in records if each[0].kind in (EXCHANGE, BINDING))


def _record_messages(records: Iterable[tuple[RecordKey, Record | None]]) -> list[router_pb2.TopologyRecord]:
    return [_record_message(key, record) for key, record in records]


def _record_message(key: RecordKey, record: Record | None) -> router_pb2.TopologyRecord:
    if record is None:
        return router_pb2.TopologyRecord(kind=key.kind, key=key.key, deleted=True)
    return router_pb2.TopologyRecord(kind=key.kind, key=key.key, value=record.value)


def description(hosts: Mapping[str, VirtualHost], chosen: str) -> router_pb2.DescribeReply:
    """One virtual host, or all when none is chosen; the default exchange's implied bindings are not listed."""
    reply = router_pb2.DescribeReply(virtual_hosts=sorted(hosts))
    for name, host in hosts.items():
        if chosen in ("", name):
            reply.queues.extend(map(queue_message, host.queues.values()))
            reply.exchanges.extend(exchange_message(source.definition) for source in host.sources.values())
            reply.bindings.extend(_binding_messages(host))
    return reply


def _binding_messages(host: VirtualHost) -> Iterator[router_pb2.Binding]:
    for name, source in host.sources.items():
        for binding in source.bindings:
            yield router_pb2.Binding(
                virtual_host=host.name,
                bind=bind_message(host, name, binding),
                durable=host.is_durable(name, binding),
            )


def bind_message(host: VirtualHost, source: str, binding: Binding) -> router_pb2.Bind:
    """A binding from `source` to what is there."""
    destination = binding.destination
    return router_pb2.Bind(
        source=source,
        destination=destination if isinstance(destination, str) else host.queue(destination).name,
        to_exchange=isinstance(destination, str),
        routing_key=binding.routing_key,
        arguments=binding.arguments,
    )

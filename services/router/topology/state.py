"""The whole topology's state: virtual hosts, and queues by what they are looked up by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from services.common.errors import NotFound
from services.common.topology import records
from services.common.topology.definitions import Host, Queue
from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.records import Record, RecordKey
from services.router.topology.effects import Effects
from services.router.topology.governing import governed
from services.router.topology.kinds import Kinds
from services.router.topology.virtual_host import VirtualHost

Stored = tuple[str, str, bytes]
"""Kind, key and value of a record."""


class Unreadable(NamedTuple):
    """A record that is left out, and why."""

    kind: str
    key: str
    fault: Exception


class TopologyState:
    """What the use cases work on. `new_id` gives ids, never one twice; `new_name` the end of a queue's name.

    `most_queues` says how many there may be in a virtual host; None: any number.
    """

    def __init__(
        self,
        kinds: Kinds,
        partitions: int,
        new_id: Callable[[], int],
        new_name: Callable[[], str],
        most_queues: Callable[[str], int | None],
    ) -> None:
        self.kinds = kinds
        self.partitions = partitions
        self.new_id = new_id
        self.new_name = new_name
        self.most_queues = most_queues
        self.virtual_hosts: dict[str, VirtualHost] = {}
        self.queues: dict[int, Queue] = {}
        self.bound_to: dict[str, dict[int, None]] = {}  # connection → queues to which its end, or a part's, matters

    def host(self, name: str) -> VirtualHost:
        """Raises NotFound."""
        if (host := self.virtual_hosts.get(name)) is None:
            raise NotFound(f"no virtual host '{name}'")
        return host

    def add_host(self, definition: Host) -> VirtualHost:
        """With its predeclared exchanges."""
        host = self.virtual_hosts[definition.name] = VirtualHost(definition, self.kinds)
        return host

    def add_queue(self, queue: Queue, effects: Effects) -> None:
        host = self.virtual_hosts[queue.virtual_host]
        queue = governed(host, queue)
        self._index(queue)
        host.add_queue(queue, effects)

    def supersede_queue(self, former: Queue, queue: Queue, source: str, binding: Binding, effects: Effects) -> None:
        """As VirtualHost says."""
        host = self.virtual_hosts[queue.virtual_host]
        queue = governed(host, queue)
        host.supersede_queue(former, queue, source, binding, effects)
        self._unindex(former)
        self._index(queue)

    def replace_queue(self, queue: Queue) -> Queue:
        """The same queue, of which something else is said now: gives it as it is under its policies."""
        host = self.virtual_hosts[queue.virtual_host]
        queue = governed(host, queue)
        self._unindex(self.queues[queue.id])
        self._index(queue)
        host.replace_queue(queue)
        return queue

    def change_queue(self, queue: Queue, effects: Effects) -> Queue:
        """The same, on record: whoever knows the queue is told."""
        queue = self.replace_queue(queue)
        effects.records[records.queue_key(queue)] = records.queue_record(queue)
        effects.news.queues[queue.id] = queue
        return queue

    def govern(self, host: VirtualHost) -> list[Queue]:
        """Policies of a virtual host have changed: gives its queues of which they say something else now."""
        changed = [now for queue in host.queues.values() if (now := governed(host, queue)) != queue]
        for queue in changed:
            self.queues[queue.id] = queue
            host.replace_queue(queue)
        return changed

    def remove_queue(self, queue: Queue, effects: Effects) -> None:
        self._unindex(queue)
        self.virtual_hosts[queue.virtual_host].remove_queue(queue, effects)

    def drop_queue(self, queue: Queue) -> None:
        """Its record is gone: no effects."""
        self._unindex(queue)
        self.virtual_hosts[queue.virtual_host].drop_queue(queue)

    def restore_queue(self, queue: Queue) -> None:
        """From its record: no effects."""
        host = self.virtual_hosts[queue.virtual_host]
        queue = governed(host, queue)
        self._index(queue)
        host.restore_queue(queue)

    def restore(self, stored: Iterable[Stored]) -> list[Unreadable]:
        """Takes over all records, in any order; gives those that cannot be.

        What refers to nothing that exists is left out: the other end was kept in memory by a store that went down, or
        cannot be read itself.
        """
        by_kind: dict[str, list[tuple[str, bytes]]] = {kind: [] for kind in records.KINDS}
        for kind, key, value in stored:
            by_kind[kind].append((key, value))
        takes = {
            records.VIRTUAL_HOST: self._restore_host,
            records.POLICY: self._restore_policy,
            records.EXCHANGE: self._restore_exchange,
            records.QUEUE: self._restore_queue,
            records.BINDING: self._restore_binding,
        }
        unreadable: list[Unreadable] = []
        for kind, take in takes.items():
            for key, value in by_kind[kind]:
                try:
                    take(value)
                except Exception as fault:  # noqa: BLE001 - whatever is wrong with it, the rest is served
                    unreadable.append(Unreadable(kind, key, fault))
        return unreadable

    def all_records(self) -> Iterator[tuple[RecordKey, Record]]:
        """Everything that the store should hold."""
        for host in self.virtual_hosts.values():
            yield from host.all_records()

    def _index(self, queue: Queue) -> None:
        self.queues[queue.id] = queue
        if connection := queue.life.connection:
            self.bound_to.setdefault(connection, {})[queue.id] = None

    def _unindex(self, queue: Queue) -> None:
        del self.queues[queue.id]
        if connection := queue.life.connection:
            bound = self.bound_to[connection]
            del bound[queue.id]
            if not bound:
                del self.bound_to[connection]

    def _restore_host(self, value: bytes) -> None:
        self.add_host(records.read_virtual_host(value))

    def _restore_policy(self, value: bytes) -> None:
        policy = records.read_policy(value)
        if host := self.virtual_hosts.get(policy.virtual_host):
            host.policies.set(policy)

    def _restore_exchange(self, value: bytes) -> None:
        exchange = records.read_exchange(value)
        if host := self.virtual_hosts.get(exchange.virtual_host):
            host.restore_exchange(exchange)

    def _restore_queue(self, value: bytes) -> None:
        queue = records.read_queue(value)
        if queue.virtual_host in self.virtual_hosts:
            self.restore_queue(queue)

    def _restore_binding(self, value: bytes) -> None:
        bound = records.read_binding(value)
        host = self.virtual_hosts.get(bound.virtual_host)
        destination = bound.binding.destination
        known = self.queues if isinstance(destination, int) else host.sources if host else {}
        if host and bound.source in host.sources and destination in known:
            host.restore_binding(bound.source, bound.binding)

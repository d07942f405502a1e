"""What one virtual host holds, in the indexes that changes and routing need. Every mutation says its effects."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from services.common.topology import records
from services.common.topology.definitions import Exchange, Host, Queue
from services.common.topology.exchanges.exchange_type import Binding, Destination
from services.common.topology.policies import Policies
from services.common.topology.predeclared import DEFAULT_EXCHANGE, is_predeclared, predeclared
from services.common.topology.records import Record, RecordKey
from services.common.topology.source import Source
from services.router.topology.effects import Bound, Effects, Happened
from services.router.topology.kinds import Kinds


class VirtualHost:
    """Exchanges, queues and bindings that see each other. Does what it is told: checks are the use cases' affair."""

    def __init__(self, definition: Host, kinds: Kinds) -> None:
        self.definition = definition
        self.name = definition.name
        self.sources: dict[str, Source] = {}
        self.queues: dict[str, Queue] = {}
        self.policies = Policies()
        self._queues_by_id: dict[int, Queue] = {}
        self._kinds = kinds
        self._inbound: dict[Destination, dict[tuple[str, Binding], None]] = {}
        self._alternate_of: dict[str, dict[str, None]] = {}  # exchange → those that name it their alternate
        for exchange in predeclared(self.name):
            self._place(exchange)

    # -------------------------------------------------------------- exchanges

    def add_exchange(self, exchange: Exchange, effects: Effects) -> None:
        """Routes that met no exchange, and those that had no alternate, may now lead somewhere."""
        self._place(exchange)
        effects.records[records.exchange_key(exchange)] = records.exchange_record(exchange)
        effects.happened.append(Happened(created=True, what=exchange))
        self._forget(exchange.name, None, effects)

    def remove_exchange(self, name: str, effects: Effects) -> None:
        """Takes its bindings along, and auto-delete exchanges that were bound to it alone."""
        self._end_all([name], effects)

    # -------------------------------------------------------------- queues

    def add_queue(self, queue: Queue, effects: Effects) -> None:
        """Every queue is bound to the default exchange by its name (AMQP 0-9-1, 3.1.3.1)."""
        self._place_queue(queue)
        effects.records[records.queue_key(queue)] = records.queue_record(queue)
        effects.news.queues[queue.id] = queue
        effects.happened.append(Happened(created=True, what=queue))
        self._forget(DEFAULT_EXCHANGE, queue.name, effects)

    def remove_queue(self, queue: Queue, effects: Effects) -> None:
        """Takes its bindings along, and auto-delete exchanges that were bound to it alone."""
        self._unplace_queue(queue)
        effects.records[records.queue_key(queue)] = None
        effects.news.delete_queue(queue.id)
        self._forget(DEFAULT_EXCHANGE, queue.name, effects)
        self._end_all(self._remove_inbound(queue.id, effects), effects)
        # Until here, for the names of what was bound.
        del self._queues_by_id[queue.id]
        effects.happened.append(Happened(created=False, what=queue))

    def supersede_queue(self, former: Queue, queue: Queue, source: str, binding: Binding, effects: Effects) -> None:
        """Another of its name is in its place, with that binding alone. Raises as `add_binding`, before all else."""
        self._connect(source, binding)  # first: the exchange may be one that goes with its last binding
        self.remove_queue(former, effects)
        self.add_queue(queue, effects)
        self._keep_binding(source, binding, effects)

    def replace_queue(self, queue: Queue) -> None:
        """The same queue, under other policies, or with other arguments."""
        self.queues[queue.name] = self._queues_by_id[queue.id] = queue

    def queue(self, queue_id: int) -> Queue:
        """One that is there; raises KeyError."""
        return self._queues_by_id[queue_id]

    # -------------------------------------------------------------- bindings

    def add_binding(self, source: str, binding: Binding, effects: Effects) -> None:
        """Of a binding that is not there yet; raises PreconditionFailed when the exchange type cannot use it."""
        self._connect(source, binding)
        self._keep_binding(source, binding, effects)

    def _keep_binding(self, source: str, binding: Binding, effects: Effects) -> None:
        durable = self.is_durable(source, binding)
        effects.records[records.binding_key(self.name, source, binding)] = records.binding_record(
            self.name, source, binding, durable=durable
        )
        effects.happened.append(Happened(created=True, what=self._bound(source, binding)))
        self._forget(source, self.sources[source].matcher.only_key(binding), effects)

    def check_binding(self, source: str, binding: Binding) -> None:
        """Of a binding that is not there yet: raises as `add_binding` does."""
        self.sources[source].bind(binding)
        self.sources[source].unbind(binding)

    def remove_binding(self, source: str, binding: Binding, effects: Effects) -> None:
        """An auto-delete exchange goes with the last binding from it."""
        if self._unbind(source, binding, effects):
            self.remove_exchange(source, effects)

    def is_durable(self, source: str, binding: Binding) -> bool:
        """A binding lasts when both of its ends do."""
        if not self.sources[source].definition.durable:
            return False
        destination = binding.destination
        if isinstance(destination, str):
            return self.sources[destination].definition.durable
        return self._queues_by_id[destination].durable

    # -------------------------------------------------------------- as a whole

    def remove_remaining(self, effects: Effects) -> None:
        """What only the end of the virtual host takes away: bindings among predeclared exchanges, and their routes."""
        for name, source in self.sources.items():
            self._forget(name, None, effects)
            for binding in list(source.bindings):
                self._detach(name, binding, effects)

    def restore_exchange(self, exchange: Exchange) -> None:
        """From its record: no effects."""
        self._place(exchange)

    def restore_queue(self, queue: Queue) -> None:
        """From its record: no effects."""
        self._place_queue(queue)

    def restore_binding(self, source: str, binding: Binding) -> None:
        """From its record: no effects."""
        self._connect(source, binding)

    def drop_exchange(self, name: str) -> None:
        """Its record is gone: no effects."""
        source = self.sources[name]
        for binding in list(source.bindings):
            self.drop_binding(name, binding)
        self._unplace(source)

    def drop_queue(self, queue: Queue) -> None:
        """Its record is gone: no effects."""
        for source, binding in list(self._inbound.get(queue.id, ())):
            self.drop_binding(source, binding)
        self._unplace_queue(queue)
        del self._queues_by_id[queue.id]

    def drop_binding(self, source: str, binding: Binding) -> None:
        """Its record is gone: no effects."""
        self.sources[source].unbind(binding)
        inbound = self._inbound[binding.destination]
        del inbound[source, binding]
        if not inbound:
            del self._inbound[binding.destination]

    def all_records(self) -> Iterator[tuple[RecordKey, Record]]:
        """Everything that the store should hold about it."""
        yield records.virtual_host_key(self.name), records.virtual_host_record(self.definition)
        for policy in self.policies:
            yield records.policy_key(policy), records.policy_record(policy)
        for queue in self.queues.values():
            yield records.queue_key(queue), records.queue_record(queue)
        for name, source in self.sources.items():
            if not is_predeclared(name):
                yield records.exchange_key(source.definition), records.exchange_record(source.definition)
            for binding in source.bindings:
                durable = self.is_durable(name, binding)
                yield (
                    records.binding_key(self.name, name, binding),
                    records.binding_record(self.name, name, binding, durable=durable),
                )

    # -------------------------------------------------------------- inside

    def _place(self, exchange: Exchange) -> None:
        source = Source(exchange, self._kinds.exchange_types[exchange.type]())
        self.sources[exchange.name] = source
        if source.alternate is not None:
            self._alternate_of.setdefault(source.alternate, {})[exchange.name] = None

    def _unplace(self, source: Source) -> None:
        del self.sources[source.definition.name]
        if source.alternate is not None:
            self._alternate_of[source.alternate].pop(source.definition.name)

    def _unplace_queue(self, queue: Queue) -> None:
        self.sources[DEFAULT_EXCHANGE].matcher.unbind(Binding(queue.id, queue.name))
        del self.queues[queue.name]

    def _place_queue(self, queue: Queue) -> None:
        self.queues[queue.name] = queue
        self._queues_by_id[queue.id] = queue
        self.sources[DEFAULT_EXCHANGE].matcher.bind(Binding(queue.id, queue.name))

    def _connect(self, source: str, binding: Binding) -> None:
        self.sources[source].bind(binding)
        self._inbound.setdefault(binding.destination, {})[source, binding] = None

    def _detach(self, source: str, binding: Binding, effects: Effects) -> None:
        self.drop_binding(source, binding)
        effects.records[records.binding_key(self.name, source, binding)] = None
        effects.happened.append(Happened(created=False, what=self._bound(source, binding)))

    def _bound(self, source: str, binding: Binding) -> Bound:
        to, key, table = binding
        if isinstance(to, str):
            return Bound(self.name, source, to, to_exchange=True, routing_key=key, arguments=table)
        queue = self._queues_by_id[to].name
        return Bound(self.name, source, queue, to_exchange=False, routing_key=key, arguments=table)

    def _end_all(self, exchanges: list[str], effects: Effects) -> None:
        """One after the other, with those that go with them: a chain of them may be as long as anybody likes."""
        forgotten: set[str] = set()
        while exchanges:
            name = exchanges.pop()
            source = self.sources[name]
            self._forget(name, None, effects, forgotten)
            for binding in list(source.bindings):
                self._detach(name, binding, effects)
            self._unplace(source)
            effects.records[records.exchange_key(source.definition)] = None
            effects.happened.append(Happened(created=False, what=source.definition))
            exchanges += self._remove_inbound(name, effects, forgotten)

    def _remove_inbound(
        self, destination: Destination, effects: Effects, forgotten: AbstractSet[str] = frozenset()
    ) -> list[str]:
        """Gives the exchanges that go with their last binding."""
        inbound = list(self._inbound.get(destination, ()))
        return [source for source, binding in inbound if self._unbind(source, binding, effects, forgotten)]

    def _unbind(
        self, source: str, binding: Binding, effects: Effects, forgotten: AbstractSet[str] = frozenset()
    ) -> bool:
        """Whether the exchange goes with it."""
        place = self.sources[source]
        if source not in forgotten:
            self._forget(source, place.matcher.only_key(binding), effects)
        self._detach(source, binding, effects)
        return place.definition.auto_delete and not place.bindings

    def _forget(self, exchange: str, key: str | None, effects: Effects, seen: set[str] | None = None) -> None:
        """Routes through `exchange`, and through all that hand messages on to it: the key stays the same on the way.

        `seen` are those of which, and of all before them, every key is forgotten already.
        """
        seen = set() if seen is None else seen
        if exchange in seen:
            return
        seen.add(exchange)
        pending = [exchange]
        while pending:
            current = pending.pop()
            effects.news.forget_key(self.name, current, key)
            upstream = {source for source, _ in self._inbound.get(current, ())}
            for name in (*upstream, *self._alternate_of.get(current, ())):
                if name not in seen:
                    seen.add(name)
                    pending.append(name)

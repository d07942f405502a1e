"""Broker-J's last value queue: of the messages with one key, only the last is kept."""

from __future__ import annotations

from services.common.ledger.stages import REPLACED
from services.queue.machine.arrival import Arrival
from services.queue.machine.entry import Entry
from services.queue.machine.order.header_key import by_header
from services.queue.machine.order.last_values import LastValues
from services.queue.machine.order.ready import Ready
from services.queue.machine.record import uids_of
from services.queue.machine.types.standard import StandardQueue
from services.rpc import queue_pb2 as pb


class LastValueQueue(StandardQueue):
    """See services.queue.machine.queue_type.Queue. What is replaced is gone, as what was settled: no dead letter."""

    def create_ready(self) -> Ready:
        self._values = LastValues(by_header(self.options.last_value_key or ""), lambda uid: uid in self.unsettled)
        return self._values

    def recover(self, entries: list[Entry]) -> None:
        super().recover(entries)
        self._replace()

    def _pass_by(self, arrival: Arrival) -> int:
        place = self._dispatcher.position if arrival.place is None else arrival.place
        done = super()._pass_by(arrival)
        for index in range(done):
            uid = arrival.uids[index]
            self._values.passed_by(uid, place + index, arrival.facts[index], arrival.properties[index])
        return done

    def _append(self, arrival: Arrival, first: int, end: int) -> None:
        super()._append(arrival, first, end)
        self._replace()

    def _come_back(self, outcome: pb.Outcome.ValueType, entries: list[Entry], now: int) -> None:
        super()._come_back(outcome, entries, now)
        self._replace()

    def _replace(self) -> None:
        if replaced := self._values.take_displaced():
            self.record.dropped(uids_of(replaced), REPLACED)
            self._context.forget(replaced, self.holding, durable=self._dispatcher.journalled)

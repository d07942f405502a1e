"""What a queue and its consumers have, as a naive model of it begins: what is ready, and what each consumer holds."""

from __future__ import annotations

from services.queue.machine.consumers import Consumer
from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Machine


class NaiveQueue:
    """Beside a machine, to which every step is told; `back` are messages that a consumer had and gave back."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.queue = machine, machine.queue
        self.ready: set[int] = set()
        self.held: dict[int, Consumer] = {}
        self.back: set[int] = set()
        self.consumers: list[Consumer] = []
        self.now = 0

    def credit(self, what: tuple[int, int]) -> None:
        """To one of the consumers, so many messages more."""
        if self.consumers:
            self.queue.credit(self.consumers[what[0] % len(self.consumers)], what[1], 0, self.now)

    def settle(self, what: tuple[int, pb.Outcome.ValueType]) -> None:
        """One of those that are held."""
        if not self.held:
            return
        uid = sorted(self.held)[what[0] % len(self.held)]
        del self.held[uid]
        if what[1] != pb.ACCEPT:
            self.ready.add(uid)
            self.back.add(uid)
        self.queue.settle(what[1], [uid], self.now)

"""The publishing process: sends chunks of pre-encoded frames on its connections as fast as the broker takes them."""

from __future__ import annotations

import select
import time

from benchmarks.chunks import chunks
from benchmarks.confirms import Confirms
from benchmarks.counters import Counter, Counters
from benchmarks.failure import BenchmarkError
from benchmarks.load import Destination
from benchmarks.wire import CHANNEL, Connection, refusal

CONFIRM_SECONDS = 60.0
PAUSE_SECONDS = 0.001


class Publisher:
    """One connection: the chunk it sends again and again, and how far it is."""

    def __init__(self, destination: Destination, number: int) -> None:
        load = destination.load
        self._limit = load.unconfirmed
        self.chunk_messages = load.chunk_messages
        self._chunks = chunks(destination, number)
        self._chunk = next(self._chunks)
        self._offset = 0
        self.published = 0
        self.confirms = Confirms() if load.confirms else None
        self._connection = Connection(destination.address)
        self._channels = range(CHANNEL, CHANNEL + load.channels)
        for channel in self._channels:
            self._begin(channel)
        self.socket = self._connection.socket
        self.socket.setblocking(False)

    def _begin(self, channel: int) -> None:
        if channel != CHANNEL:
            self._connection.open_channel(channel)
        if self.confirms:
            self._connection.confirm_publishes(channel)

    @property
    def mid_chunk(self) -> bool:
        return self._offset > 0

    @property
    def unconfirmed(self) -> int:
        return self.published - self.confirms.count if self.confirms else 0

    @property
    def may_start(self) -> bool:
        """Whether another chunk fits below the limit of unconfirmed messages."""
        return self.unconfirmed + self.chunk_messages <= self._limit

    def send(self) -> bool:
        """Sends of the current chunk what the socket takes; whether it took all the rest."""
        try:
            self._offset += self.socket.send(self._chunk[self._offset :])
        except BlockingIOError:
            return False
        if self._offset < len(self._chunk):
            return False
        self._offset = 0
        self._chunk = next(self._chunks)
        self.published += self.chunk_messages
        return True

    def close(self) -> None:
        """Returns when the broker has handled everything that was sent: an abrupt end may cost the last publishes."""
        self.socket.settimeout(CONFIRM_SECONDS)
        for channel in self._channels:
            self._connection.close_channel(channel)
        self._connection.close()

    def receive(self) -> None:
        """Takes confirms. Raises BenchmarkError when the broker refused or closed."""
        try:
            data = self.socket.recv(65536)
        except BlockingIOError:
            return
        if not data:
            raise BenchmarkError("the broker closed a producer's connection")
        if self.confirms:
            self.confirms.receive(data)
        elif said := refusal(data):
            raise BenchmarkError(f"the broker refused a publish: {said}")


class Producer:
    """All publishers of the process, in one loop over epoll."""

    def __init__(self, destination: Destination, counters: Counters) -> None:
        self._counters = counters
        self._copies, self._in_flight = destination.load.copies, destination.load.in_flight
        self._rate, self._started = destination.load.rate, time.monotonic()
        self._publishers = [Publisher(destination, number) for number in range(destination.load.producers)]
        self._by_descriptor = {publisher.socket.fileno(): publisher for publisher in self._publishers}
        self._poll = select.epoll()
        for descriptor in self._by_descriptor:
            self._poll.register(descriptor, select.EPOLLIN)

    def run(self) -> None:
        """Publishes until told to stop, then waits for what is not confirmed yet."""
        counters = self._counters
        counters[Counter.PRODUCER_READY] = 1
        while not counters[Counter.STOP]:
            moved = self._send_round()
            self._receive_round(0 if moved else PAUSE_SECONDS)
        self._finish()
        counters[Counter.FINISHED] = 1

    def _send_round(self) -> bool:
        """Whether there is a reason to come back at once. A full socket is none: in a while it takes more in one go."""
        moved = False
        published = self._counters[Counter.PUBLISHED]
        room = self._in_flight - (published - self._counters[Counter.CONSUMED] // self._copies)
        if self._rate:
            room = min(room, int((time.monotonic() - self._started) * self._rate) - published)
        for publisher in self._publishers:
            if publisher.mid_chunk or (room > 0 and publisher.may_start):
                moved |= publisher.send()
                room -= publisher.chunk_messages
        self._count()
        return moved

    def _receive_round(self, timeout: float) -> None:
        for descriptor, _ in self._poll.poll(timeout):
            self._by_descriptor[descriptor].receive()

    def _count(self) -> None:
        self._counters[Counter.PUBLISHED] = sum([publisher.published for publisher in self._publishers])
        self._counters[Counter.CONFIRMED] = sum(
            [publisher.confirms.count for publisher in self._publishers if publisher.confirms]
        )

    def _finish(self) -> None:
        deadline = time.monotonic() + CONFIRM_SECONDS
        while any(publisher.mid_chunk or publisher.unconfirmed for publisher in self._publishers):
            if time.monotonic() > deadline:
                raise BenchmarkError("publishes are still not confirmed")
            for publisher in self._publishers:
                if publisher.mid_chunk:
                    publisher.send()
            self._receive_round(PAUSE_SECONDS)
        self._count()
        for publisher in self._publishers:
            publisher.close()


def produce(destination: Destination, counters: Counters) -> None:
    """The publishing process of a load."""
    Producer(destination, counters).run()

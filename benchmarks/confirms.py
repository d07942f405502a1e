"""Counts publisher confirms from the raw bytes of basic.ack frames."""

from __future__ import annotations

import struct
from collections import defaultdict

from benchmarks.failure import BenchmarkError
from benchmarks.wire import refusal

# type, channel, size, class, method, delivery tag, multiple, frame end
_ACK = struct.Struct(">BHIHHQBB")
_START = (1, 13, 60, 80)


class Confirms:
    """The confirms of a connection's channels, each of which numbers its own publishes."""

    def __init__(self) -> None:
        self.count = 0
        self._channels: defaultdict[int, _Channel] = defaultdict(_Channel)
        self._rest = b""

    def receive(self, data: bytes) -> None:
        """Takes what was read. Raises BenchmarkError on anything that is not a basic.ack."""
        data, channels = self._rest + data, self._channels
        whole = len(data) - len(data) % _ACK.size
        self._rest = data[whole:]
        for kind, number, size, class_id, method_id, tag, multiple, _ in _ACK.iter_unpack(memoryview(data)[:whole]):
            if (kind, size, class_id, method_id) != _START:
                raise BenchmarkError(f"a publish was not confirmed: {refusal(data) or data[:32].hex()}")
            channels[number].settle_up_to(tag) if multiple else channels[number].settle(tag)
        self.count = sum([channel.count for channel in channels.values()])


class _Channel:
    """Single confirms may come in any order, and a multiple one covers what is open below."""

    def __init__(self) -> None:
        self._settled_to = 0
        self._ahead: set[int] = set()

    @property
    def count(self) -> int:
        return self._settled_to + len(self._ahead)

    def settle_up_to(self, tag: int) -> None:
        if tag > self._settled_to:
            self._settled_to = tag
            if self._ahead:
                self._ahead = {single for single in self._ahead if single > tag}
                self._close_gap()

    def settle(self, tag: int) -> None:
        if tag == self._settled_to + 1:
            self._settled_to = tag
            if self._ahead:
                self._close_gap()
        elif tag > self._settled_to:
            self._ahead.add(tag)

    def _close_gap(self) -> None:
        while self._settled_to + 1 in self._ahead:
            self._settled_to += 1
            self._ahead.remove(self._settled_to)

"""AMQP 0-9-1 as far as a load generator needs it: frames encoded ahead of time, and a blocking connection for set-up.

The hot paths (producer.py, consumer.py) take the socket over once everything is declared.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from benchmarks.failure import BenchmarkError

FRAME_END = b"\xce"
METHOD, HEADER, BODY = 1, 2, 3
CHANNEL = 1
LARGEST_BODY_FRAME = (128 << 10) - 8  # what brokers agree to, by default
NO_TABLE = b"\0\0\0\0"
TIMEOUT_SECONDS = 30.0
_FRAME = struct.Struct(">BHI")
_METHOD_ID = struct.Struct(">HH")
_CLOSES = {(10, 50), (20, 40)}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a broker listens, and the user to log in as."""

    host: str
    port: int
    user: str = "guest"
    password: str = "guest"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    """One frame, section 4.2.3 of the specification."""
    return _FRAME.pack(kind, channel, len(payload)) + payload + FRAME_END


def method(channel: int, class_id: int, method_id: int, arguments: bytes = b"") -> bytes:
    """One method frame."""
    return frame(METHOD, channel, _METHOD_ID.pack(class_id, method_id) + arguments)


def short(text: str) -> bytes:
    """A short string: its length in one byte, then itself."""
    data = text.encode()
    return bytes([len(data)]) + data


def long(data: bytes) -> bytes:
    """A long string: its length in four bytes, then itself."""
    return struct.pack(">I", len(data)) + data


def publication(exchange: str, routing_key: str, body: bytes, *, persistent: bool, mandatory: bool = False) -> bytes:
    """The frames of one basic.publish; its only property is the delivery mode."""
    properties = struct.pack(">HB", 0x1000, 2 if persistent else 1)
    return publication_of(exchange, routing_key, properties, body, mandatory=mandatory)


def publication_of(
    exchange: str, routing_key: str, properties: bytes, body: bytes, *, mandatory: bool = False, channel: int = CHANNEL
) -> bytes:
    """The same with these properties, flags and values."""
    published = method(channel, 60, 40, b"\0\0" + short(exchange) + short(routing_key) + bytes([mandatory]))
    header = frame(HEADER, channel, struct.pack(">HHQ", 60, 0, len(body)) + properties)
    chunks = [body[at : at + LARGEST_BODY_FRAME] for at in range(0, len(body), LARGEST_BODY_FRAME)]
    return published + header + b"".join([frame(BODY, channel, chunk) for chunk in chunks])


def consumer_tag(number: int) -> str:
    """All have the same length, so that all deliveries have."""
    return f"c{number:03}"


def acknowledge(delivery_tag: int) -> bytes:
    """basic.ack of everything up to `delivery_tag`."""
    return method(CHANNEL, 60, 80, struct.pack(">QB", delivery_tag, 1))


def frame_length(data: bytes | bytearray | memoryview, offset: int) -> int:
    """Length of the frame that starts at `offset`, or 0 when too little of it has arrived to tell."""
    if len(data) < offset + 7:
        return 0
    size: int = _FRAME.unpack_from(data, offset)[2]
    return size + 8


def refusal(data: bytes) -> str | None:
    """What a close method at the start of `data` says, or None when `data` starts with something else."""
    if len(data) < 14 or data[0] != METHOD or _METHOD_ID.unpack_from(data, 7) not in _CLOSES:
        return None
    code = struct.unpack_from(">H", data, 11)[0]
    return f"{code} {data[14 : 14 + data[13]].decode(errors='replace')}"


class Connection:
    """An open connection with channel 1, blocking. Raises BenchmarkError when the broker refuses."""

    def __init__(self, address: Address, heartbeat: int = 0) -> None:
        self._heartbeat = heartbeat
        self.socket = socket.create_connection((address.host, address.port), TIMEOUT_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._received = b""
        try:
            self._open(address)
        except BaseException:
            self.socket.close()
            raise

    def call(self, class_id: int, method_id: int, arguments: bytes, channel: int = CHANNEL) -> bytes:
        """Sends a method and gives the arguments of its reply, whose number is the next one for all methods here."""
        self.socket.sendall(method(channel, class_id, method_id, arguments))
        return self.expect(class_id, method_id + 1)

    def skip_content(self) -> None:
        """Reads a header and one body frame."""
        for _ in range(2):
            self._next_frame()

    def leftover(self) -> bytes:
        """What arrived after the last reply, once."""
        received, self._received = self._received, b""
        return received

    def declare_queue(self, name: str, *, durable: bool, arguments: bytes = NO_TABLE) -> None:
        self.call(50, 10, b"\0\0" + short(name) + bytes([2 if durable else 0]) + arguments)

    def delete_queue(self, name: str) -> None:
        self.call(50, 40, b"\0\0" + short(name) + b"\0")

    def declare_exchange(self, name: str, kind: str) -> None:
        self.call(40, 10, b"\0\0" + short(name) + short(kind) + b"\0" + NO_TABLE)

    def delete_exchange(self, name: str) -> None:
        self.call(40, 20, b"\0\0" + short(name) + b"\0")

    def bind(self, queue: str, exchange: str, routing_key: str = "", arguments: bytes = NO_TABLE) -> None:
        self.call(50, 20, b"\0\0" + short(queue) + short(exchange) + short(routing_key) + b"\0" + arguments)

    def open_channel(self, number: int) -> None:
        self.call(20, 10, b"\0", number)

    def confirm_publishes(self, channel: int = CHANNEL) -> None:
        self.call(85, 10, b"\0", channel)

    def consume(self, queue: str, *, prefetch: int, number: int = 0, arguments: bytes = NO_TABLE) -> None:
        """Starts a consumer: with acknowledgements and `prefetch`, or without any when `prefetch` is 0.

        `number` tells those of one connection apart, up to 999.
        """
        if prefetch:
            self.call(60, 10, struct.pack(">IHB", 0, prefetch, 0))
        flags = bytes([0 if prefetch else 2])
        self.call(60, 20, b"\0\0" + short(queue) + short(consumer_tag(number)) + flags + arguments)

    def get(self, queue: str) -> None:
        """Takes a message from the queue, which must have one, without acknowledgement."""
        self.call(60, 70, b"\0\0" + short(queue) + b"\1")
        self.skip_content()

    def publish_and_get(self, message: bytes, queue: str) -> None:
        """Publishes an encoded message, waits for its confirm, and gets one from the queue, without acknowledgement."""
        self.socket.sendall(message)
        self.expect(60, 80)
        self.get(queue)

    def close_channel(self, number: int = CHANNEL) -> None:
        """Returns when the broker has handled everything sent before on it."""
        self.call(20, 40, struct.pack(">HBHH", 200, 0, 0, 0), number)

    def close(self) -> None:
        self.socket.close()

    def close_in_order(self) -> None:
        """Says goodbye, and waits for the answer."""
        self.call(10, 50, struct.pack(">HBHH", 200, 0, 0, 0), channel=0)
        self.close()

    def _open(self, address: Address) -> None:
        self.socket.sendall(b"AMQP\0\0\x09\x01")
        self.expect(10, 10)
        login = b"\0" + address.user.encode() + b"\0" + address.password.encode()
        self.socket.sendall(method(0, 10, 11, NO_TABLE + short("PLAIN") + long(login) + short("en_US")))
        channel_max, frame_max, _ = struct.unpack(">HIH", self.expect(10, 30))
        self.socket.sendall(method(0, 10, 31, struct.pack(">HIH", channel_max, frame_max, self._heartbeat)))
        self.call(10, 40, short("/") + b"\0\0", channel=0)
        self.open_channel(CHANNEL)

    def expect(self, class_id: int, method_id: int) -> bytes:
        """The arguments of the method that comes next. Raises BenchmarkError when it is another one."""
        received = self._next_frame()
        if _METHOD_ID.unpack_from(received, 7) != (class_id, method_id):
            said = refusal(received) or f"method {_METHOD_ID.unpack_from(received, 7)}"
            raise BenchmarkError(f"expected method {class_id}.{method_id}, but the broker said: {said}")
        return received[11:-1]

    def _next_frame(self) -> bytes:
        while not (length := frame_length(self._received, 0)) or len(self._received) < length:
            data = self.socket.recv(65536)
            if not data:
                raise BenchmarkError("the broker closed the connection")
            self._received += data
        complete, self._received = self._received[:length], self._received[length:]
        return complete

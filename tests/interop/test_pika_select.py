"""pika's SelectConnection: an application of callbacks that declares, publishes with confirms and consumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pika

if TYPE_CHECKING:
    from tests.support.interop_address import BrokerAddress

MESSAGES = 1000
SECONDS = 30


class Application:
    """Declares a queue, publishes with confirms, consumes with prefetch, and closes when all is there and confirmed."""

    def __init__(self, broker: BrokerAddress, queue: str) -> None:
        self.queue = queue
        self.bodies: list[bytes] = []
        self.confirmed = 0
        self.nacks = 0
        self.closed: Exception | None = None
        self._channel: Any = None
        self.connection = pika.SelectConnection(
            pika.ConnectionParameters(broker.host, broker.port),
            on_open_callback=lambda connection: connection.channel(on_open_callback=self._opened),
            on_open_error_callback=self._closed,
            on_close_callback=self._closed,
        )

    def run(self) -> None:
        """Returns when the connection is closed, for whatever reason."""
        self.connection.ioloop.call_later(SECONDS, self.connection.close)
        try:
            self.connection.ioloop.start()
        finally:
            self.connection.ioloop.close()

    def _opened(self, channel: Any) -> None:
        self._channel = channel
        channel.queue_declare(self.queue, callback=self._declared)

    def _declared(self, _frame: Any) -> None:
        self._channel.confirm_delivery(self._on_confirm, callback=self._publish)
        self._channel.basic_qos(prefetch_count=50)
        self._channel.basic_consume(self.queue, self._on_message)

    def _publish(self, _frame: Any) -> None:
        for number in range(MESSAGES):
            self._channel.basic_publish("", self.queue, str(number).encode(), mandatory=True)

    def _on_confirm(self, frame: Any) -> None:
        method = frame.method
        if isinstance(method, pika.spec.Basic.Nack):
            self.nacks += 1
        self.confirmed = max(self.confirmed, method.delivery_tag)
        self._finish_when_complete()

    def _on_message(self, channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        self.bodies.append(body)
        channel.basic_ack(method.delivery_tag)
        self._finish_when_complete()

    def _finish_when_complete(self) -> None:
        if len(self.bodies) == MESSAGES == self.confirmed:
            self._channel.queue_delete(self.queue, callback=lambda _: self.connection.close())

    def _closed(self, connection: Any, reason: Any) -> None:
        self.closed = reason
        connection.ioloop.stop()


def test_application_of_callbacks(broker: BrokerAddress, name: str) -> None:
    """Every message is confirmed, and arrives once and in order, while all of it is pipelined on one channel."""
    application = Application(broker, name)
    application.run()
    assert application.bodies == [str(number).encode() for number in range(MESSAGES)]
    assert (application.confirmed, application.nacks) == (MESSAGES, 0)
    assert "200" in str(application.closed)

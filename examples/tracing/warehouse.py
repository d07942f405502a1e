"""Packs orders until it is stopped, and rejects those without items: `python -m examples.tracing.warehouse`."""

from __future__ import annotations

import argparse
import contextlib
import json

import pika
from opentelemetry.trace import Tracer
from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic

from examples.tracing import queues, telemetry


class Warehouse:
    """Ends by itself after `most` orders, if that is not 0."""

    def __init__(self, tracer: Tracer, most: int) -> None:
        self._tracer = tracer
        self._left = most

    def pack(
        self, channel: BlockingChannel, method: Basic.Deliver, _properties: pika.BasicProperties, body: bytes
    ) -> None:
        """The consuming function."""
        with self._tracer.start_as_current_span("pack"):
            if json.loads(body)["items"]:
                channel.basic_ack(method.delivery_tag)
            else:
                channel.basic_reject(method.delivery_tag, requeue=False)
        self._left -= 1
        if not self._left:
            channel.stop_consuming()


def main() -> None:
    """Until Ctrl-C, or for so many orders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=0)
    most = parser.parse_args().orders
    warehouse = Warehouse(telemetry.start("warehouse"), most)
    with contextlib.suppress(KeyboardInterrupt), queues.connect() as connection:
        channel = connection.channel()
        queues.declare(channel)
        channel.basic_qos(prefetch_count=10)
        channel.basic_consume(queues.QUEUE, warehouse.pack)
        channel.start_consuming()
    telemetry.stop()


if __name__ == "__main__":
    main()

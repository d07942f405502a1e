"""Places orders: `python -m examples.tracing.shop --orders 5`."""

from __future__ import annotations

import argparse
import json
import uuid

import pika
from opentelemetry.trace import Tracer
from pika.adapters.blocking_connection import BlockingChannel

from examples.tracing import queues, telemetry


def place_order(channel: BlockingChannel, tracer: Tracer, number: int) -> None:
    """The publishing function."""
    with tracer.start_as_current_span(f"place order {number}"):
        body = json.dumps({"order": number, "items": number % 3}).encode()
        properties = pika.BasicProperties(
            message_id=str(uuid.uuid4()), delivery_mode=2, content_type="application/json"
        )
        channel.basic_publish(queues.EXCHANGE, f"order.{number}", body, properties)


def main() -> None:
    """Returns when the broker has every order safe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=5)
    orders = parser.parse_args().orders
    tracer = telemetry.start("shop")
    with queues.connect() as connection:
        channel = connection.channel()
        queues.declare(channel)
        channel.confirm_delivery()
        for number in range(1, orders + 1):
            place_order(channel, tracer, number)
    telemetry.stop()


if __name__ == "__main__":
    main()

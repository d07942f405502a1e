"""What both applications agree on."""

from __future__ import annotations

import os

import pika
from pika.adapters.blocking_connection import BlockingChannel

EXCHANGE, QUEUE, REJECTED = "orders", "warehouse", "warehouse.rejected"


def connect() -> pika.BlockingConnection:
    """To AMQP_URL, or a broker on this machine."""
    return pika.BlockingConnection(pika.URLParameters(os.environ.get("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/")))


def declare(channel: BlockingChannel) -> None:
    """The application that starts first declares them."""
    channel.exchange_declare(EXCHANGE, "topic", durable=True)
    channel.queue_declare(REJECTED, durable=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": REJECTED}
    channel.queue_declare(QUEUE, durable=True, arguments=arguments)
    channel.queue_bind(QUEUE, EXCHANGE, "order.#")

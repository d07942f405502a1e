from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pika
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.span_files import Seen, names_of, of_broker, wait_for


def received(spans: list[Seen], queue: str) -> list[Seen]:
    return [span for span in spans if span.attributes.get("messaging.rabbitmq.destination.routing_key") == queue]


def publish_until(channel: BlockingChannel, queue: str, spans: Path, *, traced: bool) -> None:
    """Publishes until a rule that was changed has arrived where it is followed."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        before = len(received(of_broker(spans), queue))
        channel.basic_publish("", queue, b"", pika.BasicProperties(message_id="m-1"))
        time.sleep(0.2)
        if (len(received(of_broker(spans), queue)) > before) is traced:
            return
    raise AssertionError(f"messages are {'not ' if traced else ''}traced")


def test_changed_at_run_time(
    plain: pika.BlockingConnection, spans: Path, name: str, hopline: Callable[..., str]
) -> None:
    """`hopline tracing rules add` traces messages of a queue whose publishers do not trace, `remove` ends that."""
    channel = plain.channel()
    channel.queue_declare(name)
    channel.confirm_delivery()
    channel.basic_publish("", name, b"")
    assert not received(of_broker(spans), name)
    hopline("tracing", "rules", "add", "watch", "--queue", f"{name}*", "--message-id", "m-*")
    publish_until(channel, name, spans, traced=True)
    [rule] = [json.loads(line) for line in hopline("tracing", "rules", "list", "--json").splitlines()]
    assert rule == {"name": "watch", "ratio": 1.0, "queue": f"{name}*", "message-id": "m-*"}
    root = received(of_broker(spans), name)[0]
    assert root.parent == ""
    assert root.attributes["hopline.sampling"] == "rule"
    # What the rule has traced is followed to its end, though no header says so.
    for _ in range(channel.queue_declare(name, passive=True).method.message_count):
        channel.basic_get(name, auto_ack=True)
    wait_for(spans, lambda found: {f"enqueue {name}", f"send {name}"} <= names_of(found, root.trace))
    hopline("tracing", "rules", "remove", "watch")
    publish_until(channel, name, spans, traced=False)
    assert not hopline("tracing", "rules", "list", "--json")


def test_status(plain: pika.BlockingConnection, spans: Path, name: str, hopline: Callable[..., str]) -> None:
    """`hopline tracing` says of every process what became of its spans."""
    headers = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    channel = plain.channel()
    channel.queue_declare(name)
    channel.basic_publish("", name, b"", pika.BasicProperties(headers=headers))
    wait_for(spans, lambda found: received(found, name))
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        processes = [json.loads(line) for line in hopline("tracing", "--json").splitlines()]
        if sum(one["exported"] for one in processes if one["service"] == "gateway") > 0:
            break
    assert sorted(one["service"] for one in processes) == ["gateway", "queue", "queue", "router", "store"]
    assert all(one["on"] and one["dropped"] == one["untraced"] == 0 for one in processes)

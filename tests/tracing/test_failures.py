"""Stacks that lose a process, or the collector that their spans are for."""

from __future__ import annotations

import json
import secrets
import socket
import subprocess
import sys
import time
from pathlib import Path

import pika

from tests.support.interop_pika import connected, fetch
from tests.support.span_files import Seen, names_of, one, wait_for
from tests.support.stack import Stack, running_stack

PARENT = "00f067aa0ba902b7"
DWELL = 0.2  # seconds after which a delivery is linked


def publish(stack: Stack, queue: str, trace: str, count: int = 1) -> None:
    """Durable, confirmed, traced."""
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
        channel.confirm_delivery()
        properties = pika.BasicProperties(headers={"traceparent": f"00-{trace}-{PARENT}-01"}, delivery_mode=2)
        for _ in range(count):
            channel.basic_publish("", queue, b"body", properties)


def taken(stack: Stack, queue: str, trace: str) -> list[Seen]:
    """The broker's spans when the message has been taken."""
    with connected(stack.address) as connection:
        fetch(connection.channel(), queue)

    def both(found: list[Seen]) -> bool:
        sent = any(trace in span.trace + str(span.links) for span in found if span.name == f"send {queue}")
        return sent and "receive amq.default" in names_of(found, trace)

    return wait_for(stack.data / "spans", both)


def test_owner_killed(tmp_path: Path) -> None:
    """A new owner reads from the journal what it takes to go on with a trace, and so does a stack that starts again."""
    trace = secrets.token_hex(16)
    stack = Stack(tmp_path / "data", {"OTEL_BSP_SCHEDULE_DELAY": "50"})
    try:
        stack.start()
        publish(stack, "one", trace)
        for service in ("queue-1", "queue-2"):
            stack.wait_until_replaced(service, stack.kill(service))
        found = taken(stack, "one", trace)
        receive, send = one(found, "receive amq.default", trace), one(found, "send one", trace)
        assert send.parent == receive.span
        other = secrets.token_hex(16)
        publish(stack, "two", other)
        stack.stop()
        stack.start()
        found = taken(stack, "two", other)
        assert one(found, "send two", other).parent == one(found, "receive amq.default", other).span
    finally:
        stack.kill_all()


def test_linked_after_long(tmp_path: Path) -> None:
    """A delivery long after the publish is the root of a trace of its own, linked to the receive."""
    settings = {"OTEL_BSP_SCHEDULE_DELAY": "50", "HOPLINE_TRACE_LINK_AFTER": str(DWELL)}
    with running_stack(tmp_path / "data", settings) as stack:
        trace = secrets.token_hex(16)
        publish(stack, "q", trace)
        time.sleep(DWELL + 0.1)
        with connected(stack.address) as connection:
            fetch(connection.channel(), "q")
        found = wait_for(stack.data / "spans", lambda found: {"receive amq.default", "send q"} <= names_of(found))
        send = one(found, "send q")
        assert send.parent == ""
        assert send.trace != trace
        assert send.links == [one(found, "receive amq.default", trace).span]
        assert send.attributes["hopline.queue.dwell_ms"] >= DWELL * 1000


def test_stuck_collector(tmp_path: Path) -> None:
    """A collector that takes nothing costs spans, which are counted and shown, and not a message."""
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        settings = {
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "60",
            "OTEL_BSP_SCHEDULE_DELAY": "50",
            "OTEL_BSP_MAX_QUEUE_SIZE": "10",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "5",
        }
        with running_stack(tmp_path / "data", settings) as stack:
            publish(stack, "q", secrets.token_hex(16), 50)
            deadline = time.monotonic() + 10
            while not (dropped := _dropped(stack)).get("gateway"):
                assert time.monotonic() < deadline, dropped
            # Five at most are with the exporter, ten wait; each publish is a span.
            assert 50 - 15 <= dropped["gateway"] <= 50
            assert dropped["queue"] >= 50 - 15
            assert not list((tmp_path / "data").glob("spans/**/*.jsonl"))
            stack.stop()
            assert "spans were dropped" in stack.log.read_text()


def _dropped(stack: Stack) -> dict[str, int]:
    command = [str(Path(sys.executable).with_name("hopline")), "tracing", "--json"]
    printed = subprocess.run(command, env=stack.command_environment(), capture_output=True, text=True, check=True)
    dropped: dict[str, int] = {}
    for line in printed.stdout.splitlines():
        status = json.loads(line)
        dropped[status["service"]] = dropped.get(status["service"], 0) + status["dropped"]
    return dropped

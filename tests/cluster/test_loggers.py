"""Loggers of a whole stack: lines of all its processes."""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import TYPE_CHECKING, Any

from tests.support.interop_pika import connected
from tests.support.stack import Stack, running_stack, wait_until

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 30.0
PROCESSES = {"store", "router", "queue-1", "queue-2", "gateway", "mgmt"}


def ask(stack: Stack, method: str, path: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{stack.http_port}/api/latest/{path}", data, method=method)
    request.add_header("Authorization", f"Basic {base64.b64encode(b'guest:guest').decode()}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_lines_of_all_processes(tmp_path: Path) -> None:
    """Come to a logger, those from before it was made too; one of a virtual host has what is about it, in a file."""
    with running_stack(tmp_path / "data") as stack:
        ask(stack, "PUT", "brokerlogger/recent", {"type": "Memory"})
        ask(stack, "PUT", "brokerloginclusionrule/recent/all", {"level": "DEBUG"})
        host = "%252F/%252F"
        ask(stack, "PUT", f"virtualhostlogger/{host}/file", {"type": "File", "fileName": "host.log"})
        ask(stack, "PUT", f"virtualhostloginclusionrule/{host}/file/all", {"loggerName": "services.gateway.*"})
        file = tmp_path / "data" / "log" / "host.log"

        def lines() -> list[dict[str, Any]]:
            found: list[dict[str, Any]] = ask(stack, "GET", "brokerlogger/recent/getLogEntries")
            return found

        wait_until(lambda: {each["threadName"] for each in lines()} >= PROCESSES, SECONDS, "lines of all processes")
        with connected(stack.address):
            wait_until(lambda: any("connection opened" in each["message"] for each in lines()), SECONDS, "its line")
            wait_until(lambda: file.exists() and "connection opened" in file.read_text(), SECONDS, "its line in a file")
        pid = stack.kill("queue-1")
        stack.wait_until_replaced("queue-1", pid)

        def begun() -> int:
            return sum(each["threadName"] == "queue-1" and "ready" in each["message"] for each in lines())

        wait_until(lambda: begun() >= 2, SECONDS, "lines of the process that took its place")

"""Messages are captured by a whole stack: while a rule wants it, within its bounds, and shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import duckdb
import pika
import pytest

from services.common.trace import Payload, Trace
from tests.support.hopline_command import HoplineCommand
from tests.support.stack import Stack, wait_until

SECONDS = 20.0


@pytest.fixture
def hopline(stack: Stack) -> Hopline:
    return Hopline(stack)


class Hopline(HoplineCommand):
    """The command line, and what it says."""

    def cost(self, rule: str) -> dict[str, int]:
        told = map(json.loads, self.run("capture", "list", "--json").stdout.splitlines())
        found: dict[str, int] = next(each["cost"] for each in told if each["rule"]["name"] == rule)
        return found

    def payloads(self, asked: str) -> list[Payload]:
        found = self.run("trace", asked, "--payload", "--json")
        if found.returncode:
            return []
        return [
            payload
            for journey in Trace.model_validate_json(found.stdout).journeys
            for message in journey.messages
            for payload in message.payloads
        ]


@pytest.fixture
def channel(stack: Stack) -> Iterator[Any]:
    parameters = pika.ConnectionParameters(stack.address.host, stack.address.port)
    with closing(pika.BlockingConnection(parameters)) as connection:
        yield connection.channel()


def _publish(channel: Any, queue: str, message_id: str, body: bytes) -> None:
    channel.basic_publish("", queue, body, pika.BasicProperties(message_id=message_id, content_type="text/plain"))


def _until_captured(channel: Any, hopline: Hopline, name: str, rule: str) -> None:
    """Gateways act on a rule a moment after it is made."""

    def captured() -> bool:
        _publish(channel, name, "before", b"before")
        channel.basic_get(name, auto_ack=True)
        return hopline.cost(rule)["messages"] > 0

    wait_until(captured, SECONDS, "a rule at work")


def test_what_is_published(hopline: Hopline, channel: Any, name: str) -> None:
    """While a rule wants it, what is published by a key is kept with its body; nothing before it, nothing after it."""
    channel.queue_declare(name)
    _publish(channel, name, f"{name}-1", b"not wanted")
    assert hopline.run("capture", "add", name, "--exchange", "", "--key", name, "--body", "6").returncode == 0
    _until_captured(channel, hopline, name, name)
    _publish(channel, name, f"{name}-2", b"wanted, and cut")
    wait_until(lambda: hopline.payloads(f"{name}-2"), SECONDS, "a body")
    [payload] = hopline.payloads(f"{name}-2")
    assert (payload.stage, payload.text, payload.size, payload.kept) == ("received", "wanted", 15, 6)
    assert payload.properties == {"content-type": "text/plain", "message-id": f"{name}-2"}
    assert not hopline.payloads(f"{name}-1")
    shown = hopline.run("trace", f"{name}-2", "--payload").stdout
    assert f"received, 6 of 15 bytes, captured by rule '{name}'" in shown
    assert "wanted" not in hopline.run("trace", f"{name}-2").stdout
    assert hopline.run("capture", "remove", name).returncode == 0
    removed = hopline.run("capture", "remove", name)
    assert (removed.returncode, removed.stderr) == (
        1,
        f"no capture rule '{name}'; `hopline capture list` says which there are\n",
    )


def test_what_a_queue_gives(hopline: Hopline, channel: Any, name: str) -> None:
    """Of a queue, what consumers and gets are sent is kept until the rule is full; what was left out is counted."""
    channel.queue_declare(name)
    hopline.run("capture", "add", name, "--queue", name, "--limit", "1000")
    _until_captured(channel, hopline, name, name)
    hopline.run("capture", "add", name, "--queue", name, "--limit", "1000")
    wait_until(lambda: hopline.cost(name)["messages"] == 0, SECONDS, "a rule that begins anew")
    for number in range(5):
        _publish(channel, name, f"{name}-{number}", bytes(200))
    channel.basic_get(name, auto_ack=True)
    consumed = channel.consume(name, inactivity_timeout=10)
    tags = [next(consumed)[0].consumer_tag for _ in range(4)]
    channel.cancel()
    wait_until(lambda: _seen(hopline, name) == 5, SECONDS, "what became of all")
    cost = hopline.cost(name)
    assert (cost["messages"], cost["left_out"]) == (2, 3)
    assert cost["bytes"] <= 1000
    wait_until(lambda: hopline.payloads(f"{name}-1"), SECONDS, "a delivery")
    [fetched], [sent] = hopline.payloads(f"{name}-0"), hopline.payloads(f"{name}-1")
    assert (fetched.stage, fetched.queue, fetched.consumer, fetched.text) == ("sent", name, "", None)
    assert (sent.stage, sent.queue, sent.consumer) == ("sent", name, tags[0])
    assert not hopline.payloads(f"{name}-4")


def test_two_gateways_share_a_limit(hopline: Hopline, stack: Stack, channel: Any, name: str) -> None:
    """A rule's limit is for all gateways together, in any order, also for one that replaces a killed one."""
    channel.queue_declare(name)
    limit = 20_000
    assert hopline.run("capture", "add", name, "--key", name, "--limit", str(limit)).returncode == 0
    _until_captured(channel, hopline, name, name)
    for _ in range(2):
        with stack.another_gateway() as address:  # which is killed then
            parameters = pika.ConnectionParameters(address.host, address.port)
            with closing(pika.BlockingConnection(parameters)) as other:
                theirs = other.channel()
                enough = _seen(hopline, name) + 40
                for number in range(40):
                    _publish((channel, theirs)[number % 2], name, f"{name}-{number}", bytes(300))
                wait_until(lambda: _seen(hopline, name) >= enough, SECONDS, "costs of both gateways")  # noqa: B023
            _until_filed(hopline, stack, name)  # a killed gateway takes with it what is not on the bus yet
    cost = hopline.cost(name)
    assert limit - 2 * 450 < cost["bytes"] <= limit
    assert cost["left_out"] > 80 - limit // 430
    _until_filed(hopline, stack, name)


def _until_filed(hopline: Hopline, stack: Stack, rule: str) -> None:
    """What is captured by the rule is in files, and no more."""

    def filed() -> int:
        paths = (stack.data / "ledger/payloads").rglob("[!.]*.parquet")  # the others are not whole
        count = "select count(*) from read_parquet($1) where rule = $2"
        files = [str(path) for path in paths]
        return duckdb.execute(count, [files, rule]).fetchall()[0][0] if files else 0

    wait_until(lambda: filed() == hopline.cost(rule)["messages"], SECONDS, "what was captured, in files, and no more")


def _seen(hopline: Hopline, name: str) -> int:
    """Messages that gateways have dealt with for the rule."""
    cost = hopline.cost(name)
    return cost["messages"] + cost["left_out"]


def test_bad_rules(hopline: Hopline) -> None:
    """What is no rule is said in a line."""
    bad = hopline.run("capture", "add", "r", "--seconds", "1000000")
    assert (bad.returncode, bad.stderr) == (2, "seconds: Input should be less than or equal to 86400\n")
    assert hopline.run("trace", "--queue", "q", "--payload").stderr == "--payload goes with an id\n"

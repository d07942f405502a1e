"""`hopline queues`, `exchanges`, `bindings`, `connections`, `consumers`, `publish`, `get` at a whole stack."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pika
import pytest
from pika import exceptions as faults

from tests.support.hopline_command import HoplineCommand
from tests.support.stack import HOST, Stack, wait_until

_MANY = 450  # more than two pages


class Command(HoplineCommand):
    """One that has to end well; `rows` reads its JSON."""

    def __call__(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refused(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
        return done.stderr

    def rows(self, *arguments: str) -> list[Any]:
        return [json.loads(line) for line in self(*arguments, "--json").splitlines()]


@pytest.fixture
def hopline(stack: Stack) -> Command:
    return Command(stack)


@pytest.fixture
def channel(stack: Stack) -> Iterator[Any]:
    parameters = pika.ConnectionParameters(HOST, stack.address.port, client_properties={"connection_name": "shop"})
    connection = pika.BlockingConnection(parameters)
    yield connection.channel()
    if connection.is_open:
        connection.close()


def test_what_there_is(hopline: Command, channel: Any, name: str) -> None:
    """Is declared and bound for clients to use, listed with what they did, purged, unbound, and gone when deleted."""
    exchange, inner = f"{name}-e", f"{name}-i"
    hopline("queues", "declare", name, "--argument", "x-max-length:=5", "--auto-delete")
    hopline("exchanges", "declare", exchange, "--type", "topic")
    hopline("exchanges", "declare", inner, "--type", "fanout", "--transient")
    hopline("bindings", "bind", exchange, inner, "--key", "eu.#", "--to-exchange")
    hopline("bindings", "bind", inner, name)
    channel.queue_declare(name, durable=True, auto_delete=True, arguments={"x-max-length": 5})
    channel.exchange_declare(exchange, "topic", durable=True)
    channel.exchange_declare(inner, "fanout")
    channel.confirm_delivery()
    channel.basic_publish(exchange, "eu.new", b"m", mandatory=True)
    wait_until(lambda: hopline.rows("queues", "list", name)[0]["messages"] == 1, 20, "counts")
    assert name in hopline("queues", "show", name)
    assert "fanout" in hopline("exchanges", "show", inner)
    assert [row["name"] for row in hopline.rows("exchanges", "list", f"{name}-?")] == [exchange, inner]
    keys = {(row["source"], row["destination"]): row["routing_key"] for row in hopline.rows("bindings", "list")}
    assert (keys[exchange, inner], keys[inner, name], keys["", name]) == ("eu.#", "", name)
    assert hopline("queues", "purge", name) == f"{name}: 1 messages are gone\n"
    assert channel.queue_declare(name, passive=True).method.message_count == 0
    hopline("bindings", "unbind", inner, name)
    with pytest.raises(faults.UnroutableError):
        channel.basic_publish(exchange, "eu.new", b"m", mandatory=True)
    hopline("exchanges", "delete", exchange, inner)
    hopline("queues", "delete", name)
    assert hopline.rows("queues", "list", name) == hopline.rows("bindings", "list", "--to", f"{name}*") == []
    with pytest.raises(faults.ChannelClosedByBroker, match="NOT_FOUND"):
        channel.queue_declare(name, passive=True)


def test_messages(hopline: Command, channel: Any, name: str) -> None:
    """What the command publishes a client gets, and the other way round; what is looked at stays, what is taken is
    gone."""
    channel.queue_declare(name)
    hopline("publish", "hello", "--key", name, "--header", "n:=3", "--property", "message_id=m-1", "--persistent")
    method, properties, body = channel.basic_get(name, auto_ack=True)
    assert (method.routing_key, properties.headers, properties.message_id) == (name, {"n": 3}, "m-1")
    assert (properties.delivery_mode, body) == (2, b"hello")
    channel.basic_publish("", name, b"\xff", pika.BasicProperties(type="t"))
    assert "type: t" in hopline("get", name)
    [again] = hopline.rows("get", name, "--take")
    assert (again["payload"], again["redelivered"]) == ("/w==", True)
    assert channel.basic_get(name)[0] is None
    assert "nothing waits" in hopline.run("get", name).stderr
    assert "no queue gets it" in hopline.run("publish", "m", "--key", f"{name}-none").stderr
    wrong = hopline.run("publish", "m", "--key", name, "--user", "guest", "--password-file", os.devnull)
    assert "--user and --password-file say who signs in" in wrong.stderr


def test_who_is_there(hopline: Command, channel: Any, name: str) -> None:
    """Is listed with channels and consumers; whose connection is closed is told why."""
    channel.queue_declare(name)
    channel.basic_consume(name, lambda *_: None, consumer_tag="mine")
    wait_until(lambda: hopline.rows("consumers", "list", name), 20, "the consumer")
    [consumer] = hopline.rows("consumers", "list", name)
    [connection] = hopline.rows("connections", "list", "--client", "shop")
    assert (consumer["consumer_tag"], consumer["channel_details"]["connection_name"]) == ("mine", connection["name"])
    assert "transactional" in hopline("connections", "show", connection["name"])
    hopline("connections", "close", connection["name"], "--reason", "for the night")
    with pytest.raises(faults.ConnectionClosedByBroker, match="for the night"):
        channel.connection.process_data_events(10)
    assert "`hopline connections list`" in hopline.refused("connections", "close", connection["name"])


def test_many(hopline: Command, stack: Stack, channel: Any, name: str) -> None:
    """Come all, in pages; names that a client made up do nothing to a terminal, and the shell completes the others."""
    for number in range(_MANY):
        channel.queue_declare(f"{name}-{number:03}", exclusive=True)
    channel.queue_declare(f"{name}\x1b[31m", exclusive=True)
    lines = hopline("queues", "list", f"{name}*").splitlines()
    assert len(lines) == 1 + _MANY + 1
    assert any(line.startswith(f"{name}\\x1b[31m") for line in lines)
    found = hopline.rows("queues", "list", f"{name}-*", "--sort", "name", "--descending")
    assert [row["name"] for row in found] == [f"{name}-{number:03}" for number in reversed(range(_MANY))]
    words = f"hopline queues show {name}-44"
    asked = {"_HOPLINE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"}
    completed = subprocess.run(
        [hopline.command], env={**hopline.environment, **asked}, capture_output=True, text=True, timeout=60, check=False
    )
    assert completed.stdout.split() == [f"{name}-{number}" for number in range(440, 450)]


def test_health(hopline: Command) -> None:
    """Each part and its members, in lines or as JSON."""
    told = json.loads(hopline("health", "--json"))
    assert set(told["services"].values()) == {"ok"}
    assert {member.rpartition("-")[0] for member in told["members"]["queue"]} == {"queue-1", "queue-2"}
    lines = hopline("health").splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")][: len(told["services"])] == list(
        told["services"]
    )


def test_what_is_refused(hopline: Command, channel: Any, name: str) -> None:
    """An error is one line that says what is wrong; the user of each change is in the audit log."""
    channel.queue_declare(name, exclusive=True)
    assert "it goes with its connection" in hopline.refused("queues", "delete", name)
    assert "no exchange 'none'" in (said := hopline.refused("bindings", "bind", "none", name))
    assert "`hopline exchanges list` says which" in said
    assert "NAME:=5" in hopline.refused("queues", "declare", f"{name}-2", "--argument", "x-max-length=5")
    assert "there is no column 'nam'; there are name" in hopline.refused("queues", "list", "--sort", "nam")
    assert "no vhost 'none'" in hopline.refused("exchanges", "list", "--vhost", "none")
    hopline("exchanges", "declare", name)
    assert "received 'fanout'" in (said := hopline.refused("exchanges", "declare", name, "--type", "fanout"))
    assert "until it is deleted" in said
    wait_until(lambda: _on_record(hopline, name), 10, "the audit log")
    [line] = _on_record(hopline, name)
    assert (line["what"], line["change"], "at the command line of" in line["by"]) == ("exchange", "put", True)


def _on_record(hopline: Command, name: str) -> list[Any]:
    files = hopline.data.glob("audit/*/mgmt-*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [line for line in lines if line.get("name") == json.dumps(["/", name])]

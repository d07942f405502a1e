"""Debian's rabbitmqadmin at a stack as users start it, and the definitions of a RabbitMQ that moves here."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path

import pika
import pytest

from tests.support.exported import EXPORTED
from tests.support.hopline_command import HoplineCommand
from tests.support.stack import HOST, Stack

_TOOL = "/usr/bin/rabbitmqadmin"  # of the package rabbitmq-server


class Admin:
    """rabbitmqadmin, as a user of one stack."""

    def __init__(self, stack: Stack, user: str = "guest", password: str = "guest") -> None:
        self._stack = stack
        self._user = user, password

    def run(self, *arguments: str, host: str | None = None) -> subprocess.CompletedProcess[str]:
        user, password = self._user
        where = ["-H", HOST, "-P", str(self._stack.http_port), "-u", user, "-p", password]
        command = [_TOOL, *where, *(["-V", host] if host else []), *arguments]
        environment = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    def __call__(self, *arguments: str, host: str | None = None) -> str:
        done = self.run(*arguments, host=host)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def rows(self, *arguments: str, host: str | None = None) -> list[list[str]]:
        """Without what surrounds them."""
        told = self("-q", "-f", "tsv", *arguments, host=host)
        return [line.split("\t") for line in told.splitlines()]


@pytest.fixture
def admin(stack: Stack) -> Admin:
    return Admin(stack)


def test_declare_list_delete(admin: Admin, name: str) -> None:
    """Everything that it can declare is listed with its columns, and gone when it was deleted."""
    admin("declare", "vhost", f"name={name}")
    admin("declare", "permission", f"vhost={name}", "user=guest", "configure=.*", "write=.*", "read=.*")
    admin("declare", "user", f"name={name}", "password=secret", "tags=monitoring")
    admin("declare", "exchange", "name=shop", "type=topic", host=name)
    admin("declare", "queue", "name=orders", "queue_type=quorum", 'arguments={"x-max-length": 5}', host=name)
    admin("declare", "binding", "source=shop", "destination=orders", "routing_key=eu.#", host=name)
    assert ["shop", "topic"] in admin.rows("list", "exchanges", host=name)
    assert admin.rows("list", "queues", host=name) == [["orders", "0"]]
    assert ["shop", "orders", "eu.#"] in admin.rows("list", "bindings", host=name)
    assert [name, "0"] in admin.rows("list", "vhosts")
    assert [name, "monitoring"] in admin.rows("list", "users", "name", "tags")
    assert [name, "guest"] in admin.rows("list", "permissions", "vhost", "user")
    assert "| orders | 0 " in admin("list", "queues")
    for kind in ("consumers", "policies", "operator_policies", "parameters", "vhost_limits"):
        admin("list", kind)
    admin("purge", "queue", "name=orders", host=name)
    binding = ("source=shop", "destination_type=queue", "destination=orders", "properties_key=eu.%23")
    admin("delete", "binding", *binding, host=name)
    admin("delete", "queue", "name=orders", host=name)
    admin("delete", "exchange", "name=shop", host=name)
    admin("delete", "permission", f"vhost={name}", "user=guest")
    admin("delete", "user", f"name={name}")
    admin("delete", "vhost", f"name={name}")
    assert name not in admin("list", "vhosts") + admin("list", "users")


def test_publish_and_get(admin: Admin, name: str, tmp_path: Path) -> None:
    """What is published is got, and stays until it is got for good; what goes nowhere is said to."""
    admin("declare", "queue", f"name={name}")
    properties = 'properties={"delivery_mode": 2, "headers": {"n": 1}}'
    assert "Message published\n" in admin("publish", f"routing_key={name}", "payload=hello", properties)
    assert "NOT routed" in admin("publish", "routing_key=nowhere", "payload=hello")
    [_, kept] = json.loads("[0," + admin("-f", "raw_json", "get", f"queue={name}").strip()[1:])
    assert (kept["payload"], kept["properties"]) == ("hello", {"delivery_mode": 2, "headers": {"n": 1}})
    file = tmp_path / "payload"
    admin("get", f"queue={name}", "ackmode=ack_requeue_false", f"payload_file={file}")
    assert file.read_text() == "hello"
    assert "No items" in admin("get", f"queue={name}")


def test_connections(admin: Admin, stack: Stack) -> None:
    """Connections are listed, and closed; the overview is shown."""
    parameters = pika.ConnectionParameters(HOST, stack.address.port, client_properties={"connection_name": "shop"})
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.basic_consume(queue, lambda *_: None)
    rows = admin.rows("list", "connections", "name", "user", "user_provided_name", "channels")
    [name] = [row[0] for row in rows if row[1:] == ["guest", "shop", "1"]]
    assert [f"{name} (1)", "guest"] in admin.rows("list", "channels")
    assert "hopline" in admin("show", "overview")
    assert {"gateway", "router", "queue"} <= {row[0] for row in admin.rows("list", "nodes", "role")}
    admin("list", "nodes")
    admin("close", "connection", f"name={name}")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="Closed via management"):
        connection.process_data_events(10)
    assert name not in admin("list", "connections")


def test_what_it_is_told(admin: Admin, stack: Stack, name: str) -> None:
    """Wrong input, missing objects and missing permissions are shown as lines, not as failures of the tool."""
    admin("declare", "queue", f"name={name}")
    again = admin.run("declare", "queue", f"name={name}", "durable=false")
    assert "inequivalent arg 'durable'" in again.stderr
    assert "Not found" in admin.run("delete", "queue", f"name={name}-not").stderr
    assert "Access refused" in Admin(stack, password="wrong").run("list", "queues").stderr
    declared = admin.run("declare", "policy", "name=ha", "pattern=.*", 'definition={"a": 1}')
    assert "a is not recognised in a policy" in declared.stderr


def test_export_and_import(admin: Admin, stack: Stack, name: str, tmp_path: Path) -> None:
    """What it exports it imports again, when all of it is gone."""
    file = tmp_path / "definitions.json"
    admin("declare", "vhost", f"name={name}")
    admin("declare", "permission", f"vhost={name}", "user=guest", "configure=.*", "write=.*", "read=.*")
    admin("declare", "queue", "name=q", host=name)
    admin("declare", "user", f"name={name}", "password=secret", "tags=")
    admin("export", str(file))
    admin("delete", "vhost", f"name={name}")
    admin("delete", "user", f"name={name}")
    admin("import", str(file))
    assert admin.rows("list", "queues", "name", host=name) == [["q"]]
    assert name in admin("list", "users")
    stack.wait_until_healthy()


def test_moving_from_rabbitmq(stack: Stack, tmp_path: Path) -> None:
    """One command; users sign in over AMQP by the hashes that RabbitMQ made, may what they might, and twice as well."""
    command = HoplineCommand(stack)
    file = tmp_path / "rabbitmq.json"
    exported = {**EXPORTED, "policies": [{"vhost": "shop", "name": "ha", "pattern": ".*", "definition": {}}]}
    file.write_text(json.dumps(exported))
    done = command.run("definitions", "import", str(file))
    assert done.returncode == 3, done.stderr
    assert "taken: 2 vhosts, 3 users" in done.stdout
    assert "invalid policy 'ha' in vhost 'shop': definition must say something" in done.stdout
    for _ in range(2):  # the second time by what was made of the hash
        credentials = pika.PlainCredentials("anna", "secret")
        parameters = pika.ConnectionParameters(HOST, stack.address.port, "shop", credentials)
        with closing(pika.BlockingConnection(parameters)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.basic_publish("orders", "eu.new", b"m", mandatory=True)
            assert channel.basic_get("orders", auto_ack=True)[2] == b"m"
    told = json.loads(command.run("definitions", "export").stdout)
    assert {each["name"]: each["hashing_algorithm"] for each in told["users"]}["anna"] == "argon2"
    assert json.loads(command.run("definitions", "export", "--vhost", "shop").stdout)["queues"][0]["name"] == "orders"
    assert "no vhost 'none'" in command.run("definitions", "export", "--vhost", "none").stderr

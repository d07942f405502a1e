"""Ports are added to a running stack and removed from it; clients of other projects connect by them."""

from __future__ import annotations

import errno
import json
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pika
import pytest
from pika.exceptions import AMQPConnectionError

from tests.support.hopline_command import HoplineCommand
from tests.support.ports import free_port
from tests.support.stack import HOST, Stack, running_stack, wait_until

SECONDS = 20.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """With a certificate of its own."""
    tls = {"HOPLINE_TLS_SELF_SIGNED": "true", "HOPLINE_AMQPS_PORT": str(free_port())}
    with running_stack(tmp_path_factory.mktemp("ports") / "data", tls) as started:
        yield started


class Hopline(HoplineCommand):
    """The command line, and what it says."""

    def ports(self, *arguments: str) -> None:
        done = self.run("ports", *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def wheres(self, name: str) -> list[dict[str, Any]]:
        told = map(json.loads, self.run("ports", "list", "--json").stdout.splitlines())
        return next((each["gateways"] for each in told if each["port"]["name"] == name), [])

    def until_open(self, name: str) -> None:
        def is_open() -> bool:
            wheres = self.wheres(name)
            return bool(wheres) and all(where["at"] for where in wheres)

        wait_until(is_open, SECONDS, f"port {name} that is open")


@pytest.fixture
def hopline(stack: Stack) -> Hopline:
    return Hopline(stack)


def connected(stack: Stack, port: int, *, tls: bool) -> pika.BlockingConnection:
    options = None
    if tls:
        context = ssl.create_default_context(cafile=str(stack.data / "tls" / "self-signed.pem"))
        options = pika.SSLOptions(context, "localhost")
    return pika.BlockingConnection(pika.ConnectionParameters(HOST, port, ssl_options=options))


def is_closed(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex((HOST, port)) == errno.ECONNREFUSED


def test_a_port_at_run_time(stack: Stack, hopline: Hopline, name: str) -> None:
    """Clients connect to it, with TLS and without; when it is removed they stay, and no other can connect."""
    port = free_port()
    hopline.ports("add", name, "--address", f"{HOST}:{port}", "--transport", "plain", "--transport", "tls")
    hopline.until_open(name)
    with ExitStack() as ends:
        channels = []
        for tls in (False, True):
            connection = ends.enter_context(closing(connected(stack, port, tls=tls)))
            channels.append(connection.channel())
            channels[-1].confirm_delivery()
        channels[0].queue_declare(name)
        hopline.ports("remove", name)
        assert not hopline.wheres(name)
        wait_until(lambda: is_closed(port), SECONDS, "port that is closed")
        for publisher, getter in (channels, reversed(channels)):
            publisher.basic_publish("", name, b"still here")
            assert getter.basic_get(name, auto_ack=True)[2] == b"still here"


def test_tls_alone(stack: Stack, hopline: Hopline, name: str) -> None:
    """A port for TLS alone serves no client without TLS."""
    port = free_port()
    hopline.ports("add", name, "--address", f"{HOST}:{port}", "--transport", "tls")
    hopline.until_open(name)
    with pytest.raises(AMQPConnectionError):
        connected(stack, port, tls=False)
    connected(stack, port, tls=True).close()


def test_an_address_that_is_taken(stack: Stack, hopline: Hopline, name: str) -> None:
    """The list says so, and the log, once; as soon as it is free the port is open."""
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        hopline.ports("add", name, "--address", f"{HOST}:{port}")
        wait_until(lambda: hopline.wheres(name)[0]["trouble"] == "Address already in use", SECONDS, "reason")
        assert hopline.wheres(name)[0]["at"] == []
        assert "Address already in use" in hopline.run("ports", "list").stdout
    hopline.until_open(name)
    connected(stack, port, tls=False).close()
    lines = [line for line in stack.log.read_text().splitlines() if "a port cannot be opened" in line and name in line]
    assert len(lines) == 1


def test_a_gateway_that_starts(stack: Stack, hopline: Hopline, name: str) -> None:
    """Opens the ports that there are."""
    port = free_port()
    hopline.ports("add", name, "--address", f"{HOST}:{port}")
    hopline.until_open(name)
    stack.wait_until_replaced("gateway", stack.kill("gateway"))
    hopline.until_open(name)
    connected(stack, port, tls=False).close()


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("add", "x", "--address", "5673"), 2, "--address '5673': HOST:PORT is wanted, such as 0.0.0.0:5673, "),
        (("add", "x", "--address", "*:99999"), 2, "port: Input should be less than or equal to 65535"),
        (("add", "x", "--address", "no name:1"), 2, "host: 'no name' is neither an address nor a name"),
        (("add", "x", "--address", "*:1", "--transport", "pigeon"), 1, "transports: there is no pigeon; there are "),
        (("add", "x", "--address", "*:1", "--mechanism", "NONE"), 1, "mechanisms: there is no NONE; there are "),
        (("add", "x", "--address", "*:1", "--most", "-1"), 2, "most: Input should be greater than or equal to 0"),
        (("add", "", "--address", "*:1"), 2, "name: String should have at least 1 character"),
        (("add", "amqp", "--address", "*:1"), 1, "port 'amqp' comes from the setting HOPLINE_AMQP_PORT"),
        (("remove", "amqps"), 1, "port 'amqps' comes from the setting HOPLINE_AMQPS_PORT"),
        (("remove", "nothing"), 1, "no port 'nothing'; `hopline ports list` says which there are\n"),
    ],
)
def test_what_cannot_be(hopline: Hopline, arguments: tuple[str, ...], status: int, said: str) -> None:
    """Is one line that says why."""
    done = hopline.run("ports", *arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (status, "", 1)
    assert done.stderr.startswith(said)


def test_those_of_the_settings(stack: Stack, hopline: Hopline) -> None:
    """Are listed first, with where they are."""

    def listed() -> list[dict[str, Any]]:
        return [json.loads(line) for line in hopline.run("ports", "list", "--json").stdout.splitlines()]

    # One that was killed has its place for a moment yet.
    wait_until(lambda: len(listed()[0]["gateways"]) == 1, 30, "end of what a dead gateway has said")
    first, second, *_ = listed()
    assert [each["port"]["name"] for each in (first, second)] == ["amqp", "amqps"]
    assert first["of_settings"]
    [where] = first["gateways"]
    assert where["at"] == [f"{HOST}:{stack.address.port}"]

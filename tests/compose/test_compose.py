"""`docker compose up`: what the containers may do, and that clients get through their deaths, births and moves."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pika
import pika.exceptions
import pytest

from tests.support.cluster_load import Load
from tests.support.compose_stack import docker
from tests.support.interop_pika import connected, fetch
from tests.support.stack import HOST, wait_until

if TYPE_CHECKING:
    from tests.support.compose_stack import ComposeStack

PERSISTENT = pika.BasicProperties(delivery_mode=2)
QUEUES = 6  # so that every queue process has some
HOPLINE_SERVICES = ["nats", "store", "router", "queue", "mgmt", "gateway", "gateway-2"]
STRANGER = Path(__file__).with_name("stranger.py")
KILL_PROCESS = """
import os, pathlib, signal
for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
    pid = int(path.parent.name)
    if pid not in (1, os.getpid()) and b"hopline" in path.read_bytes():
        os.kill(pid, signal.SIGKILL)
"""

# pika leaves the sockets of connections that failed to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.timeout(600),
]


def test_a_message(stack: ComposeStack, name: str) -> None:
    """A client of this machine publishes with the first user of the file, and consumes what was confirmed."""
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name, durable=True)
        channel.basic_publish("", name, b"Hello, containers", PERSISTENT, mandatory=True)
        assert fetch(channel, name).body == b"Hello, containers"


def test_ports(stack: ComposeStack) -> None:
    """A password that everyone can read opens nothing but loopback, and queue processes publish nothing."""
    published = {
        (container["Config"]["Labels"]["com.docker.compose.service"], port, binding["HostIp"])
        for container in stack.inspect()
        for port, bindings in container["NetworkSettings"]["Ports"].items()
        for binding in bindings or ()
    }
    assert published == {
        ("gateway", "5672/tcp", HOST),
        ("gateway", "5671/tcp", HOST),
        ("mgmt", "8080/tcp", HOST),
        ("balancer", "5672/tcp", HOST),
    }


def test_a_stranger_on_the_network(stack: ComposeStack) -> None:
    """A stranger in the containers' network, without the secret, gets nothing from any port but AMQP's and HTTP's."""
    services = {address: service for service, address in stack.listening()}
    said = [line.split(maxsplit=2) for line in stack.ask_as_stranger(STRANGER.read_text(), list(services)).splitlines()]
    # Clients that are not answered log that as well.
    answers = {(services[each[0]], each[1], each[2]) for each in said if each and each[0] in services}
    assert {service for service, what, _ in answers if what == "HTTP"} == {"mgmt"}, answers
    assert {answer for _, what, answer in answers if what != "HTTP"} == {"refused"}, answers
    assert {("store", "gRPC", "refused"), ("queue", "gRPC", "refused"), ("nats", "NATS", "refused")} <= answers


@pytest.mark.parametrize("service", [*HOPLINE_SERVICES, "balancer"])
def test_confinement(stack: ComposeStack, service: str) -> None:
    """No container runs as root, has a capability, gains privileges, or writes to its own file system."""
    container = stack.containers(service)[0]
    status = docker("exec", container, "cat", "/proc/1/status")
    fields = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert "0" not in fields["Uid"].split()
    assert {int(fields[kind], 16) for kind in ("CapPrm", "CapEff", "CapBnd")} == {0}
    assert fields["NoNewPrivs"] == "1"
    assert "Read-only file system" in docker("exec", container, "touch", "/usr/written", check=False)


@pytest.mark.parametrize("victim", [0, 1])
def test_killed_queue_container(stack: ComposeStack, name: str, victim: int) -> None:
    """`docker kill` of a queue process under load: every connection stays, and no confirmed message is lost."""
    load = Load(stack.address, name, QUEUES)
    load.start()
    load.wait_for_progress()
    docker("kill", stack.containers("queue")[victim])
    load.wait_for_progress()
    load.finish()
    assert load.confirmed() > 0
    assert load.lost() == []
    assert load.broken_promises() == []
    assert load.reconnects() == 0


def test_scaling_under_load(stack: ComposeStack, name: str) -> None:
    """Two queue processes become four and two again while traffic flows: no connection and no message is lost."""
    load = Load(stack.address, name, QUEUES)
    load.start()
    load.wait_for_progress()
    for count in (4, 2):
        stack.up(queues=count)
        load.wait_for_progress()
    load.finish()
    assert load.lost() == []
    assert load.broken_promises() == []
    assert load.reconnects() == 0


@pytest.mark.parametrize("service", ["store", "router", "mgmt"])
def test_crash(stack: ComposeStack, name: str, service: str) -> None:
    """A process that dies by itself is started again by Docker; what was confirmed is still there."""
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name, durable=True)
        channel.basic_publish("", name, b"kept", PERSISTENT, mandatory=True)
        docker("exec", stack.containers(service)[0], "python3", "-c", KILL_PROCESS, check=False)
        wait_until(lambda: stack.inspect(service)[0]["RestartCount"] > 0, 60, f"restart of {service}")
        wait_until(stack.is_healthy, 60, "healthy stack")
        assert fetch(channel, name).body == b"kept"


def test_balancer(stack: ComposeStack, name: str) -> None:
    """Behind the balancer are two gateways: when one is killed, the next connection comes to the other."""
    with connected(stack.balanced) as one, connected(stack.balanced) as other:
        one.channel().queue_declare(name, durable=True)
        docker("kill", stack.containers("gateway-2")[0])
        wait_until(lambda: not (_lives(one) and _lives(other)), 60, "end of a killed gateway's connection")
        assert _lives(one) or _lives(other)
    with connected(stack.balanced) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", name, b"by the other way", PERSISTENT, mandatory=True)
        assert fetch(channel, name).body == b"by the other way"


def test_down_and_up(stack: ComposeStack, name: str) -> None:
    """Confirmed messages outlive all containers; clients are told why their connections end; none has to be killed."""
    with connected(stack.address) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare(name, durable=True)
        channel.basic_publish("", name, b"durable", PERSISTENT, mandatory=True)
        stack.stop()
        assert stack.ended_by_force() == []
        stack.down()
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
            connection.process_data_events(time_limit=5)
        assert closed.value.reply_code == 320
    assert stack.containers() == []
    stack.up()
    with connected(stack.address) as connection:
        assert fetch(connection.channel(), name).body == b"durable"


def _lives(connection: pika.BlockingConnection) -> bool:
    with suppress(pika.exceptions.AMQPError):
        if connection.is_open:
            connection.process_data_events(time_limit=0.05)
    return connection.is_open

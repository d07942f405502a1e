"""The stack in containers, as `docker compose up` starts it: a project of its own on free ports."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import uuid
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tests.support.healthz import Healthz
from tests.support.interop_address import BrokerAddress
from tests.support.ports import free_port
from tests.support.stack import HOST, LOG_TAIL, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
HEALTHY_SECONDS = 60.0
STORE_PORT = 7000  # where the store process that writes listens, and no other
USER = PASSWORD = "hopline"  # what docker-compose.yml says


class ComposeStack(Healthz):
    """One project; its containers may be killed, scaled, taken down and brought up again."""

    running: ClassVar[list[ComposeStack]] = []

    def __init__(self, *files: str, profile: str = "", **settings: str) -> None:
        """Of docker-compose.yml and other such files, with one profile; `settings` are what compose is told besides."""
        self._told = {"COMPOSE_FILE": ":".join(("docker-compose.yml", *files)), "COMPOSE_PROFILES": profile, **settings}
        self.address = BrokerAddress(HOST, free_port(), USER, PASSWORD)
        self.balanced = BrokerAddress(HOST, free_port(), USER, PASSWORD)
        self.http_port = free_port()
        self._project = f"hopline-test-{uuid.uuid4().hex[:8]}"

    def up(self, queues: int = 2) -> None:
        """Brings up what is missing, until it is healthy."""
        self._compose("up", "-d", "--no-build", "--no-recreate", "--scale", f"queue={queues}")
        wait_until(self.is_healthy, HEALTHY_SECONDS, "healthy stack in containers")
        wait_until(lambda: self._all_well(queues), HEALTHY_SECONDS, "healthy containers")

    def stop(self) -> None:
        """Ends what runs in the containers, which stay."""
        self._compose("stop")

    def down(self, *options: str) -> None:
        """Takes the containers down; volumes stay, unless `options` says otherwise."""
        self._compose("down", "--remove-orphans", *options)

    def containers(self, service: str = "") -> list[str]:
        """The ids of the containers that exist, of one service or all."""
        chosen = ["--filter", f"label=com.docker.compose.service={service}"] if service else []
        project = f"label=com.docker.compose.project={self._project}"
        return docker("ps", "--all", "--quiet", "--no-trunc", "--filter", project, *chosen).split()

    def inspect(self, service: str = "") -> list[dict[str, Any]]:
        """What Docker knows about these containers."""
        containers = self.containers(service)
        return json.loads(docker("inspect", *containers)) if containers else []

    def listening(self) -> Iterator[tuple[str, str]]:
        """Where containers listen, for others than themselves: service, and host:port as the network knows it."""
        for container in self.inspect():
            [network] = container["NetworkSettings"]["Networks"].values()
            for port in _listening_ports(container["Id"]):
                yield container["Config"]["Labels"]["com.docker.compose.service"], f"{network['IPAddress']}:{port}"

    def writing_stores(self) -> set[str]:
        """The containers whose store process writes, as far as it knows: one that is cut off knows no better."""
        return {each for each in self.containers("store") if STORE_PORT in _listening_ports(each)}

    def cut(self, container: str) -> None:
        """Takes a container off the network."""
        docker("network", "disconnect", self._network, container)

    def join(self, container: str, service: str) -> None:
        """Puts it back."""
        docker("network", "connect", "--alias", service, self._network, container)

    def ask_as_stranger(self, script: str, arguments: list[str]) -> str:
        """What a script of Python says that runs on the stack's network, in a container without volumes."""
        options = ("--rm", "--network", self._network, "--entrypoint", "python3")
        return docker("run", *options, "hopline", "-c", script, *arguments)

    def ended_by_force(self) -> list[str]:
        """The containers that had to be killed when they were stopped."""
        return [one["Name"] for one in self.inspect() if one["State"]["ExitCode"] == 128 + signal.SIGKILL]

    def log_tail(self) -> str:
        return self._compose("logs", "--no-color", "--tail=40", check=False)[-LOG_TAIL:]

    def _all_well(self, queues: int) -> bool:
        states = [container["State"] for container in self.inspect()]
        stores = int(self._told.get("HOPLINE_STORE_PROCESSES", 1))
        are_all = [len(self.containers(each)) for each in ("queue", "store")] == [queues, stores]
        return are_all and all(state["Running"] and state["Health"]["Status"] == "healthy" for state in states)

    @property
    def _network(self) -> str:
        return f"{self._project}_hopline"

    def _compose(self, *arguments: str, check: bool = True) -> str:
        settings = self._told | {
            "HOPLINE_AMQP_PORT": str(self.address.port),
            "HOPLINE_AMQPS_PORT": str(free_port()),
            "HOPLINE_BALANCER_PORT": str(self.balanced.port),
            "HOPLINE_HTTP_PORT": str(self.http_port),
        }
        program = ["docker-compose"] if shutil.which("docker-compose") else ["docker", "compose"]
        return run(*program, "--project-name", self._project, *arguments, environment=settings, check=check)


def _listening_ports(container: str) -> set[int]:
    """By /proc/net/tcp (proc(5)): local address and state are the second and fourth field, 0A is LISTEN."""
    tables = docker("exec", container, "cat", "/proc/net/tcp", "/proc/net/tcp6", check=False)
    lines = (line.split() for line in tables.splitlines())
    listening = (line[1] for line in lines if len(line) > 3 and line[3] == "0A")
    return {int(port, 16) for host, _, port in (each.partition(":") for each in listening) if not _is_loopback(host)}


def _is_loopback(host: str) -> bool:
    # Docker's own name server is at 127.0.0.11.
    return host in {"0100007F", "0B00007F", "00000000000000000000000001000000"}


@contextmanager
def running_compose_stack(stack: ComposeStack | None = None, images: str = "") -> Iterator[ComposeStack]:
    """Builds the images, brings a stack up, and leaves neither containers nor volumes behind.

    Without a stack it is one with two gateways and a balancer.
    """
    build_images(images)
    stack = stack or ComposeStack(profile="ha")
    ComposeStack.running.append(stack)
    try:
        stack.up()
        yield stack
    finally:
        ComposeStack.running.remove(stack)
        stack.down("--volumes", "--timeout=5")


@cache
def build_images(more: str = "") -> None:
    """Builds what docker-compose.yml names, and what it names for a profile, once for all tests of a run."""
    run("deploy/images.sh", *filter(None, [more]))


def docker(*arguments: str, check: bool = True) -> str:
    """What a docker command says."""
    return run("docker", *arguments, check=check)


def run(*command: str, environment: dict[str, str] | None = None, check: bool = True) -> str:
    """Output and errors of a command in the repository's root; one that fails is a failed assertion with both."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout

"""Stands in for the helper with which tests of aio-pika and aiormq start a broker in a container: there is one."""

from __future__ import annotations

import os
from dataclasses import dataclass

HOST, PORT = os.environ.get("SUITES_HOST", "localhost"), int(os.environ.get("SUITES_PORT", "5672"))
CLOSED_PORT = 1
"""Where TLS would be: neither broker serves it here."""


class DockerNotAvailableError(Exception):
    """Never raised."""


class DockerHostInfo:
    """Nothing is known of it."""


@dataclass
class ContainerInfo:
    """A broker: its ports by the names that its image gives them."""

    id: str
    ports: dict[str, int]
    host: str


class DockerClient:
    """Starts and ends nothing."""

    def __init__(self, docker_host_info: DockerHostInfo | None = None) -> None:
        self.host = docker_host_info

    def run(self, image: str, ports: list[str], environment: dict[str, str] | None = None) -> ContainerInfo:
        """The broker, for any image that is asked for."""
        del image, environment
        return ContainerInfo("broker", {port: PORT if port.startswith("5672") else CLOSED_PORT for port in ports}, HOST)

    def kill(self, container_id: str) -> None:
        """It goes on."""

    def remove(self, container_id: str) -> None:
        """It stays."""


def check_docker_available() -> DockerHostInfo:
    """Always."""
    return DockerHostInfo()

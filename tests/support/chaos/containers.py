"""The services of docker-compose.yml as containers of testcontainers, each of which can be disturbed by itself."""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from docker.errors import APIError, NotFound
from docker.types import IPAMConfig, IPAMPool
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from tests.support.chaos.clients import Door
from tests.support.chaos.stores import STORES, Kept
from tests.support.compose_stack import PASSWORD, USER
from tests.support.interop_address import BrokerAddress
from tests.support.ports import free_port
from tests.support.stack import HOST, wait_until
from tests.support.store_disturbances import SERVERS

if TYPE_CHECKING:
    from collections.abc import Callable

# It would have to be pulled, and what is started here is removed here.
testcontainers_config.ryuk_disabled = True

START_SECONDS = 60.0
STOP_SECONDS = 30
GATEWAYS = ("gateway-1", "gateway-2")
QUEUES = 2
PROBE = ["python3", "-I", "-m", "services.common.probe"]


class ContainerStack:
    """NATS, store, router, mgmt, two gateways and some queue processes. Containers are named by service and number."""

    def __init__(self, kept: Kept = STORES["sqlite"]) -> None:
        self.kept = kept
        self._services = kept.services()
        self._project = f"hopline-chaos-{uuid.uuid4().hex[:8]}"
        self._network = _network()
        self._containers: dict[str, DockerContainer] = {}
        self._numbers = 0
        self.doors = [Door(name, BrokerAddress(HOST, free_port(), USER, PASSWORD)) for name in GATEWAYS]
        self.former_logs: dict[str, str] = {}

    def start(self) -> None:
        """Returns when every container is ready."""
        for name in ("nats", *self.kept.servers, *self.kept.stores, "router", "mgmt"):
            self._start(name, self._service_of(name))
        for _ in range(QUEUES):
            self._add_queue()
        for door in self.doors:
            self._start(door.gateway, "gateway", port=door.address.port)
        wait_until(lambda: all(map(self._serves, self._containers)), START_SECONDS, "ready containers")

    def stop(self) -> None:
        """Leaves nothing behind."""
        for container in self._containers.values():
            with suppress(NotFound):
                container.stop()
        self._network.remove()
        client = self._network._docker.client
        for volume in client.volumes.list(filters={"name": self._project}):
            volume.remove()

    def names(self, service: str) -> list[str]:
        """The containers of a service."""
        return [name for name in self._containers if name == service or name.rpartition("-")[0] == service]

    # -------------------------------------------------------------- disturbances

    def kill(self, name: str) -> None:
        """kill -9; it stays dead until `revive`."""
        self._docker(name).kill("SIGKILL")

    def revive(self, name: str) -> None:
        self._docker(name).start()

    def pause(self, name: str) -> None:
        """All of its processes stand still, as after SIGSTOP. One that waits for the disk does so only after that."""
        wait_until(lambda: _is_frozen(self._docker(name)), START_SECONDS, f"{name} to stand still")

    def resume(self, name: str) -> None:
        self._docker(name).unpause()

    def cut(self, name: str) -> Callable[[], None]:
        """Takes it off the network; gives what puts it back, with the address that it had."""
        docker = self._docker(name)
        docker.reload()
        endpoint = docker.attrs["NetworkSettings"]["Networks"][self._network.name]
        network = self._network._unwrap_network
        network.disconnect(docker)
        return lambda: network.connect(docker, aliases=[self._service_of(name)], ipv4_address=endpoint["IPAddress"])

    def scale_up(self) -> str:
        """Adds a queue process; gives its name."""
        return self._add_queue()

    def scale_down(self, name: str) -> None:
        """Stops a queue process in good order, and removes it."""
        docker = self._docker(name)
        docker.stop(timeout=STOP_SECONDS)
        self.former_logs[name] = docker.logs().decode(errors="replace")
        self._containers.pop(name).stop()

    # -------------------------------------------------------------- looking in

    def execute(self, name: str, *command: str) -> str:
        """What a command in a container says; fails when it fails."""
        done = self._docker(name).exec_run(list(command))
        assert done.exit_code == 0, done.output.decode(errors="replace")
        return done.output.decode()

    def trace(self, message_id: str) -> str:
        """What the record says of a message; for people, so a fault is an answer too."""
        return str(self._docker("mgmt").exec_run(["hopline", "trace", message_id]).output.decode(errors="replace"))

    def logs(self) -> dict[str, str]:
        """What every container has logged, those that are gone too."""
        return self.former_logs | {
            name: self._docker(name).logs().decode(errors="replace") for name in self._containers
        }

    def _docker(self, name: str) -> Any:
        return self._containers[name].get_wrapped_container()

    def _serves(self, name: str) -> bool:
        if name == "nats" or name in SERVERS:
            return "Server is ready" in self._docker(name).logs().decode()
        with suppress(APIError):
            return self._docker(name).exec_run(self._probe(name)).exit_code == 0
        return False

    def _probe(self, name: str) -> list[str]:
        if name in self.kept.servers:
            return ["pg_isready", "--quiet", "--host", "127.0.0.1"]
        # Where a store process stands by, it answers nowhere else.
        return [*PROBE, "127.0.0.1:7001"] if name in self.kept.stores else PROBE

    # -------------------------------------------------------------- making

    def _add_queue(self) -> str:
        self._numbers += 1
        name = f"queue-{self._numbers}"
        self._start(name, "queue")
        return name

    def _service_of(self, name: str) -> str:
        return name if name in self._services else name.rpartition("-")[0]

    def _start(self, name: str, service: str, port: int = 0) -> None:
        said = self._services[service]
        container = DockerContainer(said["image"], name=f"{self._project}-{name}")
        container.with_command(said["command"])
        environment = said.get("environment", {}).items()
        container.with_envs(**{variable: "" if value is None else str(value) for variable, value in environment})
        container.with_network(self._network).with_network_aliases(service)
        if port:
            container.ports["5672/tcp"] = (HOST, port)
        for volume in said.get("volumes", ()):
            source, target, mode = (*volume.split(":"), "rw")[:3]
            # A path is of this machine; a name is of a volume, which is this stack's own.
            mounted = source if source.startswith("/") else f"{self._project}-{source}"
            container.with_volume_mapping(mounted, target, mode)
        container.with_kwargs(
            user=said["user"],
            entrypoint=said.get("entrypoint"),
            read_only=said["read_only"],
            cap_drop=said["cap_drop"],
            security_opt=said["security_opt"],
            init=said["init"],
            restart_policy={"Name": said["restart"]},
            healthcheck={"test": ["NONE"]},  # it is asked when that matters
        )
        container.tmpfs = dict(mount.split(":", 1) for mount in said["tmpfs"])
        self._containers[name] = container.start()


def _network() -> Network:
    """With addresses of our own choosing, so that a container which was cut off gets back the one that it had."""
    with Network() as free:
        free._unwrap_network.reload()
        [pool] = free._unwrap_network.attrs["IPAM"]["Config"]
    return Network(docker_network_kw={"ipam": IPAMConfig(pool_configs=[IPAMPool(subnet=pool["Subnet"])])}).create()


def _is_frozen(container: Any) -> bool:
    """Whether it could be frozen: runc gives up soon on a busy machine, and thaws what it had frozen."""
    try:
        container.pause()
    except APIError as error:
        if "unable to freeze" not in str(error):
            raise
        return False
    return True

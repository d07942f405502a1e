"""What the stack consists of: each program's name, its command, and where it answers health checks."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace

from services.common.config import Settings
from services.common.runtime import CannotStart

# Variables that only the programs that need them are given: users who may inspect a process see its environment.
_OF_THE_STORE = frozenset({"HOPLINE_STORE_URL", "HOPLINE_STORE_CONFIGURATION_URL"})
_SECRETS = _OF_THE_STORE | {"HOPLINE_PASSWORD"}


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    command: tuple[str, ...]
    address: str  # gRPC target, or nats://
    vital: bool = True  # the stack is not ready without it, and ends when it cannot even start
    arguments: tuple[str, ...] = ()  # of Hopline's command line, if `command` runs that
    secrets: frozenset[str] = frozenset()  # secret variables that it is given

    @property
    def role(self) -> str:
        """The name without its number: `queue` for queue-1 and queue-2."""
        return self.name.partition("-")[0]

    def environment(self) -> dict[str, str]:
        """This process's environment, without other programs' secrets; names of settings may be in any letter case."""
        withheld = _SECRETS - self.secrets
        return {name: value for name, value in os.environ.items() if name.upper() not in withheld}


def stages(settings: Settings) -> tuple[tuple[Program, ...], ...]:
    """The programs by stages, in the order of start; stages stop in the opposite order, each one's programs together.

    Raises CannotStart when several programs of a kind have one address, or several store processes share no database.
    """
    _check(settings)
    queues = tuple(
        _program(settings, f"queue-{number}", "queue", "--name", f"queue-{number}")
        for number in range(1, settings.queue_processes + 1)
    )
    routers = tuple(_program(settings, name, "router", "--name", name) for name in settings.router_names)
    stores = tuple(
        replace(_program(settings, name, "store", "--name", name), secrets=_OF_THE_STORE)
        for name in settings.store_names
    )
    gateways = tuple(_program(settings, name, "gateway", "--name", name) for name in settings.gateway_names)
    # mgmt creates the first user.
    mgmt = replace(_program(settings, "mgmt", "mgmt"), secrets=frozenset({"HOPLINE_PASSWORD"}))
    return stores, routers, queues, (mgmt,), gateways


def _check(settings: Settings) -> None:
    if settings.store_processes > 1 and not _shares(settings):
        raise CannotStart(
            f"HOPLINE_STORE_PROCESSES={settings.store_processes} wants a PostgreSQL database or NATS servers that they "
            "share: set HOPLINE_STORE_URL, and no HOPLINE_STORE_CONFIGURATION_URL=sqlite: (deploy/stores.md), "
            "or HOPLINE_STORE_PROCESSES=1"
        )
    for kind, address, number, variable in (
        ("store processes", settings.store_address, settings.store_processes, "STORE_PROCESSES"),
        ("routers", settings.router_address, settings.routers, "ROUTERS"),
        ("gateways", settings.gateway_address, settings.gateways, "GATEWAYS"),
        ("queue processes", settings.queue_address, settings.queue_processes, "QUEUE_PROCESSES"),
    ):
        if address and number > 1:
            name = variable.removesuffix("_PROCESSES").removesuffix("S")
            raise CannotStart(
                f"HOPLINE_{name}_ADDRESS is one address for {number} {kind}; unset it, or set HOPLINE_{variable}=1"
            )


def _shares(settings: Settings) -> bool:
    configuration = settings.store_configuration_url.get_secret_value()
    return bool(settings.store_url.get_secret_value()) and not configuration.lower().startswith("sqlite:")


def _program(settings: Settings, name: str, *arguments: str) -> Program:
    # -P: a folder named `services` in the user's current directory must not be imported instead of ours.
    command = (sys.executable, "-P", "-m", "services", *arguments)
    return Program(name, command, settings.address_of(name), arguments=arguments)

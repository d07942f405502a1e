"""`hopline up`: runs the stack that the settings describe, under a supervisor."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from functools import partial

from services.common import secret
from services.common.bus.address import address_file
from services.common.clients.healthz import ask, reachable
from services.common.clients.mgmt import MgmtClient
from services.common.config import Settings
from services.common.errors import BrokerError
from services.common.grpc_channel import is_serving
from services.common.memory import available, beside_its_own, count_with, for_messages
from services.supervisor import nats
from services.supervisor.child import Child
from services.supervisor.free_ports import need_free_ports, secured
from services.supervisor.misspelt import warn_of_misspelt
from services.supervisor.notes import Notes
from services.supervisor.output import frame_for
from services.supervisor.process import Start
from services.supervisor.program import Program, stages
from services.supervisor.run_folder import RunFolder
from services.supervisor.supervisor import Supervisor

_BESIDE = 2  # processes besides the programs: this one, and NATS


async def up(settings: Settings, say: Callable[[str], None], start: Start) -> int:
    """Runs until a signal; says one line when ready. Returns the exit status; raises CannotStart.

    `start` starts programs.
    """
    warn_of_misspelt(os.environ)
    planned = stages(settings)
    _part_memory(settings, sum(map(len, planned)) + _BESIDE)
    with RunFolder(settings.data, settings.run_folder) as folder, contextlib.ExitStack() as after:
        secret.use(secret.read_or_make(settings.secret_file or secret.file_of_up(settings)))
        addresses = [program.address for stage in planned for program in stage]
        await folder.clean([*addresses, settings.address_of("store")])
        if settings.gateways > 1:
            need_free_ports(settings)
        if not settings.nats_url:
            planned = ((await _plan_nats(settings, after, folder.notes),), *planned)
        trying = asyncio.get_running_loop().create_task(folder.notes.keep_trying(), name="notes")
        after.callback(trying.cancel)
        served: set[str] = set()
        children = [
            [
                Child(
                    program,
                    partial(folder.note_pid, program.name),
                    frame_for(settings.log_format, program.name),
                    _is_serving,
                    served,
                    start,
                    note_end=partial(folder.note_end, program.name),
                )
                for program in stage
            ]
            for stage in planned
        ]

        async def announce() -> None:
            await _until_healthy(settings)
            say(await _ready_line(settings))

        return await Supervisor(children, announce).run()


def _part_memory(settings: Settings, processes: int) -> None:
    """Tells the children what there is for messages: all of them share the memory, which a single one cannot know."""
    count_with(settings.memory)
    memory = beside_its_own(available(), processes)
    share = settings.queue_memory or for_messages(memory, settings.queue_processes)
    os.environ |= {"HOPLINE_MEMORY": str(memory), "HOPLINE_QUEUE_MEMORY": str(share)}


async def _plan_nats(settings: Settings, after: contextlib.ExitStack, notes: Notes) -> Program:
    """Tells the children the server's address, and writes it to a file for commands as long as the stack runs."""
    program = nats.program(settings, await nats.choose_port(settings, after))
    os.environ["HOPLINE_NATS_URL"] = program.address
    after.callback(os.environ.pop, "HOPLINE_NATS_URL", None)
    file = address_file(settings)
    notes.write(file, program.address)
    after.callback(file.unlink, missing_ok=True)
    return program


async def _is_serving(address: str) -> bool:
    return await (nats.is_serving(address) if address.startswith("nats:") else is_serving(address))


async def _until_healthy(settings: Settings) -> None:
    while settings.http_port:  # 0: a port that the kernel chose, which only mgmt knows
        try:
            status, _ = await ask(settings.http_host, settings.http_port)
        except OSError:
            status = 0
        if status == 200:
            return
        await asyncio.sleep(0.05)


async def _ready_line(settings: Settings) -> str:
    http = f"http://{_at(settings.http_host, settings.http_port)}"
    return f"Hopline is ready: {amqp_addresses(settings)}, HTTP at {http}{await _credentials(settings)}"


def amqp_addresses(settings: Settings) -> str:
    """The addresses for clients by TCP, TLS and WebSocket, as far as these are on."""
    over_tls = secured(settings)
    plain, secure = (_at(settings.amqp_host, port) for port in (settings.amqp_port, settings.amqps_port))
    told = [f"AMQP at amqp://{plain}"]
    if over_tls:
        told.append(f"over TLS at amqps://{secure}")
    if settings.websocket_origins:
        told.append(f"over WebSocket at ws://{plain}" + (f" and wss://{secure}" if over_tls else ""))
    return ", ".join(told)


async def _credentials(settings: Settings) -> str:
    """The first user's credentials as text, if that user still exists."""
    try:
        async with MgmtClient(settings.address_of("mgmt")) as mgmt:
            users = await mgmt.list_users()
    except BrokerError:
        return ""
    known = any(user.name == "guest" and user.loopback_only for user in users)
    return ", credentials guest/guest (loopback only)" if known else ""


def _at(host: str, port: int) -> str:
    address = reachable(host)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"

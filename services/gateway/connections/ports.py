"""Ports that operators define, in one gateway: opens and closes them as the records say, and records their state.

A port that cannot be opened is tried again, as long as it is wanted: the process that has its address may end.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import structlog

from services.common.errors import BrokerError
from services.common.ports.port import OF_SETTINGS, Port
from services.common.ports.state import RECORD_KIND, Account, Served
from services.common.runtime import Tasks
from services.gateway.connections.entrance import Entrance
from services.gateway.rules import followed
from services.rpc.store_pb2 import Record, Records

if TYPE_CHECKING:
    from services.common.telemetry.status import Put
    from services.gateway.connections.listener import Listener

log = structlog.get_logger()

_AGAIN = 2.0  # seconds
_LOOK = 1.0  # seconds
_LAST_WORDS = 0.2  # seconds
_DO = "see that its address is free, and that it wants what is there, or remove it: hopline ports; it is tried again"
_DO_SETTINGS = "mend what the reason says; it is tried again, and other ports are served meanwhile"


class Ports:
    """`instance` names the gateway, `put` writes records; `address` is where others reach its gRPC."""

    def __init__(self, listener: Listener, instance: str, put: Put, address: str = "") -> None:
        self._listener = listener
        self._address = address
        self._instance = instance
        self._put = put
        self._wanted: dict[str, Port] = {}
        self._troubles: dict[str, Served] = {}  # those that are not open, by name
        self._changed = asyncio.Event()
        self._news = asyncio.Event()
        self._tasks = Tasks()

    def start(self, records: AsyncIterator[Records]) -> None:
        """Follows a watch of records of kind `port`; the ports of the settings are open already if they can be."""
        self._wanted = dict(self._listener.unopened)
        self._changed.set()
        self._tasks.start(self._follow(records), name="follow ports")
        self._tasks.start(self._keep(), name="open ports")
        self._tasks.start(self._report(), name="tell of ports")
        self._tasks.start(self._look(), name="look what is amiss with ports")

    async def stop(self) -> None:
        """Opens no more ports, and deletes the record of their state."""
        await self._tasks.stop()
        await say_no_more(self._put, self._instance)

    async def _follow(self, records: AsyncIterator[Records]) -> None:
        async for ports in followed(records, Port.from_json, "ports"):
            on_record = {port.name: port for port in ports if port.name not in OF_SETTINGS}
            self._wanted = self._listener.unopened | on_record
            self._changed.set()
            self._news.set()  # a restarted store sends a snapshot, and has forgotten transient records

    # -------------------------------------------------------------- sockets

    async def _keep(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_AGAIN if self._troubles else None):
                    await self._changed.wait()
            self._changed.clear()
            self._close_others()
            await asyncio.gather(*map(self._serve, self._wanted.values()))

    def _close_others(self) -> None:
        """Closes ports that are not wanted, or have another address, before others are opened at these addresses."""
        for name in self._troubles.keys() - self._wanted.keys():
            del self._troubles[name]
            self._news.set()
        for name, entrance in list(self._listener.entrances.items()):
            wanted = self._wanted.get(name)
            if name not in OF_SETTINGS and not (wanted and _is_there(entrance, wanted)):
                self._close(name)

    def _close(self, name: str) -> None:
        self._listener.entrances.pop(name).close()
        self._news.set()
        log.info("listening no longer; who is connected stays", port=name)

    async def _serve(self, port: Port) -> None:
        entrance = self._listener.entrances.get(port.name)
        if entrance and entrance.port == port:
            return
        try:
            await self._open(port, entrance)
        except OSError as failure:
            self._fails(port, _told(failure))
        except (BrokerError, ValueError) as failure:  # ValueError: the host is not a valid name
            self._fails(port, str(failure))
        else:
            self._troubles.pop(port.name, None)
            self._news.set()

    async def _open(self, port: Port, entrance: Entrance | None) -> None:
        if entrance:
            entrance.serve(port)
            log.info("a port has other terms", port=port.name)
            return
        entrance = Entrance(port, self._listener)
        await entrance.open()
        self._listener.entrances[port.name] = entrance

    def _fails(self, port: Port, reason: str) -> None:
        if port.name in self._listener.entrances:  # with former terms
            self._close(port.name)
        told = Served(port=port, trouble=reason)
        if self._troubles.get(port.name) != told:
            do = _DO_SETTINGS if port.name in OF_SETTINGS else _DO
            log.error("a port cannot be opened", port=port.name, at=port.address, reason=reason, do=do)
            self._troubles[port.name] = told
            self._news.set()

    # -------------------------------------------------------------- what others read

    async def _look(self) -> None:
        """Also where no client comes: files change, and may be unreadable."""
        told: list[str] = []
        while True:
            found = [kind.amiss for kind in self._listener.transports.values()]
            if found != told:
                told = found
                self._changed.set()  # a port that waits for it may be opened
                self._news.set()
            await asyncio.sleep(_LOOK)

    async def _report(self) -> None:
        """Writes the record at once, and whenever something has changed."""
        self._news.set()
        while True:
            await self._news.wait()
            self._news.clear()
            if not await self._tell():
                self._news.set()
                await asyncio.sleep(_AGAIN)

    async def _tell(self) -> bool:
        try:
            await _write(self._put, Account(instance=self._instance, served=self._served(), address=self._address))
        except BrokerError as error:
            log.debug("ports not told", reason=error.text)
            return False
        return True

    def _served(self) -> tuple[Served, ...]:
        entrances = self._listener.entrances.values()
        return (
            *(Served(port=each.port, at=tuple(each.addresses), amiss=each.amiss) for each in entrances),
            *self._troubles.values(),
        )


async def say_where(put: Put, instance: str, address: str) -> None:
    """Before it listens: so it is known whose place it takes, also if it cannot start."""
    with contextlib.suppress(BrokerError):  # `Ports` says it again
        await _write(put, Account(instance=instance, served=(), address=address))


async def say_no_more(put: Put, instance: str) -> None:
    """Deletes what it has said."""
    with contextlib.suppress(BrokerError, TimeoutError):
        # A stopping process does not wait: where the store is away too, transient records go with it.
        async with asyncio.timeout(_LAST_WORDS):
            await put([], [Record(kind=RECORD_KIND, key=instance)])


async def _write(put: Put, account: Account) -> None:
    value = account.model_dump_json().encode()
    await put([Record(kind=RECORD_KIND, key=account.instance, value=value, transient=True)], [])


def _is_there(entrance: Entrance, port: Port) -> bool:
    return (entrance.port.host, entrance.port.port) == (port.host, port.port)


def _told(failure: OSError) -> str:
    """A short text: asyncio's repeats the address. A name that is not found has no errno of the system."""
    if failure.errno and failure.errno > 0:
        return os.strerror(failure.errno)
    return failure.strerror or str(failure)

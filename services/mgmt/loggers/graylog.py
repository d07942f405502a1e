"""Graylog: lines as GELF 1.1 over TCP, each a JSON object with a zero byte after it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, Final

from services.mgmt.loggers.kind import Said, Sink, now_us
from services.mgmt.loggers.outbox import Outbox, in_place_of
from services.mgmt.loggers.syslog import check_host, check_port
from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.logs_pb2 import Line

_SEVERITIES: Final = {"DEBUG": 7, "INFO": 6, "WARN": 4, "ERROR": 3}
_PATIENCE: Final = 5.0  # seconds
_LAST: Final = 1.0
"""Seconds: for what the socket has not taken yet when it ends."""
_OF_A_LINE: Final = ("logger", "instance", "virtual_host", "user", "connection")


class GraylogSink(Outbox):
    """See Sink. It connects when there is something, and again when the connection ends."""

    def __init__(self, said: Said) -> None:
        self._to = said["remoteHost"], said["port"]
        super().__init__(f"graylog {self._to[0]}:{self._to[1]}")
        self.since_us = now_us()
        self._host = said["messageOriginHost"]
        self._static = {f"_{name}": value for name, value in said["staticFields"].items()}
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def _deliver(self, lines: Sequence[Line]) -> None:
        told = b"".join(map(self._gelf, lines))  # which takes this process's time, and not the receiver's
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._send(told)
        except (OSError, TimeoutError) as error:
            self._abort()
            raise OSError(f"{self._to[0]}:{self._to[1]} does not take them: {error}") from None

    async def _send(self, told: bytes) -> None:
        if self._reader and self._reader.at_eof():
            self._abort()  # it has gone meanwhile: what is written there is lost, and nothing says so
        if self._writer is None or self._writer.is_closing():
            self._reader, self._writer = await asyncio.open_connection(*self._to)
        self._writer.write(told)
        await self._writer.drain()

    def _gelf(self, line: Line) -> bytes:
        short, _, more = line.text.partition("\n")
        told: dict[str, Any] = {"version": "1.1", "host": self._host, "short_message": short}
        told |= {"full_message": line.text} if more else {}
        told |= {"timestamp": line.time_us / 1e6, "level": _SEVERITIES.get(line.level, _SEVERITIES["INFO"])}
        told |= {f"_{name}": value for name in _OF_A_LINE if (value := getattr(line, name))}
        told |= {"_level_name": line.level, **self._static}
        return json.dumps(told, ensure_ascii=False).encode(errors="replace") + b"\0"

    def _abort(self) -> None:
        """With what it has not taken, which would be kept here for as long as it takes nothing."""
        if self._writer:
            self._writer.transport.abort()
        self._reader = self._writer = None

    async def _end(self) -> None:
        """A receiver that takes nothing would keep the socket, and what is written to it, for as long."""
        if self._writer:
            self._writer.close()
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(_LAST):
                    await self._writer.wait_closed()
        self._abort()


class Graylog:
    """See LoggerKind."""

    defaults: ClassVar[Said] = {"remoteHost": None, "port": 12201, "messageOriginHost": None, "staticFields": {}}

    def check(self, said: Said, folder: Path) -> None:  # noqa: ARG002 - none of a disk
        check_port(said["port"])
        if not all(isinstance(each, str | int | float) for each in said["staticFields"].values()):
            raise IllegalConfiguration("attribute 'staticFields': texts and numbers are wanted")
        check_host("remoteHost", said["remoteHost"])

    async def open(self, said: Said, folder: Path, former: Sink | None) -> Sink:  # noqa: ARG002 - as above
        return in_place_of(former, GraylogSink(said))

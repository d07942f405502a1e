"""Syslog: lines as datagrams to a syslog daemon, as RFC 3164 has them and Broker-J sends them."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Final

from services.mgmt.loggers.kind import Said, Sink, now_us
from services.mgmt.loggers.layout import Layout
from services.mgmt.loggers.outbox import Outbox, in_place_of
from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.logs_pb2 import Line

_DAEMON: Final = 3 << 3
"""Facility, as Broker-J's."""
_SEVERITIES: Final = {"DEBUG": 7, "INFO": 6, "WARN": 4, "ERROR": 3}
_LONGEST: Final = 8000
"""Bytes of a datagram."""
_PORTS: Final = 65535


class SyslogSink(Outbox):
    """See Sink."""

    def __init__(self, host: str, port: int, layout: Layout) -> None:
        super().__init__(f"syslog {host}:{port}")
        self.since_us = now_us()
        self._to = host, port
        self._layout = layout
        self._from = socket.gethostname().partition(".")[0]

    async def _deliver(self, lines: Sequence[Line]) -> None:
        await asyncio.to_thread(self._send, lines)

    def _send(self, lines: Sequence[Line]) -> None:
        family, kind, _, _, address = socket.getaddrinfo(*self._to, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as connected:
            connected.connect(address)
            for line in lines:
                connected.send(self._datagram(line))
            # What its machine answers to the last one, as far as that is here: that nobody listens.
            if error := connected.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                raise OSError(error, os.strerror(error))

    def _datagram(self, line: Line) -> bytes:
        at = datetime.fromtimestamp(line.time_us / 1e6, UTC)
        priority = _DAEMON | _SEVERITIES.get(line.level, _SEVERITIES["INFO"])
        text = f"<{priority}>{at:%b} {at.day:2} {at:%H:%M:%S} {self._from} {self._layout(line)}"
        return text.encode(errors="replace")[:_LONGEST]

    async def _end(self) -> None:
        """Nothing is open between batches."""


class Syslog:
    """See LoggerKind."""

    defaults: ClassVar[Said] = {
        "syslogHost": "localhost",
        "port": 514,
        "suffixPattern": "Hopline %level [%thread] \\(%logger{2}\\) - %msg",
    }

    def check(self, said: Said, folder: Path) -> None:  # noqa: ARG002 - none of a disk
        check_port(said["port"])
        Layout(said["suffixPattern"], "suffixPattern")
        check_host("syslogHost", said["syslogHost"])

    async def open(self, said: Said, folder: Path, former: Sink | None) -> Sink:  # noqa: ARG002 - as above
        layout = Layout(said["suffixPattern"], "suffixPattern")
        return in_place_of(former, SyslogSink(said["syslogHost"], said["port"], layout))


def check_port(port: int) -> None:
    """Raises IllegalConfiguration."""
    if not 1 <= port <= _PORTS:
        raise IllegalConfiguration(f"attribute 'port': 1 to {_PORTS} is wanted, not {port}")


def check_host(attribute: str, host: str) -> None:
    """Whether there is one of that name; waits. Raises IllegalConfiguration."""
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", "") or str(error)
        raise IllegalConfiguration(
            f"attribute '{attribute}': {host!r} is no host that is known here: {reason}"
        ) from None

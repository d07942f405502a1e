"""An AMQP 1.0 client that does what tests say, performative by performative, over a real socket."""

from __future__ import annotations

import asyncio
from typing import Any

from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0.composite import Composite
from services.common.message.amqp_1_0.decode import decode_at
from services.gateway.protocols.amqp_1_0 import frames, security
from services.gateway.protocols.amqp_1_0.connection import AMQP_HEADER, SASL_HEADER
from services.gateway.protocols.amqp_1_0.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    Flow,
    Open,
    Transfer,
)
from services.gateway.protocols.amqp_1_0.states import Accepted
from tests.support.amqp_1_0_playbook import data, framed, receiving, sending

_SECONDS = 10
_WINDOW = 1 << 20
_ACCEPTED = Accepted()


class Client:
    """One session, 0; a link is as its handle. `payload`: what stood behind the performative that came last."""

    payload = b""

    async def open(self, port: int, user: str, password: str, virtual_host: str) -> Any:
        """The broker's open, or its close where it refuses."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", port)
        self._handle = -1
        self._deliveries = -1
        init = security.Init("PLAIN", f"\0{user}\0{password}".encode())
        self._writer.write(SASL_HEADER + framed(0, init, kind=frames.SASL))
        await self._reader.readexactly(8)
        await self.next(security.Outcome)
        self._writer.write(AMQP_HEADER + framed(0, Open("client", f"vhost:{virtual_host}")))
        await self._reader.readexactly(8)
        self._writer.write(framed(0, Begin(None, 0, _WINDOW, _WINDOW)))
        await self.next(Open)
        return await self.next(Begin, Close)

    async def next(self, *kinds: type[Composite]) -> Any:
        """The next performative of these kinds."""
        async with asyncio.timeout(_SECONDS):
            while True:
                head = await self._reader.readexactly(8)
                size, offset, _, _ = frames.HEAD.unpack(head)
                body = await self._reader.readexactly(size - 8)
                described, end = decode_at(body, 4 * offset - 8) if body else (None, 0)
                performative = composite.of(described) if body else None
                if isinstance(performative, kinds):
                    self.payload = body[end:]
                    return performative

    async def sends_to(self, address: str) -> str:
        """Attaches; gives the condition for which it is refused, else nothing."""
        self._handle += 1
        self._writer.write(framed(0, sending(address, self._handle)))
        return self._condition(await self.next(Flow, Detach))

    async def receives_from(self, address: str | None, **source: Any) -> str:
        """Attaches; gives the condition for which it is refused, else nothing."""
        self._handle += 1
        self._writer.write(framed(0, receiving(address, self._handle, source)))
        attached = await self.next(Attach)
        return "" if attached.source is not None else self._condition(await self.next(Detach))

    async def makes(self, attach: Attach) -> Any:
        """Attaches for a new node; gives the broker's attach."""
        self.attaches(attach)
        attached = await self.next(Attach)
        if not attach.role:
            await self.next(Flow)
        return attached

    def attaches(self, attach: Attach) -> None:
        """The same, and waits for nothing."""
        self._handle = attach.handle
        self._writer.write(framed(0, attach))

    async def sends(self, message: bytes = b"") -> Any:
        """One message by the link that was attached last; gives its state."""
        self.transfers(message)
        return (await self.next(Disposition)).state

    def transfers(self, message: bytes = b"") -> None:
        """The same, and waits for nothing."""
        self._deliveries += 1
        tag = str(self._deliveries).encode()
        transfer = Transfer(self._handle, self._deliveries, tag, 0)
        self._writer.write(framed(0, transfer, message or data()))

    def takes(self, credit: int) -> None:
        """So many messages by the link that was attached last."""
        self._writer.write(framed(0, Flow(0, _WINDOW, 0, _WINDOW, self._handle, 0, credit)))

    def settles(self, delivery: int, state: Composite = _ACCEPTED) -> None:
        """What came so many messages into the session."""
        self._writer.write(framed(0, Disposition(True, delivery, None, True, state)))

    async def delivered(self) -> tuple[Any, bytes]:
        """The next transfer, and its message."""
        transfer = await self.next(Transfer)
        return transfer, self.payload

    async def detaches(self, *, closed: bool = True) -> Any:
        """Ends the link that was attached last; gives the broker's detach."""
        self._writer.write(framed(0, Detach(self._handle, closed)))
        return await self.next(Detach)

    def ends(self) -> None:
        """The same, and waits for nothing."""
        self._writer.write(framed(0, Detach(self._handle, True)))

    def closes(self) -> None:
        """The same, and is gone before that is answered."""
        self.ends()
        self._writer.close()

    async def close(self) -> None:
        """Says goodbye."""
        self._writer.write(framed(0, Close()))
        await self.next(Close)
        self._writer.close()
        await self._writer.wait_closed()

    def abort(self) -> None:
        """Is gone."""
        self._writer.transport.abort()

    def _condition(self, came: Any) -> str:
        return str(came.error.condition) if isinstance(came, Detach) else ""

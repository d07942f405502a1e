"""Opens a stream to a service, on a connection of its own: a stream full of messages must not delay another."""

from __future__ import annotations

import asyncio

from services.common.http2 import events as e
from services.common.http2.connection import Http2Connection
from services.common.http2.errors import ErrorCode
from services.common.secret import fields_for
from services.common.streams.address import Address
from services.common.streams.endpoint import LARGEST_MESSAGE, Endpoint
from services.common.streams.grpc_fields import failure, request
from services.common.streams.stream import Stream, StreamListener

_CONNECT_SECONDS = 2.0


class CannotConnect(Exception):
    """No gRPC server answered at the address in time; the text says why."""


class _Client(Endpoint):
    def __init__(self, address: str) -> None:
        super().__init__(Http2Connection(is_client=True, largest_message=LARGEST_MESSAGE), address)
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ready(self, _ready: e.Ready) -> None:
        if not self.answered.done():
            self.answered.set_result(None)

    def close(self, reason: str = "") -> None:
        if reason and not self.answered.done():
            self.answered.set_exception(CannotConnect(reason))
        super().close(reason)

    def connection_lost(self, failure: Exception | None) -> None:
        if not self.answered.done():
            self.answered.set_exception(CannotConnect(str(failure or "the peer closed the connection")))
        super().connection_lost(failure)

    def open(self, method: str, listener: StreamListener) -> Stream:
        """Calls a method, `/package.Service/Method`. Raises CannotConnect when the connection is lost."""
        if self.lost:
            # It answered and was lost in the same turn: the listener of a new stream would never be told.
            raise CannotConnect("the peer closed the connection")
        stream = Stream(self, self._connection.request(request(method, fields_for(self.address))))
        self.begin(stream, listener)
        self.flush()
        return stream

    def headers(self, headers: e.Headers) -> None:
        reason = failure(headers.fields, ended=headers.ended)
        if reason is not None:
            self._connection.reset(headers.stream, ErrorCode.CANCEL)
            self.over(headers.stream, reason)

    def peer_ended(self, ended: e.Ended) -> None:
        self._connection.reset(ended.stream, ErrorCode.PROTOCOL_ERROR)
        self.over(ended.stream, "the peer ended the stream without a status")


class ClientStream:
    """A stream and its connection, which no other stream uses."""

    def __init__(self, client: _Client, stream: Stream) -> None:
        self._client = client
        self._stream = stream
        self.write = stream.write  # called for every batch

    @property
    def full(self) -> bool:
        """As Stream.full."""
        return self._client.full

    def close(self) -> None:
        """Ends stream and connection; the listener is not told. Does nothing when they have ended."""
        self._stream.reset()
        self._client.close()


async def connect(address: str, method: str, listener: StreamListener) -> ClientStream:
    """Opens a stream to a gRPC target (`unix:path` or `host:port`). Raises CannotConnect, after two seconds at most."""
    client = _Client(address)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            await Address.parse(address).connect(loop, lambda: client)
            await client.answered
        return ClientStream(client, client.open(method, listener))
    except (OSError, ValueError) as error:  # TimeoutError is an OSError; ValueError: of a name that cannot be one
        client.close()
        raise CannotConnect(str(error) or f"no answer in {_CONNECT_SECONDS:g} s") from None
    except BaseException:
        client.close()
        raise

"""A connection of a channel, and the calls that are on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc

from services.common.http2 import events as e
from services.common.http2.connection import Http2Connection
from services.common.http2.errors import ErrorCode
from services.common.streams.endpoint import LARGEST_MESSAGE, Doubt, Endpoint
from services.common.streams.grpc_fields import Metadata, Outcome, outcome, request
from services.common.streams.stream import Stream

if TYPE_CHECKING:
    from services.common.streams.channel import Channel
    from services.common.streams.client_call import ClientCall

_CODES: dict[int, grpc.StatusCode] = {
    ErrorCode.REFUSED_STREAM: grpc.StatusCode.UNAVAILABLE,
    ErrorCode.CANCEL: grpc.StatusCode.CANCELLED,
    ErrorCode.ENHANCE_YOUR_CALM: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ErrorCode.INADEQUATE_SECURITY: grpc.StatusCode.PERMISSION_DENIED,
}
"""What a stream that was reset means (PROTOCOL-HTTP2.md, "Errors"); INTERNAL, if nothing here."""


class ChannelEnd(Endpoint):
    """A connection, and the calls on it."""

    def __init__(self, channel: Channel, doubt: Doubt | None) -> None:
        connection = Http2Connection(is_client=True, largest_message=LARGEST_MESSAGE)
        super().__init__(connection, channel.address, doubt)
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.calls: dict[int, ClientCall] = {}
        self._channel = channel
        self._parting = False
        self.is_over = False
        """It takes no more calls."""
        self.is_used = False
        """It has taken one."""

    @property
    def may_request(self) -> bool:
        """Whether one more call can be sent."""
        return self._connection.may_request

    @property
    def is_used_up(self) -> bool:
        """Whether it has had as many calls as a connection can have."""
        return self._connection.is_used_up

    def send(self, call: ClientCall, metadata: Metadata) -> None:
        self.is_used = True
        fields = request(call.method.path, (*call.metadata, *metadata))
        first = call.first
        number = self._connection.request(fields) if first is None else self._connection.ask(fields, first)
        stream = Stream(self, number)
        self.calls[stream.number] = call
        self.begin(stream, call)
        call.began(stream)
        self.flush()

    # -------------------------------------------------------------- the peer says

    def ready(self, _ready: e.Ready) -> None:
        if not self.answered.done():
            self.answered.set_result(None)

    def more_streams(self, _more: e.MoreStreams) -> None:
        self._channel.has_room(self)

    def headers(self, headers: e.Headers) -> None:
        found = outcome(headers.fields, ended=headers.ended)
        if found is None:
            return
        call = self.calls.get(headers.stream)
        self._connection.reset(headers.stream, ErrorCode.CANCEL)  # nothing, where both ends have ended it
        self._drop(headers.stream)
        if call:
            call.finish(found)

    def peer_ended(self, ended: e.Ended) -> None:
        self._fail(ended.stream, Outcome(grpc.StatusCode.INTERNAL, "the service ended the call without a status"))

    def was_reset(self, reset: e.Reset) -> None:
        call = self.calls.get(reset.stream)
        if reset.code == ErrorCode.REFUSED_STREAM and call and call.refused():
            self._drop(reset.stream)
            self.part()
            self._channel.begin(call)
            return
        status = _CODES.get(reset.code, grpc.StatusCode.INTERNAL)
        ours = f"the answer to {call.method.path}: {reset.text}" if call and reset.text else ""
        self._fail(reset.stream, Outcome(status, ours or f"the service reset the call ({reset.code})"))

    def gone_away(self, gone: e.GoneAway) -> None:
        super().gone_away(gone)
        self.part()

    def part(self) -> None:
        """Closes as soon as the calls under way have ended."""
        self._parting = self.is_over = True
        self._channel.leave(self)
        self._look_if_idle()

    # -------------------------------------------------------------- calls that end

    def _fail(self, number: int, outcome: Outcome) -> None:
        call = self.calls.get(number)
        self._connection.reset(number, ErrorCode.CANCEL)
        self._drop(number)
        if call:
            call.finish(outcome)

    def _drop(self, number: int) -> None:
        self.calls.pop(number, None)
        self._behind.pop(number, None)
        if found := self._streams.pop(number, None):
            found[0].is_over = True
        if self._parting:
            self._look_if_idle()

    def reset(self, number: int, code: ErrorCode) -> None:
        self.calls.pop(number, None)
        super().reset(number, code)
        self._look_if_idle()

    def over(self, number: int, reason: str) -> None:
        self.calls.pop(number, None)
        super().over(number, reason)

    def _look_if_idle(self) -> None:
        if self._parting and self.idle:
            self.close()

    # -------------------------------------------------------------- the end

    def close(self, reason: str = "") -> None:
        self.is_over = True
        self._channel.broke(self)
        self._answer(reason or "the connection ends")
        super().close(reason)

    def connection_lost(self, failure: Exception | None) -> None:
        self.is_over = True
        self._channel.broke(self)
        self._answer(str(failure or "the peer closed the connection"))
        super().connection_lost(failure)

    def _answer(self, failure: str) -> None:
        if not self.answered.done():
            self.answered.set_exception(ConnectionError(failure))
            self.answered.exception()  # whoever waited for it may have given up

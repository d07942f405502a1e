"""A transcript of one AMQP 0-9-1 connection: what the client sends, what the broker says, what comes out.

The client's bytes are written, and the engine's read, by pamqp: a codec of another project.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pamqp import body, commands, frame, header

from services.gateway.protocols.amqp_0_9.engine import AmqpEngine
from services.gateway.protocols.amqp_0_9.limits import Amqp09Limits
from services.gateway.vocabulary import Close, CloseSession, EndSessions, Request

HEADER = b"AMQP\x00\x00\x09\x01"
CAPABILITIES = {
    "authentication_failure_close": True,
    "basic.nack": True,
    "connection.blocked": True,
    "consumer_cancel_notify": True,
    "publisher_confirms": True,
}


def written(channel: int, *values: Any) -> bytes:
    """The bytes of pamqp frames; plain bytes are a body frame."""
    frames = [body.ContentBody(value) if isinstance(value, bytes) else value for value in values]
    return b"".join(frame.marshal(value, channel) for value in frames)


def content(
    channel: int,
    payload: bytes,
    *,
    exchange: str = "",
    routing_key: str = "q",
    mandatory: bool = False,
    immediate: bool = False,
    frame_size: int = 4088,
    **properties: Any,
) -> bytes:
    """The bytes of a whole publish."""
    method = commands.Basic.Publish(0, exchange, routing_key, mandatory, immediate)
    head = header.ContentHeader(body_size=len(payload), properties=commands.Basic.Properties(**properties))
    pieces = [payload[start : start + frame_size] for start in range(0, len(payload), frame_size)]
    return written(channel, method, head, *pieces)


class Playbook:
    """Drives an engine; `sent` and `raw` empty what it has to say."""

    def __init__(self, limits: Amqp09Limits | None = None, mechanisms: tuple[str, ...] = ("PLAIN", "AMQPLAIN")) -> None:
        self.engine: AmqpEngine = AmqpEngine(limits or Amqp09Limits(), mechanisms)

    def raw(self) -> bytes:
        """The bytes that the engine wants written."""
        return b"".join(self.engine.data_to_send())

    def sent(self) -> list[tuple[int, Any]]:
        """The same, read: (channel, frame)."""
        data, found = self.raw(), []
        while data:
            size, channel, value = frame.unmarshal(data)
            found.append((channel, value))
            data = data[size:]
        return found

    def client(self, channel: int, *values: Any) -> list[Request]:
        """The client sends frames; gives the requests."""
        return self.engine.receive(written(channel, *values))

    def asks(self, channel: int, value: Any) -> Any:
        """The client sends one frame, of which comes exactly one request."""
        [request] = self.client(channel, value)
        return request

    def does(self, channel: int, value: Any, result: Any = None) -> Any:
        """The client asks, the broker has done it; gives the one answer."""
        self.engine.succeed(self.asks(channel, value), result)
        [(its_channel, answer)] = self.sent()
        assert its_channel == channel
        return answer

    def greeted(self) -> Playbook:
        """After the protocol header."""
        assert self.engine.receive(HEADER) == []
        [(_, start)] = self.sent()
        assert isinstance(start, commands.Connection.Start)
        return self

    def authenticated(self, capabilities: Mapping[str, bool] | None = None) -> Playbook:
        """After tune."""
        offered = CAPABILITIES if capabilities is None else capabilities
        start_ok = commands.Connection.StartOk({"capabilities": dict(offered)}, "PLAIN", "\0guest\0guest", "en_US")
        self.greeted().asks(0, start_ok)
        self.engine.authenticated()
        [(_, tune)] = self.sent()
        assert isinstance(tune, commands.Connection.Tune)
        return self

    def opened(self, capabilities: Mapping[str, bool] | None = None, frame_max: int = 0) -> Playbook:
        """After open-ok."""
        self.authenticated(capabilities)
        assert self.client(0, commands.Connection.TuneOk(0, frame_max, 0)) == []
        answer = self.does(0, commands.Connection.Open("/"))
        assert isinstance(answer, commands.Connection.OpenOk)
        return self

    def running(self, *channels: int, capabilities: Mapping[str, bool] | None = None, frame_max: int = 0) -> Playbook:
        """With open channels, 1 by default."""
        self.opened(capabilities, frame_max)
        for channel in channels or (1,):
            assert isinstance(self.does(channel, commands.Channel.Open()), commands.Channel.OpenOk)
        return self

    def ends(self, requests: list[Request]) -> None:
        """The engine asks for the end of session 1 and nothing else; the broker has carried that out."""
        assert requests == [CloseSession(1)]
        self.engine.succeed(requests[0])

    def closed_connection(self) -> tuple[int, int, int]:
        """Whatever its sessions had to do is done: the engine has sent nothing but connection.close, and sends that at
        the latest now. Gives its code, class and method.
        """
        for request in (EndSessions(0), Close(0)):
            self.engine.succeed(request)
        [(channel, close)] = self.sent()
        assert channel == 0
        assert isinstance(close, commands.Connection.Close)
        return close.reply_code, close.class_id, close.method_id

    def closed_channel(self, channel: int = 1) -> tuple[int, int, int]:
        """The engine has sent nothing but channel.close: its code, class and method."""
        [(its_channel, close)] = self.sent()
        assert its_channel == channel
        assert isinstance(close, commands.Channel.Close)
        return close.reply_code, close.class_id, close.method_id

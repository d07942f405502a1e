"""The channels of a connection: which method may come in which state, and what becomes of it (section 1.5.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from services.common.errors import BrokerError, CommandInvalid, NotAllowed, NotImplementedHere
from services.gateway.answers import Got
from services.gateway.outcomes import PublishDisposition
from services.gateway.protocols.amqp_0_9 import outgoing
from services.gateway.protocols.amqp_0_9.answers import answer_to
from services.gateway.protocols.amqp_0_9.channel import Channel, ChannelState, Content
from services.gateway.protocols.amqp_0_9.counted import counted
from services.gateway.protocols.amqp_0_9.foreign import native
from services.gateway.protocols.amqp_0_9.gathered import Gathered
from services.gateway.protocols.amqp_0_9.method import Method
from services.gateway.protocols.amqp_0_9.methods import basic, channel, confirm, queue
from services.gateway.protocols.amqp_0_9.peer import Peer
from services.gateway.protocols.amqp_0_9.publications import Publications
from services.gateway.protocols.amqp_0_9.reply_codes import ChannelFault, UnexpectedFrame, reply_text
from services.gateway.protocols.amqp_0_9.requests import request_of
from services.gateway.protocols.amqp_0_9.settlements import Settlements
from services.gateway.protocols.dealings import Received
from services.gateway.vocabulary import CloseSession, OpenSession, Publish, Request, Settle

_CLASS_CONNECTION = 10

# Requests that `succeed` never answers, and the method to blame when one fails.
_UNANSWERED: Mapping[type[Request], int] = {Publish: basic.Publish.code, Settle: basic.Ack.code}

# Looked up by the method itself, which takes no call of Python where `request_of` takes three.
_REQUESTS: Mapping[type[Any], Callable[[Any, int], Request]] = request_of.registry

_OPEN = (ChannelState.OPENING, ChannelState.OPEN)
_HEARD = (ChannelState.OPEN, ChannelState.ENDING, ChannelState.REFUSED)
_CLOSED_BY_US = (ChannelState.CROSSED, ChannelState.CLOSING)

_Handler = Callable[[Any, int, type[Any], bytes], None]  # of Channels, channel number, method, payload
_Row = Mapping[type[Method] | None, _Handler | None]


@dataclass(slots=True)
class _Asked:
    """A request that waits for the broker. It is held here so that its identity stays its own."""

    request: Request
    method: Method
    channel: Channel


class Channels:
    """Channels by their numbers. Raises BrokerError for what the peer may not do."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._channels: dict[int, Channel] = {}
        self._asked: dict[int, _Asked] = {}
        self.publications = Publications(peer, self._channels)
        self.settlements = Settlements(peer, self._channels)
        self._lent: list[Gathered] = []  # bodies that have parts of the read at hand

    # -------------------------------------------------------------- from the peer

    def method(self, number: int, code: int, payload: bytes) -> None:
        """A method frame on a channel other than 0."""
        its = self._channels.get(number)
        kind = self._peer.version.methods.get(code)
        row = self._TABLE[its.state if its else ChannelState.ABSENT]
        handle = row[kind] if kind in row else row[Method]
        if handle is None:
            return
        if code >> 16 == _CLASS_CONNECTION:
            raise CommandInvalid(f"{_named(kind, code)} on channel {number}: class connection is for channel 0")
        if its is not None and its.content is not None:
            raise UnexpectedFrame(f"{_named(kind, code)} where content is expected on channel {number}")
        if kind is None and its is not None:
            raise NotImplementedHere(f"unknown method {_named(kind, code)}")
        handle(self, number, kind or Method, payload)

    def header(self, number: int, payload: bytes) -> None:
        """A content header frame."""
        arriving = self._content_on(number)
        if arriving is not None:
            arriving.add_header(payload, self._peer.limits.max_message_size)
            self._peer.incomplete += arriving.weight
            self._complete(number, arriving)

    def body(self, number: int, payload: Received) -> None:
        """A content body frame, whose payload may be lent."""
        arriving = self._content_on(number)
        if arriving is not None:
            before = arriving.weight
            arriving.add_body(payload)
            self._peer.incomplete += arriving.weight - before
            if arriving.missing and arriving.body is not None and isinstance(payload, memoryview):
                self._lent.append(arriving.body)
            self._complete(number, arriving)

    def take_back(self) -> None:
        """What was lent is no more from now on; of bodies that have come whole nothing is copied."""
        for body in self._lent:
            body.keep()
        self._lent.clear()

    def _content_on(self, number: int) -> Content | None:
        """What content frames on the channel belong to; None when they are to be ignored."""
        its = self._channels.get(number)
        if its is None:
            raise ChannelFault(f"content on channel {number}, which is not open")
        if its.content is None and its.state not in (ChannelState.REFUSED, ChannelState.CLOSING):
            raise UnexpectedFrame(f"content where none is expected on channel {number}")
        return its.content

    def _complete(self, number: int, arrived: Content) -> None:
        if arrived.missing or arrived.attributes is None or arrived.body is None:
            return
        its = self._channels[number]
        its.content = None
        self._peer.incomplete -= arrived.weight
        self.publications.add(its, arrived.target, arrived.attributes, arrived.properties, arrived.body.take())

    # -------------------------------------------------------------- states

    def _open(self, number: int, kind: type[Method], payload: bytes) -> None:
        method = self._peer.version.decode(kind, payload)
        if number > self._peer.channel_max:
            raise NotAllowed(f"channel {number} is above the negotiated channel_max ({self._peer.channel_max})")
        self._channels[number] = opened = Channel(number)
        self._remember(OpenSession(number), method, opened)

    def _not_open(self, number: int, kind: type[Method], _payload: bytes) -> None:
        raise ChannelFault(
            f"expected 'channel.open' on channel {number}, got {getattr(kind, 'name', 'another method')}"
        )

    def _already_open(self, number: int, _kind: type[Method], _payload: bytes) -> None:
        raise ChannelFault(f"second 'channel.open' seen on channel {number}")

    def _closed_by_peer(self, number: int, kind: type[Method], payload: bytes) -> None:
        its = self._channels[number]
        its.state = ChannelState.ENDING
        self._remember(CloseSession(number), self._peer.version.decode(kind, payload), its)

    def _closed_by_both(self, number: int, _kind: type[Method], _payload: bytes) -> None:
        self._peer.send(number, channel.CloseOk())

    def _close_acknowledged(self, number: int, _kind: type[Method], _payload: bytes) -> None:
        del self._channels[number]

    def _closed_while_refused(self, number: int, kind: type[Method], payload: bytes) -> None:
        """It hears of the fault at once, since it waits for close-ok, and of nothing that it asked for before."""
        its = self._channels[number]
        [closing] = [asked.method for asked in self._asked.values() if asked.channel is its and _is_ours(asked)]
        self._close(its, closing)
        self._closed_by_both(number, kind, payload)

    def _publish(self, number: int, _kind: type[Method], payload: bytes) -> None:
        self._channels[number].content = Content(self.publications.target_of(payload))

    def _settle(self, number: int, kind: type[basic.Ack | basic.Nack | basic.Reject], payload: bytes) -> None:
        self.settlements.add(number, self._peer.version.decode(kind, payload))

    def _select_confirms(self, number: int, kind: type[Method], payload: bytes) -> None:
        self._channels[number].select_confirms()
        self._ask(number, kind, payload)

    def _ask(self, number: int, kind: type[Method], payload: bytes) -> None:
        method = self._peer.version.decode(kind, payload)
        request = _REQUESTS.get(kind, request_of)(method, number)
        self._remember(request, method, self._channels[number])

    # -------------------------------------------------------------- from the broker

    def answer(self, request: Request, result: Any) -> None:  # noqa: ANN401 - as the vocabulary says of each request
        """Tells the peer that `request` is done, unless its channel is gone."""
        asked = self._take_asked(request)
        if asked is None:
            return
        its = asked.channel
        if _is_ours(asked):
            self._close(its, asked.method)
            return
        if isinstance(request, OpenSession):
            its.opened = True
            its.state = ChannelState.OPEN if its.state is ChannelState.OPENING else its.state
        elif isinstance(request, CloseSession) and its.state is ChannelState.ENDING:
            del self._channels[its.number]
        answer = answer_to(asked.method, result)
        if isinstance(result, Got) and answer:
            [properties], [body] = native([result.facts], [result.properties], [result.body])
            [properties] = counted([properties], result.attempts, result.acquired)
            self._peer.send_content(request.session, answer, properties, body)
        elif answer:
            self._peer.send(request.session, answer)
        if its.cancelled and isinstance(asked.method, queue.Delete):
            tags, its.cancelled = its.cancelled, []
            self._tell_cancelled(its, tags)

    def cancelled(self, number: int, tag: str) -> None:
        """The broker ended a consumer. A channel that deletes a queue hears of that first, as from RabbitMQ."""
        its = self._channels.get(number)
        if its is None or not its.opened or "consumer_cancel_notify" not in self._peer.capabilities:
            return
        if any(asked.channel is its and isinstance(asked.method, queue.Delete) for asked in self._asked.values()):
            its.cancelled.append(tag)
        else:
            self._tell_cancelled(its, [tag])

    def _tell_cancelled(self, its: Channel, tags: list[str]) -> None:
        if its.state is ChannelState.OPEN:
            for tag in tags:
                self._peer.send(its.number, basic.Cancel(tag, True))

    def tell_outcomes(self, number: int, dispositions: Sequence[PublishDisposition]) -> None:
        """What became of publishes on a channel, to a peer that may be told."""
        its = self._channels.get(number)
        if its is None or its.confirms is None or not self.is_heard(number):
            return
        for first, last, cumulative, accepted in its.confirms.told(dispositions):
            if cumulative:
                self._peer.send(number, basic.Ack(last, True))
            else:
                self._peer.out.append(outgoing.confirms(number, first, last, accepted=accepted))

    def code_of(self, request: Request) -> int | None:
        """The code of the method that `request`, which failed, came from; None when its client is not told."""
        asked = self._take_asked(request)
        if asked is not None:
            return self._peer.version.code_of(type(asked.method))
        unanswered = _UNANSWERED.get(type(request))
        return unanswered if unanswered and self.is_heard(request.session) else None

    def is_open(self, number: int) -> bool:
        """Whether the peer may be sent something new on the channel."""
        its = self._channels.get(number)
        return its is not None and its.state is ChannelState.OPEN

    def is_heard(self, number: int) -> bool:
        """Whether the peer may be told what became of something that it sent."""
        its = self._channels.get(number)
        return its is not None and its.opened and its.state in _HEARD

    def refuse(self, number: int, error: BrokerError, code: int) -> None:
        """What was sent on the channel is at fault: it ends with the error's reply code when all that was asked on it
        before is answered.
        """
        its = self._channels.get(number)
        if its is not None and its.state in _OPEN:
            self._drop_content(its)
            its.state = ChannelState.REFUSED
            self._remember(CloseSession(number, reply_text(error)), self._closing(error, code), its)

    def fail(self, number: int, error: BrokerError, code: int) -> None:
        """Something that was asked on the channel failed: closes it with the error's reply code, if it is there."""
        its = self._channels.get(number)
        if its is None or its.state in _CLOSED_BY_US:
            return
        ends = its.state in (ChannelState.ENDING, ChannelState.REFUSED)  # its session, that is: it was asked for
        self._drop_content(its)
        self._close(its, self._closing(error, code))
        if not ends:
            self._peer.ask(CloseSession(number))

    def _closing(self, error: BrokerError, code: int) -> channel.Close:
        return channel.Close(self._peer.version.reply_code(error), reply_text(error), code >> 16, code & 0xFFFF)

    def _close(self, its: Channel, closing: Method) -> None:
        """Of what was asked on it only the client's own close is still answered."""
        ending = its.state is ChannelState.ENDING
        its.state = ChannelState.CROSSED if ending else ChannelState.CLOSING
        for identity, asked in list(self._asked.items()):
            if asked.channel is its and not (ending and isinstance(asked.request, CloseSession)):
                del self._asked[identity]
        self._peer.send(its.number, closing)

    def _drop_content(self, its: Channel) -> None:
        if its.content is not None:
            self._peer.incomplete -= its.content.weight
            its.content = None

    def drop_contents(self) -> None:
        """The connection ends: what the peer has begun to publish does not come whole."""
        for its in self._channels.values():
            its.content = None
        self._peer.incomplete = 0

    def forget(self) -> None:
        """Nothing is said on channels any more: what the broker still has to answer is dropped."""
        self.drop_contents()  # shapes and forms of publishes may still name their channels
        self._channels.clear()
        self._asked.clear()

    def _remember(self, request: Request, method: Method, its: Channel) -> None:
        self._asked[id(request)] = _Asked(request, method, its)
        self._peer.ask(request)

    def _take_asked(self, request: Request) -> _Asked | None:
        return self._asked.pop(id(request), None)

    # state → method → what to do; `Method` is every other method, None: ignore it.
    _WHEN_OPEN: ClassVar[_Row] = {
        channel.Open: _already_open,
        channel.Close: _closed_by_peer,
        channel.FlowOk: None,
        basic.CancelOk: None,
        basic.Publish: _publish,
        basic.Ack: _settle,
        basic.Nack: _settle,
        basic.Reject: _settle,
        confirm.Select: _select_confirms,
        Method: _ask,
    }
    _TABLE: ClassVar[Mapping[ChannelState, _Row]] = {
        ChannelState.ABSENT: {channel.Open: _open, Method: _not_open},
        ChannelState.OPENING: _WHEN_OPEN,
        ChannelState.OPEN: _WHEN_OPEN,
        ChannelState.ENDING: {channel.Open: _already_open, Method: None},
        ChannelState.REFUSED: {channel.Close: _closed_while_refused, Method: None},
        ChannelState.CROSSED: {channel.Open: _open, channel.CloseOk: _close_acknowledged, Method: None},
        ChannelState.CLOSING: {channel.Close: _closed_by_both, channel.CloseOk: _close_acknowledged, Method: None},
    }


def _is_ours(asked: _Asked) -> bool:
    """Whether we close the channel when that is done, with the method that is said; else it came from the client."""
    return asked.channel.state is ChannelState.REFUSED and isinstance(asked.request, CloseSession)


def _named(kind: type[Method] | None, code: int) -> str:
    return f"'{kind.name}'" if kind else f"{code >> 16}.{code & 0xFFFF}"

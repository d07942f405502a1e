"""One channel of an AMQP 0-9-1 client, and what it sees, written into a History."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pamqp import body, commands, header

from tests.simulation.history import Consuming, Delivered, Opened, Sent, Transaction
from tests.simulation.line import GoneError

if TYPE_CHECKING:
    from tests.simulation.wire import Wire

_CONTENT = (commands.Basic.Deliver, commands.Basic.GetOk, commands.Basic.Return)
_FRAME = 120_000

Taker = Callable[["Channel", Delivered], None]


def body_of(message: str, size: int) -> bytes:
    """A body that carries its message's id and can be checked."""
    head = f"{message}|".encode()
    return head + (message.encode() * (size // len(message) + 1))[: max(0, size - len(head))]


class Channel:
    """One channel: at most one synchronous request at a time, publishes and settlements besides."""

    def __init__(self, wire: Wire, number: int, opened: Opened) -> None:
        self.wire = wire
        self.number = number
        self.opened = opened
        self.unconfirmed: dict[int, Sent] = {}
        self.unsettled: dict[int, Delivered] = {}
        self.consumers: dict[str, tuple[Consuming, Taker | None]] = {}
        self.transaction: Transaction | None = None
        self.answer: asyncio.Future[Any] | None = None
        self.getting: tuple[str, bool] | None = None  # queue and no-ack of the basic.get under way
        self.published = 0
        self.recover_asked = 0  # when everything unsettled was asked to be sent again, until the answer
        self._unbound: list[Sent] = []
        self._unknown: list[Delivered] = []
        self._before = (0, 0)  # of these, when the request under way was sent
        self._part: list[Any] = []

    @property
    def dead(self) -> bool:
        return self.opened.ending is not None

    @property
    def leaving(self) -> bool:
        """Whether what a client settles now is not heard: it has asked for the channel's end, or to recover."""
        return bool(self.recover_asked) or self.dead or self.opened.leaving is not None or self.wire.dead

    # -------------------------------------------------------------- what the client does

    async def call(self, request: Any, behind: bytes = b"") -> Any:
        """Sends a method, and perhaps something behind it, and gives its answer; raises GoneError."""
        if self.dead:
            raise GoneError(self.opened.code, self.opened.text)
        assert self.answer is None, "one request at a time"
        self.answer = asyncio.get_running_loop().create_future()
        self._before = len(self._unbound), len(self._unknown)
        self.wire.send(self.number, request)
        if behind:
            self.wire.write(behind)
        try:
            return await self.answer
        finally:
            self.answer = None

    def publish(self, sent: Sent) -> None:
        """Sends a message; its outcome is written into `sent`."""
        properties = commands.Basic.Properties(
            message_id=sent.id,
            delivery_mode=2 if sent.persistent else 1,
            priority=sent.priority or None,
            expiration=None if sent.ttl is None else str(sent.ttl),
            headers=sent.headers or None,
        )
        method = commands.Basic.Publish(0, sent.exchange, sent.key, sent.mandatory, sent.immediate)
        payload = body_of(sent.id, sent.size)
        pieces = [body.ContentBody(payload[at : at + _FRAME]) for at in range(0, len(payload), _FRAME)]
        self.wire.send(
            self.number, method, header.ContentHeader(body_size=len(payload), properties=properties), *pieces
        )
        self.published += 1
        sent.number = self.published
        self._unbound.append(sent)
        if self.opened.mode == "confirm":
            self.unconfirmed[self.published] = sent
        elif self.transaction:
            sent.transaction = self.transaction
            self.transaction.published.append(sent)

    def settle(self, how: str, tag: int, *, multiple: bool = False) -> None:
        """ack, reject, requeue of one delivery, or of all up to it."""
        history = self.wire.history
        tags = [each for each in self.unsettled if each <= tag] if multiple else [tag]
        at = history.tick()
        for each in tags:
            delivered = self.unsettled.pop(each)
            delivered.settled_as, delivered.settled = how, at
            if self.transaction:
                delivered.transaction = self.transaction
                self.transaction.settled.append(delivered)
            else:
                self._unknown.append(delivered)
        if how == "ack":
            self.wire.send(self.number, commands.Basic.Ack(tag, multiple))
        elif multiple:
            self.wire.send(self.number, commands.Basic.Nack(tag, True, how == "requeue"))
        else:
            self.wire.send(self.number, commands.Basic.Reject(tag, how == "requeue"))

    # -------------------------------------------------------------- what comes

    def take(self, value: Any) -> None:
        if isinstance(value, _CONTENT):
            self._part = [value]
        elif isinstance(value, header.ContentHeader | body.ContentBody):
            self._part.append(value)
            if sum(len(part.value) for part in self._part[2:]) >= self._part[1].body_size:
                self._content()
        elif isinstance(value, commands.Basic.Ack | commands.Basic.Nack):
            self._confirm(value)
        elif isinstance(value, commands.Channel.Close):
            self.wire.send(self.number, commands.Channel.CloseOk())
            self.end(value.reply_code, value.reply_text)
        elif isinstance(value, commands.Basic.Cancel):
            self._cancelled(value.consumer_tag)
        else:
            if isinstance(value, commands.Basic.RecoverOk):
                self._recovered()
            elif isinstance(value, commands.Channel.CloseOk):
                self.answered(value)
                self.end(200, "")
                return
            self.answered(value)

    def answered(self, value: Any) -> None:
        """What was sent before the request has been carried out by the gateway."""
        now = self.wire.history.tick()
        # Deliveries come, and are settled, while a request is under way; when the connection ends none is.
        unbound, unknown = self._before if self.answer else (len(self._unbound), len(self._unknown))
        for sent in self._unbound[:unbound]:
            sent.bound = now
        for delivered in self._unknown[:unknown]:
            delivered.known = now
        del self._unbound[:unbound], self._unknown[:unknown]
        if self.answer and not self.answer.done():
            self.answer.set_result(value)

    def end(self, code: int, text: str) -> None:
        """The channel is no more."""
        if self.dead:
            return
        now = self.wire.history.tick()
        self.opened.ending, self.opened.code, self.opened.text = now, code, text
        for consuming, _ in self.consumers.values():
            consuming.ending = consuming.ending or now
        if self.transaction and self.transaction.outcome == "open":
            # What a commit under way came to, its caller says.
            self.transaction.outcome = "unknown" if self.transaction.asked else "rolled_back"
            self.transaction.answered = now
        if self.answer and not self.answer.done():
            self.answer.set_exception(GoneError(code, text))
        self.wire.changed.set()

    def _confirm(self, value: commands.Basic.Ack | commands.Basic.Nack) -> None:
        now, last = self.wire.history.tick(), value.delivery_tag
        numbers = [each for each in self.unconfirmed if each <= last] if value.multiple else [last]
        for number in numbers:
            if (sent := self.unconfirmed.pop(number, None)) is None:
                self.wire.history.stuck.append(f"confirm of {number}, which was not waited for")
                continue
            sent.bound = now
            if isinstance(value, commands.Basic.Ack):
                sent.confirmed = now
            else:
                sent.refused = now
        self.wire.changed.set()

    def _recovered(self) -> None:
        """What came before the answer was on its way, and given back too; what comes after it is new."""
        for delivered in self.unsettled.values():
            delivered.settled_as, delivered.settled = "requeue", self.recover_asked
        self.unsettled.clear()
        self.recover_asked = 0

    def _cancelled(self, tag: str) -> None:
        if found := self.consumers.pop(tag, None):
            found[0].ending = self.wire.history.tick()
            found[0].cancelled_by_broker = True

    def _content(self) -> None:
        method, head, *pieces = self._part
        self._part = []
        payload = b"".join(piece.value for piece in pieces)
        if isinstance(method, commands.Basic.Return):
            self._returned(method, head.properties.message_id)
            return
        delivered = self._delivered(method, head.properties, payload)
        if isinstance(method, commands.Basic.GetOk):
            self.answered((method, delivered))
            return
        taker = self.consumers[method.consumer_tag][1]
        if taker:
            taker(self, delivered)

    def _returned(self, method: commands.Basic.Return, message: str) -> None:
        if sent := self.wire.history.sent.get(message):
            sent.returned, sent.return_code = self.wire.history.tick(), method.reply_code

    def _delivered(self, method: Any, properties: Any, payload: bytes) -> Delivered:
        history = self.wire.history
        consumer = None
        if isinstance(method, commands.Basic.Deliver):
            consumer = self.consumers[method.consumer_tag][0]
            queue, no_ack = consumer.queue, consumer.no_ack
        else:
            assert self.getting
            queue, no_ack = self.getting
        deaths = (properties.headers or {}).get("x-death", [])
        delivered = Delivered(
            payload.partition(b"|")[0].decode("utf-8", "replace"),
            self.wire.connected.host,
            queue,
            self.opened,
            consumer,
            method.delivery_tag,
            method.redelivered,
            method.exchange,
            method.routing_key,
            properties,
            payload == body_of(properties.message_id or "?", len(payload)),
            history.tick(),
            history.clock(),
            history.draining,
            no_ack,
            tuple((death["queue"], death["reason"], death["count"]) for death in deaths),
        )
        history.deliveries.append(delivered)
        if no_ack:
            delivered.settled_as, delivered.settled = "none", delivered.at
        else:
            self.unsettled[method.delivery_tag] = delivered
        return delivered


def begin(channel: Channel) -> Transaction:
    """The next transaction of a channel."""
    channel.transaction = Transaction(channel.opened)
    channel.wire.history.transactions.append(channel.transaction)
    return channel.transaction

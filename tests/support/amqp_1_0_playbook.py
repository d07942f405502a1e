"""A transcript of one AMQP 1.0 connection: what the client sends, what the broker says, what comes out.

Bytes are written and read by our own codec, which tests of its own hold to the specification; that others understand
them is shown with qpid-proton (tests/interop).
"""

from __future__ import annotations

from typing import Any

from services.common.errors import ConnectionForced, NotFound
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.composite import Composite
from services.common.message.amqp_1_0.decode import decode_at
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.sections import DATA
from services.common.message.facts import Facts
from services.gateway import answers
from services.gateway import vocabulary as to_broker
from services.gateway.outcomes import ACCEPTED, DeliveryOutcome, PublishDisposition, PublishOutcome
from services.gateway.protocols.amqp_1_0 import frames, security
from services.gateway.protocols.amqp_1_0.connection import AMQP_HEADER, SASL_HEADER
from services.gateway.protocols.amqp_1_0.engine import Amqp10Engine
from services.gateway.protocols.amqp_1_0.limits import Amqp10Limits
from services.gateway.protocols.amqp_1_0.performatives import Attach, Begin, Close, Flow, Open, Transfer
from services.gateway.protocols.amqp_1_0.termini import Source, Target
from services.gateway.vocabulary import Request

PLAIN = b"\0guest\0guest"
NEW = Facts("/", "", "q", "amqp-1-0")
NOT_THERE = NotFound("not there")


def data(payload: bytes = b"hello") -> bytes:
    """A message that is one section of data."""
    return encode(v.Described(v.ULong(DATA), payload))


def framed(channel: int, performative: Composite, payload: bytes = b"", kind: int = frames.AMQP) -> bytes:
    """A frame of it."""
    return frames.frame(kind, channel, composite.write(performative) + payload)


class Playbook:
    """Drives an engine in front of a broker that says yes to everything, and writes down what it is asked.

    What it publishes is confirmed by `confirm`; `nodes` are there, what else is looked for is not.
    """

    def __init__(self, limits: Amqp10Limits | None = None, mechanisms: tuple[str, ...] = ("PLAIN",)) -> None:
        self.engine = Amqp10Engine(limits or Amqp10Limits(), mechanisms)
        self.asked: list[Request] = []
        self.nodes: dict[str, to_broker.Node] = {"q": to_broker.Node.QUEUE, "x": to_broker.Node.EXCHANGE}
        self.refused: dict[type[Request], Any] = {}  # what the broker says no to, and how
        self.waits: set[type[Request]] = set()  # what it takes its time for
        self.closed = False

    # -------------------------------------------------------------- the client

    def raw(self) -> bytes:
        """What the engine wants written."""
        return b"".join(self.engine.data_to_send())

    def sent(self) -> list[tuple[int, Any, bytes]]:
        """The same, read: channel, performative (or header), payload."""
        written, found = self.raw(), []
        while written:
            if written.startswith(b"AMQP"):
                found.append((0, written[:8], b""))
                written = written[8:]
                continue
            size, offset, _, channel = frames.HEAD.unpack_from(written)
            body, written = written[4 * offset : size], written[size:]
            described, end = decode_at(body, 0)
            found.append((channel, composite.of(described), body[end:]))
        return found

    def answers(self) -> list[Any]:
        """What was sent, without channels and payloads."""
        return [performative for _, performative, _ in self.sent()]

    def receives(self, raw: bytes) -> list[Request]:
        """The engine reads bytes, and the broker does what they ask for; gives what that was."""
        before = len(self.asked)
        self._serve(self.engine.receive(raw))
        return self.asked[before:]

    def says(self, channel: int, performative: Composite, payload: bytes = b"") -> list[Request]:
        """The client sends a frame."""
        return self.receives(framed(channel, performative, payload))

    def does(self, channel: int, performative: Composite, payload: bytes = b"") -> list[Any]:
        """The client sends a frame; gives what it is told."""
        self.says(channel, performative, payload)
        return self.answers()

    def sent_by(self, channel: int, performative: Composite) -> list[tuple[int, Any, bytes]]:
        """The client sends a frame; gives all that it is sent."""
        self.says(channel, performative)
        return self.sent()

    # -------------------------------------------------------------- the broker

    def _serve(self, requests: list[Request]) -> None:
        for request in requests:
            self.asked.append(request)
            if type(request) in self.waits:
                continue
            self.serve(request)

    def serve(self, request: Request) -> None:
        """Does what was asked for."""
        engine = self.engine
        match request:
            case to_broker.Close():
                self.closed = True
                engine.succeed(request)
            case _ if type(request) in self.refused:
                engine.fail(request, self.refused[type(request)])
            case to_broker.Authenticate():
                engine.authenticated()
            case to_broker.FindNode(candidates=candidates):
                found = next(((name, node) for name, node in candidates if self.nodes.get(name) is node), None)
                if found:
                    engine.succeed(request, found)
                else:
                    engine.fail(request, NOT_THERE)
            case to_broker.DeclareQueue():
                engine.succeed(request, answers.QueueDeclared("own", 0, 0))
            case to_broker.Publish() | to_broker.Settle() | to_broker.Credit(drain=False):
                pass
            case _:
                engine.succeed(request)
        self._serve(engine.pending_requests())

    def confirm(self, first: int, last: int, *, link: int = 1, outcome: PublishOutcome = ACCEPTED) -> None:
        """Something became of publishes of a link, which are safe unless it is said."""
        self.engine.confirm(1, [PublishDisposition(link, first, last, outcome)])

    def deliver(self, tag: str, first: int, *bodies: bytes, session: int = 1, attempts: int = 0) -> None:
        """The broker delivers messages of data, as they were published."""
        count = len(bodies)
        columns = [NEW] * count, [b""] * count, [data(body) for body in bodies]
        self.engine.deliver(session, answers.Deliveries(tag, first, attempts, *columns))
        self._serve(self.engine.pending_requests())

    def shut_down(self) -> None:
        """The broker ends the connection."""
        self.engine.close(ConnectionForced("broker is shutting down"))
        self._serve(self.engine.pending_requests())

    # -------------------------------------------------------------- ways to begin

    def authenticated(self) -> Playbook:
        """After SASL."""
        self.receives(SASL_HEADER + framed(0, security.Init("PLAIN", PLAIN), kind=frames.SASL))
        header, mechanisms, outcome = self.answers()
        assert header == SASL_HEADER
        assert isinstance(mechanisms, security.Mechanisms)
        assert outcome == security.Outcome(security.OK)
        return self

    def opened(self, **fields: Any) -> Playbook:
        """After open."""
        self.authenticated()
        self.receives(AMQP_HEADER + framed(0, Open("client", **fields)))
        header, opened = self.answers()
        assert header == AMQP_HEADER
        assert isinstance(opened, Open)
        return self

    def begun(self, channel: int = 0, *, window: int = 1 << 20, **fields: Any) -> Playbook:
        """After begin."""
        if not self.asked:
            self.opened(**fields)
        [begin] = self.does(channel, Begin(None, 0, window, window))
        assert begin.remote_channel == channel
        return self

    def sender(self, address: str = "q", handle: int = 0, **fields: Any) -> Playbook:
        """With a link by which the client sends."""
        self.begun()
        attach, flow = self.does(0, sending(address, handle, **fields))
        assert isinstance(attach, Attach)
        assert flow.link_credit
        return self

    def receiver(self, address: str | None = "q", handle: int = 0, window: int = 1 << 20, **fields: Any) -> str:
        """With a link by which the client receives; gives the consumer's tag."""
        self.begun(window=window)
        [attach] = self.does(0, receiving(address, handle, **fields))
        assert attach.source is not None
        return next(each.tag for each in reversed(self.asked) if isinstance(each, to_broker.Consume))

    def close(self) -> list[Any]:
        """The client closes; gives what it is told."""
        return self.does(0, Close())


def sending(address: str | None = "q", handle: int = 0, **fields: Any) -> Attach:
    """An attach of a client that wants to send."""
    return Attach(
        _name("to", address, handle),
        handle,
        False,
        source=Source(),
        target=Target(address),
        initial_delivery_count=0,
        **fields,
    )


def receiving(
    address: str | None = "q", handle: int = 0, source: dict[str, Any] | None = None, **fields: Any
) -> Attach:
    """An attach of a client that wants to receive."""
    return Attach(
        _name("of", address, handle), handle, True, source=Source(address, **source or {}), target=Target(), **fields
    )


def _name(way: str, address: str | None, handle: int) -> str:
    """Of links that are there together, which have names of their own."""
    return f"{way} {address} by {handle}" if handle else f"{way} {address}"


def transfer(number: int, handle: int = 0, **fields: Any) -> Transfer:
    """The first, or only, frame of a delivery."""
    return Transfer(handle, number, str(number).encode(), 0, **fields)


def credit(link_credit: int, delivery_count: int = 0, *, window: int = 1 << 20, seen: int = 0, **more: Any) -> Flow:
    """A client's word on what it takes on link 0."""
    return Flow(seen, window, 0, 1, 0, delivery_count, link_credit, **more)


def settled(requests: list[to_broker.Request]) -> list[tuple[int, int, DeliveryOutcome]]:
    """What was settled, and how."""
    return [(each.first, each.last, each.outcome) for each in requests if isinstance(each, to_broker.Settle)]

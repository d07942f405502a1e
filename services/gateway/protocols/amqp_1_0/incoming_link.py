"""A link by which the peer sends: its messages go to a queue or an exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from services.common.errors import BrokerError, NotImplementedHere
from services.common.message import LONGEST_NAME
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.format import FORMAT
from services.common.message.amqp_1_0.sections import split
from services.common.message.bounds import LITTLE
from services.common.message.facts import facts_of
from services.gateway.answers import QueueDeclared
from services.gateway.protocols.amqp_1_0.addresses import Meant, meanings
from services.gateway.protocols.amqp_1_0.conditions import (
    InvalidField,
    MessageSizeExceeded,
    TransferLimitExceeded,
    UnattachedHandle,
)
from services.gateway.protocols.amqp_1_0.lifetimes import ON_CLOSE, arguments_of, is_exclusive, lifetime_of
from services.gateway.protocols.amqp_1_0.link import Link, LinkState
from services.gateway.protocols.amqp_1_0.performatives import SECOND, SETTLED, Attach, Flow, Transfer
from services.gateway.protocols.amqp_1_0.publications import Hears, Sent
from services.gateway.protocols.amqp_1_0.serial import after
from services.gateway.protocols.amqp_1_0.termini import Target
from services.gateway.protocols.producing import Producing
from services.gateway.protocols.stream_engine import MOST_EFFORT
from services.gateway.vocabulary import MANAGEMENT, DeclareQueue, EndProduce, Kind, Node, Produce

if TYPE_CHECKING:
    from services.gateway.protocols.amqp_1_0.peer import KindKey
    from services.gateway.protocols.amqp_1_0.session import Session

_BYTES_PER_MICROSECOND: Final = 8  # of what is in front of a body and has to be counted

_TOPICS: Final = frozenset({v.Symbol("topic"), v.Symbol("temporary-topic")})  # capabilities

_PIECE: Final = 8
"""Microseconds that a transfer takes with which no message comes: messages are counted by themselves."""

CREDIT: Final = 1000
"""Messages that a peer may send before it hears of us: it does when half of them have come."""


class IncomingLink(Link):
    """`sent`: messages of it that the broker has, by their numbers, and did not say what became of them."""

    def __init__(self, session: Session, attach: Attach, handle: int) -> None:
        super().__init__(session, attach, handle)
        self.sent: dict[int, Sent] = {}
        self.next = 1  # the number of the next one
        self._exchange = ""
        self._key: str | None = None  # None: each message's subject
        self._credit = 0
        self._count = 0  # deliveries, as the sender counts them
        self._begun: Transfer | None = None  # the first of a delivery's transfers, while more are to come
        self._settled = False
        self._usual = Hears.OUTCOME if self.rcv_settle_mode == SECOND else Hears.SETTLED
        self._pieces = bytearray()  # of a delivery that has not come whole
        self._produces = False  # the broker was told that it does, and not that it does no more
        self._made = ""  # a queue, which the peer has asked for …
        self._makes = False  # … and the broker was asked for, and not yet to let go of

    # -------------------------------------------------------------- beginning

    def begin(self) -> None:
        """As Link says."""
        target = self._attach.target
        if not isinstance(target, Target):
            raise NotImplementedHere("a target of this kind is not offered")
        if target.address is None and not target.dynamic:
            raise NotImplementedHere("targets without an address, anonymous ones, are not offered yet")
        self._check_attach()
        if target.dynamic:
            self._make(target)
        elif target.address == MANAGEMENT:
            self._found(Meant(MANAGEMENT, Node.QUEUE))
        else:
            self._find(meanings(target.address), self._found, to_send=True)

    def _check_attach(self) -> None:
        attach = self._attach
        if attach.unsettled:
            raise NotImplementedHere("links are not resumed: attach without unsettled deliveries")
        if attach.initial_delivery_count is None:
            raise InvalidField("a sender's attach says its initial-delivery-count")
        self._count = attach.initial_delivery_count

    def _make(self, target: Target) -> None:
        """A queue that goes with it, unless its peer wants it longer: others receive from it."""
        if not _TOPICS.isdisjoint(target.capabilities or ()):
            raise NotImplementedHere("a new node is a queue: new topics are not offered")
        properties = target.dynamic_node_properties
        lifetime, told = lifetime_of(properties) or ON_CLOSE, arguments_of(properties)
        exclusive = is_exclusive(target, lifetime)
        declare = DeclareQueue(
            self.session.number, "", exclusive=exclusive, arguments=told, lifetime=lifetime, link=self.number
        )
        self._makes = True
        self._ask_for(declare, self._is_made, lambda _: self._made_in_vain())

    def _is_made(self, made: QueueDeclared) -> None:
        self._made = made.name
        self._found(Meant(made.name, Node.QUEUE))

    def refuse(self, error: BrokerError) -> None:
        """As Link says."""
        super().refuse(error)
        self._made_in_vain()

    def _made_in_vain(self) -> None:
        """A session that ends takes with it what its links have made. It may be there without an answer."""
        makes, self._makes = self._makes, False
        if makes and self.session.is_heard:
            self._let_go(lambda: None)

    def _found(self, meant: Meant) -> None:
        if meant.node is Node.QUEUE:
            self._key = meant.name
        else:
            self._exchange, self._key = meant.name, meant.key
        settled = self._attach.snd_settle_mode == SETTLED
        produce = Produce(self.session.number, self._exchange, self._key, settled, link=self.number)
        self._produces = True
        self._ask_for(produce, lambda _: self._allowed(meant), lambda _: self._produce_no_more())

    def _allowed(self, meant: Meant) -> None:
        its = self._attach
        self._attached(
            snd_settle_mode=its.snd_settle_mode,
            source=its.source,
            target=self._told(its.target, meant) if isinstance(its.target, Target) else None,
            max_message_size=self.session.limits.max_message_size,
        )
        if self.state is LinkState.DETACHING:
            self.end()
        else:
            self.state = LinkState.ATTACHED
            self._grant()

    def _told(self, asked: Target, meant: Meant) -> Target:
        capabilities = (meant.node.value,)
        if not self._made:
            return Target(asked.address, capabilities=capabilities)
        properties = asked.dynamic_node_properties
        return Target(self._made, dynamic=True, dynamic_node_properties=properties, capabilities=capabilities)

    def _grant(self) -> None:
        if not self.session.peer.blocked:
            self._credit = CREDIT
            self._say_flow()

    def _say_flow(self) -> None:
        """While it is blocked there is no credit; what was sent for it before that is taken."""
        credit = 0 if self.session.peer.blocked else self._credit
        self.session.send_flow(handle=self.handle, delivery_count=self._count, link_credit=credit)

    @property
    def producing(self) -> Producing | None:
        """What management hears of it; None before it is attached, and when it ends."""
        if self.state is not LinkState.ATTACHED:
            return None
        return Producing(self.number, self.name, self._exchange, self._key)

    def block(self) -> None:
        """Publishers are held back, or no longer."""
        if self.state is LinkState.ATTACHED:
            self._credit = self._credit if self.session.peer.blocked else CREDIT
            self._say_flow()

    # -------------------------------------------------------------- transfers

    def transfer(self, transfer: Transfer, payload: bytes) -> None:
        """A frame of a delivery; raises BrokerError for what ends the link.

        A transaction is not whole without what does not arrive: neither that, nor what comes behind it and is ignored.
        """
        state = (self._begun or transfer).state
        try:
            if self.state is LinkState.ATTACHED:
                self._take(transfer, payload)
            elif self.state is LinkState.ATTACHING:
                raise TransferLimitExceeded("a transfer before there was credit")
            else:
                self.session.transactions.spoil(state, UnattachedHandle("a message came by a link that had ended"))
        except BrokerError as error:
            self.session.transactions.spoil(state, error)
            raise

    def _take(self, transfer: Transfer, payload: bytes) -> None:
        first = self._of_begun(transfer) or self._first(transfer)
        if self.session.peer.blocked:
            self.session.peer.since += len(payload)
        self._settled = self._settled or bool(transfer.settled)
        if transfer.aborted or transfer.more:
            self.session.peer.effort += _PIECE
        if transfer.aborted:
            self._used()
            return
        self._check_size(len(self._pieces) + len(payload))
        if transfer.more:
            self._begun = first
            self._pieces += payload
            self.session.peer.incomplete += len(payload)
        else:
            message = bytes(self._pieces + payload) if self._pieces else payload
            hears = self._hears(first) if self._settled or first.rcv_settle_mode is not None else self._usual
            self._used()
            self._publish(first, hears, message)

    def _of_begun(self, transfer: Transfer) -> Transfer | None:
        begun = self._begun
        if begun and transfer.delivery_id not in (None, begun.delivery_id):
            raise InvalidField(f"delivery {transfer.delivery_id} begins before {begun.delivery_id} is whole")
        return begun

    def _first(self, transfer: Transfer) -> Transfer:
        if not self._credit:
            raise TransferLimitExceeded("a transfer without credit")
        if transfer.delivery_id is None or transfer.delivery_tag is None:
            raise InvalidField("a delivery begins with its delivery-id and its delivery-tag")
        if transfer.resume:
            raise NotImplementedHere("deliveries are not resumed")
        if transfer.rcv_settle_mode == SECOND != self.rcv_settle_mode:
            raise InvalidField("a link whose receiver settles first has no delivery that it settles second")
        if transfer.message_format:
            raise NotImplementedHere(f"message-format {transfer.message_format}")
        return transfer

    def _check_size(self, size: int) -> None:
        if size > self.session.limits.max_message_size:
            raise MessageSizeExceeded(f"a message of more than {self.session.limits.max_message_size} bytes")

    def _used(self) -> None:
        """Nothing more comes of a delivery."""
        self._forget()
        self._count = after(self._count, 1)
        self._credit -= 1
        if self._credit <= CREDIT // 2:
            self._grant()

    def _forget(self) -> None:
        self.session.peer.incomplete -= len(self._pieces)
        self._pieces, self._begun, self._settled = bytearray(), None, False

    def _publish(self, first: Transfer, hears: Hears, message: bytes) -> None:
        assert first.delivery_id is not None
        publications = self.session.publications
        transaction = self.session.transactions.named(first.state) if first.state is not None else None
        try:
            parts = split(message)
            kind = self._kind(parts[0])
        except BrokerError as error:
            self.session.peer.effort += MOST_EFFORT  # much of it may have been looked at
            publications.refuse(first.delivery_id, hears, error, transaction)
        else:
            if len(parts[0]) > LITTLE:
                self.session.peer.effort += len(parts[0]) // _BYTES_PER_MICROSECOND
            publications.add(self, Sent(first.delivery_id, hears, transaction), kind=kind, message=parts)

    def _hears(self, first: Transfer) -> Hears:
        """Of one that says so itself (2.7.5, settled and rcv-settle-mode)."""
        if self._settled:
            return Hears.NOTHING
        return Hears.OUTCOME if first.rcv_settle_mode == SECOND else Hears.SETTLED

    def _kind(self, properties: bytes) -> Kind:
        text = self._key if self._key is not None else FORMAT.text(properties, "type") or ""
        kinds, key = self.session.peer.kinds, (FORMAT.attributes(properties), self._exchange, text)
        return kinds.get(key) or kinds.recall(key) or self._new_kind(key)

    def _new_kind(self, key: KindKey) -> Kind:
        attributes, exchange, text = key
        if len(text.encode()) > LONGEST_NAME:
            raise InvalidField(f"a subject that is a routing key has no more than {LONGEST_NAME} bytes")
        peer = self.session.peer
        facts = facts_of(peer.virtual_host, exchange, text, FORMAT.name, attributes)
        kind = Kind(facts, attributes, mandatory=True)
        peer.kinds.put(key, kind, len(exchange) + len(text) + len(attributes.user_id or ""))
        return kind

    # -------------------------------------------------------------- credit

    def flow(self, flow: Flow) -> None:
        """As Link says: a sender may ask what it may send."""
        if flow.echo and self.state is LinkState.ATTACHED:
            self._say_flow()

    # -------------------------------------------------------------- the end

    def confirmed(self) -> None:
        """It is known what became of all its messages."""
        if self.state is LinkState.DETACHING:
            self._done()

    def end(self) -> None:
        """As Link says: its messages are confirmed before that."""
        self._forget()
        if not self.sent:
            self._done()

    def _produce_no_more(self) -> None:
        produces, self._produces = self._produces, False
        if produces and self.session.is_heard:
            self.session.peer.ask(EndProduce(self.session.number, link=self.number))

    def _done(self) -> None:
        self._produce_no_more()
        if self._made and self._makes and self.session.is_heard:
            self._makes = False
            self._let_go(self._gone)
        else:
            self._gone()

    def give_up(self) -> None:
        """As Link says."""
        self._forget()
        self._produce_no_more()
        if self._made:  # else the broker has not answered yet
            self._made_in_vain()

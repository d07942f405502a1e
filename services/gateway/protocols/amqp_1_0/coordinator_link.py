"""A link by which the peer declares and discharges transactions (part 4, section 4.2): its target is a coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.common.errors import BrokerError, InDoubt, NotImplementedHere, SyntaxFault
from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0.composite import Composite
from services.common.message.amqp_1_0.decode import decode_at
from services.common.message.amqp_1_0.sections import VALUE, sections
from services.common.message.amqp_1_0.values import Described
from services.gateway.protocols.amqp_1_0.conditions import InvalidField, RolledBack, UnknownTransaction, told
from services.gateway.protocols.amqp_1_0.incoming_link import CREDIT, IncomingLink
from services.gateway.protocols.amqp_1_0.link import LinkState
from services.gateway.protocols.amqp_1_0.performatives import RECEIVER, Disposition
from services.gateway.protocols.amqp_1_0.publications import Hears
from services.gateway.protocols.amqp_1_0.states import Accepted, Rejected
from services.gateway.protocols.amqp_1_0.transactional import (
    CAPABILITIES,
    Coordinator,
    Declare,
    Declared,
    Discharge,
)
from services.gateway.vocabulary import Echo

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.gateway.protocols.amqp_1_0.performatives import Attach, Transfer
    from services.gateway.protocols.amqp_1_0.session import Session
    from services.gateway.protocols.amqp_1_0.transactions import OpenTransaction


class CoordinatorLink(IncomingLink):
    """Transactions are its own until they are discharged: when it ends, those that are not are rolled back."""

    def __init__(self, session: Session, attach: Attach, handle: int) -> None:
        super().__init__(session, attach, handle)
        self._open: dict[bytes, OpenTransaction] = {}

    def begin(self) -> None:
        """As Link says."""
        self._check_attach()
        its = self._attach
        self._attached(
            snd_settle_mode=its.snd_settle_mode,
            source=its.source,
            target=Coordinator(CAPABILITIES),
            max_message_size=self.session.limits.max_message_size,
        )
        self.state = LinkState.ATTACHED
        self._grant()

    @property
    def producing(self) -> None:
        """As IncomingLink says: nothing that management would be told of."""
        return

    # -------------------------------------------------------------- credit: also while publishers are held back

    def block(self) -> None:
        """As IncomingLink says: what has been posted may wait for its discharge."""

    def _grant(self) -> None:
        self._credit = CREDIT
        self._say_flow()

    def _say_flow(self) -> None:
        self.session.send_flow(handle=self.handle, delivery_count=self._count, link_credit=self._credit)

    # -------------------------------------------------------------- what is asked for

    def _publish(self, first: Transfer, hears: Hears, message: bytes) -> None:
        assert first.delivery_id is not None
        number = first.delivery_id
        match _read(message):
            case Declare(global_id=None):
                if hears is Hears.NOTHING:
                    raise InvalidField("a declare is not sent settled: nobody would know its transaction")
                self._declare(number, hears)
            case Declare():
                raise NotImplementedHere("distributed transactions, with a global-id, are not offered")
            case Discharge() as discharge:
                self._discharge(number, hears, discharge)
            case _:
                raise SyntaxFault("a coordinator is sent declare and discharge, and nothing else")

    def _say(self, number: int, hears: Hears, state: Composite) -> None:
        if hears is not Hears.NOTHING:
            self.session.send(Disposition(RECEIVER, number, None, hears is Hears.SETTLED, state))

    def _declare(self, number: int, hears: Hears) -> None:
        def declared(transaction: OpenTransaction) -> None:
            self._open[transaction.txn_id] = transaction
            if self.state is LinkState.ATTACHED:
                self._say(number, hears, Declared(transaction.txn_id))
            else:  # it has ended meanwhile: its peer will not discharge it
                self._roll_back_all()

        self.session.transactions.declare(
            declared, lambda error: self._say(number, hears, Rejected(told(error))), self.session
        )

    def _discharge(self, number: int, hears: Hears, discharge: Discharge) -> None:
        transaction = self._open.pop(discharge.txn_id, None)
        if transaction is None:
            unknown = UnknownTransaction("no such transaction was declared by this link, or it is over")
            self._say(number, hears, Rejected(told(unknown)))
        elif discharge.fail:
            self._roll_back(transaction, lambda: self._say(number, hears, Accepted()))
        elif transaction.fault:
            fault = RolledBack(f"rolled back: {transaction.fault.text}")
            self._roll_back(transaction, lambda: self._say(number, hears, Rejected(told(fault))))
        else:
            self._commit(transaction, number, hears)

    def _commit(self, transaction: OpenTransaction, number: int, hears: Hears) -> None:
        deliveries = self.session.deliveries

        def committed(_: object) -> None:
            deliveries.committed(transaction)
            self._say(number, hears, Accepted())

        def failed(error: BrokerError) -> None:
            if isinstance(error, InDoubt):
                self.session.fail(error)
                return
            self._undo(transaction)
            self._say(number, hears, Rejected(told(RolledBack(f"rolled back: {error.text}"))))

        self.session.transactions.commit(transaction, committed, failed, self.session)

    def _roll_back(self, transaction: OpenTransaction, then: Callable[[], None]) -> None:
        def rolled_back(_: object) -> None:
            self._undo(transaction)
            then()

        self.session.transactions.roll_back(transaction, rolled_back, self.session)

    def _undo(self, transaction: OpenTransaction) -> None:
        """A session that ends gives all back by itself, and its number may be the next one's before that is asked."""
        if self.session.is_heard:
            self.session.deliveries.rolled_back(transaction)

    # -------------------------------------------------------------- the end

    def _roll_back_all(self) -> None:
        its, self._open = self._open, {}
        for each in its.values():
            self._roll_back(each, lambda: None)

    def end(self) -> None:
        """As Link says: behind what was asked for before, and behind the end of what is not discharged."""
        self._forget()
        self._roll_back_all()
        self.session.ask_for(Echo(self.session.number), lambda _: self._gone(), lambda _: self._gone())

    def give_up(self) -> None:
        """As Link says. With its session all go by themselves."""
        self._forget()
        if self.session.is_heard:
            self._roll_back_all()


def _read(message: bytes) -> object:
    """What a message to a coordinator asks for: its amqp-value. Raises SyntaxFault."""
    section = next((each for each in sections(message) if each.code == VALUE), None)
    if section is None:
        raise SyntaxFault("a message to a coordinator has an amqp-value")
    value, _ = decode_at(message, section.value)
    return composite.of(value) if isinstance(value, Described) else value

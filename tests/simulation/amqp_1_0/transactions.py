"""Transactions that a client declares, several at once on a session, and their coordinator (part 4)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from services.common.message.amqp_1_0 import composite
from services.common.message.amqp_1_0 import values as v
from services.common.message.amqp_1_0.composite import Composite
from services.common.message.amqp_1_0.encode import encode
from services.common.message.amqp_1_0.sections import VALUE
from services.gateway.protocols.amqp_1_0.states import Accepted, Rejected
from services.gateway.protocols.amqp_1_0.termini import Source
from services.gateway.protocols.amqp_1_0.transactional import (
    Coordinator as CoordinatorTarget,
)
from services.gateway.protocols.amqp_1_0.transactional import (
    Declare,
    Declared,
    Discharge,
    TransactionalState,
)
from tests.simulation.amqp_1_0.links import Outgoing
from tests.simulation.history import Delivered, Sent, Transaction
from tests.simulation.line import GoneError

if TYPE_CHECKING:
    from tests.simulation.amqp_1_0.session import Session

_NAME: Final = "coordinator"
_AMQP_VALUE: Final = b"\x00" + encode(v.ULong(VALUE))


class Local:
    """One that is not discharged. `its` is what histories know of it."""

    def __init__(self, session: Session, coordinator: Coordinator, txn_id: bytes) -> None:
        self.coordinator = coordinator
        self.txn_id = txn_id
        self.its = Transaction(session.opened)
        session.history.transactions.append(self.its)
        self._session = session
        self._settled: set[int] = set()  # delivery-ids that were retired in it as settled

    def state(self, outcome: Composite | None = None) -> TransactionalState:
        """Of a message that is part of it, with what is said of that."""
        return TransactionalState(self.txn_id, outcome)

    def posted(self, sent: Sent) -> None:
        """A message is part of it."""
        sent.transaction = self.its
        self.its.published.append(sent)

    def retired(self, delivered: Delivered, *, settled: bool) -> None:
        """So is what is said of a delivery."""
        delivered.transaction = self.its
        self.its.settled.append(delivered)
        if settled:
            self._settled.add(delivered.tag)

    # -------------------------------------------------------------- the end

    async def discharge(self, *, fail: bool) -> None:
        """Commits it, or rolls it back; raises GoneError if no answer comes."""
        history, its = self._session.history, self.its
        asked = history.tick()
        its.asked = None if fail else asked
        try:
            state = await self.coordinator.ask(Discharge(self.txn_id, fail))
        except GoneError:
            self.over("rolled_back" if fail else "unknown", asked)
            raise
        if isinstance(state, Rejected):
            history.texts.append(f"{state.error}")
        if not isinstance(state, Accepted if fail else Accepted | Rejected):
            self._session.breach(f"{state} for a discharge with fail={fail}")
        self.over("committed" if not fail and isinstance(state, Accepted) else "rolled_back", asked)

    def over(self, outcome: str, asked: int) -> None:
        """It has ended so, as was asked for then."""
        self.its.outcome, self.its.answered = outcome, self._session.history.tick()
        if outcome == "committed":
            self._committed()
        elif outcome == "rolled_back":
            self._undo(asked)

    def _committed(self) -> None:
        for sent in self.its.published:
            if sent.returned or sent.refused:
                self._session.breach(f"a transaction was committed of which {sent.id} had been refused")
        for delivered in self.its.settled:
            delivered.known = self.its.answered

    def _undo(self, asked: int) -> None:
        """What the client has settled, or had on links that are gone, is for others; the rest is unsettled again."""
        session, deliveries, self.its.settled = self._session, self.its.settled, []
        for each in deliveries:
            session.forget(each.tag)
            each.transaction, each.said, each.refused, each.attempt = None, "", False, True
            each.back = self.its.answered
            gone = each.tag in self._settled or session.dead or (each.consumer and each.consumer.ending)
            lost = each.consumer is not None and each.consumer.stolen
            each.settled_as, each.settled = ("requeue", each.at if lost else asked) if gone else ("", None)
            if not gone:
                session.unsettled[each.tag] = each
        session.unsettled = dict(sorted(session.unsettled.items()))


class Coordinator(Outgoing):
    """What it has declared and not discharged goes with it."""

    def __init__(self, session: Session) -> None:
        super().__init__(session, _NAME, count=0)
        self._asked: dict[int, asyncio.Future[Any]] = {}  # by delivery-id

    async def attach(self) -> None:
        """Raises GoneError."""
        await self._attach(source=Source(), target=CoordinatorTarget(), initial_delivery_count=self._count)

    async def declare(self, name: str) -> Local:
        """A transaction, by that name on its session; raises GoneError."""
        state = await self.ask(Declare())
        if not isinstance(state, Declared):
            self.session.breach(f"{state} for a declare")
            raise GoneError(0, "not declared")
        local = self.session.transactions[name] = Local(self.session, self, state.txn_id)
        return local

    async def ask(self, what: Composite) -> Any:
        """Gives the answer; raises GoneError."""
        message = _AMQP_VALUE + composite.write(what)
        await self._has_room(1)
        number = self.session.next_id()
        self._asked[number] = answer = asyncio.get_running_loop().create_future()
        self._post(number, [message], settled=False)
        return await answer

    def answer(self, number: int, state: Any) -> bool:
        """Whether that was asked for by it."""
        if (asked := self._asked.pop(number, None)) is None:
            return False
        if not asked.done():
            asked.set_result(state)
        return True

    # -------------------------------------------------------------- the end

    async def detach(self) -> None:
        """As Link says; what it has not discharged is rolled back by that."""
        its = self._taken()
        try:
            await super().detach()
        finally:
            for each in its:
                each.over("rolled_back", self.ending or self.session.history.tick())

    def gone(self) -> None:
        """As Link says."""
        super().gone()
        for each in self._taken():
            each.over("rolled_back", self.ending or 0)
        self.break_off()

    def break_off(self) -> None:
        """No answer comes any more."""
        asked, self._asked = self._asked, {}
        for each in asked.values():
            if not each.done():
                each.set_exception(GoneError(self.code, self.text))

    def _taken(self) -> list[Local]:
        its = [name for name, each in self.session.transactions.items() if each.coordinator is self]
        return [self.session.transactions.pop(name) for name in its]

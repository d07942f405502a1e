"""Transactions that a session's peer has declared and not discharged (part 4, sections 4.2 to 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from services.common.errors import BrokerError
from services.common.message.amqp_1_0.composite import Composite
from services.gateway.protocols.amqp_1_0.conditions import UnknownTransaction
from services.gateway.protocols.amqp_1_0.peer import Peer
from services.gateway.protocols.amqp_1_0.transactional import TransactionalState
from services.gateway.vocabulary import Commit, DeclareTransaction, Rollback

if TYPE_CHECKING:
    from services.gateway.protocols.amqp_1_0.outgoing_link import OutgoingLink
    from services.gateway.protocols.amqp_1_0.performatives import Disposition


class Retired(NamedTuple):
    """Deliveries that were settled in a transaction, or are to be when it is committed, as the peer has said."""

    said: Disposition
    state: object
    positions: Sequence[int]
    numbers: Sequence[int]
    links: Sequence[OutgoingLink]


@dataclass(slots=True, eq=False)
class OpenTransaction:
    """One of them. `fault`: why it cannot be committed; `link` is what its own requests are called."""

    number: int
    link: int
    fault: BrokerError | None = None
    retired: list[Retired] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)
    """Positions that were retired, and that the peer has settled since, before we did."""
    _told: tuple[object, TransactionalState] | None = None

    @property
    def txn_id(self) -> bytes:
        """What its peer calls it."""
        return self.number.to_bytes(8, "big")

    def retired_of(self, positions: range) -> list[int]:
        """Those that are retired in it."""
        return [position for each in self.retired for position in each.positions if position in positions]

    def told(self, state: Composite) -> TransactionalState:
        """A provisional outcome of what was posted (4.4.1); the same object for the same state."""
        if self._told is None or self._told[0] is not state:
            self._told = state, TransactionalState(self.txn_id, state)
        return self._told[1]


class OpenTransactions:
    """Those of one session; `session` is its number."""

    def __init__(self, peer: Peer, session: int) -> None:
        self._peer = peer
        self._session = session
        self._open: dict[bytes, OpenTransaction] = {}
        self._newest = 0  # number of any of them

    def is_over(self, state: object) -> bool:
        """Whether a state names a transaction that was open, and is no more."""
        if not isinstance(state, TransactionalState) or state.txn_id in self._open:
            return False
        return 0 < int.from_bytes(state.txn_id[:8], "big") <= self._newest

    def named(self, state: object) -> OpenTransaction | None:
        """That which a state says it is part of, if it does. Raises UnknownTransaction."""
        if not isinstance(state, TransactionalState):
            return None
        if (found := self._open.get(state.txn_id)) is None:
            raise UnknownTransaction("no such transaction is open on this session")
        return found

    def spoil(self, state: object, why: BrokerError) -> None:
        """That which a state says it is part of, if it is open, cannot be committed: it would not be whole."""
        if isinstance(state, TransactionalState) and (its := self._open.get(state.txn_id)):
            its.fault = its.fault or why

    def declare(
        self, done: Callable[[OpenTransaction], None], failed: Callable[[BrokerError], None], whom: object
    ) -> None:
        """Begins one."""
        link = next(self._peer.numbers)

        def declared(number: int) -> None:
            transaction = OpenTransaction(number, link)
            self._open[transaction.txn_id] = transaction
            self._newest = max(self._newest, number)
            done(transaction)

        self._peer.ask_for(DeclareTransaction(self._session, link=link), declared, failed, whom)

    def commit(
        self, its: OpenTransaction, done: Callable[[Any], None], failed: Callable[[BrokerError], None], whom: object
    ) -> None:
        """Ends it: nothing more is part of it."""
        del self._open[its.txn_id]
        self._peer.ask_for(Commit(self._session, its.number, link=its.link), done, failed, whom)

    def roll_back(self, its: OpenTransaction, done: Callable[[Any], None], whom: object) -> None:
        """The same, and nothing of it is done."""
        del self._open[its.txn_id]
        self._peer.ask_for(Rollback(self._session, its.number, link=its.link), done, done, whom)

"""A link by which the peer receives from an exchange, also what comes while it is not there (part 3, section 3.5.6).

Its container takes it up by its name, on whichever gateway; whoever has it then loses it (part 2, section 2.6.1). It
ends when its peer closes it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from services.common.errors import (
    AccessRefused,
    BrokerError,
    InternalError,
    LinkStolen,
    NotFound,
    NotImplementedHere,
    ResourceLocked,
    Unavailable,
)
from services.gateway.protocols.amqp_1_0.durable_record import NEVER, Record, queue_of, record_in
from services.gateway.protocols.amqp_1_0.link import Link, LinkState
from services.gateway.protocols.amqp_1_0.outgoing_link import OutgoingLink
from services.gateway.protocols.amqp_1_0.termini import Source
from services.gateway.vocabulary import Cancel, DeclareQueue, DeleteQueue, Node, ReplaceQueue, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.gateway.answers import QueueDeclared, QueueReplaced
    from services.gateway.protocols.amqp_1_0.performatives import Attach, Detach
    from services.gateway.protocols.amqp_1_0.session import Session

_SHARED = "shared"  # a capability: several links of one name, which takes more than a queue of its own
_NOT_ITS_OWN = (LinkStolen, Unavailable, InternalError)
"""Errors after which a queue that is bound stays: for whoever has the link now, or its client when it tries again."""
_DURABLE = 2  # terminus-durability unsettled-state (3.5.5)


class DurableLink(OutgoingLink):
    """One from a queue is as any other: that is there anyway."""

    def __init__(self, session: Session, attach: Attach, handle: int) -> None:
        super().__init__(session, attach, handle)
        self._queue = queue_of(session.peer.container, self.name)
        self._stays = False  # its end here does
        self._early: Request | None = None  # by which it ends, asked before it was there
        self._created = False  # its queue, by this attach, and nothing consumes from it yet
        self.behind: Link | None = None  # that had its name, and was ending when it came

    # -------------------------------------------------------------- beginning

    def waits_for(self, former: Link) -> Link | None:
        """As Link says: the queue has one name, and would go under it with the one that its peer has closed before."""
        if isinstance(former, DurableLink):
            waits = former.behind is not None and former.state is LinkState.DETACHING
            self.behind = former if former.is_closed or waits else former.behind
        return self.behind

    def begin(self) -> None:
        """As Link says. It may have ended while it waited: what it would have had is gone with the one before it."""
        self.behind = None
        if self.is_closed:
            self._over()
        elif self._goes_on:
            self._begin()

    @property
    def is_closed(self) -> bool:
        """By its peer, which has not heard of its end yet."""
        return self._closed and self.state is LinkState.DETACHING

    def _begin(self) -> None:
        if self._attach.source is not None:
            super().begin()
            return
        find = DeclareQueue(self.session.number, self._queue, passive=True, link=self.number)
        self._ask_for(find, self._recalled)

    def _recalled(self, found: QueueDeclared) -> None:
        """The peer wants what it had, and does not say what that was."""
        if (record := record_in(found.arguments)) is None:
            self.refuse(NotFound("there is no such link"))
            return
        self._attach = replace(self._attach, source=Source(record.address, _DURABLE, NEVER, capabilities=("exchange",)))
        self._filters = replace(self._filters, no_local=record.not_own)
        self._kind = Node.EXCHANGE
        self._take_up()

    def refuse(self, error: BrokerError) -> None:
        """As Link says. Another user may call its container so, and its link: that one's is not this one's."""
        if self._stays and isinstance(error, LinkStolen if self._closed else _NOT_ITS_OWN):
            self._created = False
        its_own = self._attach.source is None or self._kind is Node.EXCHANGE
        if its_own and isinstance(error, ResourceLocked):
            error = AccessRefused(f"link {self.name!r} of a container of this name is another user's")
        if self._early:  # it is not answered: what a link asks behind what is refused is not carried out
            self.session.peer.answered(self._early)
            self._early = None
        super().refuse(error)

    def _subscribe(self, exchange: str, key: str) -> None:
        """By a queue that stays."""
        source = self._source
        if _SHARED in (source.capabilities or ()):
            self.refuse(NotImplementedHere("durable subscriptions are not shared: one link has one"))
            return
        its = self.session.peer.container, self.name, str(source.address), key, self._selector
        record = Record(*its, bool(self._filters.no_local))

        def made(found: QueueReplaced) -> None:
            self._created = found.created
            self._take_up(found.queue_id)

        def in_vain(found: QueueReplaced) -> None:
            self._created = found.created
            self._unmake()

        # What is there may be of another source, or of another selector: then what waits in it is not wanted. Who is
        # refused the other keeps it.
        declare = DeclareQueue(self.session.number, self._queue, durable=True, arguments=record.arguments)
        binding = self._binding(exchange, self._queue, record.key)
        self._ask_for(ReplaceQueue(self.session.number, declare, binding, link=self.number), made, in_vain)

    def _unmake(self) -> None:
        """As OutgoingLink says. Nobody would end one that stays, unless the link has it by now that took this one's."""
        super()._unmake()
        created, self._created = self._created, False
        is_last = self.session.peer.links.get(self.identity, self) is self
        if created and not self._early and is_last and self.session.is_heard:
            delete = DeleteQueue(self.session.number, self._queue, if_unused=True, link=self.number)
            self.session.ask_for(delete, lambda _: None, lambda _: None)

    def _take_up(self, queue_id: int = 0) -> None:
        self._stays = True
        self._consume(self._queue, alone=True, steals=True, queue_id=queue_id)

    def _begun(self) -> None:
        self._created = False
        super()._begun()

    def _begun_in_vain(self) -> None:
        super()._begun_in_vain()
        self._unmake()

    @property
    def _terminus(self) -> dict[str, Any]:
        return {"durable": self._source.durable, "expiry_policy": NEVER}

    # -------------------------------------------------------------- the end

    def detach(self, detach: Detach) -> None:
        """As Link says. Closed before it is there, its queue goes, too: its peer may be gone by the next answer."""
        early = self.state is LinkState.ATTACHING and detach.closed and not self.behind
        super().detach(detach)
        if early and self._stays:
            self._early = self._end_with_queue(
                lambda _: None
            )  # and again when it is there: then there is nothing to do
        elif early and not self._asked_to_consume:
            self._early = DeleteQueue(self.session.number, self._queue, link=self.number)
            self.session.ask_for(self._early, lambda _: self._over(), self.refuse)

    def _over(self) -> None:
        """Nothing was left of it; that it was there its peer is told, which has asked for it."""
        if self.state is not LinkState.DETACHING or not self.session.is_heard:
            return
        if self._attach.source is None:
            self._nowhere()
        else:
            self._answer()
        self._gone()

    @property
    def _goes_on(self) -> bool:
        return super()._goes_on and (self._early is None or self._stays)

    def _end_consumer(self, ended: Callable[[object], None]) -> None:
        """As OutgoingLink says. Closed by its peer, its queue goes; detached, that stays.

        Asked for at once: a peer that has closed it may be gone before the broker answers.
        """
        if self._stays and self.is_closed:
            self._end_with_queue(ended)
        else:
            super()._end_consumer(ended)

    def _end_with_queue(self, ended: Callable[[object], None]) -> Request:
        def stays(error: BrokerError) -> None:
            self.fail(error)
            super(DurableLink, self)._end_consumer(ended)

        cancel = Cancel(self.session.number, self.tag, deletes=True, link=self.number)
        self.session.ask_for(cancel, ended, stays)
        return cancel

"""What both kinds of links have (part 2, section 2.6): a name, a handle, how they begin and how they end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from services.common.errors import BrokerError
from services.gateway.protocols.amqp_1_0.conditions import told
from services.gateway.protocols.amqp_1_0.performatives import SENDER, Attach, Detach, Flow
from services.gateway.vocabulary import CloseLink, FindNode, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from services.gateway.protocols.amqp_1_0.addresses import Meant
    from services.gateway.protocols.amqp_1_0.session import Session


class LinkState(Enum):
    """Of a link."""

    ATTACHING = "the broker is asked for its node"
    ATTACHED = "both ends know of it"
    DETACHING = "the peer has ended it: what it asked for before is still being done"
    FAILED = "we have ended it: everything is ignored until the peer has heard of that"


class Link(ABC):
    """`number` is what requests to the broker call it, and no other link of the connection, also of those to come.
    `handle` is ours; a peer's is free when it has detached.
    """

    def __init__(self, session: Session, attach: Attach, handle: int) -> None:
        self.session = session
        self.name = attach.name
        self.identity = attach.role, attach.name  # in its connection
        self.handle = handle
        self.number = next(session.peer.numbers)
        self.state = LinkState.ATTACHING
        self.rcv_settle_mode = attach.rcv_settle_mode
        # A link may live long, and there may be many: what it wanted is kept until it is answered only.
        self._attach = replace(attach, offered_capabilities=None, desired_capabilities=None, properties=None)
        self._is_answered = False  # the peer's attach
        self._closed = False  # the peer's detach says so

    @property
    def is_heard(self) -> bool:
        """Whether its peer may be told that it ends."""
        return self.state in (LinkState.ATTACHING, LinkState.ATTACHED) and self.session.is_heard

    # -------------------------------------------------------------- beginning

    def waits_for(self, _former: Link) -> Link | None:
        """Which link has to be gone before it begins, where its name was a former one's; None: nobody's."""
        return None

    @abstractmethod
    def begin(self) -> None:
        """Asks the broker for what the link needs; raises BrokerError for what is not offered."""

    def _attached(self, **ends: Any) -> None:  # noqa: ANN401 - fields of attach
        """Answers the peer's attach (2.6.3)."""
        its = self._attach
        self.session.send(
            Attach(self.name, self.handle, not its.role, rcv_settle_mode=its.rcv_settle_mode, **ends),
        )
        self._attach, self._is_answered = Attach("", its.handle, its.role), True

    def _find(self, meant: Sequence[Meant], found: Callable[[Meant], None], *, to_send: bool = False) -> None:
        """Goes on with the first of them that is there."""
        by_node = {(each.name, each.node): each for each in meant}
        find = FindNode(self.session.number, list(by_node), to_send, link=self.number)
        self._ask_for(find, lambda node: found(by_node[node]))

    def _ask_for(
        self, request: Request, done: Callable[[Any], None], in_vain: Callable[[Any], None] = lambda _: None
    ) -> None:
        """Asks for what comes before it is attached, one after the other, and goes on when the broker has done it.

        Where the link or its session has ended meanwhile it does not: the number may be the next session's.
        """
        self.session.ask_for(request, lambda answer: done(answer) if self._goes_on else in_vain(answer), self.refuse)

    @property
    def _goes_on(self) -> bool:
        return self.state is not LinkState.FAILED and self.session.is_heard

    def refuse(self, error: BrokerError) -> None:
        """There is no such link, though its client may have ended it already."""
        self.fail(error)

    def _nowhere(self) -> None:
        """An attach without the terminus that was asked for says that there is none (2.6.3)."""
        self._attached(initial_delivery_count=None if self._attach.role is SENDER else 0)

    # -------------------------------------------------------------- the end

    def fail(self, error: BrokerError) -> None:
        """Ends it, and says why."""
        if self.state is LinkState.FAILED:
            return
        if not self._is_answered:
            self._nowhere()
        before, self.state = self.state, LinkState.FAILED
        self.session.send(Detach(self.handle, True, told(error)))
        self.give_up()
        if before is LinkState.DETACHING:  # the peer's was here already
            self.session.forget(self)

    def detach(self, detach: Detach) -> None:
        """The peer ends it, or has heard that we did."""
        self._closed = detach.closed
        match self.state:
            case LinkState.FAILED:
                self.session.forget(self)
            case LinkState.ATTACHING:
                self.state = LinkState.DETACHING
            case LinkState.ATTACHED:
                self.state = LinkState.DETACHING
                self.end()

    def _gone(self) -> None:
        """All is done: answers the peer's detach, unless a failure was the answer."""
        if self.state is LinkState.FAILED:
            return
        self.session.send(Detach(self.handle, self._closed))
        self.session.forget(self)

    def _let_go(self, done: Callable[[], None]) -> None:
        """A node that it has made goes with it, or by its lifetime from now on."""
        close = CloseLink(self.session.number, link=self.number)
        self.session.ask_for(close, lambda _: done(), lambda _: done())

    @abstractmethod
    def end(self) -> None:
        """Does what is left to do, then calls `_gone`."""

    @abstractmethod
    def give_up(self) -> None:
        """Nothing more comes of it."""

    # -------------------------------------------------------------- credit

    @abstractmethod
    def flow(self, flow: Flow) -> None:
        """The peer's word on its credit (2.6.7)."""

"""A session (part 2, section 2.5): its links by their handles, its windows, what goes either way on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, ClassVar, Final

from services.common.errors import BrokerError, LinkStolen, Reach, ResourceError
from services.common.message.amqp_1_0.composite import Composite
from services.gateway import answers
from services.gateway.outcomes import PublishDisposition
from services.gateway.protocols.amqp_1_0.conditions import (
    FramingError,
    HandleInUse,
    InvalidField,
    UnattachedHandle,
    told,
)
from services.gateway.protocols.amqp_1_0.coordinator_link import CoordinatorLink
from services.gateway.protocols.amqp_1_0.deliveries import Deliveries
from services.gateway.protocols.amqp_1_0.durable_link import DurableLink
from services.gateway.protocols.amqp_1_0.durable_record import outlives_connection
from services.gateway.protocols.amqp_1_0.incoming_link import IncomingLink
from services.gateway.protocols.amqp_1_0.limits import Amqp10Limits
from services.gateway.protocols.amqp_1_0.link import Link, LinkState
from services.gateway.protocols.amqp_1_0.outgoing_link import OutgoingLink
from services.gateway.protocols.amqp_1_0.peer import Peer
from services.gateway.protocols.amqp_1_0.performatives import (
    RECEIVER,
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Transfer,
)
from services.gateway.protocols.amqp_1_0.publications import Publications
from services.gateway.protocols.amqp_1_0.transactional import Coordinator
from services.gateway.protocols.amqp_1_0.transactions import OpenTransactions
from services.gateway.protocols.amqp_1_0.windows import HANDLE_MAX, Windows
from services.gateway.protocols.producing import Producing
from services.gateway.vocabulary import CloseSession, OpenSession, Request

_LONGEST_NAME: Final = 1024  # bytes, of a link
_Handler = Callable[[Any, Any, bytes], None]  # of Session, a performative and what stands behind it


class SessionState(Enum):
    """Of a session."""

    BEGINNING = "the broker has not opened it yet"
    RUNNING = "both ends know of it"
    ENDING = "the peer has ended it: what it asked for before is still being done"
    REFUSED = "we end it when what the peer asked for before is done: something that it sent is at fault"
    FAILED = "we have ended it: everything is ignored until the peer has heard of that"


class Session:
    """`number` is what requests to the broker call it."""

    def __init__(self, channel: int, peer: Peer, begin: Begin, forget: Callable[[Session], None]) -> None:
        self.channel = channel
        self.number = channel + 1  # 0 is the connection itself
        self.peer = peer
        self.state = SessionState.BEGINNING
        self._due: End | None = None  # ours, while what was asked for before is still being done
        self.opened = False  # we have said so: what the broker says of the number is this one's
        self._forget = forget
        self._windows = Windows(begin)
        self._links: dict[int, Link] = {}  # by the peer's handle
        self._ours: dict[int, Link] = {}  # by our handle, which it has until its detach is answered
        self._early: list[Composite] = []  # what the peer is told as soon as it is told of our begin
        self._consumers: dict[str, OutgoingLink] = {}  # by tag
        self.publications = Publications(peer, channel, self.number)
        self.transactions = OpenTransactions(peer, self.number)
        self.deliveries = Deliveries(peer, channel, self.number, self._windows, self.transactions)

    @property
    def limits(self) -> Amqp10Limits:
        """Ours."""
        return self.peer.limits

    def send(self, performative: Composite) -> None:
        """Writes a frame on its channel, behind our begin (2.5.1); nothing behind our end."""
        if self.state is not SessionState.FAILED:
            self._send(performative)

    def _send(self, performative: Composite) -> None:
        if self.opened:
            self.peer.send(self.channel, performative)
        else:
            self._early.append(performative)

    def send_flow(self, **link: int | bool | None) -> None:
        """What a link may send, or has sent, and the session with it."""
        self.send(self._windows.flow(**link))

    def ask_for(self, request: Request, done: Callable[[Any], None], failed: Callable[[BrokerError], None]) -> None:
        """As Peer says. The answer comes after the session's end as well: what was made in vain has to go."""
        self.peer.ask_for(request, done, failed, self)

    @property
    def is_heard(self) -> bool:
        """Whether its peer may be told more than what became of what it asked for."""
        return self.state in (SessionState.BEGINNING, SessionState.RUNNING)

    @property
    def ended(self) -> bool:
        """Whether the peer has: its channel may be the next one's."""
        return self.state is SessionState.ENDING

    # -------------------------------------------------------------- beginning and end

    def begin(self) -> None:
        """The peer wants it."""
        self.peer.ask_for(OpenSession(self.number), lambda _: self._begun(), self._not_begun)

    def _begun(self) -> None:
        if self.state is SessionState.BEGINNING:
            self.state = SessionState.RUNNING
        self.opened = True
        for each in (self._windows.begin(self.channel), *self._early):
            self._send(each)
        self._early.clear()

    def _not_begun(self, error: BrokerError) -> None:
        """The broker knows of none, and answers nothing more that was asked of it."""
        if self.state is not SessionState.FAILED:
            self._end_by(error)
        self.drop()
        self.peer.forget(self)
        self._begun()

    def fail(self, error: BrokerError) -> None:
        """Ends it, and says why: behind our begin, which comes first (section 2.5.1)."""
        if self.state in (SessionState.BEGINNING, SessionState.RUNNING):
            self._end_by(error)
            self._close()
        elif self.state is not SessionState.FAILED:  # the broker has been asked, and its links are dropped
            self._end_by(error)
            self._let_links_go()

    def _refuse(self, error: BrokerError) -> None:
        """Something that its peer sent is at fault: ends it when all that was asked for before is answered."""
        self._due, self.state = End(told(error)), SessionState.REFUSED
        self._close(error.text)

    def _end_by(self, error: BrokerError) -> None:
        self._say_end(End(told(error)))

    def _say_end(self, end: End) -> None:
        ended, self.state = self.ended, SessionState.FAILED
        self._send(end)
        if ended:
            self._forget(self)

    def _close(self, reason: str = "") -> None:
        self.drop()
        self.ask_for(CloseSession(self.number, reason), lambda _: self._closed(), lambda _: self._closed())

    def _closed(self) -> None:
        """All that was asked for it before is done, or dropped."""
        self.peer.forget(self)
        if self.state in (SessionState.REFUSED, SessionState.ENDING):
            self._say_end(self._due or End())
            self._let_links_go()

    def drop(self) -> None:
        """Nothing of what has begun to come is waited for, and what has not gone out does not any more."""
        self.deliveries.end()
        for link in list(self._ours.values()):
            self._forget_link(link)
            if isinstance(link, IncomingLink):
                link.give_up()
        if self.state is SessionState.FAILED:
            self._let_links_go()

    def _let_links_go(self) -> None:
        """We have ended it: else they would be kept until its peer has heard of that, which may be never."""
        for each in (self._links, self._ours, self._consumers):
            each.clear()

    # -------------------------------------------------------------- from the peer

    def performative(self, what: Composite, payload: bytes) -> None:
        """A frame on its channel. Raises BrokerError for what reaches further than the session."""
        if self.state is SessionState.FAILED:
            if isinstance(what, End):
                self._forget(self)
            return
        if self.state is SessionState.ENDING:
            return  # the peer has said that nothing more comes
        if self.state is SessionState.REFUSED:
            self.state = SessionState.ENDING if isinstance(what, End) else self.state
            return
        try:
            self._TABLE[type(what)](self, what, payload)
        except BrokerError as error:
            if error.reach is Reach.CONNECTION:
                raise
            self._refuse(error)

    def _attach(self, attach: Attach, _payload: bytes) -> None:
        if attach.handle > HANDLE_MAX:
            raise FramingError(f"handle {attach.handle} is above the maximum of {HANDLE_MAX}")
        self._check_early()
        if (
            len(attach.name.encode()) > _LONGEST_NAME
        ):  # the answer says it, and the link keeps it until its peer detaches
            raise InvalidField(f"the name of a link has no more than {_LONGEST_NAME} bytes")
        if attach.handle in self._links:
            raise HandleInUse(f"handle {attach.handle} is in use")
        handle = self._free_handle(attach.handle)
        link = _kind_of(attach)(self, attach, handle)
        self._links[attach.handle] = self._ours[handle] = link
        self._begin_link(link, self._steal(link))

    def _check_early(self) -> None:
        """A session whose number a former one has, which is busy, keeps no more answers than its links may need."""
        if len(self._early) > 2 * HANDLE_MAX:
            raise ResourceError("too many frames before the begin is answered")

    def _steal(self, link: Link) -> Link | None:
        """A name is one link's: who attaches it again has given up the former (2.6.1). Gives that."""
        links = self.peer.links
        former, links[link.identity] = links.get(link.identity), link
        if former and former.is_heard:
            former.fail(LinkStolen("the link is attached again"))
        return former

    def _begin_link(self, link: Link, former: Link | None) -> None:
        """At once, unless it waits for the end of another one."""
        if former and (behind := link.waits_for(former)):
            self.peer.behind[behind] = link
        else:
            _for_link(link.begin, link.refuse)

    def _forget_link(self, link: Link) -> None:
        self.peer.forget_link(link)
        if following := self.peer.behind.pop(link, None):
            _for_link(following.begin, following.refuse)

    def _free_handle(self, like: int) -> int:
        """Of ours: the peer's number, unless a link has it that we have not done with."""
        handles = self._windows.handles
        if like in handles and like not in self._ours:
            return like
        free: int | None = next((each for each in handles if each not in self._ours), None)
        if free is None:
            raise ResourceError(f"more than {len(handles)} links, with those whose end is not answered yet")
        return free

    def _detach(self, detach: Detach, _payload: bytes) -> None:
        """With it the peer's handle is free (2.7.7)."""
        link = self._link(detach.handle)
        del self._links[detach.handle]
        link.detach(detach)

    def _transfer(self, transfer: Transfer, payload: bytes) -> None:
        self._windows.received()
        link = self._link(transfer.handle)
        if not isinstance(link, IncomingLink):
            raise UnattachedHandle(f"a transfer on handle {transfer.handle}, by which we send")
        _for_link(lambda: link.transfer(transfer, payload), link.fail)
        if self._windows.renew():
            self.send(self._windows.flow())

    def _flow(self, flow: Flow, _payload: bytes) -> None:
        self._check_early()
        self._windows.told(flow)
        if flow.handle is not None:
            self._link(flow.handle).flow(flow)  # first: what it has no credit for any more does not go out
        elif flow.echo:
            self.send(self._windows.flow())
        self.deliveries.window_opened()

    def _disposition(self, disposition: Disposition, _payload: bytes) -> None:
        if disposition.role is RECEIVER:  # what a sender has settled was forgotten when we said what became of it
            self.deliveries.disposed(disposition)

    def _end(self, _end: End, _payload: bytes) -> None:
        self.state = SessionState.ENDING
        self._close()

    _TABLE: ClassVar[Mapping[type[Composite], _Handler]] = {
        Attach: _attach,
        Detach: _detach,
        Transfer: _transfer,
        Flow: _flow,
        Disposition: _disposition,
        End: _end,
    }

    PERFORMATIVES: ClassVar[frozenset[type[Composite]]] = frozenset(_TABLE)

    def _link(self, handle: int) -> Link:
        link = self._links.get(handle)
        if link is None:
            raise UnattachedHandle(f"handle {handle} is not attached")
        return link

    # -------------------------------------------------------------- for links

    def forget(self, link: Link) -> None:
        """Our handle is free."""
        if self._ours.get(link.handle) is link:
            del self._ours[link.handle]
        self._forget_link(link)

    def expect(self, link: OutgoingLink) -> None:
        """The broker is asked for its consumer: what is said of its tag is for it."""
        self._consumers[link.tag] = link

    def forget_tag(self, tag: str) -> None:
        """Nothing more is delivered to it."""
        self._consumers.pop(tag, None)

    # -------------------------------------------------------------- from the broker

    def deliver(self, what: answers.Deliveries) -> None:
        """For one of its links: what comes for one that has ended meanwhile is for others."""
        link = self._consumers.get(what.tag)
        if link is None or self.state is not SessionState.RUNNING:
            return
        if link.state is LinkState.ATTACHED:
            self.deliveries.send(link, what)
        elif not link.settled:
            self.deliveries.give_back(what)

    def confirm(self, dispositions: Sequence[PublishDisposition]) -> None:
        """As Engine says."""
        if self.state is not SessionState.FAILED:
            self.publications.confirm(dispositions)

    def cancelled(self, tag: str, error: BrokerError | None) -> None:
        """The queue of a link is gone, or there is another reason."""
        link = self._consumers.get(tag)
        if link and self.state is SessionState.RUNNING:
            link.cancelled(error)

    @property
    def producing(self) -> list[Producing]:
        """Links by which the peer publishes."""
        links = (each.producing for each in self._ours.values() if isinstance(each, IncomingLink))
        return [each for each in links if each]

    def blocked(self) -> None:
        """Those of its links by which the peer sends are, or are no longer."""
        for link in self._ours.values():
            if isinstance(link, IncomingLink) and self.is_heard:
                link.block()

    def fail_link(self, number: int, error: BrokerError) -> None:
        """What a link asked for could not be done."""
        link = next((each for each in self._ours.values() if each.number == number), None)
        if link and self.state is not SessionState.FAILED:
            link.fail(error)


def _kind_of(attach: Attach) -> type[Link]:
    if attach.role is RECEIVER:
        return DurableLink if outlives_connection(attach.source) else OutgoingLink
    return CoordinatorLink if isinstance(attach.target, Coordinator) else IncomingLink


def _for_link(work: Callable[[], None], failed: Callable[[BrokerError], None]) -> None:
    """What goes wrong with a link ends the link, whatever it would end elsewhere."""
    try:
        work()
    except BrokerError as error:
        failed(error)

"""A link by which the peer receives: from a queue, from an exchange by a queue of its own, or from a new queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from services.common.arguments.filters import SELECTOR
from services.common.errors import NotImplementedHere
from services.gateway.answers import QueueDeclared
from services.gateway.protocols.amqp_1_0.addresses import Meant, meanings
from services.gateway.protocols.amqp_1_0.conditions import InvalidField, ResourceDeleted
from services.gateway.protocols.amqp_1_0.filters import Filters, filters_of
from services.gateway.protocols.amqp_1_0.lifetimes import arguments_of, is_exclusive, lifetime_of
from services.gateway.protocols.amqp_1_0.link import Link, LinkState
from services.gateway.protocols.amqp_1_0.performatives import SETTLED, UNSETTLED, Attach, Flow
from services.gateway.protocols.amqp_1_0.serial import after, distance
from services.gateway.protocols.amqp_1_0.states import OUTCOMES, USUAL_OUTCOME
from services.gateway.protocols.amqp_1_0.termini import Source, Target
from services.gateway.vocabulary import MANAGEMENT, Bind, Cancel, Consume, Credit, DeclareQueue, DropQueue, Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from services.common.errors import BrokerError
    from services.gateway.protocols.amqp_1_0.session import Session

_COPY = "copy"  # distribution-mode (3.5.3): the link takes nothing
_NAMED = 200  # bytes of a link's name that its consumer's tag says
_ANY_SIZE = 1 << 31  # bytes that no message here has
_NO_MORE = "the queue was deleted, or a delivery was kept for longer than x-consumer-timeout"
_EVERYTHING = "#"  # the key by which a topic exchange gives all that it has


class OutgoingLink(Link):
    """`sent`: how many deliveries have gone out. `tag` is what the broker calls its consumer."""

    def __init__(self, session: Session, attach: Attach, handle: int) -> None:
        super().__init__(session, attach, handle)
        self.settled = attach.snd_settle_mode == SETTLED
        # What it is given cannot be given to others instead: it is settled, or a copy.
        self.keeps = self.settled or getattr(attach.source, "distribution_mode", None) == _COPY
        said = attach.max_message_size or 0
        self.largest = said if said < _ANY_SIZE else 0  # bytes of a message that the peer takes; 0: any
        self.sent = 0
        self.positions = range(0)  # among which are those in its session of what it has not settled
        # Each delivery's record says it, so of a long name it says the beginning.
        self.tag = f"{self.name.encode()[:_NAMED].decode(errors='ignore')}.{session.number}.{self.number}"
        self._skipped = 0  # credit that was drained
        self._up_to = 0  # deliveries that there is credit for, counted from the first
        self.takes_back = False  # its peer has taken credit back: the broker may give more than that before it hears
        self._kind = Node.QUEUE
        self._made = ""  # a queue for it, which has had no consumer
        self._asked_to_consume = False  # the broker
        self._consumes = False  # there is its consumer, of which the broker was not asked that it end
        self._own = ""  # the address of a new queue, which the peer has asked for …
        self._lifetime = ""  # … and until when it is there, if it has said that
        self._asked = 0  # of the broker
        self._drains = False
        self._draining: Credit | None = None  # what the broker was asked, until the peer has been told of its end
        self._filters = Filters()

    # -------------------------------------------------------------- beginning

    @property
    def _source(self) -> Source:
        source = self._attach.source
        if not isinstance(source, Source):
            raise NotImplementedHere("a source of this kind is not offered")
        return source

    def begin(self) -> None:
        """As Link says."""
        source = self._source
        self._filters = filters_of(source.filter)
        if self._attach.unsettled:
            raise NotImplementedHere("links are not resumed: attach without unsettled deliveries")
        if source.dynamic and (source.filter or source.distribution_mode == _COPY):
            raise InvalidField("a new queue is all its link's: there is nothing to filter, or to leave to others")
        if source.dynamic:
            self._lifetime = lifetime_of(source.dynamic_node_properties)
            self._declare(self._own_queue, exclusive=is_exclusive(source, self._lifetime))
        elif source.address == MANAGEMENT:
            self._consume(MANAGEMENT, replies_to=self._own_address, selector=self._selector)
        else:
            self._find(meanings(source.address), self._found)

    def _found(self, meant: Meant) -> None:
        self._kind = meant.node
        if meant.node is Node.QUEUE and self._filters.binding is not None:
            self.refuse(InvalidField(f"a binding filter is for exchanges, and {meant.name!r} is a queue"))
        elif meant.node is Node.QUEUE:
            browse = self._source.distribution_mode == _COPY
            self._consume(meant.name, selector=self._selector, browse=browse)
        else:
            self._subscribe(meant.name, self._key_of(meant))

    def _key_of(self, meant: Meant) -> str:
        """By which messages come from an exchange."""
        key = meant.key if self._filters.binding is None else self._filters.binding
        return _EVERYTHING if key is None else key

    def _subscribe(self, exchange: str, key: str) -> None:
        """By a queue of its own."""
        self._declare(lambda made: self._bind(exchange, made.name, key))

    def _declare(self, done: Callable[[QueueDeclared], None], *, exclusive: bool = True) -> None:
        """A queue that goes when the link does, unless its peer wants it longer."""

        def made(declared: QueueDeclared) -> None:
            self._made = declared.name
            done(declared)

        def in_vain(declared: QueueDeclared) -> None:
            self._made = declared.name
            self._unmake()

        declare = DeclareQueue(
            self.session.number,
            "",
            exclusive=exclusive,
            auto_delete=not self._lifetime,
            arguments=arguments_of(self._source.dynamic_node_properties) if self._source.dynamic else {},
            lifetime=self._lifetime,
            link=self.number,
        )
        self._ask_for(declare, made, in_vain)

    def refuse(self, error: BrokerError) -> None:
        """As Link says."""
        super().refuse(error)
        self.session.forget_tag(self.tag)
        self._unmake()

    def _unmake(self) -> None:
        """A queue that never had a consumer would not go by itself. It may be there though the answer did not come."""
        made, self._made = self._made, ""
        if self._lifetime:
            self._made_in_vain()
        elif made:
            self.session.peer.ask(DropQueue(0, made))

    def _made_in_vain(self) -> None:
        """A session that ends takes with it what its links have made."""
        if self.session.is_heard:
            self._let_go(lambda: None)

    def _own_queue(self, made: QueueDeclared) -> None:
        self._own = made.name
        self._consume(made.name)

    def _bind(self, exchange: str, queue: str, key: str) -> None:
        bind = self._binding(exchange, queue, key)
        self._ask_for(bind, lambda _: self._bound(queue), lambda _: self._unmake())

    def _binding(self, exchange: str, queue: str, key: str) -> Bind:
        said = {SELECTOR: self._selector} if self._selector else {}
        return Bind(self.session.number, exchange, queue, False, key, said, link=self.number)

    def _bound(self, queue: str) -> None:
        self._consume(queue, alone=True)

    @property
    def _own_address(self) -> str:
        """What the peer calls its end: requests to the management node name that for replies."""
        target = self._attach.target
        return target.address if isinstance(target, Target) and isinstance(target.address, str) else ""

    @property
    def _selector(self) -> str:
        return (self._filters.selector or "").strip()

    def _consume(
        self,
        queue: str,
        replies_to: str = "",
        *,
        selector: str = "",
        browse: bool = False,
        alone: bool = False,
        steals: bool = False,
        queue_id: int = 0,
    ) -> None:
        consume = Consume(
            self.session.number,
            queue,
            self.tag,
            settled=self.settled,
            no_local=bool(self._filters.no_local),
            replay=self._filters.replay,
            by_credit=True,
            replies_to=replies_to,
            selector=selector,
            browse=browse,
            alone=alone,
            steals=steals,
            queue_id=queue_id,
            link=self.number,
        )
        self.session.expect(self)
        self._asked_to_consume = True
        self._ask_for(consume, lambda _: self._begun(), lambda _: self._begun_in_vain())

    def _attached(self, **ends: Any) -> None:  # noqa: ANN401 - as Link says
        """As Link says. A selector may be long, and the link live long."""
        super()._attached(**ends)
        self._filters = Filters()

    def _begun_in_vain(self) -> None:
        """With its consumer goes the queue that was made for it. A session that ends takes both with it."""
        self._made = ""
        if self.session.is_heard:
            self._cancel(lambda: None)

    def _begun(self) -> None:
        self._made, self._consumes = "", True
        self._answer()
        if self.state is LinkState.DETACHING:
            self.end()
        else:
            self.state = LinkState.ATTACHED
            self._ask_for_credit()

    def _answer(self) -> None:
        source = self._source
        self._attached(
            snd_settle_mode=SETTLED if self.settled else UNSETTLED,
            source=Source(
                self._own or source.address,
                dynamic=source.dynamic,
                dynamic_node_properties=source.dynamic_node_properties,
                distribution_mode=source.distribution_mode,
                filter=source.filter,
                default_outcome=USUAL_OUTCOME,
                outcomes=OUTCOMES,
                capabilities=(self._kind.value,),
                **self._terminus,
            ),
            target=self._attach.target,
            initial_delivery_count=0,
        )

    @property
    def _terminus(self) -> dict[str, Any]:
        """How long its end here is there: as long as the link."""
        return {}

    # -------------------------------------------------------------- credit

    @property
    def room(self) -> int:
        """How many more deliveries the peer's credit allows to go out."""
        return max(self._up_to - self.sent, 0)

    @property
    def _count(self) -> int:
        """Deliveries as the peer counts them: what it drained was used as well."""
        return after(0, self.sent + self._skipped)

    def flow(self, flow: Flow) -> None:
        """As Link says: the peer's credit counts from what it had seen when it said so, never more than was sent."""
        if flow.link_credit is not None:
            left = flow.link_credit + min(distance(self._count, flow.delivery_count or 0), 0)
            before, self._up_to = self._up_to, self.sent + max(left, 0)
            self._drains = flow.drain
            self.takes_back = self.takes_back or self._up_to < before
            if self._up_to != before:
                self.session.deliveries.limit(self, self.room)
            if self.state is LinkState.ATTACHED:
                self._ask_for_credit()
        if flow.echo and not flow.drain and self.state is LinkState.ATTACHED:
            self._say_flow()

    def _ask_for_credit(self) -> None:
        """The end of a drain that is said again is told once; one that is taken back must not use up the credit."""
        drained, asked, up_to = self._draining, self._asked, self._up_to
        if self._drains and drained and up_to == asked:
            return
        credit = Credit(self.session.number, self.tag, up_to, self._drains, link=self.number)
        self._asked, self._draining = up_to, credit if self._drains else None
        if self._drains:
            self.session.ask_for(credit, lambda _: self._drained(credit), lambda _: None)
        elif up_to != asked or drained:
            self.session.peer.ask(credit)

    def _drained(self, drain: Credit) -> None:
        """The broker has given all that it had: once that has gone out, the rest of the credit is used up."""
        if self._draining is drain:
            self.session.deliveries.behind(self, lambda: self._use_up(drain))

    def _use_up(self, drain: Credit) -> None:
        """As a drain says (2.6.7), unless the peer has given another credit meanwhile."""
        if self.state is LinkState.ATTACHED and self._draining is drain:
            self._skipped += self.room
            self._up_to = self._asked = self.sent
            self._draining = None
            self._say_flow()

    def _say_flow(self) -> None:
        self.session.send_flow(
            handle=self.handle,
            delivery_count=self._count,
            link_credit=self.room,
            drain=self._drains,
        )

    # -------------------------------------------------------------- the end

    def cancelled(self, error: BrokerError | None) -> None:
        """There is this reason, or its queue is gone, or does not give it more."""
        self.session.forget_tag(self.tag)
        self.fail(error or ResourceDeleted(_NO_MORE))

    def end(self) -> None:
        """As Link says."""
        self._cancel(self._gone)

    def give_up(self) -> None:
        """As Link says. What is asked for it before it is attached is undone when it has been done."""
        if self._consumes and self.session.is_heard:
            self._cancel(lambda: None)

    def _cancel(self, done: Callable[[], None]) -> None:
        """What it holds, and what comes until the broker has heard of it, is for others."""

        def ended(_: object) -> None:
            self.session.forget_tag(self.tag)
            if self._lifetime and self.session.is_heard:
                self._let_go(done)
            else:
                done()

        self._consumes = False
        self.session.deliveries.release(self)
        self._end_consumer(ended)

    def _end_consumer(self, ended: Callable[[object], None]) -> None:
        self.session.ask_for(Cancel(self.session.number, self.tag, link=self.number), ended, ended)

"""What a session's peer has sent and is to hear of: transfers become publishes, confirms become dispositions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from services.common.errors import BrokerError, NotFound
from services.common.message.amqp_1_0.composite import Composite
from services.gateway.answers import Returned
from services.gateway.outcomes import PublishDisposition, PublishOutcome
from services.gateway.protocols.amqp_1_0.conditions import told
from services.gateway.protocols.amqp_1_0.peer import Peer
from services.gateway.protocols.amqp_1_0.performatives import RECEIVER, Disposition
from services.gateway.protocols.amqp_1_0.serial import distance
from services.gateway.protocols.amqp_1_0.states import Rejected, state_of
from services.gateway.vocabulary import Kind, Publish, Request

if TYPE_CHECKING:
    from services.gateway.protocols.amqp_1_0.incoming_link import IncomingLink
    from services.gateway.protocols.amqp_1_0.transactions import OpenTransaction


class Hears(Enum):
    """What the sender of a message is told when it is safe, or refused (2.6.12)."""

    NOTHING = "it has settled it itself"
    SETTLED = "its outcome, and that we have settled it"
    OUTCOME = "its outcome: the sender settles first"


class Sent(NamedTuple):
    """A message whose outcome is not known."""

    delivery_id: int
    hears: Hears
    transaction: OpenTransaction | None = None


class Publications:
    """Of one session; each link numbers its own from 1."""

    def __init__(self, peer: Peer, channel: int, session: int) -> None:
        self._peer = peer
        self._channel = channel
        self._session = session
        self._links: dict[int, IncomingLink] = {}  # that have some whose outcome is not known
        self._unrouted: dict[tuple[int, int], Composite] = {}  # by link and number: what they hear in place of "safe"
        self._open: dict[int, Publish] = {}  # by link, to which more is added …
        self._turn: list[Request] | None = None  # … while these requests wait to be handed over

    def add(self, link: IncomingLink, sent: Sent, *, kind: Kind, message: tuple[bytes, bytes]) -> None:
        """A message that has come whole: `message` is its properties and its body."""
        transaction = sent.transaction.number if sent.transaction else 0
        publish = self._open.get(link.number) if self._turn is self._peer.requests else None
        if publish is None or publish.transaction != transaction:
            publish = self._begin(link, transaction)
        properties, body = message
        publish.kinds.append(kind)  # type: ignore[attr-defined]  # those that are open are lists
        publish.properties.append(properties)  # type: ignore[attr-defined]
        publish.bodies.append(body)  # type: ignore[attr-defined]
        link.sent[link.next] = sent
        link.next += 1

    def _begin(self, link: IncomingLink, transaction: int) -> Publish:
        """One publish for each link in what is handed over at once, however they take turns, and each transaction."""
        if self._turn is not self._peer.requests:
            self._open.clear()
            self._turn = self._peer.requests
        self._links[link.number] = link
        publish = Publish(self._session, [], [], [], link.next, transaction, link=link.number)
        self._open[link.number] = publish
        self._peer.ask(publish)
        return publish

    def refuse(
        self, delivery_id: int, hears: Hears, error: BrokerError, transaction: OpenTransaction | None = None
    ) -> None:
        """A message that no broker could take; who does not want to hear of that does not."""
        if transaction:
            transaction.fault = error
        if hears is not Hears.NOTHING:
            self._dispose(hears, delivery_id, delivery_id, Rejected(told(error)))

    # -------------------------------------------------------------- from the broker

    def returned(self, returned: Returned) -> None:
        """Their outcome is told when they are confirmed."""
        publish = returned.publish
        for index in returned.indexes:
            facts = publish.kinds[index].facts
            nowhere = f"nothing is bound to exchange '{facts.exchange}' for key '{facts.routing_key}'"
            self._unrouted[publish.link, publish.first + index] = Rejected(told(NotFound(nowhere)))

    def confirm(self, dispositions: Sequence[PublishDisposition]) -> None:
        """Outcomes, in as few dispositions as can be."""
        if self._turn is not self._peer.requests:
            self._open.clear()  # what was handed over with them is the broker's: who rests keeps nothing of it
            self._turn = None
        taken = list(self._taken(dispositions))
        self._tell(_in_order(taken) if len(dispositions) > 1 else taken)
        for number in {each.link for each in dispositions}:
            if (link := self._links.get(number)) and not link.sent:
                del self._links[number]
                link.confirmed()  # a link that has ended says so behind its last outcome

    def _tell(self, taken: Iterable[tuple[Sent, Composite]]) -> None:
        """Those that want to hear of it."""
        run: tuple[Sent, int, Composite] | None = None
        for sent, state in taken:
            if sent.hears is Hears.NOTHING:
                continue
            if sent.transaction:
                state = sent.transaction.told(state)  # noqa: PLW2901 - the same, as part of it
            if run and _goes_on(run, sent, state):
                run = run[0], sent.delivery_id, state
                continue
            if run:
                self._dispose(run[0].hears, run[0].delivery_id, run[1], run[2])
            run = sent, sent.delivery_id, state
        if run:
            self._dispose(run[0].hears, run[0].delivery_id, run[1], run[2])

    def _taken(self, dispositions: Sequence[PublishDisposition]) -> Iterator[tuple[Sent, Composite]]:
        """Those whose outcome was not known, each with what it hears."""
        unrouted = self._unrouted
        outcome: PublishOutcome | None = None
        for each in dispositions:
            link = self._links.get(each.link)
            if link is None:
                continue
            if each.outcome is not outcome:  # else the same object, by which they are seen to be alike
                outcome, state = each.outcome, state_of(each.outcome)
            for number in range(each.first, each.last + 1):
                sent = link.sent.pop(number, None)
                if sent is not None:
                    yield sent, unrouted.pop((each.link, number), state) if unrouted else state

    def _dispose(self, hears: Hears, first: int, last: int, state: Composite) -> None:
        settled = hears is Hears.SETTLED
        self._peer.send(self._channel, Disposition(RECEIVER, first, last if last != first else None, settled, state))


def _in_order(taken: list[tuple[Sent, Composite]]) -> list[tuple[Sent, Composite]]:
    """As they were sent: those of links that took turns are then in a row."""
    first = taken[0][0].delivery_id if taken else 0
    return sorted(taken, key=lambda each: distance(first, each[0].delivery_id))


def _goes_on(run: tuple[Sent, int, Composite], sent: Sent, state: Composite) -> bool:
    begun, last, its = run
    return sent.delivery_id == last + 1 and state is its and sent.hears is begun.hears

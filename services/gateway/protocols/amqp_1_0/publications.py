"""What a session's peer has sent and is to hear of: transfers become publishes, confirms become dispositions."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from services.common.errors import BrokerError, NotFound, ResourceError, Unavailable
from services.common.message.amqp_1_0.composite import Composite
from services.gateway.protocols.amqp_1_0.conditions import told
from services.gateway.protocols.amqp_1_0.peer import Peer
from services.gateway.protocols.amqp_1_0.performatives import RECEIVER, Disposition
from services.gateway.protocols.amqp_1_0.states import Accepted, Rejected, Released
from services.gateway.vocabulary import Kind, Publish, Request, Returned

if TYPE_CHECKING:
    from services.gateway.protocols.amqp_1_0.incoming_link import IncomingLink

_ACCEPTED: Final = Accepted()
_RELEASED: Final = Released()
_REFUSED: Final = Rejected(told(ResourceError("a queue of it is full, or cannot take it")))


class Hears(Enum):
    """What the sender of a message is told when it is safe, or refused (2.6.12)."""

    NOTHING = "it has settled it itself"
    SETTLED = "its outcome, and that we have settled it"
    OUTCOME = "its outcome: the sender settles first"


class _Sent(NamedTuple):
    """A message that is not confirmed."""

    link: IncomingLink
    delivery_id: int
    hears: Hears


class Publications:
    """Of one session, numbered from 1 as `vocabulary.Confirms` says."""

    def __init__(self, peer: Peer, channel: int, session: int) -> None:
        self._peer = peer
        self._channel = channel
        self._session = session
        self._next = 1
        self._sent: dict[int, _Sent] = {}
        self._refused: dict[int, Composite] = {}
        self._open: dict[IncomingLink, tuple[Publish, list[_Sent]]] = {}  # without numbers yet, …
        self._turn: list[Request] | None = None  # … while these requests wait to be handed over

    def add(
        self, link: IncomingLink, delivery_id: int, hears: Hears, *, kind: Kind, message: tuple[bytes, bytes]
    ) -> None:
        """A message that has come whole: `message` is its properties and its body."""
        publish, sent = self._open_for(link)
        properties, body = message
        publish.kinds.append(kind)  # type: ignore[attr-defined]  # those that are open are lists
        publish.properties.append(properties)  # type: ignore[attr-defined]
        publish.bodies.append(body)  # type: ignore[attr-defined]
        sent.append(_Sent(link, delivery_id, hears))
        link.unconfirmed += 1

    def _open_for(self, link: IncomingLink) -> tuple[Publish, list[_Sent]]:
        """One publish for each link in what is handed over at once, however they take turns."""
        if self._turn is not self._peer.requests:
            self._number()
            self._turn = self._peer.requests
        found = self._open.get(link)
        if found is None:
            found = self._open[link] = Publish(self._session, [], [], [], link=link.number), []
            self._peer.ask(found[0])
        return found

    def _number(self) -> None:
        """Those that were handed over, in the order of their requests."""
        for _, sent in self._open.values():
            self._sent.update(enumerate(sent, self._next))
            self._next += len(sent)
        self._open.clear()

    def refuse(self, delivery_id: int, hears: Hears, error: BrokerError) -> None:
        """A message that no broker could take; who does not want to hear of that does not."""
        if hears is not Hears.NOTHING:
            self._dispose(hears, delivery_id, delivery_id, Rejected(told(error)))

    # -------------------------------------------------------------- from the broker

    def returned(self, returned: Returned) -> None:
        """Their outcome is told when they are confirmed."""
        for index in returned.indexes:
            facts = returned.publish.kinds[index].facts
            nowhere = f"nothing is bound to exchange '{facts.exchange}' for key '{facts.routing_key}'"
            self._refused[returned.first + index] = _refused_by(returned.error or NotFound(nowhere))

    def confirm(self, first: int, last: int, *, cumulative: bool, accepted: bool) -> None:
        """Outcomes, in as few dispositions as can be."""
        self._number()
        taken = self._taken(first, last, _ACCEPTED if accepted else _REFUSED, cumulative=cumulative)
        self._tell(taken)
        for sent, _ in taken:
            sent.link.confirmed()  # a link that has ended says so behind its last outcome

    def _tell(self, taken: list[tuple[_Sent, Composite]]) -> None:
        """Those that want to hear of it."""
        run: tuple[_Sent, int, Composite] | None = None
        for sent, state in taken:
            if sent.hears is Hears.NOTHING:
                continue
            if run and _goes_on(run, sent, state):
                run = run[0], sent.delivery_id, state
                continue
            if run:
                self._dispose(run[0].hears, run[0].delivery_id, run[1], run[2])
            run = sent, sent.delivery_id, state
        if run:
            self._dispose(run[0].hears, run[0].delivery_id, run[1], run[2])

    def _taken(self, first: int, last: int, outcome: Composite, *, cumulative: bool) -> list[tuple[_Sent, Composite]]:
        """Those that were not confirmed, each with what it hears."""
        found, refused = [], self._refused
        for number in self._up_to(last) if cumulative else range(first, last + 1):
            sent = self._sent.pop(number, None)
            if sent is not None:
                found.append((sent, refused.pop(number, outcome) if refused else outcome))
        return found

    def _up_to(self, last: int) -> list[int]:
        found = []
        for number in self._sent:  # in their order
            if number > last:
                break
            found.append(number)
        return found

    def _dispose(self, hears: Hears, first: int, last: int, state: Composite) -> None:
        settled = hears is Hears.SETTLED
        self._peer.send(self._channel, Disposition(RECEIVER, first, last if last != first else None, settled, state))


def _refused_by(error: BrokerError) -> Composite:
    """What could not be done at the time says nothing against the message: its sender may send it again (3.4.4)."""
    return _RELEASED if isinstance(error, Unavailable) else Rejected(told(error))


def _goes_on(run: tuple[_Sent, int, Composite], sent: _Sent, state: Composite) -> bool:
    begun, last, its = run
    return sent.delivery_id == last + 1 and state is its and sent.hears is begun.hears

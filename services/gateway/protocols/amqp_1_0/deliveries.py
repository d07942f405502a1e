"""What a session's peer was sent: ids, what waits for its window, and what is not settled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress, islice, repeat
from operator import length_hint
from typing import TYPE_CHECKING

from services.common.errors import BrokerError, PreconditionFailed
from services.common.message.indexes import runs
from services.gateway import answers
from services.gateway.outcomes import FAILED, UNSENT, DeliveryOutcome
from services.gateway.protocols.amqp_1_0.conditions import MessageSizeExceeded
from services.gateway.protocols.amqp_1_0.delivered import delivered
from services.gateway.protocols.amqp_1_0.link import LinkState
from services.gateway.protocols.amqp_1_0.parked import Frame, Parked, Rest, Waiting, Whole
from services.gateway.protocols.amqp_1_0.peer import Peer
from services.gateway.protocols.amqp_1_0.performatives import SENDER, Disposition
from services.gateway.protocols.amqp_1_0.serial import distance
from services.gateway.protocols.amqp_1_0.states import USUAL_OUTCOME, outcome_of
from services.gateway.protocols.amqp_1_0.transactional import TransactionalState
from services.gateway.protocols.amqp_1_0.transactions import OpenTransaction, OpenTransactions, Retired
from services.gateway.protocols.amqp_1_0.transfers import transfers
from services.gateway.protocols.amqp_1_0.windows import Windows
from services.gateway.vocabulary import Room, Settle

if TYPE_CHECKING:
    from services.gateway.protocols.amqp_1_0.outgoing_link import OutgoingLink


class Deliveries:
    """Of one session. The broker's number of a delivery is not its id: one that has not gone out when its link ends
    has no id, since peers count them. Its position, counted from 0, is: the id goes round (section 2.8.8).
    """

    def __init__(
        self, peer: Peer, channel: int, session: int, windows: Windows, transactions: OpenTransactions
    ) -> None:
        self._peer = peer
        self._transactions = transactions
        self._channel = channel
        self._session = session
        self._windows = windows
        self._next = 0  # position
        self._unsettled: dict[int, tuple[int, OutgoingLink]] = {}  # number and link by position, ascending
        self._parked = Parked()

    # -------------------------------------------------------------- to the peer

    def send(self, link: OutgoingLink, what: answers.Deliveries) -> None:
        """Writes deliveries, or keeps them while the peer's window is shut."""
        numbers = range(what.first, what.first + len(what.bodies))
        messages = (
            delivered(facts, properties, body, attempts=what.attempts)
            for facts, properties, body in zip(what.facts, what.properties, what.bodies, strict=True)
        )
        if link.largest:
            self._send_fitting(link, numbers, list(messages))
        else:
            self._send(link, numbers, messages)

    def _send_fitting(self, link: OutgoingLink, numbers: range, messages: list[tuple[bytes, bytes]]) -> None:
        """None that is larger than the peer takes (2.7.3): its link ends, and that was an attempt. Else it would come
        again for as long as the peer does.
        """
        fits = [len(properties) + len(body) <= link.largest for properties, body in messages]
        if all(fits):
            self._send(link, numbers, iter(messages))
            return
        first = fits.index(False)
        its = list(compress(messages, fits)) if link.settled else messages[:first]
        self._send(link, numbers[: len(its)], iter(its))
        if not link.settled:
            self._settle(numbers[first : first + 1], FAILED)
            self._settle(numbers[first + 1 :], UNSENT)
        size = sum(map(len, messages[first]))
        link.fail(MessageSizeExceeded(f"the next message has {size} bytes, and the link takes {link.largest}"))

    def _send(self, link: OutgoingLink, numbers: range, messages: Iterator[tuple[bytes, bytes]]) -> None:
        if link.takes_back and len(numbers) > link.room:
            self._send_within(link, numbers, messages)
        elif self._parked and numbers:
            self._parked.add(link, map(Whole, numbers, messages))
        elif left := self._begin(link, numbers, messages):
            self._parked.add(link, left)
            self._peer.ask(Room(self._session, False))

    def _send_within(self, link: OutgoingLink, numbers: range, messages: Iterator[tuple[bytes, bytes]]) -> None:
        """The peer has taken credit back, and has its answer perhaps: the broker has not come to that yet."""
        waited = bool(self._parked)
        self._parked.add(link, map(Whole, numbers, messages))
        self._give_back(self._parked.limit(link, link.room))
        self._waits(waited)
        self.window_opened()

    def _begin(self, link: OutgoingLink, numbers: range, messages: Iterator[Sequence[bytes]]) -> list[Waiting]:
        """Writes as much as the window takes; gives what is left, in order."""
        positions = iter(range(self._next, self._next + len(numbers)))
        frames = self._frames(link, positions, messages)
        self._put(list(islice(frames, self._windows.room)))
        begun = len(numbers) - length_hint(positions)
        self._note(link, numbers[:begun])
        # Without the messages behind it, what the frames go on with is the delivery that was begun last.
        whole = list(map(Whole, numbers[begun:], messages))
        rest = list(frames)
        return [Rest(rest), *whole] if rest else [*whole]

    def _frames(
        self, link: OutgoingLink, positions: Iterator[int], messages: Iterator[Sequence[bytes]]
    ) -> Iterator[Frame]:
        largest = self._peer.max_frame_size
        return transfers(self._channel, link.handle, positions, messages, settled=link.settled, largest=largest)

    def _note(self, link: OutgoingLink, numbers: range) -> None:
        first, self._next = self._next, self._next + len(numbers)
        link.sent += len(numbers)
        if not link.settled:
            link.positions = range(link.positions.start if link.positions else first, self._next)
            self._unsettled.update(zip(range(first, self._next), zip(numbers, repeat(link), strict=False), strict=True))

    def _put(self, frames: list[Frame]) -> None:
        self._windows.sent(len(frames))
        if whole := b"".join(piece for frame in frames for piece in frame):
            self._peer.out.append(whole)

    def behind(self, link: OutgoingLink, say: Callable[[], None]) -> None:
        """Calls when all that a link was given has gone out, maybe now; not the one before, if that still waits."""
        if not self._parked.say_behind(link, say):
            say()

    def limit(self, link: OutgoingLink, count: int) -> None:
        """A link has another credit now: of what waits so many may go out (2.6.7), and what cannot is for others."""
        waited = bool(self._parked)
        self._give_back(self._parked.limit(link, count))
        self._waits(waited)

    def window_opened(self) -> None:
        """Writes what the peer takes now."""
        waited = bool(self._parked)
        while self._parked and self._windows.room:
            link, waiting = self._parked.next()
            self._parked.went(link, self._left_of(link, waiting))
        self._waits(waited)

    def _waits(self, before: bool) -> None:
        """The broker hears when something begins to wait, and when nothing does any more."""
        if bool(self._parked) is not before:
            self._peer.ask(Room(self._session, before))

    def _left_of(self, link: OutgoingLink, waiting: Waiting) -> list[Waiting]:
        """Writes what the window takes of it."""
        match waiting:
            case Rest(frames):
                room = self._windows.room
                self._put(frames[:room])
                return [Rest(frames[room:])] if frames[room:] else []
            case Whole(number, message):
                return self._begin(link, range(number, number + 1), iter((message,)))

    # -------------------------------------------------------------- from the peer

    def disposed(self, disposition: Disposition) -> None:
        """A receiver's word on what it was sent (2.6.12). What it has settled before is not there, and no fault."""
        state = disposition.state
        its = state.outcome if isinstance(state, TransactionalState) else state
        named = self._named(disposition.first, disposition.first if disposition.last is None else disposition.last)
        positions = self._unsettled_in(named)
        try:
            outcome = outcome_of(its)
        except BrokerError as error:
            self._not_taken(state, positions, error)
            return
        if outcome is None and not disposition.settled:
            return
        if not positions and self._transactions.is_over(state):
            return  # the second word on what was retired in it
        if transaction := self._transactions.named(state):
            retired = transaction.retired_of(named) if len(positions) < len(named) else []
            if len(positions) + len(retired) < len(named):  # its link has ended, and it is another's by now
                self._transactions.spoil(state, PreconditionFailed("a delivery is not unsettled any more"))
            if disposition.settled:
                transaction.settled.update(retired)
            if positions:
                self._retire(transaction, disposition, its, positions)
            return
        if not positions:
            return
        self._settle(self._taken(positions), outcome or _USUAL)
        if not disposition.settled:
            self._settle_first(disposition, its)

    def _not_taken(self, state: object, positions: list[int], error: BrokerError) -> None:
        """It cannot be kept: whoever has said it has its links ended, and what they had is for others."""
        self._transactions.spoil(state, error)
        for link in dict.fromkeys(self._unsettled[position][1] for position in positions):
            link.fail(error)

    def _settle_first(self, disposition: Disposition, state: object) -> None:
        """It wants us to settle before it does."""
        self._peer.send(self._channel, Disposition(SENDER, disposition.first, disposition.last, True, state))

    # -------------------------------------------------------------- in transactions (part 4, section 4.4.2)

    def _retire(self, transaction: OpenTransaction, said: Disposition, state: object, positions: list[int]) -> None:
        links = [self._unsettled[position][1] for position in positions]
        numbers = self._taken(positions)
        transaction.retired.append(Retired(said, state, positions, numbers, links))
        self._settle(numbers, outcome_of(state) or _USUAL, transaction.number)

    def committed(self, transaction: OpenTransaction) -> None:
        """What was to be settled with it is."""
        for each in transaction.retired:
            if not each.said.settled:
                self._settle_first(each.said, each.state)

    def rolled_back(self, transaction: OpenTransaction) -> None:
        """What the peer has settled, or had on links that are gone, is for others; the rest is as it was before."""
        back: list[int] = []
        for each in transaction.retired:
            for position, number, link in zip(each.positions, each.numbers, each.links, strict=True):
                gone = each.said.settled or position in transaction.settled
                if gone or link.state is not LinkState.ATTACHED:
                    back.append(number)
                else:
                    self._unsettled[position] = number, link
        self._unsettled = dict(sorted(self._unsettled.items()))
        self._settle(sorted(back), FAILED)

    def release(self, link: OutgoingLink) -> None:
        """The link is gone: what it has not settled is for others, and what has not gone out stays here."""
        positions, link.positions = link.positions, range(0)
        its = [position for position in self._unsettled_in(positions) if self._unsettled[position][1] is link]
        self._settle(self._taken(its), FAILED)
        waited = bool(self._parked)
        self._give_back(self._parked.drop(link))
        self._waits(waited)

    def end(self) -> None:
        """Nothing more goes out, and what has is the broker's to give back."""
        self._give_back(self._parked.drop_all())
        self._unsettled.clear()

    def give_back(self, what: answers.Deliveries) -> None:
        """These were not sent, and go to other consumers."""
        last = what.first + len(what.bodies) - 1
        self._peer.ask(Settle(self._session, what.first, last, UNSENT))

    def _give_back(self, unsent: list[Whole]) -> None:
        self._settle([each.number for each in unsent], UNSENT)

    def _named(self, first: int, last: int) -> range:
        """Positions of these ids, also of such as are long settled, or were never given."""
        return range(self._position(first), self._position(last) + 1)

    def _unsettled_in(self, positions: range) -> list[int]:
        if len(positions) > len(self._unsettled):
            return [position for position in self._unsettled if position in positions]
        return [position for position in positions if position in self._unsettled]

    def _position(self, delivery_id: int) -> int:
        return self._next + distance(self._next, delivery_id)

    def _taken(self, positions: list[int]) -> list[int]:
        """Numbers of deliveries that are settled now."""
        return [self._unsettled.pop(position)[0] for position in positions]

    def _settle(self, numbers: Sequence[int], outcome: DeliveryOutcome, transaction: int = 0) -> None:
        if not numbers:
            return
        first = numbers[0]
        for start, count in runs([number - first for number in numbers]):
            self._peer.ask(Settle(self._session, first + start, first + start + count - 1, outcome, transaction))


_USUAL = outcome_of(USUAL_OUTCOME) or FAILED

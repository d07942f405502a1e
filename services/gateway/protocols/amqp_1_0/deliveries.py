"""What a session's peer was sent: numbers, frames that wait for its window, and what is not settled."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from services.common.message.indexes import runs
from services.gateway import vocabulary as to_broker
from services.gateway.protocols.amqp_1_0.delivered import delivered
from services.gateway.protocols.amqp_1_0.peer import Peer
from services.gateway.protocols.amqp_1_0.performatives import SENDER, Disposition
from services.gateway.protocols.amqp_1_0.serial import after, distance
from services.gateway.protocols.amqp_1_0.states import USUAL_OUTCOME, outcome_of
from services.gateway.protocols.amqp_1_0.transfers import transfers
from services.gateway.protocols.amqp_1_0.windows import Windows
from services.gateway.vocabulary import Outcome, Settle

if TYPE_CHECKING:
    from services.gateway.protocols.amqp_1_0.outgoing_link import OutgoingLink


class Deliveries:
    """Of one session. A delivery's number is the broker's, from 1; its id is that number less one, and goes round."""

    def __init__(self, peer: Peer, channel: int, session: int, windows: Windows) -> None:
        self._peer = peer
        self._channel = channel
        self._session = session
        self._windows = windows
        self._newest = 0  # number
        self._unsettled: dict[int, OutgoingLink] = {}  # by number, ascending
        self._parked: deque[tuple[bytes, ...]] = deque()  # frames, in pieces

    # -------------------------------------------------------------- to the peer

    def send(self, link: OutgoingLink, what: to_broker.Deliveries) -> None:
        """Writes deliveries, or keeps them while the peer's window is shut."""
        count = len(what.bodies)
        numbers = range(what.first, what.first + count)
        self._newest = numbers[-1]
        link.delivered += count
        if not link.settled:
            self._unsettled.update(dict.fromkeys(numbers, link))
        messages = (
            delivered(facts, properties, body, again=what.redelivered)
            for facts, properties, body in zip(what.facts, what.properties, what.bodies, strict=True)
        )
        ids = (after(number, -1) for number in numbers)
        largest = self._peer.max_frame_size
        self._write(transfers(self._channel, link.handle, ids, messages, settled=link.settled, largest=largest))

    def _write(self, frames: Iterator[tuple[bytes, ...]]) -> None:
        now = list(islice(frames, 0 if self._parked else self._windows.room))
        self._windows.sent(len(now))
        self._put(now)
        was_open = not self._parked
        self._parked.extend(frames)
        if self._parked and was_open:
            self._peer.ask(to_broker.Flow(self._session, False))

    def _put(self, frames: Iterable[tuple[bytes, ...]]) -> None:
        if whole := b"".join(piece for frame in frames for piece in frame):
            self._peer.out.append(whole)

    def window_opened(self) -> None:
        """Writes what the peer takes now."""
        if not self._parked:
            return
        now = [self._parked.popleft() for _ in range(min(self._windows.room, len(self._parked)))]
        self._windows.sent(len(now))
        self._put(now)
        if not self._parked:
            self._peer.ask(to_broker.Flow(self._session, True))

    # -------------------------------------------------------------- from the peer

    def disposed(self, disposition: Disposition) -> None:
        """A receiver's word on what it was sent (2.6.12). What it has settled before is not there, and no fault."""
        outcome = outcome_of(disposition.state)
        if outcome is None and not disposition.settled:
            return
        numbers = self._known(disposition.first, disposition.first if disposition.last is None else disposition.last)
        self._settle(numbers, outcome or _USUAL)
        if not disposition.settled and numbers:
            # It wants us to settle first.
            self._peer.send(
                self._channel, Disposition(SENDER, disposition.first, disposition.last, True, disposition.state)
            )

    def release(self, link: OutgoingLink) -> None:
        """The link is gone: what it has not settled is for others."""
        self._settle([number for number, its in self._unsettled.items() if its is link], Outcome.RELEASE)

    def _known(self, first: int, last: int) -> list[int]:
        """Numbers of these ids that are not settled; ids of long ago, or of none, are nobody's."""
        begin, end = self._number(first), self._number(last)
        if end - begin >= len(self._unsettled):
            return [number for number in self._unsettled if begin <= number <= end]
        return [number for number in range(begin, end + 1) if number in self._unsettled]

    def _number(self, delivery_id: int) -> int:
        return self._newest + distance(after(self._newest, -1), delivery_id)

    def _settle(self, numbers: list[int], outcome: Outcome) -> None:
        for number in numbers:
            del self._unsettled[number]
        if not numbers:
            return
        first = numbers[0]
        for start, count in runs([number - first for number in numbers]):
            self._peer.ask(Settle(self._session, first + start, first + start + count - 1, outcome))


_USUAL = outcome_of(USUAL_OUTCOME) or Outcome.RELEASE

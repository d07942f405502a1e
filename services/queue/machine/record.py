"""What one queue tells the ledger. Pure: the clock is the recorder's affair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from services.common.ledger import stages
from services.common.ledger.place import LedgerPlace
from services.common.ledger.recorder import OFF, Recorder
from services.rpc import ledger_pb2 as ledger

if TYPE_CHECKING:
    from services.queue.machine.consumers import Consumer
    from services.queue.machine.entry import Entry
    from services.queue.machine.options import QueueOptions


def uids_of(entries: Iterable[Entry]) -> list[int]:
    """The messages of some entries."""
    return [entry.message.uid for entry in entries]


class QueueRecord:
    """One for each queue and term of office; `on` is for those who would have to gather the uids."""

    __slots__ = ("_recorder", "on", "place")

    def __init__(self, recorder: Recorder, options: QueueOptions, epoch: int) -> None:
        self._recorder = recorder
        self.on = recorder.on
        self.place = LedgerPlace(options.virtual_host, queue=options.name, partition=options.partition, epoch=epoch)

    def places_for(self, connection: str, tag: str) -> tuple[LedgerPlace, LedgerPlace]:
        """Where deliveries to a consumer are recorded: those for the first time, and others."""
        place = self.place._replace(connection=connection, consumer=tag, attempt=1)
        return place, place._replace(attempt=2)

    def enqueued(self, uids: Sequence[int]) -> None:
        """They have their places."""
        self._recorder.record(ledger.ENQUEUED, self.place, uids)

    def persisted(self, uids: Sequence[int]) -> None:
        """They are on disk."""
        self._recorder.record(ledger.PERSISTED, self.place, uids)

    def delivered(
        self,
        place: LedgerPlace,
        uids: Sequence[int],
        consumer: Consumer | None = None,  # noqa: ARG002 - for TracedRecord
    ) -> None:
        """They were handed out; `place` is one of `places_for`. For a get there is no consumer."""
        self._recorder.record(ledger.DELIVERED, place, uids)

    def settled(self, uids: Sequence[int], outcome: str = stages.ACCEPTED) -> None:
        """Their consumer has done with them."""
        self._recorder.record(ledger.SETTLED, self.place, uids, outcome=outcome)

    def settled_for_good(self, uids: Sequence[int], *, accepted: bool) -> None:
        """The same of what was accepted, or rejected where nobody wants dead letters."""
        self.settled(uids, stages.ACCEPTED if accepted else stages.REJECTED)
        if not accepted:
            self.dropped(uids, stages.REJECTED)

    def requeued(self, uids: Sequence[int], reason: str) -> None:
        """They are back in their places."""
        self._recorder.record(ledger.REQUEUED, self.place, uids, reason=reason)

    def expired(self, uids: Sequence[int], reason: str = stages.MESSAGE_TTL) -> None:
        """Their time is over."""
        self._recorder.record(ledger.EXPIRED, self.place, uids, reason=reason)

    def dropped(self, uids: Sequence[int], reason: str, target: str = "") -> None:
        """Nobody will get them from here; `target` is an exchange that had no route."""
        place = self.place._replace(target=target) if target else self.place
        self._recorder.record(ledger.DROPPED, place, uids, reason=reason)

    def dead_lettered(self, uids: Sequence[int], reason: str, target: str, successors: range) -> None:
        """They went on, one for one, to the exchange `target`."""
        place = self.place._replace(target=target)
        self._recorder.record(ledger.DEAD_LETTERED, place, uids, reason=reason, successors=successors)

    def dead_lettered_again(self, uids: Sequence[int], reason: str, target: str, successors: range) -> None:
        """No queue, or not every one, took what they went on as: so they do as others. They have ended once."""
        place = self.place._replace(target=target)
        self._recorder.record(ledger.COPIED, place, uids, reason=reason, successors=successors)

    def moved(self, uids: Sequence[int], target: str, successors: range) -> None:
        """Somebody had them go on, one for one, in the queue `target`."""
        self.dead_lettered(uids, stages.MOVED, target, successors)

    def copied(self, uids: Sequence[int], target: str, successors: range) -> None:
        """The same of those that stay."""
        place = self.place._replace(target=target)
        self._recorder.record(ledger.COPIED, place, uids, reason=stages.COPIED, successors=successors)

    def recovered(self, uids: Sequence[int], reason: str) -> None:
        """They are here again after a change of owner."""
        self._recorder.record(ledger.RECOVERED, self.place, uids, reason=reason)


def silent(options: QueueOptions) -> QueueRecord:
    """Of a queue that tells nobody."""
    return QueueRecord(OFF, options, 0)

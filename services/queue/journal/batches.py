"""The batches that one link has published, until its peer has received the answers to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from services.queue.journal.ticket import Answers, Ticket, Unheard
from services.queue.links.peer_terms import PeerTerms
from services.queue.partitions.partition import Partition, PartitionState
from services.rpc import queue_pb2 as pb


class Batches:
    """`partitions` are those that this process holds, by number; `unheard` are those of all links."""

    def __init__(self, partitions: Mapping[int, Partition], unheard: Unheard) -> None:
        self._partitions = partitions
        self.terms = PeerTerms(partitions)
        self._of_all = unheard
        self._turned_away: set[int] = set()  # partitions for which a batch of this link was refused
        self._unheard: dict[int, Ticket] = {}  # by sequence, ascending
        self._last = 0
        self._sent_again: dict[int, tuple[int, int]] = {}  # partition → epoch, and the last batch before SentAgain

    def begin(self, answers: Answers, batch: pb.PublishBatch) -> Ticket:
        """The ticket of a batch that has come."""
        for partition in batch.resumed:
            self._turned_away.discard(partition)
            # What was refused is resent from here on: an earlier SentAgain holds no longer.
            self._sent_again.pop(partition, None)
        self.terms.begin(batch.terms)
        self._last = batch.sequence
        ticket = Ticket(answers, batch.sequence, self._turned_away, self._of_all, self.terms)
        self._unheard[batch.sequence] = ticket
        self._of_all.add(ticket)
        return ticket

    def heard(self, sequences: Iterable[int]) -> None:
        """The peer knows that these batches are done."""
        for sequence in sequences:
            if ticket := self._unheard.pop(sequence, None):
                ticket.heard()

    def sent_again(self, said: Iterable[pb.SentAgain]) -> None:
        """The peer has resent all that it had to for these partitions: nothing older than the batches so far comes."""
        for each in said:
            self._sent_again[each.partition] = each.epoch, self._last

    def forget_former(self, origin: int) -> None:
        """Forgets what `origin` sent former owners and on former links, once it was resent and the answer heard."""
        if not self._sent_again:
            return
        oldest = next(iter(self._unheard), self._last + 1)
        for number, (epoch, last) in list(self._sent_again.items()):
            partition = self._partitions.get(number)
            if oldest <= last or number in self._turned_away or partition is None or partition.epoch != epoch:
                continue
            if partition.state is not PartitionState.RECOVERING:
                del self._sent_again[number]
                partition.known.sent_again(origin)

    def close(self) -> None:
        """The stream is gone: batches whose answers were not heard may be resent on another."""
        for ticket in self._unheard.values():
            ticket.link_ended()
        self._unheard.clear()
        for partition in self._partitions.values():
            partition.known.nothing_comes()

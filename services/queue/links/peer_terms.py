"""For which terms (epochs) of each partition one peer publishes.

A batch may come late, on a stream that its peer has given up since. By then this process may own the partition again,
after another owner in between, which was sent all of it, and which has forgotten messages whose confirms the peer had
heard. So a batch that comes before the peer has named the present term is for a former one, and is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from services.queue.partitions.partition import Partition
from services.rpc import queue_pb2 as pb


class PeerTerms:
    """`partitions` are those that this process holds, by number."""

    def __init__(self, partitions: Mapping[int, Partition]) -> None:
        self.are_said = False  # a peer of an earlier release does not say its terms
        self._partitions = partitions
        self._epochs: dict[int, int] = {}

    def begin(self, terms: Iterable[pb.Term]) -> None:
        """Batches from now on are for these terms."""
        for term in terms:
            self._epochs[term.partition] = term.epoch

    def is_late(self, number: int) -> bool:
        """Whether the present batch is for another term of a partition than the one it has here."""
        return self.are_said and self._epochs.get(number) != self._partitions[number].epoch

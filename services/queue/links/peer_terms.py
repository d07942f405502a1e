"""For which terms of office one peer publishes.

What was sent to an owner may come late, on a stream that its peer has given up since. By then this process may have the
partition again, from an owner between who was sent all of it, and who has forgotten what the peer had heard of. So what
comes before the peer has said the present term is for the owner of a former one, and is not taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from services.queue.partitions.partition import Partition
from services.rpc import queue_pb2 as pb


class PeerTerms:
    """`partitions` are those that this process holds, by number."""

    def __init__(self, partitions: Mapping[int, Partition]) -> None:
        self.are_said = False  # one of an earlier release does not
        self._partitions = partitions
        self._epochs: dict[int, int] = {}

    def begin(self, terms: Iterable[pb.Term]) -> None:
        """What comes from now on is for these."""
        for term in terms:
            self._epochs[term.partition] = term.epoch

    def is_late(self, number: int) -> bool:
        """Whether what comes now is for another term of a partition that is here than its present one."""
        return self.are_said and self._epochs.get(number) != self._partitions[number].epoch

"""x-overflow: reject-publish and reject-publish-dlx: a full queue takes no newcomers."""

from __future__ import annotations

from collections.abc import Sequence

from services.queue.machine.options import QueueOptions


class RejectPublish:
    """Who does not fit is refused, and so is who comes behind it in the same batch."""

    drops_head = False
    dead_letters_refused = False
    holds_back = False

    def admits(self, options: QueueOptions, count: int, size: int, sizes: Sequence[int]) -> int:
        """As many from the first as fit."""
        room = len(sizes) if options.max_length is None else options.max_length - count
        admitted = max(0, min(len(sizes), room))
        if options.max_bytes is None:
            return admitted
        for index in range(admitted):
            size += sizes[index]
            if size > options.max_bytes:
                return index
        return admitted


class RejectPublishDeadLetter(RejectPublish):
    """The refused are dead-lettered too."""

    dead_letters_refused = True

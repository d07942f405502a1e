"""When a message that came back may be delivered again: RabbitMQ 4.3's delayed retry, later with each attempt.

It stands aside until then (`aside.py`), and holds nobody up. What comes back since its consumer is gone waits for
nothing: nobody has said that it failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from services.queue.machine.entry import Entry
from services.queue.machine.options import QueueOptions
from services.rpc import queue_pb2 as pb

_FAILED: Final = frozenset({pb.RELEASE, pb.TRIED})  # it counts as an attempt
_RETURNED: Final = frozenset({pb.RETURN})  # it does not
_DELAYED: Final[Mapping[str, frozenset[int]]] = {
    "disabled": frozenset(),
    "failed": _FAILED,
    "returned": _RETURNED,
    "all": _FAILED | _RETURNED,
}


def is_delayed(options: QueueOptions, outcome: int) -> bool:
    """Whether what comes back so has to wait."""
    return options.retry_min_ms > 0 and outcome in _DELAYED[options.retry]


def due(options: QueueOptions, entries: Iterable[Entry], now: int) -> list[tuple[int, Entry]]:
    """With the times from which on they may be delivered again."""
    return [(now + _wait(options, entry.attempts), entry) for entry in entries]


def _wait(options: QueueOptions, attempts: int) -> int:
    longer = options.retry_min_ms * max(attempts, 1)
    return longer if options.retry_max_ms is None else min(longer, options.retry_max_ms)

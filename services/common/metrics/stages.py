"""Counts messages where the ledger records them: one call tells both of a batch.

So counting costs as much for a thousand messages as for one, and its figures are the ledger's, even without a ledger.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from services.common.ledger import stages
from services.common.ledger.encoding import Mixture
from services.common.ledger.place import LedgerPlace
from services.common.ledger.recorder import Recorder
from services.common.metrics.catalogue import messages as m
from services.common.metrics.catalogue.queues import HANDED_OVER, TAKEN_OVER
from services.common.metrics.each import CountedEach
from services.common.metrics.instrument import Instrument
from services.common.metrics.meters import Labels, Meters, Samples
from services.rpc import ledger_pb2 as ledger

_Key = tuple[int, str, str, int]
"""Stage, outcome or reason, protocol, attempt."""

_WHY: Final = 1
_PROTOCOL: Final = 2
_AGAIN: Final = 2  # the attempt number of every delivery but the first

_STAGES: Final[tuple[tuple[Instrument, int, int], ...]] = (
    (m.RECEIVED, ledger.RECEIVED, _PROTOCOL),
    (m.ROUTED, ledger.ROUTED, 0),
    (m.RETURNED, ledger.RETURNED, _WHY),
    (m.CONFIRMED, ledger.CONFIRMED, 0),
    (m.REFUSED, ledger.REFUSED, _WHY),
    (m.ROLLED_BACK, ledger.ROLLED_BACK, 0),
    (m.SENT, ledger.SENT, _PROTOCOL),
    (m.ENQUEUED, ledger.ENQUEUED, 0),
    (m.PERSISTED, ledger.PERSISTED, 0),
    (m.DELIVERED, ledger.DELIVERED, 0),
    (m.SETTLED, ledger.SETTLED, _WHY),
    (m.REQUEUED, ledger.REQUEUED, _WHY),
    (m.EXPIRED, ledger.EXPIRED, _WHY),
    (m.DEAD_LETTERED, ledger.DEAD_LETTERED, _WHY),
    (m.DROPPED, ledger.DROPPED, _WHY),
    (m.RECOVERED, ledger.RECOVERED, _WHY),
    (TAKEN_OVER, ledger.TAKEN_OVER, 0),
    (HANDED_OVER, ledger.HANDED_OVER, 0),
)
"""An instrument, its stage, and the part of a key that is its label."""

_GATEWAY: Final[dict[int, tuple[str, ...]]] = {
    ledger.RECEIVED: (),
    ledger.ROUTED: ("",),
    ledger.RETURNED: (stages.NO_ROUTE, stages.NO_CONSUMERS),
    ledger.CONFIRMED: ("",),
    ledger.REFUSED: (
        stages.OVERFLOW, stages.UNAVAILABLE, stages.NO_EXCHANGE, stages.ACCESS_REFUSED, stages.INVALID,
    ),
    ledger.ROLLED_BACK: ("",),
    ledger.SENT: (),
    ledger.DROPPED: (stages.UNROUTABLE, stages.NO_CONSUMERS),
}  # fmt: skip
_QUEUE: Final[dict[int, tuple[str, ...]]] = {
    ledger.ROUTED: ("",),
    ledger.ENQUEUED: ("",),
    ledger.PERSISTED: ("",),
    ledger.DELIVERED: ("",),
    ledger.SETTLED: (stages.ACCEPTED, stages.REJECTED),
    ledger.REQUEUED: (stages.RELEASED, stages.CONSUMER_GONE, stages.NOT_SENT),
    ledger.EXPIRED: (stages.MESSAGE_TTL, stages.QUEUE_TTL),
    ledger.DEAD_LETTERED: (stages.REJECTED, stages.EXPIRED, stages.MAXLEN, "delivery_limit", stages.MOVED),
    ledger.DROPPED: (
        stages.UNROUTABLE, stages.MAXLEN, stages.PURGED, stages.QUEUE_DELETED, stages.REJECTED, stages.EXPIRED,
        "delivery_limit", stages.NO_OWNER, stages.DUPLICATE,
    ),
    ledger.RECOVERED: (stages.JOURNAL, stages.HELD, stages.HANDED_OVER),
    ledger.TAKEN_OVER: ("",),
    ledger.HANDED_OVER: ("",),
}  # fmt: skip
_BEGIN: Final = {"gateway": _GATEWAY, "queue": _QUEUE}
"""Stages and reasons that are shown from the start, by service."""


class CountedStages:
    """A Recorder before another one; each of `apart` is told of the same, for counts of single objects."""

    on = True

    def __init__(self, recorder: Recorder, meters: Meters, apart: Sequence[CountedEach] = ()) -> None:
        self._recorder = recorder
        self._apart = apart
        begin = _BEGIN[meters.service]
        self._counts: dict[_Key, int] = {(stage, why, "", 0): 0 for stage, reasons in begin.items() for why in reasons}
        self._bytes = 0
        for instrument, stage, part in _STAGES:
            if stage in begin:
                meters.read(instrument, self._reader(stage, part))
        if ledger.RECEIVED in begin:
            meters.number(m.RECEIVED_BYTES, lambda: self._bytes)
        if ledger.DELIVERED in begin:
            meters.number(m.REDELIVERED, self._redelivered)

    def record(
        self,
        stage: int,
        place: LedgerPlace,
        uids: Sequence[int],
        *,
        outcome: str = "",
        reason: str = "",
        size: int = 0,
        successors: range | None = None,
    ) -> None:
        """As Recorder.record."""
        self._recorder.record(stage, place, uids, outcome=outcome, reason=reason, size=size, successors=successors)
        if count := len(uids):
            self._bytes += size
            self._count((stage, outcome or reason, place.protocol, place.attempt), count)
            for each in self._apart:
                each.count(stage, place, outcome or reason, count)

    def record_each(self, stage: int, mixture: Mixture, uids: Sequence[int], *, reason: str = "") -> None:
        """As Recorder.record_each. All places of a mixture belong to one connection."""
        self._recorder.record_each(stage, mixture, uids, reason=reason)
        if uids:
            self._bytes += sum(mixture.sizes)
            self._count((stage, reason, mixture.places[0][0].protocol, 0), len(uids))
            for each in self._apart:
                each.count_each(stage, mixture, reason)

    def note(self, stage: int, place: LedgerPlace) -> None:
        """As Recorder.note."""
        self._recorder.note(stage, place)
        self._count((stage, "", "", 0), 1)

    def identify(self, message_format: str, uids: Sequence[int], properties: Sequence[bytes]) -> None:
        """As Recorder.identify."""
        self._recorder.identify(message_format, uids, properties)

    def _count(self, key: _Key, count: int) -> None:
        self._counts[key] = self._counts.get(key, 0) + count

    def _reader(self, stage: int, part: int) -> Callable[[], Samples]:
        def read() -> Samples:
            found: defaultdict[Labels, int] = defaultdict(int)
            for key, count in self._counts.items():
                if key[0] == stage:
                    found[(str(key[part]),) if part else ()] += count
            return found.items()

        return read

    def _redelivered(self) -> int:
        return sum(n for (stage, _, _, attempt), n in self._counts.items() if (stage, attempt) == _DELIVERED_AGAIN)


_DELIVERED_AGAIN: Final = (ledger.DELIVERED, _AGAIN)

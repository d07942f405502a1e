"""The instances that send rows, and which rows arrived: finds gaps, and rows that arrive twice. Pure.

Rows of an instance are numbered and arrive in order, so that one number says which of them are here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from services.rpc.ledger_pb2 import LedgerBatch

SILENT = "silent"
HEARD_AGAIN = "heard_again"
"""Of a row that takes back the `silent` gaps of its instance so far: all rows have come, or are gaps of their own."""

SILENT_AFTER = 30.0  # seconds of silence, while the bus was there
_REMEMBERED = 24 * 3600.0  # seconds for which dead instances are, so that no row of theirs is filed twice


class Gap(NamedTuple):
    """A row of the table `gaps`, but for its time."""

    service: str
    instance: str
    first_row: int
    last_row: int
    rows: int
    reason: str
    since_us: int | None = None
    """What happened before has been told, by the instance's clock (Unix, µs); None: not known."""


@dataclass(slots=True)
class _Instance:
    service: str
    next_row: int = 1
    ended: float = 0.0  # Unix time when it said that it ends, or was taken for dead; 0 while it lives


class Instances:
    """`state` and `told` are what has to survive; when an instance was last heard of does not."""

    def __init__(self, state: Mapping[str, Any] | None = None, told: Mapping[str, int] | None = None) -> None:
        self._all = {name: _Instance(**each) for name, each in (state or {}).items()}
        self._heard: dict[str, float] = {}
        self._told = dict(told or {})

    @property
    def state(self) -> dict[str, Any]:
        """To be given to the next one."""
        return {name: asdict(each) for name, each in self._all.items()}

    @property
    def told(self) -> dict[str, int]:
        """To be given to it, too: until when (Unix, µs, by the instance's clock) everything is here."""
        return dict(self._told)

    def heard(self, batch: LedgerBatch, now: float, time: float) -> tuple[bool, list[Gap]]:
        """A batch arrived: whether it is new, what is missing before it, and whether a gap is taken back by it.

        `now` is monotonic, `time` is Unix.
        """
        instance = self._all.setdefault(batch.instance, _Instance(batch.service))
        self._heard[batch.instance] = now
        first, end = batch.first_row, batch.first_row + len(batch.stages)
        if end <= instance.next_row and first < instance.next_row:
            return False, []
        gaps = list(self._noticed(batch, instance))
        if told_until := max([batch.time_us, *batch.times_us[-1:]]):
            self._told[batch.instance] = told_until
        instance.next_row = max(end, instance.next_row)
        instance.ended = time if batch.last else 0.0
        return True, gaps

    def _noticed(self, batch: LedgerBatch, instance: _Instance) -> Iterator[Gap]:
        row, missing = instance.next_row, batch.first_row - instance.next_row
        if missing > 0:
            since = self.told_until(batch.instance)
            yield Gap(batch.service, batch.instance, row, row + missing - 1, missing, "given_up", since)
        if instance.ended:  # it was cut off from the bus, and not dead
            yield Gap(batch.service, batch.instance, row, row, 0, HEARD_AGAIN)

    def told_until(self, instance: str) -> int | None:
        """What the instance saw until then (Unix, µs, by its clock) is here; None: not known."""
        return self._told.get(instance)

    def unended(self, service: str) -> set[str]:
        """Instances that have neither said that they end, nor been taken for dead."""
        return {name for name, each in self._all.items() if each.service == service and not each.ended}

    def listen_again(self, now: float) -> None:
        """No instance could be heard until now."""
        self._heard = dict.fromkeys(self._all, now)

    def silent(self, now: float, time: float) -> list[Gap]:
        """A gap for each instance that fell silent, once; forgets instances that ended long ago."""
        gaps = []
        for name, instance in list(self._all.items()):
            if instance.ended:
                if time - instance.ended > _REMEMBERED:
                    del self._all[name]
                    self._told.pop(name, None)
                    self._heard.pop(name, None)
            elif now - self._heard.setdefault(name, now) > SILENT_AFTER:
                instance.ended = time
                row = instance.next_row
                gaps.append(Gap(instance.service, name, row, row, -1, SILENT, self.told_until(name)))
        return gaps

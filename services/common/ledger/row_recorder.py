"""Notes what happens to messages: one append to a list for each batch and stage; encoding comes later."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence, Sized
from itertools import accumulate
from typing import Final

from services.common.clock import epoch_ns
from services.common.ledger.encoding import MOST_TEXT, Draft, Identified, Mixture, Row, Sealed, parts, ranges_of
from services.common.ledger.place import LedgerPlace
from services.common.ledger.uid_ranges import condense
from services.rpc.ledger_pb2 import LedgerBatch

_ROWS_AT_ONCE = 50  # take some tenths of a millisecond to encode, for which the event loop is held up
_ROWS_OF_BATCH = 2000
_IDENTIFYING = 256 << 10  # bytes in a batch, with those …
_AROUND = 11  # … of a uid, and in front of what identifies its message


ALL: Final = slice(None)


def portions(properties: Sequence[bytes]) -> Sequence[slice]:
    """Of what identifies messages: a batch has room for each. Each is told, and then a row of its messages."""
    if _size_of(properties, properties) <= _IDENTIFYING:
        return (ALL,)
    ends = list(accumulate(map(_AROUND.__add__, map(len, properties))))
    found, first = list[slice](), 0
    while first < len(ends):
        most = _IDENTIFYING + (ends[first - 1] if first else 0)
        end = max(bisect_right(ends, most), first + 1)
        found.append(slice(first, end))
        first = end
    return found


def _size_of(uids: Sized, properties: Sequence[bytes]) -> int:
    return sum(map(len, properties)) + _AROUND * len(uids)


def _nothing() -> None:
    """The default `wake`: nothing waits for rows."""


def _at_once(work: Callable[[], None]) -> None:
    work()


class RowRecorder:
    """Numbers an instance's rows, and gives them to `sink` in batches; calls `wake` at the first row of each."""

    on = True

    def __init__(
        self,
        service: str,
        instance: str,
        sink: Callable[[Sealed], None],
        wake: Callable[[], None] = _nothing,
        later: Callable[[Callable[[], None]], object] = _at_once,
    ) -> None:
        """`later` runs work at the end of the turn: the caller of `record` has messages to handle first."""
        self._wake = wake
        self._later = later
        self._header = LedgerBatch(service=service, instance=instance)
        self._sink = sink
        self._rows: list[Row] = []
        self._identified: list[Identified] = []
        self._properties = 0
        self._draft = Draft(self._header, 1)

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
        """As Recorder says."""
        if uids:
            # A plain tuple in the shape of a Row: making the named one takes several times as long.
            row = (epoch_ns() // 1000, stage, place, condense(uids), outcome, reason, size, successors, None)
            self._take(row)  # type: ignore[arg-type]

    def record_each(self, stage: int, mixture: Mixture, uids: Sequence[int], *, reason: str = "") -> None:
        """As Recorder says."""
        if uids:
            place, size = mixture.places[0][0], sum(mixture.sizes)
            self._take(Row(epoch_ns() // 1000, stage, place, condense(uids), "", reason, size, None, mixture))

    def _take(self, row: Row) -> None:
        self._rows.append(row)
        count = len(self._rows)
        if count == 1:
            self._wake()
        elif count == _ROWS_AT_ONCE:
            self._later(self._encode_some)

    def note(self, stage: int, place: LedgerPlace) -> None:
        """As Recorder says."""
        self._rows.append(Row(epoch_ns() // 1000, stage, place, (), "", "", 0, None))
        self._wake()

    def identify(self, message_format: str, uids: Sequence[int], properties: Sequence[bytes]) -> None:
        """As Recorder says."""
        size = _size_of(uids, properties)
        if self._properties + size > _IDENTIFYING:
            self.seal()  # it waits for its own row, in the next batch
        self._identified.append(Identified(message_format, uids, properties))
        self._properties += size

    def seal(self) -> bool:
        """Ends the open batch; False when it has no rows."""
        if self._rows:
            self._encode()
        if not self._draft.rows:
            return False  # properties wait for the row of their messages
        self._end()
        return True

    @property
    def next_row(self) -> int:
        """The number of the first row that is in no sealed batch yet."""
        return self._draft.first_row

    @property
    def written(self) -> int:
        """Rows so far, in batches or not."""
        return self._draft.next_row - 1 + len(self._rows)

    def sign_of_life(self, *, last: bool = False) -> bytes:
        """A batch without rows; `last`: no others will follow."""
        waiting = self._rows or self._draft.rows
        told_until = 0 if waiting else epoch_ns() // 1000
        batch = LedgerBatch(first_row=self._draft.first_row, last=last, time_us=told_until)
        batch.MergeFrom(self._header)
        return batch.SerializeToString()

    def _encode_some(self) -> None:
        if self._rows:
            self._encode()

    def _encode(self) -> None:
        rows, self._rows = self._rows, []
        self._draft.identify(self._identified)
        self._identified = []
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            self._add(rows[start : start + _ROWS_AT_ONCE])
            if self._draft.rows >= _ROWS_OF_BATCH or self._draft.text >= MOST_TEXT:
                self._end()

    def _add(self, rows: Sequence[Row]) -> None:
        ranges = list(map(ranges_of, rows))
        if self._draft.rows and not self._draft.fits(rows, ranges):
            self._end()
        if self._draft.fits(rows, ranges):
            self._draft.add(rows, ranges)
            return
        for row, its in zip(rows, ranges, strict=True):
            for part, of_part in parts(row, its):
                if not self._draft.fits((part,), (of_part,)):
                    self._end()
                self._draft.add((part,), (of_part,))

    def _end(self) -> None:
        sealed = self._draft.sealed()
        self._draft, self._properties = Draft(self._header, self._draft.next_row), 0
        if sealed.rows:
            self._sink(sealed)

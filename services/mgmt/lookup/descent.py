"""Dead letters by who published what they were at first.

No row of a dead letter names its publisher. So letters that fit otherwise are led back, all of them together and step
by step, along the rows that say what went on as what, to messages that were received.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from services.common.uid import SEQUENCE_BITS
from services.mgmt.lookup.database import Database, Part, Row
from services.mgmt.lookup.facets import Letters
from services.mgmt.lookup.hours import HOUR_US, hour_of
from services.mgmt.lookup.spans import Span

_MOST_STEPS = 100  # back: more are not told of a way either
_SLACK_US = HOUR_US  # by which clocks may differ, and a row of a batch be older than its consequences

# Ranges are joined by shares of 64 uids that they touch: by their ends alone it takes a hundred times as long.
_SHARES = "unnest(range({0} >> 6, ({1} >> 6) + 1)) as share"
_PIECES = f"""(select *, {_SHARES.format("first", "last")} from (select unnest($letters::bigint[]) as letter,
 unnest($firsts::bigint[]) as first, unnest($lasts::bigint[]) as last, unnest($times::bigint[]) as time))"""  # noqa: S608 - a constant
# A row may be filed twice.
_BACK = f"""select distinct letter + greatest(became.first, first) - first,
 was.first + greatest(became.first, first) - became.first, was.first + least(became.last, last) - became.first, time
 from (select *, {_SHARES.format("became.first", "became.last")} from moves) join {_PIECES} using (share)
 where became.first <= last and became.last >= first"""  # noqa: S608 - a constant
_RECEIVED = f"""select distinct letter + greatest(got.first, first) - first, letter + least(got.last, last) - first,
 time, wanted
 from (select *, {_SHARES.format("got.first", "got.last")} from receipts) join {_PIECES} using (share)
 where got.first <= last and got.last >= first"""  # noqa: S608 - a constant


class _Piece(NamedTuple):
    """A range of letters, by the first, and what these were some steps before."""

    letter: int
    first: int
    last: int
    time_us: int


def published(
    database: Database, wanted: Letters, letters: Sequence[Row], expired: Callable[[], bool]
) -> Iterator[Row]:
    """Of ranges of letters, with the time that counts, those whose first message the wanted publisher sent.

    Stops early when `expired` says so; raises what `Database.ask` does.
    """
    pieces = [_Piece(first, first, last, time_us) for first, last, time_us in letters]
    for step in range(_MOST_STEPS):
        if not pieces or expired():
            return
        pieces = _back(database, wanted, pieces, _hours(database, pieces, near=not step))
        received = _received(database, wanted, pieces) if pieces else []
        yield from ((first, last, time_us) for first, last, time_us, fits in received if fits)
        if sum(last - first + 1 for first, last, *_ in received) >= sum(one.last - one.first + 1 for one in pieces):
            return


def _hours(database: Database, pieces: Sequence[_Piece], *, near: bool) -> list[int]:
    """When pieces may have become what they are: as the last step, when that was routed; or at any time before."""
    begin = hour_of(min(one.time_us for one in pieces) - _SLACK_US) if near else 0
    end = hour_of(max(one.time_us for one in pieces) + _SLACK_US)
    return [hour for hour in database.hours("stages") if begin <= hour <= end]


def _back(database: Database, wanted: Letters, pieces: Sequence[_Piece], hours: list[int]) -> list[_Piece]:
    columns = "unnest(uids) as was, unnest(successors) as became"
    moves = Part("stages", columns, f"{wanted.here} and stage in ('dead_lettered', 'copied')", hours)
    return [_Piece(*row) for row in database.ask(_BACK, {"moves": moves}, {**wanted.parameters, **_columns(pieces)})]


def _received(database: Database, wanted: Letters, pieces: Sequence[_Piece]) -> list[Row]:
    spans = _spans(pieces)
    near = "first_uid <= $highest and last_uid >= $lowest"
    condition = f"{wanted.here} and stage = 'received' and {near}"
    columns = f"unnest(uids) as got, {wanted.publisher} as wanted"
    receipts = Part("stages", columns, condition, database.hours("stages"), spans)
    bounds = {"lowest": min(span[0] for span in spans), "highest": max(span[1] for span in spans)}
    return database.ask(_RECEIVED, {"receipts": receipts}, {**wanted.parameters, **_columns(pieces), **bounds})


def _columns(pieces: Sequence[_Piece]) -> dict[str, list[int]]:
    letters, firsts, lasts, times = (list(column) for column in zip(*pieces, strict=True))
    return {"letters": letters, "firsts": firsts, "lasts": lasts, "times": times}


def _spans(pieces: Sequence[_Piece]) -> list[Span]:
    """Of each origin, which they are sorted by as numbers."""
    ordered = sorted((one.first >> SEQUENCE_BITS, one.first, one.last) for one in pieces)
    by_origin = ([one[1:] for one in its] for _, its in groupby(ordered, itemgetter(0)))
    return [(its[0][0], max(last for _, last in its)) for its in by_origin]

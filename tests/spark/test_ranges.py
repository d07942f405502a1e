from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from spark.ranges import NOTHING, Measure, cut

KINDS = 3
COPY = (
    Measure("zeros", (0,)),
    Measure("ones", (1, 2)),
    Measure("least", (0, 1), "min", "value"),
    Measure("most", (2,), "max", "value"),
)
MESSAGE = (Measure("told", (0, 1, 2)), Measure("latest", (1,), "max", "value"))

Row = tuple[int, int, int, int, int, int]  # place, copy, kind, first, last, value

ROWS = st.lists(
    st.builds(
        lambda place, copy, kind, first, length, value: (place, copy, kind, first, first + length, value),
        st.integers(1, 3),
        st.integers(0, 1),
        st.integers(0, KINDS - 1),
        st.integers(1, 30),
        st.integers(0, 12),
        st.integers(-5, 5),
    ),
    max_size=25,
)


def columns(rows: list[Row]) -> dict[str, np.ndarray]:
    table = np.array(rows, np.int64).reshape(-1, 6)
    return dict(zip(("place", "copy", "kind", "first", "last", "value"), table.T, strict=True))


def naively(rows: list[Row]) -> dict[tuple[int, int], tuple[int, ...]]:
    """What is known of each uid in each place; of messages in none, in place 0."""
    copies, messages = defaultdict(list), defaultdict(list)
    for place, copy, kind, first, last, value in rows:
        for uid in range(first, last + 1):
            (copies[place, uid] if copy else messages[uid]).append((kind, value))
    alone = {(0, uid): [] for uid in messages if not any(there == uid for _, there in copies)}
    return {
        (place, uid): (*measured(COPY, told), *measured(MESSAGE, messages[uid]))
        for (place, uid), told in {**copies, **alone}.items()
    }


def measured(measures: tuple[Measure, ...], told: list[tuple[int, int]]) -> list[int]:
    of = {measure: [value for kind, value in told if kind in measure.kinds] for measure in measures}
    how = {"count": len, "min": lambda values: min(values, default=NOTHING), "max": lambda v: max(v, default=NOTHING)}
    return [how[measure.how](of[measure]) for measure in measures]


def exploded(segments: dict[str, np.ndarray]) -> dict[tuple[int, int], tuple[int, ...]]:
    names = [measure.name for measure in (*COPY, *MESSAGE)]
    found = {}
    for i in range(len(segments["first"])):
        for uid in range(segments["first"][i], segments["last"][i] + 1):
            key = (int(segments["place"][i]) if segments["copy"][i] else 0, uid)
            assert key not in found
            found[key] = tuple(int(segments[name][i]) for name in names)
    return found


@given(ROWS)
def test_cut(rows: list[Row]) -> None:
    """Segments say of each message what its rows say of it one by one."""
    assert exploded(cut(columns(rows), COPY, MESSAGE)) == naively(rows)


@given(ROWS)
def test_order(rows: list[Row]) -> None:
    """The order in which rows come does not matter."""
    there, back = (cut(columns(order), COPY, MESSAGE) for order in (rows, rows[::-1]))
    assert all(np.array_equal(there[name], back[name]) for name in there)


def test_long_ranges_stay_whole() -> None:
    """A range is divided only where another one begins or ends."""
    segments = cut(columns([(1, 1, 0, 1, 10**9, 7), (1, 1, 1, 500, 600, 8)]), COPY, MESSAGE)
    assert sorted(zip(segments["first"], segments["last"], strict=True)) == [(1, 499), (500, 600), (601, 10**9)]

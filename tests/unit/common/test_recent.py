from __future__ import annotations

from services.common.recent import MOST, Recent


def test_what_came_lately_is_known() -> None:
    """What came among the last few thousand is, however many came before; little more than that is kept."""
    recent, together = Recent(), 7
    for first in range(0, 3 * MOST, together):
        values = [b"%d" % number for number in range(first, first + together)]
        assert recent.again(values) == set()
        kept = recent._now | recent._before
        assert {b"%d" % number for number in range(max(first - MOST // 2 + together, 0), first + together)} <= kept
        assert len(kept) <= MOST + 2 * together
    assert recent.again([*values, b"never"]) == set(values)

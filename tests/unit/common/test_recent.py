from __future__ import annotations

from services.common.recent import MOST, Recent


def test_what_came_lately_is_known() -> None:
    """What came among the last few thousand is, however many came before; no more than that is kept."""
    recent = Recent()
    for number in range(3 * MOST):
        assert not recent.has(b"%d" % number)
        assert recent.has(b"%d" % max(number - MOST // 2 + 1, 0))
        assert len(recent._now) + len(recent._before) <= MOST

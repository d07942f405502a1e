from __future__ import annotations

from services.common.topology.direct_reply import PSEUDO_QUEUE, behind, is_behind, is_meant


def test_names_of_direct_reply() -> None:
    """Clients mean replies by the pseudo-queue and by what is behind it; a gateway may make only the latter."""
    made = behind("secret")
    assert [is_meant(name) for name in (PSEUDO_QUEUE, made, "amq.gen-1", "")] == [True, True, False, False]
    assert [is_behind(name) for name in (PSEUDO_QUEUE, made)] == [False, True]

"""One object for all that goes to the same queues."""

from __future__ import annotations

from services.common.topology.route import Route
from services.gateway.routing.bindings import Bindings
from services.gateway.routing.own import OwnRoutes


class Nothing:
    """A topology without a change."""

    version = 0

    def has_place(self) -> bool:
        return True


def test_targets_of_very_many_queues_are_not_all_kept() -> None:
    """Of as many as fit into a few megabytes: a fanout exchange may have a hundred thousand queues."""
    own = OwnRoutes(Nothing(), Bindings())
    for number in range(50):
        found = Route(queue_ids=frozenset(range(number, number + 50_000)))
        assert own.shared(found) is own.shared(found)
    kept = [*own._shared, *own._shared._aside]
    assert 0 < sum(map(len, kept)) * 8 <= 4 << 20

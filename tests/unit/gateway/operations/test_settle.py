from __future__ import annotations

import pytest

from services.common.errors import NotFound
from services.gateway.operations.settle import to_queue
from services.gateway.outcomes import ACCEPTED, FAILED, RELEASED, UNSENT, DeliveryOutcome, Modified, Rejected
from services.rpc import queue_pb2 as pb


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (ACCEPTED, pb.ACCEPT),
        (Rejected(NotFound("order")), pb.REJECT),
        (RELEASED, pb.RETURN),
        (FAILED, pb.RELEASE),
        (Modified(), pb.RETURN),
        (Modified(failed=True, undeliverable=True), pb.RELEASE),
        (UNSENT, pb.RESTORE),
    ],
)
def test_what_a_queue_is_told(outcome: DeliveryOutcome, told: pb.Outcome.ValueType) -> None:
    """An attempt is only what failed, whether or not its link may have it again."""
    assert to_queue(outcome) == told

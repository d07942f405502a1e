from __future__ import annotations

from unittest.mock import Mock

from services.common.telemetry import conventions as c
from services.common.telemetry.context import new_root
from services.gateway.observe.tracing.sending import Sending
from services.rpc import queue_pb2 as pb


def test_why_a_client_rejected_a_message() -> None:
    """The span of its delivery says it, where the client did."""
    tracer = Mock()
    sending = Sending(tracer, {})
    for uid in (7, 8):
        origin = new_root()
        sending.expect(pb.TracedDelivery(uid=uid, context=origin.child().to_bytes(), parent=origin.to_bytes()), 1)
    sending.settled(Mock(), 1, pb.REJECT, [7], "x:bad: no such order")
    sending.settled(Mock(), 1, pb.REJECT, [8])
    [said, unsaid] = [call.args[0] for call in tracer.end.call_args_list]
    assert (said.attributes[c.OUTCOME], said.attributes[c.REASON]) == (c.REJECTED, "x:bad: no such order")
    assert (unsaid.attributes[c.OUTCOME], c.REASON in unsaid.attributes) == (c.REJECTED, False)

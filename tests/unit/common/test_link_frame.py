"""What a gateway says of deliveries in a frame: together, where all that is said of them is alike."""

from __future__ import annotations

from types import SimpleNamespace

from services.common.clients.change import UNCHANGED, Change
from services.common.clients.link_frame import Frame, Settlement, outcome_of, settlements_of
from services.common.topology.slots import SlotId
from services.rpc import queue_pb2 as pb

QUEUE = SlotId(1)


def test_what_is_alike() -> None:
    """What is changed is not what is not, nor what another consumer says, or says otherwise."""
    one, other = SimpleNamespace(handle=1), SimpleNamespace(handle=2)
    said, refused = Change(b"a", one), Change(b"a", other, not_again=True)
    changes = [UNCHANGED, Change(), said, Change(*said), Change(b"a", other), refused, UNCHANGED, UNCHANGED]
    frame = Frame()
    for uid, change in enumerate(changes):
        frame.settle(Settlement(QUEUE, pb.RETURN, [uid], change), 0, 0)
    back = settlements_of(frame.fields.settles, {1: one, 2: other})
    assert [list(each.uids) for each in back] == [[0, 1], [2, 3], [4], [5], [6, 7]]
    assert [each.change for each in back] == [changes[min(each.uids)] for each in back]
    assert {each.outcome for each in back} == {pb.RETURN}
    assert len(frame.settled) == len(changes)


def test_what_is_said_otherwise() -> None:
    """Another queue, outcome, transaction or term is said apart, as is what follows it; a new frame begins anew."""
    said = [(1, pb.ACCEPT, 0, 3), (2, pb.ACCEPT, 0, 3), (2, pb.RETURN, 0, 3), (2, pb.RESTORE, 0, 3)]
    said += [(2, pb.RESTORE, 9, 3), (2, pb.RESTORE, 9, 4), (1, pb.ACCEPT, 0, 3)]
    frame = Frame()
    for queue_id, outcome, transaction, term in said:
        for uid in (1, 2):
            frame.settle(Settlement(SlotId(queue_id), outcome, [uid]), transaction, term)
    back = frame.fields.settles
    assert [(each.queue_id, outcome_of(each), each.transaction, each.term) for each in back] == said
    assert {tuple(each.uids) for each in back} == {(1, 2)}
    assert len(frame.settled) == sum(not transaction for _, _, transaction, _ in said) * 2

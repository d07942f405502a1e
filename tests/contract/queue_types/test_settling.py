"""What becomes of messages that were handed out."""

from __future__ import annotations

from services.queue.machine.entry import Undecided
from services.rpc import queue_pb2 as pb
from tests.support.queue_machine import Make


def test_accept(make: Make) -> None:
    """Accepted messages are gone, and their memory is given back."""
    machine = make()
    machine.consumer()
    machine.publish(3)
    machine.queue.settle(pb.ACCEPT, [1, 2, 3], 0)
    assert machine.account.used == 0
    assert machine.queue.ready_count == 0


def test_unknown_uids(make: Make) -> None:
    """Settling what is not unsettled changes nothing."""
    machine = make()
    machine.publish(1)
    machine.queue.settle(pb.ACCEPT, [1, 99], 0)
    assert machine.queue.ready_count == 1


def test_release_keeps_order(make: Make) -> None:
    """What is requeued stands where it stood, marked as redelivered."""
    machine = make()
    first = machine.consumer(messages=3)
    machine.publish(5)
    machine.link.taken()
    machine.queue.detach(first, 0)
    machine.queue.settle(pb.RELEASE, [3, 1], 0)
    machine.consumer()
    assert machine.link.taken() == [(2, 1, True), (2, 3, True), (2, 4, False), (2, 5, False)]


def test_restore(make: Make) -> None:
    """What the client never saw comes back as if it had never left."""
    machine = make()
    machine.consumer(messages=1)
    machine.publish(2)
    machine.link.taken()
    machine.queue.settle(pb.RESTORE, [1], 0)
    machine.consumer()
    assert machine.link.taken() == [(2, 1, False), (2, 2, False)]


def test_reject_without_dead_letter_exchange(make: Make) -> None:
    """A rejected message is dropped where there is no dead-letter exchange."""
    machine = make()
    machine.consumer()
    machine.publish(1)
    machine.queue.settle(pb.REJECT, [1], 0)
    assert machine.dead() == []
    assert machine.account.used == 0


def test_reject_with_dead_letter_exchange(make: Make) -> None:
    """A rejected message is buried, and kept until the shell lets it go."""
    machine = make(dead_letter_exchange="dlx")
    machine.consumer()
    machine.publish(1)
    machine.queue.settle(pb.REJECT, [1], 0)
    assert machine.dead() == [(1, "rejected")]
    assert machine.account.used > 0


def test_delivery_limit(make: Make) -> None:
    """With x-delivery-limit a message that came back too often is given up."""
    machine = make(dead_letter_exchange="dlx", delivery_limit=1)
    machine.consumer()
    machine.publish(1)
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert machine.dead() == []
    machine.queue.settle(pb.RELEASE, [1], 0)
    assert machine.dead() == [(1, "delivery_limit")]


def test_get(make: Make) -> None:
    """A get takes one message, to be settled like any other, or settled by being sent."""
    machine = make()
    machine.publish(2)
    entry = machine.queue.get(machine.link, 0, settled=False)
    assert entry is not None
    assert entry.message.uid == 1
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert machine.queue.get(machine.link, 0, settled=True) is not None
    assert machine.queue.get(machine.link, 0, settled=False) is None
    assert machine.account.used == 0


def test_purge(make: Make) -> None:
    """A purge drops what is ready and leaves what is unsettled."""
    machine = make()
    machine.consumer(messages=1)
    machine.publish(4)
    assert (machine.queue.picking.purge(2), machine.queue.picking.purge()) == (2, 1)
    assert machine.queue.ready_count == 0
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert machine.account.used == 0


def test_journal_of_durable_messages(make: Make) -> None:
    """Durable messages are enlisted, marked when handed out, and dequeued when settled, by their index."""
    machine = make(durable=True)
    machine.publish(3, persistent=True)
    [draft] = machine.contents[0].entries.values()
    assert draft.runs == [(1, 0, 3, 0)]
    machine.consumer(messages=2)
    assert machine.draft.delivered == {draft.id: 2}
    machine.queue.settle(pb.ACCEPT, [2], 0)
    assert machine.draft.dequeues == {draft.id: [1]}


def test_transient_messages_are_not_journalled(make: Make) -> None:
    """Neither transient messages on durable queues nor persistent ones on transient queues are enlisted."""
    for machine, persistent in ((make(durable=True), False), (make(), True)):
        machine.publish(2, persistent=persistent)
        machine.consumer()
        machine.queue.settle(pb.ACCEPT, [1, 2], 0)
        assert not machine.contents[0].entries
        assert not machine.draft.dequeues


def test_end_gives_everything_back(make: Make) -> None:
    """A queue that ends keeps no memory, and dequeues only when it was deleted rather than handed over."""
    for durable in (False, True):
        machine = make(durable=True)
        machine.consumer(messages=1)
        machine.publish(3, persistent=True)
        assert machine.queue.end(durable=durable) == 2
        assert machine.account.used == 0
        assert bool(machine.draft.dequeues) is durable


def test_transaction_holds_entries_until_decided(make: Make) -> None:
    """What a transaction settles no other gets; rolled back, its holder has it again; complete, it is settled."""
    machine = make()
    machine.consumer()
    machine.publish(2)
    machine.link.taken()
    transaction = Undecided()
    entries, _ = machine.queue.transacted.hold([1, 2], transaction)
    machine.queue.giving_back.release_held_by(machine.link, 0)
    assert machine.link.taken() == []
    machine.queue.transacted.unhold(entries[:1], machine.link, 0)
    machine.queue.transacted.settle_held(pb.ACCEPT, entries[1:], 0, staged=False)
    machine.queue.settle(pb.ACCEPT, [1], 0)
    assert machine.account.used == 0


def test_transaction_whose_consumer_is_gone(make: Make) -> None:
    """What a transaction settles does not go back with its consumer before it is off, and not at all when complete."""
    machine = make()
    machine.consumer(messages=2)
    machine.publish(2)
    transaction = Undecided()
    entries, _ = machine.queue.transacted.hold([1, 2], transaction)
    machine.queue.settle(pb.ABANDON, [1, 2], 0)
    assert machine.queue.ready_count == 0
    assert set(transaction.heirs.values()) == {None}
    machine.queue.transacted.unhold(entries[:1], None, 0)
    machine.queue.transacted.settle_held(pb.ACCEPT, entries[1:], 0, staged=False)
    assert machine.queue.ready_count == 1


def test_transaction_of_a_link_that_is_gone(make: Make) -> None:
    """Entries whose holder went away while they were prepared are released when the transaction is off."""
    machine = make()
    machine.consumer(messages=1)
    machine.publish(1)
    entries, _ = machine.queue.transacted.hold([1], Undecided())
    machine.queue.transacted.unhold(entries, None, 0)
    assert machine.queue.ready_count == 1

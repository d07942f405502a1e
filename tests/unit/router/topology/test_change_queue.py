"""Arguments of a queue that are changed: what watchers are told, who may declare it again, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import NotFound, PreconditionFailed
from services.common.message import arguments
from services.router.replica import Replica
from services.router.wire import queue_message, record_frames, records_frame
from tests.support.topology_bench import Bench, new_topology


def change(bench: Bench, queue_id: int = 0, **more: Any) -> Any:
    changed = arguments.dump({name.replace("_", "-"): value for name, value in more.items()})
    return bench.do("change_queue", "", name="q", queue_id=queue_id, changed=changed)


def told(bench: Bench) -> list[dict[str, Any]]:
    """What watchers hear by the last change."""
    return [arguments.load(queue_message(each).arguments) for each in bench.effects.news.queues.values()]


def test_watchers_are_told(bench: Bench) -> None:
    """Under the same id; what is unknown stays, null takes away, and what is as it was is no change."""
    queue = bench.queue("q", durable=True, arguments={"x-max-length": 5, "note": "n"})
    change(bench, queue.id, x_max_length=7, x_message_ttl=9)
    assert list(bench.effects.news.queues) == [queue.id]
    assert told(bench) == [{"x-max-length": 7, "x-message-ttl": 9, "note": "n"}]
    change(bench, x_max_length=7)
    assert not bench.effects.records
    change(bench, x_max_length=None)
    assert told(bench) == [{"x-message-ttl": 9, "note": "n"}]
    change(bench, x_max_length=5, x_message_ttl=None)
    assert told(bench) == [{"x-max-length": 5, "note": "n"}]
    assert all(b"changed" not in record.value for record in bench.effects.records.values() if record)


def test_clients_declare_it_again(bench: Bench) -> None:
    """As it was declared, or as it is now, and no other way."""
    more = {"qpid.policy_type": "RING"}
    before = bench.queue("q", arguments={"qpid.max_count": 5, **more})
    change(bench, x_max_length=7)
    for table in ({"qpid.max_count": 5, **more}, {"x-max-length": 7, "x-overflow": "ring"}):
        assert bench.queue("q", arguments=table).id == before.id
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-max-length'"):
        bench.queue("q", arguments={"x-max-length": 6, **more})


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"x_max_priority": 5}, "'x-max-priority' for queue 'q' in vhost '/': is fixed"),
        ({"ensureNondestructiveConsumers": True}, "is fixed"),
        ({"x_max_length": "5"}, "'x-max-length' .* must be an integer"),
        ({"x_overflow": "explode"}, "'x-overflow' .* must be one of"),
        ({"minimumMessageTtl": 9, "x_message_ttl": 8}, "'minimumMessageTtl' .* no more than x-message-ttl, 8"),
        ({"x_dead_letter_routing_key": "k"}, "needs x-dead-letter-exchange"),
    ],
)
def test_what_cannot_be(bench: Bench, more: dict[str, Any], what: str) -> None:
    """Is refused, with what it must be, and changes nothing."""
    bench.queue("q")
    with pytest.raises(PreconditionFailed, match=what):
        change(bench, **more)
    assert not bench.effects.records


def test_which_queue(bench: Bench) -> None:
    """One that is not there, or is the next of its name, is not changed."""
    with pytest.raises(NotFound):
        change(bench, x_max_length=5)
    queue = bench.queue("q")
    with pytest.raises(NotFound, match="that is the same"):
        change(bench, queue.id + 1, x_max_length=5)


def test_records_say_it(bench: Bench) -> None:
    """A router that begins, and one that follows, know the same."""
    bench.queue("q", durable=True, arguments={"x-max-length": 5})
    follower = Replica(new_topology)
    for frame in record_frames(1, bench.topology.all_records(), 1):
        follower.take(frame)
    change(bench, x_max_length=7)
    bench.effects.news.records = dict(bench.effects.records)
    follower.take(records_frame(2, bench.effects.news))
    restored = new_topology()
    assert not restored.restore((key.kind, key.key, record.value) for key, record in bench.topology.all_records())
    assert dict(restored.queues) == dict(follower.topology.queues) == dict(bench.topology.queues)
    assert all(each.changed == b'{"x-max-length": 7}' for each in restored.queues.values())

"""Policies: which queues have which, what watchers are told, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.common.access import expression
from services.common.errors import NotFound, PreconditionFailed
from services.common.topology.policies import Policies, Policy
from services.router.replica import Replica
from services.router.wire import record_frames, records_frame
from tests.support.topology_bench import Bench, new_topology


def put(bench: Bench, name: str, pattern: str, says: object, **more: Any) -> Any:
    definition = json.dumps(says).encode()
    return bench.do(
        "set_policy", **{"name": name, "pattern": pattern, "definition": definition, "apply_to": "all"} | more
    )


def said(bench: Bench, queue: str) -> Any:
    text = bench.topology.virtual_hosts["/"].queues[queue].policy
    return json.loads(text or "{}")


def told(bench: Bench) -> dict[str, Any]:
    """What watchers hear of queues by the last change."""
    return {each.name: json.loads(each.policy or "{}") for each in bench.effects.news.queues.values()}


def test_queues_that_are_there_and_that_come(bench: Bench) -> None:
    """Watchers hear of the queues of which something else is said, and of no others, under the same ids."""
    before = {name: bench.queue(name).id for name in ("a.1", "a.2", "b")}
    assert put(bench, "p", "^a", {"max-length": 5}).created
    assert told(bench) == {"a.1": {"max-length": 5}, "a.2": {"max-length": 5}}
    assert all(before[each.name] == each.id for each in bench.effects.news.queues.values())
    assert not put(bench, "p", "^a", {"max-length": 5}).created
    assert not bench.effects.records
    bench.queue("a.3")
    assert told(bench) == {"a.3": {"max-length": 5}}
    put(bench, "p", "2$", {"max-length": 5})
    assert told(bench) == {"a.1": {}, "a.3": {}}
    bench.do("clear_policy", name="p")
    assert told(bench) == {"a.2": {}}


def test_the_highest_priority_alone(bench: Bench) -> None:
    """Policies do not add up, but for an operator's; of equal priorities the first by name counts."""
    bench.queue("q")
    put(bench, "b", "", {"max-length": 1})
    put(bench, "a", "", {"message-ttl": 2})
    assert said(bench, "q") == {"message-ttl": 2}
    put(bench, "c", "q", {"expires": 3}, priority=1)
    assert said(bench, "q") == {"expires": 3}
    put(bench, "c", "q", {"expires": 2, "max-length": 9}, operator=True)
    put(bench, "d", "q", {"delivery-limit": 1}, operator=True, priority=-1)
    assert said(bench, "q") == {"expires": 2, "max-length": 9}


@pytest.mark.parametrize(
    ("apply_to", "queues"),
    [
        ("all", {"c", "q"}),
        ("queues", {"c", "q"}),
        ("classic_queues", {"c"}),
        ("quorum_queues", {"q"}),
        ("streams", set()),
        ("exchanges", set()),
    ],
)
def test_what_it_applies_to(bench: Bench, apply_to: str, queues: set[str]) -> None:
    """Kinds of queues, as newer versions of RabbitMQ tell them apart."""
    bench.queue("c")
    bench.queue("q", durable=True, arguments={"x-queue-type": "quorum"})
    put(bench, "p", "", {"max-length": 5}, apply_to=apply_to)
    assert told(bench).keys() == queues


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"says": {}}, "definition must say something"),
        ({"says": []}, "definition must be a table"),
        ({"says": {"max-length": "5"}}, "max-length must be an integer"),
        ({"says": {"overflow": "explode"}}, "overflow must be one of"),
        ({"says": {"nonsense": 1}}, "nonsense is not recognised in a policy"),
        ({"says": {"overflow": "drop-head"}, "operator": True}, "overflow is not recognised in an operator policy"),
        ({"pattern": "("}, "pattern is not taken"),
        ({"pattern": "(a{9999}){9999}"}, "pattern is not taken"),
        ({"apply_to": "everything"}, "apply-to must be one of"),
        ({"name": ""}, "name must have"),
    ],
)
def test_what_is_none(bench: Bench, fields: dict[str, Any], what: str) -> None:
    """Is refused, with what it must be, and changes nothing."""
    with pytest.raises(PreconditionFailed, match=what):
        put(bench, **{"name": "p", "pattern": "", "says": {"max-length": 1}} | fields)
    assert not bench.effects.records
    assert not bench.topology.virtual_hosts["/"].policies


def test_what_is_not_there(bench: Bench) -> None:
    """A policy of another kind is another one; so is one of another virtual host."""
    put(bench, "p", "", {"max-length": 5})
    with pytest.raises(NotFound, match="no operator policy 'p' in vhost '/'"):
        bench.do("clear_policy", name="p", operator=True)
    with pytest.raises(NotFound):
        bench.do("clear_policy", virtual_host="other", name="p")


def test_records_say_all_of_it(bench: Bench) -> None:
    """A router that begins, and one that follows, know the same of queues; the queue's own record is as declared."""
    bench.queue("q", durable=True)
    follower = Replica(new_topology)
    for frame in record_frames(1, bench.topology.all_records(), 1):
        follower.take(frame)
    put(bench, "p", "", {"max-length": 5})
    bench.effects.news.records = dict(bench.effects.records)
    assert bench.effects.news
    follower.take(records_frame(2, bench.effects.news))
    restored = new_topology()
    assert not restored.restore((key.kind, key.key, record.value) for key, record in bench.topology.all_records())
    assert dict(restored.queues) == dict(follower.topology.queues) == dict(bench.topology.queues)
    assert said(bench, "q") == {"max-length": 5}
    assert all(b"max-length" not in record.value for key, record in restored.all_records() if key.kind == "queue")
    bench.do("clear_policy", name="p")
    bench.effects.news.records = dict(bench.effects.records)
    follower.take(records_frame(3, bench.effects.news))
    assert dict(follower.topology.queues) == dict(bench.topology.queues)


def test_the_end_of_a_virtual_host(bench: Bench) -> None:
    """Its policies go with it."""
    put(bench, "p", "", {"max-length": 5})
    bench.do("delete_virtual_host", name="/")
    bench.do("create_virtual_host", name="/")
    bench.queue("q")
    assert said(bench, "q") == {}


def test_a_pattern_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits nothing, and is not tried for each of many queues: it would hold the router up for as long each time."""
    monkeypatch.setattr(expression, "_PATIENCE", 0.001)
    expression.searching.cache_clear()
    its = Policies([Policy("/", "p", "(a+a+)+b", b'{"expires": 1}')])
    tried = [its.of("a" * 200, "classic").policy for _ in range(1000)]
    assert tried == [None] * 1000
    assert its.of("aab", "classic").policy is None

from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import AccessRefused, NotFound, PreconditionFailed, ResourceLocked, SyntaxFault
from services.common.partition import partition_of
from services.common.topology.slots import SlotName
from tests.support.topology_bench import Bench


def test_declare_creates_once(bench: Bench) -> None:
    """A queue is created by its first declaration and found by an equal one."""
    first = bench.do("declare_queue", name="q", durable=True)
    again = bench.do("declare_queue", name="q", durable=True)
    assert (first.created, again.created) == (True, False)
    assert first.queue == again.queue
    assert first.queue.partition == partition_of(SlotName("/", "q"), 64)
    assert not bench.effects.records


def test_ids_are_not_used_again(bench: Bench) -> None:
    """A queue that is declared again after its deletion is another one."""
    before = bench.queue("q")
    bench.do("delete_queue", name="q")
    assert bench.queue("q").id != before.id


def test_server_named(bench: Bench) -> None:
    """Without a name the broker makes one, which may be declared again though it is reserved."""
    queue = bench.queue("", exclusive=True)
    assert queue.name == f"amq.gen-{1:022}"
    assert bench.queue(queue.name, exclusive=True) == queue


def test_named_by_another_broker(bench: Bench) -> None:
    """Definitions may have queues that RabbitMQ named; nobody else may give such names, nor other reserved ones."""
    queue = bench.queue("amq.gen-JzTY20BRgKO-HjmUJj0wLg", durable=True, restored=True)
    assert queue.name.startswith("amq.gen-")
    for name, restored in (("amq.gen-x", False), ("amq.other", True), ("amq.rabbitmq.reply-to.x", True)):
        with pytest.raises(AccessRefused, match="reserved prefix"):
            bench.queue(name, durable=True, restored=restored)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"durable": True},
            "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'",
        ),
        ({"auto_delete": True}, "inequivalent arg 'auto_delete'"),
        (
            {"arguments": {"x-max-length": 5}},
            "for queue 'q' in vhost '/': received the value '5' of type 'long' but current is none",
        ),
        ({"arguments": {"x-queue-type": "quorum"}}, "inequivalent arg 'x-queue-type'"),
    ],
)
def test_inequivalent(bench: Bench, fields: Any, text: Any) -> None:
    """A declaration that says something else is refused, in words that clients know."""
    bench.queue("q")
    with pytest.raises(PreconditionFailed, match=text):
        bench.queue("q", **fields)


def test_unknown_arguments_and_the_default_type_make_no_difference(bench: Bench) -> None:
    """Unknown arguments are accepted and not compared; x-queue-type classic is the default."""
    queue = bench.queue("q", arguments={"x-mine": 1})
    assert bench.queue("q", arguments={"x-mine": 2, "x-queue-type": "classic"}) == queue


def test_passive(bench: Bench) -> None:
    """A passive declaration finds what exists, with any arguments, and creates nothing."""
    with pytest.raises(NotFound, match="no queue 'q' in vhost '/'"):
        bench.queue("q", passive=True)
    assert bench.queue("q") == bench.queue("q", passive=True, durable=True)


def test_exclusive_is_its_connections_alone(bench: Bench) -> None:
    """Another connection can neither declare, inspect, bind, unbind nor delete an exclusive queue; the broker can."""
    queue = bench.queue("q", exclusive=True)
    assert queue.exclusive_to == "c1"
    for kind, fields in [
        ("declare_queue", {"name": "q", "exclusive": True}),
        ("declare_queue", {"name": "q"}),
        ("declare_queue", {"name": "q", "passive": True}),
        ("bind", {"source": "amq.direct", "destination": "q"}),
        ("unbind", {"source": "amq.direct", "destination": "q"}),
        ("delete_queue", {"name": "q"}),
    ]:
        with pytest.raises(ResourceLocked, match="cannot obtain exclusive access to locked queue 'q' in vhost '/'"):
            bench.do(kind, connection="c2", **fields)
    bench.do("delete_queue", connection="", queue_id=queue.id)
    assert not bench.topology.queues


def test_own_exclusive_queue_redeclared_as_shared(bench: Bench) -> None:
    """The owner, too, must say exclusive again; and a shared queue does not become exclusive."""
    bench.queue("mine", exclusive=True)
    bench.queue("shared")
    for name, exclusive in (("mine", False), ("shared", True)):
        with pytest.raises(ResourceLocked):
            bench.queue(name, exclusive=exclusive)


def test_exclusive_needs_a_connection(bench: Bench) -> None:
    """The broker itself has no connection that an exclusive queue could go with."""
    with pytest.raises(PreconditionFailed):
        bench.do("declare_queue", connection="", name="q", exclusive=True)


def test_names(bench: Bench) -> None:
    """Reserved names are refused, and those that no short string can carry."""
    with pytest.raises(AccessRefused, match=r"queue name 'amq\.mine' contains reserved prefix 'amq\.\*'"):
        bench.queue("amq.mine")
    with pytest.raises(SyntaxFault):
        bench.queue("ü" * 128)
    assert bench.queue("ü" * 127)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("x-expires", 0),
        ("x-expires", "1000"),
        ("x-message-ttl", -1),
        ("x-message-ttl", 1 << 50),
        ("x-max-length", -1),
        ("x-max-length", True),
        ("x-max-length-bytes", 1.5),
        ("x-overflow", "explode"),
        ("x-dead-letter-exchange", 5),
        ("x-dead-letter-routing-key", "alone"),
        ("x-max-priority", 256),
        ("x-queue-mode", "eager"),
        ("x-queue-type", "stream"),
        ("x-queue-type", 1),
        ("x-single-active-consumer", "yes"),
        ("x-consumer-timeout", 0),
        ("qpid.max_count", "5"),
        ("qpid.policy_type", "explode"),
    ],
)
def test_invalid_arguments(bench: Bench, argument: Any, value: Any) -> None:
    """A known argument of a wrong type or range is refused by its name, and nothing is created."""
    with pytest.raises(PreconditionFailed, match=f"invalid arg '{argument}' for queue 'q' in vhost '/': "):
        bench.queue("q", arguments={argument: value})
    assert not bench.topology.queues


def test_valid_arguments(bench: Bench) -> None:
    """All arguments that applications use together are taken."""
    table = {
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "failed",
        "x-expires": 60000,
        "x-max-length": 0,
        "x-max-priority": 10,
        "x-message-ttl": 0,
        "x-overflow": "reject-publish-dlx",
        "x-queue-mode": "lazy",
        "x-single-active-consumer": True,
    }
    assert bench.queue("q", arguments=table).type == "classic"


def test_names_of_broker_j(bench: Bench) -> None:
    """A queue is the same whichever names its declarations use, and its error speaks of what they say."""
    queue = bench.queue("q", arguments={"maximumQueueDepthMessages": 5, "overflowPolicy": "RING"})
    assert bench.queue("q", arguments={"x-max-length": 5, "x-overflow": "ring"}) == queue
    with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-max-length'"):
        bench.queue("q", arguments={"qpid.max_count": 6, "qpid.policy_type": "ring"})


def test_the_least_and_the_most(bench: Bench) -> None:
    """No message can live at least for longer than at most."""
    with pytest.raises(PreconditionFailed, match=r"invalid arg 'minimumMessageTtl' .* x-message-ttl, 9"):
        bench.queue("q", arguments={"minimumMessageTtl": 10, "maximumMessageTtl": 9})
    assert bench.queue("q", arguments={"minimumMessageTtl": 9, "maximumMessageTtl": 9})


@pytest.mark.parametrize("more", [{}, {"x-qpid-capacity": 4}])
def test_what_publishers_go_on_at(bench: Bench, more: dict[str, int]) -> None:
    """No more than the queue wants."""
    with pytest.raises(PreconditionFailed, match=r"invalid arg 'x-flow-resume-bytes' .* x-max-length-bytes"):
        bench.queue("q", arguments={"x-qpid-flow-resume-capacity": 5, **more})
    assert bench.queue("q", arguments={"x-qpid-flow-resume-capacity": 5, "x-qpid-capacity": 5})


def test_one_order(bench: Bench) -> None:
    """A queue is sorted, keeps last values, or goes by priorities: not two of them."""
    with pytest.raises(PreconditionFailed, match=r"invalid arg 'qpid\.queue_sort_key' .* x-max-priority"):
        bench.queue("q", arguments={"sortKey": "k", "x-max-priority": 5})


def test_quorum_is_a_durable_classic_queue(bench: Bench) -> None:
    """x-queue-type quorum is accepted for durable, shared queues only."""
    quorum = {"x-queue-type": "quorum"}
    assert bench.queue("q", durable=True, arguments=quorum).type == "classic"
    with pytest.raises(PreconditionFailed, match="invalid property 'non-durable' for queue 'a' in vhost '/'"):
        bench.queue("a", arguments=quorum)
    with pytest.raises(PreconditionFailed, match="invalid property 'exclusive-owner' for queue 'b' in vhost '/'"):
        bench.queue("b", durable=True, exclusive=True, arguments=quorum)


def test_effects(bench: Bench) -> None:
    """A declaration keeps a record, tells the definition, and makes watchers forget where its name went."""
    queue = bench.queue("q")
    assert [(key.kind, record.transient) for key, record in bench.effects.records.items()] == [("queue", True)]
    assert bench.effects.news.queues == {queue.id: queue}
    assert bench.effects.news.forget == {("/", ""): {"q"}}
    bench.queue("d", durable=True)
    assert not next(iter(bench.effects.records.values())).transient


def test_as_many_as_there_may_be() -> None:
    """One more is refused in RabbitMQ's words; existing ones may be declared again, and a new one after a deletion."""
    bench = Bench(lambda host: 2 if host == "/" else None)
    for name in ("a", "b", "a"):
        bench.queue(name)
    with pytest.raises(
        PreconditionFailed, match=r"cannot declare queue 'c': queue limit in vhost '/' \(2\) is reached"
    ):
        bench.queue("c")
    bench.do("delete_queue", name="a")
    bench.queue("c")


def test_one_live_consumer_and_several(bench: Bench) -> None:
    """A queue has a single active consumer or so many live ones, not both; 1 is the one, by either name."""
    with pytest.raises(PreconditionFailed, match="says something else than 'x-single-active-consumer'"):
        bench.queue("q", arguments={"x-single-active-consumer": True, "maximumLiveConsumers": 2})
    queue = bench.queue("q", arguments={"x-single-active-consumer": True})
    assert bench.queue("q", arguments={"maximumLiveConsumers": 1}) == queue
    with pytest.raises(PreconditionFailed, match="inequivalent arg"):
        bench.queue("q", arguments={"maximumLiveConsumers": 2})


@pytest.mark.parametrize(
    ("says", "what"),
    [
        ({"x-delayed-retry-type": "all"}, "'x-delayed-retry-type' .* needs x-delayed-retry-min"),
        ({"x-delayed-retry-min": 9, "x-delayed-retry-max": 8}, "'x-delayed-retry-min' .* x-delayed-retry-max, 8"),
    ],
)
def test_delays_of_retries(bench: Bench, says: dict[str, object], what: str) -> None:
    """There is a least where there are any, which is no more than the most."""
    with pytest.raises(PreconditionFailed, match=what):
        bench.queue("q", arguments=says)
    right = {"x-delayed-retry-type": "all", "x-delayed-retry-min": 8, "x-delayed-retry-max": 8}
    assert bench.queue("q", arguments=right)

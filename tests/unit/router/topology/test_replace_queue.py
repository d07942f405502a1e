"""A queue in the place of another one, and bound, in one change: all of it, or nothing."""

from __future__ import annotations

from typing import Any

import pytest

from services.common.errors import AccessRefused, BrokerError, NotFound, PreconditionFailed, ResourceLocked
from services.common.message import arguments
from services.router.topology.effects import Effects
from services.rpc.router_pb2 import Bind, DeclareQueue
from tests.support.topology_bench import Bench

OTHERWISE = {"x-mine": 2}


def replaced(bench: Bench, source: str, key: str = "", *, said: Any = None, table: Any = None, **fields: Any) -> Any:
    """`q` in the place of the former, declared with what is `said`, and bound with the `table`."""
    fields = {"name": "q", "durable": True, "arguments": arguments.dump(OTHERWISE if said is None else said)} | fields
    bind = Bind(source=source, routing_key=key, arguments=arguments.dump(table or {}))
    return bench.do("replace_queue", queue=DeclareQueue(**fields), bind=bind)


def before(bench: Bench, **fields: Any) -> Any:
    """The former, which is bound, too."""
    queue = bench.queue("q", durable=True, arguments={"x-mine": 1}, **fields)
    bench.bind("amq.direct", "q", "former")
    return queue


def test_another_is_there(bench: Bench) -> None:
    """Of the same name, with that binding alone; the former is gone with its own."""
    former = before(bench)
    outcome = replaced(bench, "amq.topic", "#")
    assert not outcome.created
    assert outcome.queue.id != former.id
    assert list(bench.topology.queues.values()) == [outcome.queue]
    assert bench.names("amq.topic", "any") == bench.names("", "q") == {"q"}
    assert bench.names("amq.direct", "former") == set()
    assert list(bench.effects.news.deleted_queues) == [former.id]
    assert list(bench.effects.news.queues) == [outcome.queue.id]


def test_none_was_there(bench: Bench) -> None:
    """It is made."""
    assert replaced(bench, "amq.topic", "#").created
    assert bench.names("amq.topic", "any") == {"q"}


def test_asked_once_more(bench: Bench) -> None:
    """One that is declared just so stays: the answer may have been lost. It is bound where it was not."""
    first = replaced(bench, "amq.topic", "#").queue
    assert replaced(bench, "amq.topic", "#").queue == first
    assert not bench.effects.records
    assert replaced(bench, "amq.fanout").queue == first
    assert bench.names("amq.fanout") == bench.names("amq.topic", "any") == {"q"}


def test_policies_and_changes_are_no_declaration(bench: Bench) -> None:
    """Just so is what was declared, whatever has been said of the queue since."""
    first = replaced(bench, "amq.topic", "#").queue
    bench.do("set_policy", name="p", pattern="q", definition=b'{"max-length": 1}', apply_to="all")
    bench.do("change_queue", name="q", changed=arguments.dump({"x-max-length": 7}))
    assert replaced(bench, "amq.topic", "#").queue.id == first.id


@pytest.mark.parametrize(
    ("source", "more", "error"),
    [
        ("gone", {}, NotFound),
        ("", {}, AccessRefused),
        ("amq.headers", {"table": {"x-match": "some"}}, PreconditionFailed),
        ("amq.direct", {"table": {"x-filter-jms-selector": "no selector ("}}, PreconditionFailed),
        ("amq.direct", {"said": {"x-max-length": -1}}, PreconditionFailed),
    ],
)
def test_what_cannot_be(bench: Bench, source: str, more: dict[str, Any], error: type[BrokerError]) -> None:
    """The former stays as it was."""
    former = before(bench)
    with pytest.raises(error):
        replaced(bench, source, **more)
    assert bench.effects == Effects()
    assert bench.names("amq.direct", "former") == {"q"}
    assert list(bench.topology.queues) == [former.id]


def test_of_another_connection(bench: Bench) -> None:
    """Another's is not theirs to replace."""
    bench.do("declare_queue", "c2", name="q", exclusive=True)
    with pytest.raises(ResourceLocked):
        replaced(bench, "amq.topic")


def test_as_many_queues_as_there_may_be() -> None:
    """One in the place of another is not one more; one that is new is."""
    bench = Bench(lambda _: 1)
    before(bench)
    assert replaced(bench, "amq.topic", "#").queue
    with pytest.raises(PreconditionFailed, match="queue limit"):
        replaced(bench, "amq.topic", "#", name="other")
    assert bench.names("amq.topic", "any") == {"q"}


def test_its_exchange_would_have_gone_with_the_former(bench: Bench) -> None:
    """An auto-delete exchange to which the former alone was bound stays: the other is."""
    bench.exchange("x", "topic", auto_delete=True)
    before(bench)
    bench.bind("x", "q", "former")
    replaced(bench, "x", "other")
    assert bench.names("x", "other") == {"q"}
    assert bench.names("x", "former") == set()


def test_of_a_dead_letter_queue(bench: Bench) -> None:
    """It is made with the other one, as with one that is declared."""
    before(bench)
    replaced(bench, "amq.topic", "#", said={"x-qpid-dlq-enabled": True})
    assert sorted(queue.name for queue in bench.topology.queues.values()) == ["q", "q_DLQ"]

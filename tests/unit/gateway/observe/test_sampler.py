from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest

from services.common.message import field_table
from services.common.message.amqp_0_9 import FORMAT
from services.common.telemetry.rules import Rule
from services.gateway.observe.tracing.allowance import Allowance
from services.gateway.observe.tracing.sampler import PARENT, RATIO, RULE, Chance, Publisher, Sampler
from services.gateway.vocabulary import Publish
from services.rpc import router_pb2, store_pb2
from tests.support.messages import kind, published

SAMPLED = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
UNSAMPLED = SAMPLED[:-1] + "0"
QUEUES = {1: router_pb2.QueueDefinition(id=1, name="orders.eu"), 2: router_pb2.QueueDefinition(id=2, name="bills")}
WHO = Publisher("/", ("shop", "alice"))


def run(count: int = 1, message_id: str = "", **headers: Any) -> Publish:
    """Messages that are alike, with these headers."""
    parts = struct.pack(">H", 0x2000 | (0x0080 if message_id else 0)) + field_table.encode(headers)
    if message_id:
        parts += bytes((len(message_id),)) + message_id.encode()
    its = kind("ex", attributes=FORMAT.attributes(parts))
    return published([b""] * count, its, properties=[parts])


def sampler(*rules: Rule, ratio: float = 0.0) -> Sampler:
    made = Sampler(ratio, QUEUES)
    made.set_rules(rules)
    return made


def reasons(made: Sampler, request: Publish, queue_ids: tuple[int, ...] = (1,), who: Publisher = WHO) -> list[str]:
    return [pick.reason for pick in made.pick(who, request.kinds[0], request.properties, queue_ids)]


def test_by_parent() -> None:
    """What its publisher traces is traced; what it decided not to trace, or says nothing of, is not."""
    assert reasons(sampler(), run(3, traceparent=SAMPLED)) == [PARENT] * 3
    assert not reasons(sampler(), run(traceparent=UNSAMPLED))
    assert not reasons(sampler(), run())
    assert not sampler().active


def test_so_many_a_second_by_parent() -> None:
    """Of a publisher that traces all, as many have spans as the allowance lets; rules and chance have no limit."""
    now = [7.0]
    made = Sampler(0, QUEUES, Allowance(10, lambda: now[0]))
    assert len(reasons(made, run(30, traceparent=SAMPLED))) == 10
    assert reasons(made, run(2, traceparent=SAMPLED)) == []
    assert made.untraced == 22
    now[0] += 0.35
    assert len(reasons(made, run(5, traceparent=SAMPLED))) == 3
    now[0] += 1000
    assert len(reasons(made, run(30, traceparent=SAMPLED))) == 10
    made.set_rules([Rule(name="all", ratio=1)])
    assert reasons(made, run(30, traceparent=SAMPLED)) == [RULE] * 30


def test_by_ratio() -> None:
    """A share of the rest is traced, but for what a publisher decided against."""
    made = sampler(ratio=0.25)
    picked = sum(len(reasons(made, run(10))) for _ in range(1000))
    assert 2200 < picked < 2800
    assert reasons(sampler(ratio=1), run(2)) == [RATIO] * 2
    assert not reasons(sampler(ratio=1), run(traceparent=UNSAMPLED))
    assert reasons(sampler(ratio=1), run(traceparent="00-nonsense-01")) == [RATIO]


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        ({"queue": "orders.*"}, True),
        ({"queue": "bills"}, False),
        ({"exchange": "e?"}, True),
        ({"exchange": ""}, False),
        ({"client": "alice"}, True),
        ({"client": "bob*"}, False),
        ({"virtual_host": "/"}, True),
        ({"virtual_host": "other"}, False),
        ({"message_id": "m-*"}, True),
        ({"message_id": "n-*"}, False),
        ({"header": "tenant"}, True),
        ({"header": "tenant", "header_value": "7"}, True),
        ({"header": "tenant", "header_value": "8"}, False),
        ({"header": "nothing"}, False),
        ({"queue": "orders.*", "header": "tenant", "client": "shop"}, True),
        ({"queue": "bills", "header": "tenant", "client": "shop"}, False),
        ({}, True),
    ],
)
def test_rules(rule: dict[str, str], fits: bool) -> None:
    """A rule is about queue, exchange, publisher, virtual host, message id and headers, all of those that it names."""
    made = sampler(Rule(name="r", **rule))
    assert made.active
    assert reasons(made, run(message_id="m-1", tenant=7)) == ([RULE] if fits else [])


def test_rules_overrule() -> None:
    """A rule traces what its publisher decided against, and ratio 0 forbids what any other would trace."""
    assert reasons(sampler(Rule(name="r", queue="*")), run(traceparent=UNSAMPLED)) == [RULE]
    never = Rule(name="never", queue="orders.*", ratio=0)
    assert not reasons(sampler(Rule(name="all"), never, ratio=1), run(traceparent=SAMPLED))
    assert reasons(sampler(Rule(name="all"), never), run(), (2,)) == [RULE]
    secret = Rule(name="secret", header="secret", ratio=0)
    assert not reasons(sampler(Rule(name="all", header="*"), secret), run(secret=True, traceparent=SAMPLED))
    assert reasons(sampler(secret), run(traceparent=SAMPLED)) == [PARENT]


def test_parent_goes_on() -> None:
    """Whether publisher, rule or chance decides, the trace that the publisher began is continued."""
    request = run(traceparent=UNSAMPLED)
    [pick] = sampler(Rule(name="r")).pick(WHO, request.kinds[0], request.properties, (1,))
    assert pick.parent is not None
    assert f"{pick.parent.trace_id:032x}" in UNSAMPLED


def test_unreadable() -> None:
    """Headers that cannot be read fit no rule, and are no error."""
    request = run(tenant=1)
    request.properties = [request.properties[0][:2] + b"\x00\x00\x00\x03\x01a?"]
    made = sampler(Rule(name="r", header="a"))
    assert not reasons(made, request)


async def test_follows_records() -> None:
    """Rules come and go with their records; one that is not understood is left out."""

    def record(name: str, value: bytes = b"", *, deleted: bool = False) -> store_pb2.Record:
        return store_pb2.Record(kind="tracing_rule", key=name, value=value, deleted=deleted)

    made, rule, seen = sampler(), Rule(name="r", queue="orders.*"), []

    async def watch() -> AsyncIterator[store_pb2.Records]:
        yield store_pb2.Records(records=[record("r", rule.to_json()), record("x", b"?")], snapshot=True, last=True)
        seen.append(reasons(made, run()))
        yield store_pb2.Records(records=[record("r", deleted=True)])
        seen.append(reasons(made, run()))
        yield store_pb2.Records(records=[record("s", Rule(name="s").to_json())])
        seen.append(reasons(made, run()))
        yield store_pb2.Records(snapshot=True, last=True)
        seen.append(reasons(made, run()))

    await made.follow(watch())
    assert seen == [[RULE], [], [RULE], []]
    assert not made.active


def test_chance() -> None:
    """Chance picks its share of runs of any size."""
    for ratio in (0.0, 0.01, 0.5, 1.0):
        chance = Chance(ratio)
        picked = sum(len(chance.pick(size)) for size in (1, 7, 1000) * 100)
        assert abs(picked - 100_800 * ratio) <= 5 * (100_800 * ratio * (1 - ratio)) ** 0.5

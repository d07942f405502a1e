"""What a stack counts, beside what clients did: exactly that, and never less than before."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pika
import pytest
from pika.exceptions import NackError, UnroutableError

from tests.support.amqp_1_0_client import Client
from tests.support.scraping import growing, page, scrape, sums
from tests.support.stack import Stack, running_stack, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Step = Callable[[Any, str], dict[str, int]]

_MESSAGES = "hopline_messages_"
_PERSISTENT = pika.BasicProperties(delivery_mode=2)
_PROTOCOL = "protocol=AMQP 0-9-1"
_SOON = 10.0  # seconds


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One that counts each queue too."""
    with running_stack(tmp_path_factory.mktemp("metrics") / "data", {"HOPLINE_METRICS_QUEUES": "true"}) as started:
        yield started


def _connect(stack: Stack) -> Any:
    parameters = pika.ConnectionParameters(stack.address.host, stack.address.port)
    return closing(pika.BlockingConnection(parameters))


def _publish(channel: Any, queue: str, count: int, properties: Any = _PERSISTENT, exchange: str = "") -> None:
    for _ in range(count):
        channel.basic_publish(exchange, queue, b"12345", properties)


def _get(channel: Any, queue: str, count: int) -> list[int]:
    return [channel.basic_get(queue)[0].delivery_tag for _ in range(count)]


def _durable(channel: Any, queue: str, **arguments: Any) -> None:
    channel.queue_declare(
        queue, durable=True, arguments={f"x-{key.replace('_', '-')}": arguments[key] for key in arguments}
    )


def _in(count: int) -> dict[str, int]:
    """What is published with confirms, and kept."""
    return {
        f"received {_PROTOCOL}": count,
        "received_size_bytes": count * 8,  # of properties two bytes of flags and one of the delivery mode
        "routed": count,
        "enqueued": count,
        "persisted": count,
        "confirmed": count,
    }


def _out(count: int) -> dict[str, int]:
    return {"delivered": count, f"sent {_PROTOCOL}": count}


# ------------------------------------------------------------------ fates


def accepted(channel: Any, queue: str) -> dict[str, int]:
    """By consumers that acknowledge."""
    _durable(channel, queue)
    _publish(channel, queue, 7)
    for method, _, _ in channel.consume(queue):
        if method.delivery_tag == 7:
            channel.basic_ack(7, multiple=True)
            break
    channel.cancel()
    return _in(7) | _out(7) | {"settled outcome=accepted": 7}


def settled_by_being_sent(channel: Any, queue: str) -> dict[str, int]:
    """By consumers that do not."""
    _durable(channel, queue)
    _publish(channel, queue, 5)
    for number, _ in enumerate(channel.consume(queue, auto_ack=True), 1):
        if number == 5:
            break
    channel.cancel()
    return _in(5) | _out(5) | {"settled outcome=accepted": 5}


def returned_to_the_queue(channel: Any, queue: str) -> dict[str, int]:
    """And got again."""
    _durable(channel, queue)
    _publish(channel, queue, 3)
    for _ in range(2):
        for tag in _get(channel, queue, 3):
            channel.basic_nack(tag, requeue=True)
    channel.basic_ack(_get(channel, queue, 3)[-1], multiple=True)
    again = {"requeued reason=released": 6, "redelivered": 6}
    return _in(3) | _out(9) | again | {"settled outcome=accepted": 3}


def dead_lettered(channel: Any, queue: str) -> dict[str, int]:
    """Four that are rejected, and go on; and two of another queue, which go nowhere."""
    _durable(channel, f"{queue} parked")
    _durable(channel, queue, dead_letter_exchange="", dead_letter_routing_key=f"{queue} parked")
    _durable(channel, f"{queue} plain")
    _publish(channel, queue, 4)
    _publish(channel, f"{queue} plain", 2)
    for where, count in ((queue, 4), (f"{queue} plain", 2)):
        for tag in _get(channel, where, count):
            channel.basic_reject(tag, requeue=False)
    wait_until(lambda: channel.queue_declare(f"{queue} parked", passive=True).method.message_count == 4, 10, "letters")
    fates = {"settled outcome=rejected": 6, "dead_lettered reason=rejected": 4, "dropped reason=rejected": 2}
    return _in(6) | _out(6) | fates | {"routed": 10, "enqueued": 10, "persisted": 10}


def expired(channel: Any, queue: str) -> dict[str, int]:
    """By their own time to live."""
    _durable(channel, queue)
    _publish(channel, queue, 3, pika.BasicProperties(delivery_mode=2, expiration="1"))
    wait_until(lambda: not channel.queue_declare(queue, passive=True).method.message_count, 10, "end of messages")
    return _in(3) | {"received_size_bytes": 3 * 10, "expired reason=message_ttl": 3, "dropped reason=expired": 3}


def pushed_out(channel: Any, queue: str) -> dict[str, int]:
    """Of a queue that keeps the newest two."""
    _durable(channel, queue, max_length=2)
    _publish(channel, queue, 5)
    return _in(5) | {"dropped reason=maxlen": 3}


def refused(channel: Any, queue: str) -> dict[str, int]:
    """By a queue that is full."""
    _durable(channel, queue, max_length=1, overflow="reject-publish")
    _publish(channel, queue, 1)
    for _ in range(3):
        with pytest.raises(NackError):
            _publish(channel, queue, 1)
    counted = {f"received {_PROTOCOL}": 4, "received_size_bytes": 32, "routed": 4}
    return _in(1) | counted | {"refused reason=overflow": 3, "dropped reason=maxlen": 3}


def unroutable(channel: Any, queue: str) -> dict[str, int]:
    """Two that are to be sent back, three that are not."""
    for _ in range(2):
        with pytest.raises(UnroutableError):
            channel.basic_publish("", queue, b"12345", _PERSISTENT, mandatory=True)
    _publish(channel, queue, 3)
    counted = {f"received {_PROTOCOL}": 5, "received_size_bytes": 40, "confirmed": 5}
    return counted | {"returned reason=no_route": 2, "dropped reason=unroutable": 3}


def purged_and_deleted(channel: Any, queue: str) -> dict[str, int]:
    """Six of a queue that is purged, two of one that is deleted."""
    _durable(channel, queue)
    _publish(channel, queue, 6)
    assert channel.queue_purge(queue).method.message_count == 6
    _publish(channel, queue, 2)
    channel.queue_delete(queue)
    return _in(8) | {"dropped reason=purged": 6, "dropped reason=queue_deleted": 2}


def copied(channel: Any, queue: str) -> dict[str, int]:
    """To two queues."""
    channel.exchange_declare(queue, "fanout", durable=True)
    for each in (f"{queue} a", f"{queue} b"):
        _durable(channel, each)
        channel.queue_bind(each, queue)
    _publish(channel, "", 3, exchange=queue)
    return _in(3) | {"routed": 6, "enqueued": 6, "persisted": 6}


FATES: list[Step] = [
    accepted, settled_by_being_sent, returned_to_the_queue, dead_lettered, expired, pushed_out, refused, unroutable,
    purged_and_deleted, copied,
]  # fmt: skip


def _counts(stack: Stack) -> Counter[str]:
    gauges = ("ready", "unsettled")
    found = sums(scrape(stack.http_port), _MESSAGES)
    return Counter({" ".join(name): count for name, count in found.items() if name[0] not in gauges})


@pytest.mark.parametrize("fate", FATES, ids=lambda each: each.__name__)
def test_counts_agree_with_what_was_sent(stack: Stack, name: str, fate: Step) -> None:
    """Of what a client did with known numbers of messages, every counter has grown by just that, and no other has."""
    before = _counts(stack)
    with _connect(stack) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        expected = Counter(fate(channel, name))
        _told(stack, before, expected)


def _told(stack: Stack, before: Counter[str], expected: Counter[str]) -> None:
    assert _settled(stack, before, expected) == expected


def _settled(stack: Stack, before: Counter[str], expected: Counter[str], but: str = "") -> Counter[str]:
    """The last of it may be counted a moment after its client was answered, and then there is no more."""

    def found() -> Counter[str]:
        return Counter({name: count for name, count in (_counts(stack) - before).items() if name != but})

    give_up = time.monotonic() + _SOON
    while found() != expected and time.monotonic() < give_up:
        time.sleep(0.2)
    time.sleep(0.5)
    return found()


def test_transactions(stack: Stack, name: str) -> None:
    """What is rolled back was received, and that is all; what is committed counts as if it were confirmed."""
    before = _counts(stack)
    with _connect(stack) as connection:
        channel = connection.channel()
        _durable(channel, name)
        channel.tx_select()
        _publish(channel, name, 3)
        channel.tx_rollback()
        _publish(channel, name, 2)
        channel.tx_commit()
        received = {f"received {_PROTOCOL}": 5, "received_size_bytes": 40}
        _told(stack, before, Counter(_in(2) | received | {"routed": 5, "rolled_back": 3}))


async def test_another_protocol(stack: Stack, name: str) -> None:
    """What comes by AMQP 1.0 is counted as that, and is confirmed when its sender knows its outcome."""
    with _connect(stack) as connection:
        connection.channel().queue_declare(name)
        before = _counts(stack)
        client = Client()
        await client.open(stack.address.port, "guest", "guest", "/")
        await client.sends_to(f"/queues/{name}")
        for _ in range(3):
            await client.sends()
        await client.close()
        expected = Counter({"received protocol=AMQP 1.0": 3, "routed": 3, "enqueued": 3, "confirmed": 3})
        found = _settled(stack, before, expected, "received_size_bytes")
        assert found == expected


def test_a_process_that_vanishes(stack: Stack, name: str) -> None:
    """What a client held that is gone is back, and counts as that; meanwhile it is unsettled, and then ready."""
    before = _counts(stack)
    with _connect(stack) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        _durable(channel, name)
        _publish(channel, name, 4)
        _get(channel, name, 4)
        held = _of(stack, name)
    expected = Counter(_in(4) | _out(4) | {"requeued reason=consumer_gone": 4})
    _told(stack, before, expected)
    assert (held["messages_ready"], held["messages_unsettled"]) == (0, 4)
    assert (_of(stack, name)["messages_ready"], _of(stack, name)["messages_unsettled"]) == (4, 0)


def _of(stack: Stack, queue: str) -> Counter[str]:
    """What is told of one queue."""
    found: Counter[str] = Counter()
    for (what, *labels), count in sums(scrape(stack.http_port, "/metrics/per-object"), "hopline_queue_").items():
        if f"queue={queue}" in labels:
            found[what] += count
    return found


def test_queues_apart(stack: Stack, name: str) -> None:
    """A queue's own counters say what befell it, and what it has; they go with it. Not but where that is asked for."""
    with _connect(stack) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        _durable(channel, name)
        _publish(channel, name, 5)
        channel.basic_ack(_get(channel, name, 2)[-1], multiple=True)
        wait_until(lambda: _of(stack, name)["messages_settled"] == 2, 10, "settled")
        assert +_of(stack, name) - Counter(memory_bytes=1 << 30) == Counter(
            messages_enqueued=5, messages_delivered=2, messages_settled=2, messages_ready=3
        )
        assert "hopline_queue_" not in page(stack.http_port)
        channel.queue_delete(name)
        wait_until(lambda: not _of(stack, name), 10, "the queue's end")


def test_who_is_connected(stack: Stack) -> None:
    """Connections, sessions and consumers are as many as there are, and what has come and gone is counted."""

    def clients() -> Counter[str]:
        found = sums(scrape(stack.http_port), "hopline_")
        names = ("connections", "connections_opened", "connections_closed", "sessions", "consumers", "sign_ins")
        return Counter({name[0]: count for name, count in found.items() if name[0] in names})

    before = clients()
    with _connect(stack) as one, _connect(stack) as other:
        channels = [each.channel() for each in (one, one, other)]
        queue = channels[0].queue_declare("", exclusive=True).method.queue
        channels[1].basic_consume(queue, lambda *_: None)
        there = Counter(connections=2, sessions=3, consumers=1, connections_opened=2)
        wait_until(lambda: there <= clients() - before, 10, "clients")
    gone = Counter(connections_opened=2, connections_closed=2)
    wait_until(lambda: clients() - before - Counter(sign_ins=1000) == gone, 10, "the clients' end")


def test_promtool_has_nothing_against_it(stack: Stack) -> None:
    """Prometheus's own check of a page of a whole stack finds nothing."""
    for path in ("/metrics", "/metrics/per-object"):
        text = page(stack.http_port, path).encode()
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
        assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def test_nothing_falls(stack: Stack, name: str) -> None:
    """When queue processes are killed, no series is less than before: those of the dead are gone.

    The new owner tells of what it has read back as recovered, not as enqueued again.
    """
    with _connect(stack) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        _durable(channel, name)
        _publish(channel, name, 50)
        before = growing(scrape(stack.http_port))
        stack.kill("queue-1")
        stack.kill("queue-2")
        _publish(channel, name, 10)
        channel.basic_ack(_get(channel, name, 60)[-1], multiple=True)
    wait_until(lambda: _of(stack, name)["messages_settled"] == 60, 20, "all of them settled")
    after = growing(scrape(stack.http_port))
    fallen = {each: (value, after[each]) for each, value in before.items() if each in after and after[each] < value}
    assert fallen == {}
    gone = {label for each in before.keys() - after.keys() for label in each if label.startswith("process=")}
    assert len(gone) == 2
    assert all(label.startswith("process=queue-") for label in gone)
    found = sums(scrape(stack.http_port), _MESSAGES)
    assert found["enqueued",] == 10
    assert found["recovered", "reason=journal"] >= 50

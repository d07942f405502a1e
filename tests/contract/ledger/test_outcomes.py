"""What the ledger says of a message is what its clients saw, stage by stage, for every way that a message can go."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pamqp import commands

from tests.support.amqp_client import AmqpClient
from tests.support.broker_house import BrokerHouse
from tests.support.nats_server import NatsServer
from tests.support.told_ledger import ToldLedger

Basic, Confirm, Queue, Tx = commands.Basic, commands.Confirm, commands.Queue, commands.Tx

PUBLISHED = ["received", "routed", "enqueued", "confirmed"]
DELIVERED = ["delivered", "sent"]


async def published(broker: BrokerHouse, name: str, **options: Any) -> AmqpClient:
    """A client, a queue of that name, and in it one message whose id is the name too."""
    client = await broker.connect()
    await client.declare(name, **options)
    await client.call(1, Confirm.Select(), Confirm.SelectOk)
    client.publish(b"x", name, message_id=name)
    await client.confirmed(1)
    return client


async def test_accepted(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A message that is delivered and acknowledged has every stage once, with its places."""
    client = await published(recorded, name)
    await client.consume(name, "tag")
    await client.bodies(1)
    client.ack(1)
    (uid,) = await ledger.told(name, "settled accepted")
    assert ledger.way(uid) == [*PUBLISHED, *DELIVERED, "settled accepted"]
    rows = {row["stage"]: row for row in ledger.of(uid)}
    assert {row["virtual_host"] for row in rows.values()} == {"/"}
    assert [rows[stage]["queue"] for stage in ("received", "routed", "enqueued", "sent")] == ["", name, name, name]
    assert rows["received"]["routing_key"] == rows["confirmed"]["routing_key"] == name
    assert rows["received"]["protocol"] == "AMQP 0-9-1"
    assert rows["received"]["client"] == "guest"
    assert rows["received"]["bytes"] == 1 + 2 + 1 + len(name)
    assert rows["delivered"]["consumer"] == rows["sent"]["consumer"] == "tag"
    assert rows["delivered"]["connection"] == rows["sent"]["connection"] == rows["received"]["connection"]
    assert rows["delivered"]["attempt"] == 1
    assert rows["enqueued"]["epoch"] > 0
    assert {rows[stage]["partition"] for stage in ("routed", "enqueued", "sent", "settled")} == {
        rows["enqueued"]["partition"]
    }


async def test_persistent(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A persistent message on a durable queue is on disk before it is confirmed."""
    client = await recorded.connect()
    await client.declare(name, durable=True)
    await client.call(1, Confirm.Select(), Confirm.SelectOk)
    client.publish(b"x", name, message_id=name, delivery_mode=2)
    await client.confirmed(1)
    (uid,) = await ledger.told(name, "confirmed")
    assert ledger.way(uid) == ["received", "routed", "enqueued", "persisted", "confirmed"]


async def test_without_acknowledgement(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """For a consumer without acknowledgements a message is settled as it is delivered, from the queue and past it."""
    client = await published(recorded, name)
    await client.consume(name, no_ack=True)
    client.publish(b"y", name, message_id=f"{name}-2")
    await client.bodies(2)
    (first,) = await ledger.told(name, "sent")
    (second,) = await ledger.told(f"{name}-2", "sent")
    assert ledger.way(first) == [*PUBLISHED, "delivered", "settled accepted", "sent"]
    assert sorted(ledger.way(second)) == sorted(ledger.way(first))


async def test_got(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """basic.get is a delivery without a consumer."""
    client = await published(recorded, name)
    message = await client.get(name)
    assert message
    client.ack(message.tag)
    (uid,) = await ledger.told(name, "settled accepted")
    assert ledger.way(uid) == [*PUBLISHED, *DELIVERED, "settled accepted"]
    assert {row["consumer"] for row in ledger.of(uid)} == {""}


async def test_rejected(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A rejected message without a dead-letter exchange is settled and dropped."""
    client = await published(recorded, name)
    await client.consume(name)
    await client.bodies(1)
    client.send(1, Basic.Reject(1, requeue=False))
    (uid,) = await ledger.told(name, "dropped rejected")
    assert ledger.way(uid) == [*PUBLISHED, *DELIVERED, "settled rejected", "dropped rejected"]


async def test_requeued(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A released message is requeued and delivered again, as its second attempt."""
    client = await published(recorded, name)
    await client.consume(name)
    await client.bodies(1)
    client.send(1, Basic.Reject(1, requeue=True))
    await client.bodies(2)
    client.ack(2)
    (uid,) = await ledger.told(name, "settled accepted")
    assert ledger.way(uid) == [*PUBLISHED, *DELIVERED, "requeued released", *DELIVERED, "settled accepted"]
    assert [row["attempt"] for row in ledger.of(uid) if row["stage"] == "delivered"] == [1, 2]


async def test_its_consumer_goes(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """What a connection held when it ended is requeued for that reason."""
    await published(recorded, name)
    consumer = await recorded.connect(1)
    await consumer.prefetch(1)
    await consumer.consume(name)
    await consumer.bodies(1)
    consumer.abort()
    (uid,) = await ledger.told(name, "requeued consumer_gone")
    assert ledger.way(uid) == [*PUBLISHED, *DELIVERED, "requeued consumer_gone"]


async def test_expired(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A message whose time to live ends expires, and is dropped without a dead-letter exchange."""
    await published(recorded, name, arguments={"x-message-ttl": 50})
    (uid,) = await ledger.told(name, "dropped expired")
    assert ledger.way(uid) == [*PUBLISHED, "expired message_ttl", "dropped expired"]


async def test_dead_lettered(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A dead-lettered message goes on as another one, which is routed and delivered in its own right."""
    client = await recorded.connect()
    await client.declare(f"{name}-dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": f"{name}-dead"}
    await client.consume(f"{name}-dead", "dead")
    publisher = await published(recorded, name, arguments=arguments)
    await publisher.consume(name)
    await publisher.bodies(1)
    publisher.send(1, Basic.Reject(1, requeue=False))
    await client.bodies(1)
    client.ack(1)
    (uid,) = await ledger.told(name, "dead_lettered rejected")
    assert ledger.way(uid) == [*PUBLISHED, *DELIVERED, "settled rejected", "dead_lettered rejected"]
    assert ledger.of(uid)[-1]["target"] == ""
    assert ledger.way(ledger.successor(uid)) == ["routed", "enqueued", *DELIVERED, "settled accepted"]


async def test_dead_letters_without_a_route(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """An expired message whose dead-letter exchange is not there is dropped as unroutable."""
    arguments = {"x-message-ttl": 50, "x-dead-letter-exchange": f"{name}-none"}
    await published(recorded, name, arguments=arguments)
    (uid,) = await ledger.told(name, "dropped unroutable")
    assert ledger.way(uid) == [*PUBLISHED, "expired message_ttl", "dropped unroutable"]
    assert ledger.of(uid)[-1]["target"] == f"{name}-none"


async def test_too_often_delivered(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A message beyond its delivery limit is dropped, not requeued."""
    client = await published(recorded, name, arguments={"x-delivery-limit": 0})
    await client.consume(name)
    await client.bodies(1)
    client.send(1, Basic.Reject(1, requeue=True))
    (uid,) = await ledger.told(name, "dropped delivery_limit")
    assert ledger.way(uid) == [*PUBLISHED, *DELIVERED, "dropped delivery_limit"]


async def test_dropped_from_the_head(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """drop-head: the oldest message goes when the queue is full, its publisher having been told that it is safe."""
    client = await published(recorded, name, arguments={"x-max-length": 1})
    client.publish(b"y", name, message_id=f"{name}-2")
    await client.confirmed(2)
    (uid,) = await ledger.told(name, "dropped maxlen")
    (second,) = await ledger.told(f"{name}-2", "confirmed")
    assert ledger.way(uid) == [*PUBLISHED, "dropped maxlen"]
    assert ledger.way(second) == PUBLISHED


async def test_refused(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """reject-publish: the newcomer is dropped by the full queue, and its publisher hears a nack."""
    client = await published(recorded, name, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client.publish(b"y", name, message_id=f"{name}-2")
    await client.expect(Basic.Nack)
    (uid,) = await ledger.told(f"{name}-2", "refused overflow")
    assert ledger.way(uid) == ["received", "routed", "dropped maxlen", "refused overflow"]


async def test_refused_and_dead_lettered(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """reject-publish-dlx: the newcomer is refused, and goes on as a dead letter."""
    other = await recorded.connect()
    await other.declare(f"{name}-dead")
    arguments = {
        "x-max-length": 1, "x-overflow": "reject-publish-dlx", "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": f"{name}-dead",
    }  # fmt: skip
    client = await published(recorded, name, arguments=arguments)
    client.publish(b"y", name, message_id=f"{name}-2")
    await client.expect(Basic.Nack)
    (uid,) = await ledger.told(f"{name}-2", "dead_lettered maxlen")
    assert sorted(ledger.way(uid)) == ["dead_lettered maxlen", "received", "refused overflow", "routed"]
    assert ledger.way(ledger.successor(uid)) == ["routed", "enqueued"]


async def test_purged_and_deleted(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """What is purged, and what a queue has when it is deleted, is dropped for that reason."""
    client = await published(recorded, name)
    await client.call(1, Queue.Purge(queue=name), Queue.PurgeOk)
    client.publish(b"y", name, message_id=f"{name}-2")
    await client.confirmed(2)
    await client.call(1, Queue.Delete(queue=name), Queue.DeleteOk)
    (purged,) = await ledger.told(name, "dropped purged")
    (deleted,) = await ledger.told(f"{name}-2", "dropped queue_deleted")
    assert ledger.way(purged) == [*PUBLISHED, "dropped purged"]
    assert ledger.way(deleted) == [*PUBLISHED, "dropped queue_deleted"]


async def test_its_queue_expires(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """The messages of an unused queue expire with it."""
    await published(recorded, name, arguments={"x-expires": 200})
    (uid,) = await ledger.told(name, "dropped expired")
    assert ledger.way(uid) == [*PUBLISHED, "expired queue_ttl", "dropped expired"]


async def test_returned(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A mandatory message that no queue gets goes back, and is confirmed."""
    client = await recorded.connect()
    await client.call(1, Confirm.Select(), Confirm.SelectOk)
    client.publish(b"x", name, mandatory=True, message_id=name)
    await client.confirmed(1)
    assert [message.body for message in client.messages(Basic.Return)] == [b"x"]
    (uid,) = await ledger.told(name, "confirmed")
    assert ledger.way(uid) == ["received", "returned no_route", "confirmed"]


async def test_unroutable(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A message that no queue gets and that is not mandatory is dropped."""
    client = await recorded.connect()
    client.publish(b"x", name, message_id=name)
    (uid,) = await ledger.told(name, "dropped unroutable")
    assert ledger.way(uid) == ["received", "dropped unroutable"]


async def test_managed(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A request to the management node goes no further: it was taken, and is confirmed."""
    client = await recorded.connect()
    await client.call(1, Confirm.Select(), Confirm.SelectOk)
    client.publish(b"", "$management", mandatory=True, message_id=name)
    (uid,) = await ledger.told(name, "confirmed")
    assert ledger.way(uid) == ["received", "dropped managed", "confirmed"]


async def test_without_an_exchange(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A message for an exchange that is not there ends its channel, and is on record."""
    client = await recorded.connect()
    client.publish(b"x", name, exchange=name, message_id=name)
    await client.expect(commands.Channel.Close)
    (uid,) = await ledger.told(name, "refused no_exchange")
    assert ledger.way(uid) == ["received", "refused no_exchange"]


async def test_fanned_out(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """A message for several queues is one message with a way through each of them."""
    client, names = await recorded.connect(), [f"{name}-{number}" for number in range(6)]
    await client.call(1, commands.Exchange.Declare(exchange=name, exchange_type="fanout"), commands.Exchange.DeclareOk)
    for each in names:
        await client.declare(each)
        await client.call(1, Queue.Bind(queue=each, exchange=name), Queue.BindOk)
    client.publish(b"x", "", exchange=name, message_id=name)
    (uid,) = await ledger.told(name, "enqueued", 6)
    for each in names:
        assert ledger.way(uid, each) == ["received", "routed", "enqueued"]
    assert sum(step == "received" for step in ledger.way(uid)) == 1


async def test_committed_and_rolled_back(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """What is rolled back never gets to a queue; what is committed is there, on disk, and the publisher knows it."""
    client = await recorded.connect()
    await client.declare(name, durable=True)
    await client.call(1, Tx.Select(), Tx.SelectOk)
    client.publish(b"no", name, message_id=f"{name}-no")
    await client.call(1, Tx.Rollback(), Tx.RollbackOk)
    client.publish(b"yes", name, message_id=f"{name}-yes", delivery_mode=2)
    client.publish(b"nowhere", f"{name}-none", message_id=f"{name}-nowhere")
    await client.call(1, Tx.Commit(), Tx.CommitOk)
    client.publish(b"left", name, message_id=f"{name}-left")
    await client.close()
    (undone,) = await ledger.told(f"{name}-no", "rolled_back")
    (done,) = await ledger.told(f"{name}-yes", "confirmed")
    (nowhere,) = await ledger.told(f"{name}-nowhere", "confirmed")
    (left,) = await ledger.told(f"{name}-left", "rolled_back")
    assert ledger.way(undone) == ledger.way(left) == ["received", "routed", "rolled_back"]
    assert sorted(ledger.way(done)) == sorted(["received", "routed", "enqueued", "persisted", "confirmed"])
    assert ledger.way(nowhere) == ["received", "dropped unroutable", "confirmed"]


async def test_settled_in_a_transaction(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """An acknowledgement counts when its transaction is committed, once."""
    client = await published(recorded, name, durable=True)
    consumer = await recorded.connect()
    await consumer.call(1, Tx.Select(), Tx.SelectOk)
    await consumer.consume(name)
    await consumer.bodies(1)
    consumer.ack(1)
    await consumer.call(1, Tx.Rollback(), Tx.RollbackOk)
    consumer.ack(1)
    await consumer.call(1, Tx.Commit(), Tx.CommitOk)
    (uid,) = await ledger.told(name, "settled accepted")
    assert ledger.way(uid) == [*PUBLISHED, *DELIVERED, "settled accepted"]
    await client.close()


async def test_handed_over(bus: NatsServer, ledger: ToldLedger, tmp_path: Path, name: str) -> None:
    """When a partition changes hands, what waits and what is held go on in the new owner, in a later epoch."""
    async with BrokerHouse(tmp_path, gateways=1, queues=1, nats_url=bus.address) as house:
        client = await published(house, name)
        client.publish(b"y", name, message_id=f"{name}-2")
        await client.prefetch(1)
        await client.consume(name)
        await client.bodies(1)
        await house.queues.pop("queue-1").stop()
        await house.start_queue("queue-2")
        await asyncio.sleep(0.5)
        client.ack(1)
        await client.bodies(2)
        client.ack(2)
        (held,) = await ledger.told(name, "settled accepted")
        (waiting,) = await ledger.told(f"{name}-2", "settled accepted")
        assert ledger.way(held) == [*PUBLISHED, *DELIVERED, "recovered held", "settled accepted"]
        assert ledger.way(waiting) == [*PUBLISHED, "recovered handed_over", *DELIVERED, "settled accepted"]
        epochs = [row["epoch"] for row in ledger.of(waiting) if row["service"] == "queue"]
        assert epochs[0] < epochs[1] == epochs[-1]


async def test_hostile_properties(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """Malformed, huge and repeated trace headers are no ids, do no harm, and arrive as they were sent."""
    client = await recorded.connect()
    await client.declare(name)
    headers = [
        {"traceparent": "x" * 9000},
        {"traceparent": bytearray(b"\x00\xff")},
        {"traceparent": 5, "tracestate": "y" * 9000},
    ]
    for number, each in enumerate(headers):
        client.publish(b"x", name, message_id=f"{name}-{number}", headers=each)
    await client.consume(name, no_ack=True)
    await client.bodies(3)
    for number in range(3):
        (uid,) = await ledger.told(f"{name}-{number}", "sent")
        assert {each["kind"] for each in ledger.ids if each["first_uid"] <= uid <= each["last_uid"]} == {"message_id"}
    assert [message.properties.headers for message in client.messages()][2] == headers[2]


async def test_its_queue_was_deleted_meanwhile(recorded: BrokerHouse, ledger: ToldLedger, name: str) -> None:
    """What comes for a queue that has just been deleted is dropped by the queue process, under the queue's name."""
    house = recorded._inner
    queue_id = await house.declare(name)
    await house.delete(name)
    link = await house.link("queue-1", origin=999_999)
    await link.publish(queue_id, [b"x"])
    async with asyncio.timeout(10):
        while not ledger.of(link._uid):
            await asyncio.sleep(0.05)
    (row,) = ledger.of(link._uid)
    assert (row["stage"], row["reason"], row["queue"]) == ("dropped", "queue_deleted", name)

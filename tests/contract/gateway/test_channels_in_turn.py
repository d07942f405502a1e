"""A client that publishes over many channels in turn: each has what it would have alone. Section 4.7."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, zip_longest

from pamqp import commands

from tests.support.amqp_client import AmqpClient, Message
from tests.support.amqp_playbook import content, written
from tests.support.broker_house import BrokerHouse

_PLAIN, _MANDATORY, _TRANSACTIONAL, _FAILING = range(1, 5), range(5, 9), range(9, 13), range(13, 17)
_CHANNELS = range(1, 17)
_COUNT = 200  # publishes of each
_HALF = _COUNT // 2


def _said(channel: int, name: str, number: int) -> bytes:
    """One publish, and what comes with it; every tenth of some is for no queue."""
    nowhere = channel in _MANDATORY and number % 10 == 0
    data = content(
        channel,
        b"%d %d" % (channel, number),
        routing_key="nowhere of " + name if nowhere else f"{name}-{number % 3}",
        mandatory=channel in _MANDATORY,
        message_id=f"{channel}.{number}",
        headers={"n": number} if channel % 2 else None,
    )
    if number == _HALF and channel in _FAILING:
        data += content(channel, b"wrong", exchange="no exchange of " + name)
    if number == _HALF and channel in _TRANSACTIONAL:
        data += written(channel, commands.Tx.Commit() if channel % 2 else commands.Tx.Rollback())
    return data


async def _client(broker: BrokerHouse) -> AmqpClient:
    client = await broker.connect(0, channels=len(_CHANNELS))
    for channel in chain(_PLAIN, _MANDATORY, _FAILING):
        await client.call(channel, commands.Confirm.Select(), commands.Confirm.SelectOk)
    for channel in _TRANSACTIONAL:
        await client.call(channel, commands.Tx.Select(), commands.Tx.SelectOk)
    return client


def _expected(channel: int) -> list[int]:
    """The numbers of those that come into queues."""
    if channel in _MANDATORY:
        return [number for number in range(_COUNT) if number % 10]
    if channel in _FAILING:
        return list(range(_HALF + 1))
    if channel in _TRANSACTIONAL:
        return list(range(_HALF + 1)) if channel % 2 else []  # what came behind was not committed
    return list(range(_COUNT))


async def test_each_channel_has_what_it_would_have_alone(broker: BrokerHouse, name: str) -> None:
    """Confirms, returns, transactions, errors that end channels in the middle: nothing is lost, nothing doubled, and
    what one channel sent to one queue is there in its order.
    """
    client, other = await _client(broker), await broker.connect(1)
    queues = [f"{name}-{number}" for number in range(3)]
    for queue in queues:
        await other.declare(queue)
    turns = zip_longest(*[[_said(channel, name, number) for number in range(_COUNT)] for channel in _CHANNELS])
    data = b"".join(chain.from_iterable(turns))
    for at in range(0, len(data), 30_000):
        client.writer.write(data[at : at + 30_000])
    for channel in chain(_PLAIN, _MANDATORY):
        await client.confirmed(_COUNT, channel)
    for channel in _FAILING:
        assert (await client.expect(commands.Channel.Close, channel)).reply_code == 404
        client._seen = 0
    await client.until(lambda: len(client.of((commands.Tx.CommitOk, commands.Tx.RollbackOk))) == len(_TRANSACTIONAL))
    for channel in _TRANSACTIONAL:  # publishes that are not committed yet: nobody ever has them
        await client.call(channel, commands.Tx.Rollback(), commands.Tx.RollbackOk)
    expected = {channel: _expected(channel) for channel in _CHANNELS if _expected(channel)}
    for queue in queues:
        await other.consume(queue, tag=queue, no_ack=True)
    await other.bodies(sum(map(len, expected.values())))
    await other.declare(queues[0], passive=True)
    _has_come(other, expected)
    _is_told(client)
    await client.close()


def _has_come(other: AmqpClient, expected: dict[int, list[int]]) -> None:
    found: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for message in other.messages():
        channel, number = map(int, message.body.split())
        assert message.properties.message_id == f"{channel}.{number}"
        found[channel, number % 3].append(number)
    assert found == {
        (channel, queue): [number for number in numbers if number % 3 == queue]
        for channel, numbers in expected.items()
        for queue in range(3)
    }


def _is_told(client: AmqpClient) -> None:
    """What is returned is before its confirm; what failed was not confirmed."""
    for channel in _MANDATORY:
        returned, confirmed = 0, 0
        for its, value in client.frames:
            if its == channel and isinstance(value, Message):
                number = int(value.body.split()[1])
                assert number >= confirmed
                returned += 1
            elif its == channel and isinstance(value, commands.Basic.Ack):
                confirmed = max(confirmed, value.delivery_tag)
        assert (returned, confirmed) == (_COUNT // 10, _COUNT)
    acks = [(channel, value) for channel, value in client.frames if isinstance(value, commands.Basic.Ack)]
    assert all(ack.delivery_tag <= _HALF + 1 for channel, ack in acks if channel in _FAILING)

"""Direct reply-to through a whole broker."""

from __future__ import annotations

from pamqp import commands

from tests.support.broker_house import BrokerHouse

REPLIES = "amq.rabbitmq.reply-to"


async def test_a_consumer_that_is_refused(broker: BrokerHouse) -> None:
    """Leaves no queue behind: nobody may need leave to declare it, and there is no end of tries."""
    client, before = await broker.connect(), set(broker.topology.by_name)
    wrong = commands.Basic.Consume(queue=REPLIES, no_ack=True, arguments={"x-priority": "high"})
    for channel in (1, 2, 3):
        if channel > 1:
            await client.call(channel, commands.Channel.Open(), commands.Channel.OpenOk)
        assert await client.refused(channel, wrong) == 406
    assert set(broker.topology.by_name) == before

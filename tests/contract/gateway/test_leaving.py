"""What is logged when a queue process goes: an operator is warned of a loss, and of nothing else."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from tests.support.broker_house import BrokerHouse
from tests.support.programs import until


async def test_an_orderly_hand_over_is_no_warning(tmp_path: Path) -> None:
    """A queue process that stops hands its partitions over: gateways and its peers say so, and warn of nothing."""
    async with BrokerHouse(tmp_path, gateways=1, queues=2) as house:
        client = await house.connect()
        for number in range(8):
            await client.declare(f"q{number}")
        with capture_logs() as told:
            await house.queues.pop("queue-2").stop()
            await until(lambda: len(house.queues["queue-1"]._host.registry.partitions) == 8)
        left = [each for each in told if each["event"].startswith("queue process left")]
    assert {each["log_level"] for each in left} == {"info"}
    assert [each for each in told if each["log_level"] in ("warning", "error") and "queue" in each["event"]] == []

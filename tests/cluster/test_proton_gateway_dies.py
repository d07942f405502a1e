"""qpid-proton, whose gateway is killed under load: it goes to the other one, and nothing accepted is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import proton_client
from tests.support.interop_pika import connected

if TYPE_CHECKING:
    from tests.support.interop_address import BrokerAddress
    from tests.support.stack import Stack

_PROGRAM = Path(__file__).parents[1] / "support/proton_load_program.py"
_COUNT = 10_000


def _url(address: BrokerAddress) -> str:
    return f"amqp://{address.user}:{address.password}@{address.host}:{address.port}"


@pytest.mark.timeout(180)
def test_accepted_messages_are_there(stack: Stack, name: str) -> None:
    """Every message that was accepted comes, over whichever gateway, and each is accepted in the end."""
    with connected(stack.address) as connection, stack.another_gateway() as other:
        connection.channel().queue_declare(name, durable=True)
        command = [proton_client.PYTHON, str(_PROGRAM), name, str(_COUNT), _url(other), _url(stack.address)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout
            said = json.loads(process.stdout.readline())
            assert not said.get("done")
            os.kill(stack.gateway_pids[other], signal.SIGKILL)
            for line in process.stdout:
                said = json.loads(line)
            assert process.wait() == 0
    assert said["done"]
    assert said["accepted"] == _COUNT == said["came"]
    assert said["lost"] >= 2

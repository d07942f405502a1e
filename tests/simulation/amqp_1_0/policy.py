"""What a client does at once with what it is given."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from tests.simulation.amqp_1_0.client import LinkClient
from tests.simulation.amqp_1_0.links import Receiver, Taker
from tests.simulation.history import Delivered
from tests.simulation.plan import Step
from tests.simulation.steps import share_of

_BACK: Final = frozenset({"requeue", "modify", "release", "undeliverable", "quiet"})


def policy(client: LinkClient, step: Step) -> Taker:
    """As that of 0-9-1: what is given back once is taken the next time."""
    shares, every = step.get("settle") or {"ack": 100}, step.get("every", 1)

    def settle(receiver: Receiver, delivered: Delivered) -> None:
        about = (step["tag"], delivered.id, len(delivered.deaths))
        how = share_of(shares, crc32("/".join(map(str, about)).encode()) % 100)
        if how in _BACK and about in client.given_back:
            how = "ack"
        if delivered.no_ack or receiver.session.leaving or not how or (how == "ack" and delivered.tag % every):
            return
        if how in _BACK:
            client.given_back.add(about)
        part_of = receiver.session.transactions.get(step.get("in", ""))  # where that is open
        receiver.session.settle(how, delivered.tag, multiple=how == "ack" and every > 1, part_of=part_of)

    return settle

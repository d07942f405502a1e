"""What steps do with links that outlive their connections."""

from __future__ import annotations

from typing import Any

from tests.simulation.amqp_1_0.client import LinkClient
from tests.simulation.amqp_1_0.policy import policy
from tests.simulation.amqp_1_0.session import Session
from tests.simulation.amqp_1_0.subscriptions import Subscriber, Subscription, queue_of
from tests.simulation.history import Consuming
from tests.simulation.line import GoneError
from tests.simulation.plan import Step


async def subscribe(client: LinkClient, step: Step) -> None:
    """Takes a subscription up, from whoever has it, or begins it. One that was ended is never begun again."""
    session, history, at = await client.session(step), client.history, (client.host, step["tag"])
    its = history.subscriptions.get(at)
    if _subscriber(session, step) or (its and its.ended):
        return
    if its is None:
        its = history.subscriptions[at] = Subscription(history, client.host, step, session.opened)
    consuming = Consuming(
        client.host, queue_of(step["tag"]), step["tag"], session.opened, no_ack=False, exclusive=False,
        asked=history.tick(),
    )  # fmt: skip
    history.consumers.append(consuming)
    subscriber = Subscriber(session, its, consuming, policy(client, step), every=step.get("renew", 0))
    subscriber.recalls = step.get("recalls", False) and its.stands
    try:
        await subscriber.attach()
    except GoneError:
        consuming.ending = consuming.ending or history.tick()
        raise
    subscriber.give(step.get("credit", 10))


def _subscriber(session: Session, step: Step) -> Subscriber | None:
    links = session.links.values() if not session.dead else ()
    its = (each for each in links if isinstance(each, Subscriber))
    return next((each for each in its if each.name == step["tag"] and not each.dead), None)


async def leave(client: LinkClient, step: Step) -> None:
    """Detaches one: it stays."""
    session = client.channels.get(step["channel"])
    if session and (subscriber := _subscriber(session, step)):  # type: ignore[arg-type]
        await subscriber.part()


async def unsubscribe(client: LinkClient, step: Step) -> None:
    """Ends one that it has."""
    session = client.channels.get(step["channel"])
    if session and (subscriber := _subscriber(session, step)):  # type: ignore[arg-type]
        await subscriber.end()


STEPS: dict[str, Any] = {"subscribe": subscribe, "leave": leave, "unsubscribe": unsubscribe}

"""What each step of a plan does that a client of AMQP 1.0 carries out."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.simulation.amqp_1_0.client import LinkClient
from tests.simulation.amqp_1_0.links import Receiver, Sender
from tests.simulation.amqp_1_0.policy import policy
from tests.simulation.amqp_1_0.session import Session
from tests.simulation.amqp_1_0.subscribing import STEPS as SUBSCRIBING
from tests.simulation.amqp_1_0.transactions import Coordinator, Local
from tests.simulation.amqp_1_0.wire import Wire
from tests.simulation.delays import Said, said
from tests.simulation.history import Consuming, Sent
from tests.simulation.line import GoneError
from tests.simulation.plan import Step
from tests.simulation.steps import abort, close, confirms

# -------------------------------------------------------------- messages


async def publish(client: LinkClient, step: Step) -> None:
    """Over the link to an address, which is attached for it."""
    sender = await _sender(client, step)
    when = said(step, client.history.clock(), moments="x-opt-delivery-time", delays="")
    for number in range(step.get("count", 1)):
        client.sent += 1
        sent = _message(client, step, number, sender, when)
        part_of = await _part_of(sender.session, step)
        await sender.send(sent, settled=step.get("settled", False), most=step.get("most", 1 << 16), part_of=part_of)
        if pace := step.get("pace"):
            await asyncio.sleep(pace)
    if step.get("await"):
        await confirms(client, step)


def _message(client: LinkClient, step: Step, number: int, sender: Sender, when: Said) -> Sent:
    keys = step["keys"]
    return Sent(
        f"{client.name}.{client.sent}",
        client.host,
        step["exchange"],
        keys[number % len(keys)],
        {**step.get("headers", {}), **when.headers},
        step.get("persistent", True),
        step.get("priority", 0),
        step.get("ttl"),
        True,  # what reaches no queue is rejected
        False,
        step.get("size", 20),
        sender.session.opened,
        0,
        0,
        0.0,
        due=when.moment,
    )


async def _part_of(session: Session, step: Step) -> Local | None:
    """The transaction that a step is to be part of, if it is of any; raises GoneError."""
    return await session.transaction(step["in"]) if "in" in step else None


async def _sender(client: LinkClient, step: Step) -> Sender:
    session, address = await client.session(step), step["address"]
    # A link of the same name on another session steals it, and then nothing is committed that came by it.
    name = f"to {address} of {session.number}" if "in" in step else f"to {address}"
    for link in session.links.values():
        if isinstance(link, Sender) and link.name == name and not link.dead:
            return link
    sender = Sender(session, name, address, subject=step.get("subject", False))
    await sender.attach()
    return sender


async def detach(client: LinkClient, step: Step) -> None:
    """Ends one of the links by which it sends."""
    session = client.channels.get(step["channel"])
    for link in list(session.links.values()) if session else ():
        if isinstance(link, Sender) and not link.dead:
            await link.detach()
            return


# -------------------------------------------------------------- consumers


async def consume(client: LinkClient, step: Step) -> None:
    """A link by which it receives."""
    session, tag = await client.session(step), step["tag"]
    if _receiver(client, step):
        return
    client.wanted[step["channel"], tag] = step
    consuming = Consuming(
        client.host, step["queue"], tag, session.opened, step.get("no_ack", False), exclusive="alone" in step,
        asked=client.history.tick(), selector=step.get("selector", ""),
        browses=step.get("browse", False),
        no_local="no_local" in step,
        by_default="by_default" in step,
    )  # fmt: skip
    client.history.consumers.append(consuming)
    receiver = Receiver(session, consuming, policy(client, step), every=step.get("renew", 0))
    try:
        await receiver.attach()
    except GoneError as gone:
        consuming.ending = consuming.ending or client.history.tick()
        if gone.code:
            client.wanted.pop((step["channel"], tag), None)
        raise
    receiver.give(step.get("credit", 10))


def _receiver(client: LinkClient, step: Step) -> Receiver | None:
    session = client.channels.get(step["channel"])
    links: Any = session.links.values() if session and not session.dead else ()
    return next(
        (each for each in links if isinstance(each, Receiver) and each.name == step["tag"] and not each.dead), None
    )


async def cancel(client: LinkClient, step: Step) -> None:
    """Ends a link by which it receives."""
    client.wanted.pop((step["channel"], step["tag"]), None)
    if receiver := _receiver(client, step):
        await receiver.detach()


async def credit(client: LinkClient, step: Step) -> None:
    """For more."""
    if receiver := _receiver(client, step):
        receiver.give(step["credit"])


async def drain(client: LinkClient, step: Step) -> None:
    """What there is now, and then credit as before."""
    if receiver := _receiver(client, step):
        await receiver.drain(step["credit"], twice=step.get("twice", False))
        receiver.give(step.get("then", 0))


async def stop(client: LinkClient, step: Step) -> None:
    """Takes its credit back, for a time."""
    if receiver := _receiver(client, step):
        await receiver.stop()
        receiver.give(step.get("then", 0))


async def settle(client: LinkClient, step: Step) -> None:
    """Some of what it holds."""
    session = client.channels.get(step["channel"])
    if session is None or session.leaving or not session.unsettled:
        return
    part_of = await _part_of(session, step)
    tags, which = list(session.unsettled), step.get("which", "all")
    at = {"all": -1, "half": len(tags) // 2, "oldest": 0, "newest": -1}[which]
    if tags and not session.leaving:
        session.settle(step["how"], tags[at], multiple=which in {"all", "half"}, part_of=part_of)


# -------------------------------------------------------------- transactions


async def discharge(client: LinkClient, step: Step) -> None:
    """Commits a transaction of a session, or rolls it back, if there is one of this name. It may be `gone` by then."""
    session = client.channels.get(step["channel"])
    if session and not session.leaving and (local := session.transactions.pop(step["in"], None)):
        if (seconds := step.get("gone")) is not None:
            asyncio.get_running_loop().call_later(seconds, _leave, session.wire)
        await local.discharge(fail=step.get("fail", False))


def _leave(wire: Wire) -> None:
    if not wire.dead:
        wire.abort()


async def undeclare(client: LinkClient, step: Step) -> None:
    """Ends the link by which a session's transactions were declared."""
    session = client.channels.get(step["channel"])
    for link in list(session.links.values()) if session else ():
        if isinstance(link, Coordinator):
            await link.detach()


# -------------------------------------------------------------- ends


async def close_channel(client: LinkClient, step: Step) -> None:
    """Ends a session."""
    session = client.channels.get(step["channel"])
    if session and not session.leaving:
        await session.close()


STEPS: dict[str, Any] = {
    "publish": publish,
    "confirms": confirms,
    "detach": detach,
    "consume": consume,
    "cancel": cancel,
    "credit": credit,
    "drain": drain,
    "stop": stop,
    "settle": settle,
    "discharge": discharge,
    "undeclare": undeclare,
    "close_channel": close_channel,
    "close": close,
    "abort": abort,
    **SUBSCRIBING,
}

"""What each step of a plan does, found by its name in STEPS."""

from __future__ import annotations

import asyncio
from typing import Any
from zlib import crc32

from pamqp import commands

from tests.simulation.asking import FINAL, ask
from tests.simulation.channel import Channel, Taker, begin
from tests.simulation.choices import SESSIONS
from tests.simulation.client import Client, Doing
from tests.simulation.delays import said
from tests.simulation.history import Asked, Consuming, Delivered, Sent, Transaction
from tests.simulation.line import GoneError
from tests.simulation.mistakes import mistake
from tests.simulation.plan import Step

_ATTEMPTS = 40
_REFUSED = 406


# -------------------------------------------------------------- messages


async def publish(client: Client, step: Step) -> None:
    channel = await client.channel(step)
    history = client.history
    when = said(step, history.clock())
    for number in range(step.get("count", 1)):
        if channel.dead:
            return
        client.sent += 1
        keys = step.get("keys") or [step.get("key", "")]
        sent = Sent(
            f"{client.name}.{client.sent}",
            client.host,
            step.get("exchange", ""),
            keys[number % len(keys)],
            {**(step.get("headers") or {}), **when.headers},
            step.get("persistent", True),
            step.get("priority", 0),
            step.get("ttl"),
            step.get("mandatory", False),
            step.get("immediate", False),
            step.get("size", 20),
            channel.opened,
            0,
            history.tick(),
            history.clock(),
            due=when.due(history.clock()),
        )
        history.sent[sent.id] = sent
        channel.publish(sent)
        if pace := step.get("pace"):
            await asyncio.sleep(pace)
    if step.get("await") and channel.opened.mode == "confirm":
        await confirms(client, step)


async def confirms(client: Client, step: Step) -> None:
    """Waits until everything on the channel is confirmed."""
    channel = client.channels.get(step.get("channel", "a"))
    while channel and channel.unconfirmed and not channel.dead:
        channel.wire.changed.clear()
        await channel.wire.changed.wait()


async def commit(client: Client, step: Step) -> None:
    await _end_transaction(client, step, commands.Tx.Commit(), "committed")


async def rollback(client: Client, step: Step) -> None:
    await _end_transaction(client, step, commands.Tx.Rollback(), "rolled_back")


async def _end_transaction(client: Client, step: Step, request: Any, outcome: str) -> None:
    channel = await client.channel(step)
    transaction = channel.transaction
    if transaction is None:
        return
    if outcome == "committed":
        transaction.asked = client.history.tick()
    begin(channel)  # what is said while the answer is on its way belongs to the next one
    if outcome == "rolled_back":
        _undo(channel, transaction)  # from now on: an ack of several that follows is of these too
    try:
        await channel.call(request)
    except GoneError as gone:
        unanswered = "refused" if gone.code == _REFUSED else "unknown"
        transaction.outcome = unanswered if outcome == "committed" else "rolled_back"
        raise
    transaction.outcome, transaction.answered = outcome, client.history.tick()


def _undo(channel: Channel, transaction: Transaction) -> None:
    """Its settlements are undone: the deliveries are unsettled as before."""
    for delivered in transaction.settled:
        delivered.settled, delivered.settled_as, delivered.transaction = None, "", None
        channel.unsettled[delivered.tag] = delivered
    transaction.settled = []


# -------------------------------------------------------------- consumers


def _policy(step: Step) -> Taker:
    """Settles deliveries at once, by shares in percent; what each is decides, so that a shorter plan decides alike."""
    shares = step.get("settle") or {"ack": 100}
    salt = f"{step['queue']}/{step.get('tag', '')}"
    every = step.get("every", 1)

    def settle(channel: Channel, delivered: Delivered) -> None:
        roll = crc32(f"{salt}/{delivered.id}/{len(delivered.deaths)}".encode()) % 100
        how = share_of(shares, roll)
        if how == "requeue" and delivered.redelivered:
            how = "ack"  # once is enough: it would come again for ever
        if delivered.no_ack or channel.leaving or not how or (how == "ack" and delivered.tag % every):
            return
        channel.settle(how, delivered.tag, multiple=how == "ack" and every > 1)

    return settle


def share_of(shares: dict[str, int], roll: int) -> str:
    """What a number below 100 stands for; "": nothing, for now."""
    for how, share in shares.items():
        if roll < share:
            return how
        roll -= share
    return ""


async def consume(client: Client, step: Step) -> None:
    channel = await client.channel(step)
    tag, queue = step["tag"], step["queue"]
    if tag in channel.consumers:
        return
    client.wanted[step.get("channel", "a"), tag] = step
    if "prefetch" in step:
        channel.opened.shared_limit |= step.get("shared", False)
        channel.opened.limited = True
        await channel.call(commands.Basic.Qos(0, step["prefetch"], step.get("shared", False)))
    consuming = Consuming(
        client.host, queue, tag, channel.opened, step.get("no_ack", False), "alone" in step or "exclusive" in step,
        client.history.tick(), selector=step.get("selector", ""), browses=step.get("browse", False),
        no_local="no_local" in step, by_default="by_default" in step, replay=step.get("replay"),
    )  # fmt: skip
    client.history.consumers.append(consuming)
    channel.consumers[tag] = (consuming, _policy(step))
    arguments: dict[str, Any] = {"x-priority": step["priority"]} if step.get("priority") else {}
    if consuming.selector and not consuming.by_default:
        arguments["x-filter-jms-selector"] = consuming.selector
    if consuming.replay is not None:
        arguments["x-qpid-replay-period"] = consuming.replay
    if consuming.browses:
        arguments["x-filter-no-consume"] = True
    if step.get("no_local") == "argument":
        arguments["x-qpid-no-local"] = True
    request = commands.Basic.Consume(
        0,
        queue,
        tag,
        step.get("no_local") == "field",
        step.get("no_ack", False),
        step.get("exclusive", False),
        False,
        arguments,
    )
    try:
        await channel.call(request)
    except GoneError as gone:
        consuming.ending = consuming.ending or client.history.tick()
        if gone.code:
            # It may not have it: not to be asked for again and again.
            client.wanted.pop((step.get("channel", "a"), tag), None)
        raise
    consuming.attached = client.history.tick()


async def cancel(client: Client, step: Step) -> None:
    channel = client.channels.get(step.get("channel", "a"))
    client.wanted.pop((step.get("channel", "a"), step["tag"]), None)
    if channel is None or channel.dead or step["tag"] not in channel.consumers:
        return
    consuming, _ = channel.consumers[step["tag"]]
    consuming.ending = client.history.tick()
    await channel.call(commands.Basic.Cancel(step["tag"]))
    channel.consumers.pop(step["tag"], None)


async def settle(client: Client, step: Step) -> None:
    channel = client.channels.get(step.get("channel", "a"))
    if channel is None or channel.dead or not channel.unsettled:
        return
    tags = list(channel.unsettled)
    which = step.get("which", "all")
    if which == "all":
        channel.settle(step["how"], tags[-1], multiple=True)
    elif which == "half":
        channel.settle(step["how"], tags[len(tags) // 2], multiple=True)
    else:
        channel.settle(step["how"], tags[0 if which == "oldest" else -1])


async def recover(client: Client, step: Step) -> None:
    channel = client.channels.get(step.get("channel", "a"))
    if channel is None or channel.dead or channel.opened.mode == "tx":
        return
    channel.recover_asked = client.history.tick()
    await channel.call(commands.Basic.Recover(True))


async def get(client: Client, step: Step) -> None:
    channel = await client.channel(step)
    channel.getting = (step["queue"], step.get("no_ack", False))
    asked = await ask(channel, "get", dict(step), commands.Basic.Get(0, step["queue"], step.get("no_ack", False)))
    if isinstance(asked.result, tuple):
        _, delivered = asked.result
        asked.result = delivered.id
        if step.get("how") and not channel.leaving and delivered.tag in channel.unsettled:
            channel.settle(step["how"], delivered.tag)
    else:
        asked.result = None


# -------------------------------------------------------------- queues and exchanges


def _request(step: Step) -> Any:
    arguments = step.get("arguments") or {}
    match step["do"]:
        case "queue":
            return commands.Queue.Declare(
                0, step["queue"], False, step.get("durable", True), step.get("exclusive", False),
                step.get("auto_delete", False), False, arguments,
            )  # fmt: skip
        case "exchange":
            return commands.Exchange.Declare(
                0, step["exchange"], step["type"], False, step.get("durable", True), step.get("auto_delete", False),
                step.get("internal", False), False, arguments,
            )  # fmt: skip
        case "delete_queue":
            return commands.Queue.Delete(0, step["queue"], False, False, False)
        case "delete_exchange":
            return commands.Exchange.Delete(0, step["exchange"], False, False)
        case _:
            return _binding(step, arguments)


def _binding(step: Step, arguments: dict[str, Any]) -> Any:
    key, source = step.get("key", ""), step["source"]
    if step.get("to_exchange"):
        if step["do"] == "bind":
            return commands.Exchange.Bind(0, step["to"], source, key, False, arguments)
        return commands.Exchange.Unbind(0, step["to"], source, key, False, arguments)
    if step["do"] == "bind":
        return commands.Queue.Bind(0, step["to"], source, key, False, arguments)
    return commands.Queue.Unbind(0, step["to"], source, key, arguments)


async def change(client: Client, step: Step) -> None:
    """A change of the topology, asked for until it is answered: each can be repeated. One entry for all of it."""
    history, asked = client.history, None
    for _ in range(_ATTEMPTS):
        try:
            channel = await client.channel({"channel": "topology"})
        except GoneError:
            continue
        if asked is None:
            asked = Asked(step["do"], client.host, dict(step), channel.opened, history.tick(), history.clock())
            history.asked.append(asked)
        try:
            asked.result = await channel.call(_request(step))
        except GoneError as gone:
            asked.attempts += 1
            if gone.code in FINAL:
                asked.answered, asked.outcome, asked.code = history.tick(), "closed", gone.code
                raise
            continue
        asked.answered, asked.outcome = history.tick(), "ok"
        return


async def own(client: Client, step: Step) -> None:
    """An exclusive queue of the connection, or of a session that ends with it, bound to some exchanges."""
    channel, its = await client.channel(step), SESSIONS.get(step.get("session", ""), {})
    arguments = {**step, "connection": client.wire.connected.number if client.wire else 0}
    await ask(
        channel, "own", arguments,
        commands.Queue.Declare(0, step["queue"], False, step.get("durable", False), not its, False, False, its),
    )  # fmt: skip
    client.own[step["queue"]] = step
    for source, key in step.get("bound", ()):
        bound = {"source": source, "to": step["queue"], "key": key, "do": "bind"}
        await ask(channel, "bind_own", bound, commands.Queue.Bind(0, step["queue"], source, key, False, {}))


async def purge(client: Client, step: Step) -> None:
    channel = await client.channel(step)
    await ask(channel, "purge", dict(step), commands.Queue.Purge(0, step["queue"], False))


async def count(client: Client, step: Step) -> None:
    """Passive declare."""
    channel = await client.channel(step)
    await ask(channel, "count", dict(step), commands.Queue.Declare(0, step["queue"], True))


async def touch(client: Client, step: Step) -> None:
    """Another connection's exclusive queue, which is refused."""
    channel = await client.channel({**step, "channel": "touch"})
    await ask(channel, "touch", dict(step), commands.Queue.Declare(0, step["queue"], True))


# -------------------------------------------------------------- ends


async def close_channel(client: Client, step: Step) -> None:
    channel = client.channels.get(step.get("channel", "a"))
    if channel is None or channel.dead:
        return
    if channel.transaction and channel.transaction.outcome == "open":
        channel.transaction.outcome = "rolled_back"
    channel.opened.leaving = client.history.tick()
    await channel.call(commands.Channel.Close(200, "", 0, 0))


async def close(client: Client, step: Step) -> None:
    if client.wire and not client.wire.dead:
        await client.wire.close()
        if step.get("elsewhere"):
            client.lost()


async def abort(client: Client, step: Step) -> None:
    if client.wire and not client.wire.dead:
        client.wire.abort()
        if step.get("elsewhere"):
            client.lost()


STEPS: dict[str, Doing] = {
    "publish": publish,
    "confirms": confirms,
    "commit": commit,
    "rollback": rollback,
    "consume": consume,
    "cancel": cancel,
    "settle": settle,
    "recover": recover,
    "get": get,
    "mistake": mistake,
    "queue": change,
    "exchange": change,
    "delete_queue": change,
    "delete_exchange": change,
    "bind": change,
    "unbind": change,
    "own": own,
    "touch": touch,
    "purge": purge,
    "count": count,
    "close_channel": close_channel,
    "close": close,
    "abort": abort,
}

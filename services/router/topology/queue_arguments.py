"""Whether a queue may be declared with its arguments (`services/common/arguments`).

`x-queue-type: quorum` is taken for `classic`: with leases and the shared journal a durable classic queue here survives
the loss of its process, which is what is asked for. As in RabbitMQ it must be durable and not exclusive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from services.common.arguments import queue
from services.common.arguments.argument import Said
from services.common.arguments.checks import one_of
from services.common.arguments.reading import Saying, Wrong, checked, said
from services.common.errors import PreconditionFailed
from services.router.topology.kinds import Kinds
from services.router.topology.names import called

COMPARED: Final = tuple(each.name for each in queue.ARGUMENTS if each.compared)
"""A declaration that differs in one of these is of another queue."""


def check(table: Mapping[str, Any], name: str, virtual_host: str, kinds: Kinds, further: Sequence[Saying] = ()) -> Said:
    """What they say, with `further` ones. Raises PreconditionFailed that names the argument, says what it must be."""
    try:
        found = checked(table, further)
        check_together(found, kinds)
    except Wrong as error:
        thing = called("queue", name, virtual_host)
        raise PreconditionFailed(f"invalid arg '{error.name}' for {thing}: {error.why}") from None
    return found


def check_together(found: Said, kinds: Kinds) -> None:
    """What is installed, and what needs something else. Raises Wrong."""
    types = {*kinds.queue_types, queue.QUORUM}
    for argument, names in ((queue.OVERFLOW, kinds.overflow_policies), (queue.QUEUE_TYPE, types)):
        if wrong := one_of(names)(argument.of(found)):
            raise Wrong(argument.name, wrong)
    orders = [order.name for order in queue.ORDERS if order.of(found)]
    if len(orders) > 1:
        raise Wrong(orders[1], f"is not for a queue with {orders[0]}")
    if queue.SINGLE_ACTIVE.of(found) and queue.LIVE_CONSUMERS.of(found):
        raise Wrong(queue.LIVE_CONSUMERS.name, f"says something else than '{queue.SINGLE_ACTIVE.name}'")
    most = queue.MESSAGE_TTL.of(found)
    if most is not None and queue.LEAST_TTL.of(found) > most:
        raise Wrong(queue.LEAST_TTL.name, f"must be no more than {queue.MESSAGE_TTL.name}, {most}")
    if (resume := queue.RESUME_BYTES.of(found)) is not None and resume > (queue.MAX_LENGTH_BYTES.of(found) or 0):
        raise Wrong(queue.RESUME_BYTES.name, f"must be no more than {queue.MAX_LENGTH_BYTES.name}")
    _check_retry(found)
    if queue.DEAD_LETTER_KEY.name in found and queue.DEAD_LETTER_EXCHANGE.name not in found:
        raise Wrong(queue.DEAD_LETTER_KEY.name, f"needs {queue.DEAD_LETTER_EXCHANGE.name}")


def _check_retry(found: Said) -> None:
    if queue.RETRY.of(found) != queue.RETRY.default and not queue.RETRY_LEAST.of(found):
        raise Wrong(queue.RETRY.name, f"needs {queue.RETRY_LEAST.name}")
    most = queue.RETRY_MOST.of(found)
    if most is not None and queue.RETRY_LEAST.of(found) > most:
        raise Wrong(queue.RETRY_LEAST.name, f"must be no more than {queue.RETRY_MOST.name}, {most}")


def compared(table: Mapping[str, Any]) -> Said:
    """As another declaration of the queue has to say it: to leave the type out means what it is then."""
    return {queue.QUEUE_TYPE.name: queue.QUEUE_TYPE.default} | said(table)


def queue_type(found: Said, name: str, virtual_host: str, *, durable: bool, exclusive: bool) -> str:
    """The plug-in that is asked for; raises PreconditionFailed for what a quorum queue cannot be."""
    chosen = queue.QUEUE_TYPE.of(found)
    if chosen != queue.QUORUM:
        return chosen
    for allowed, what in ((durable, "non-durable"), (not exclusive, "exclusive-owner")):
        if not allowed:
            raise PreconditionFailed(f"invalid property '{what}' for {called('queue', name, virtual_host)}")
    return queue.CLASSIC

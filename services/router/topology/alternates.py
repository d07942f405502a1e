"""Where a queue's dead letters go by Broker-J's arguments (`services/common/arguments/alternates.py`), and its DLQ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from services.common.arguments import changed, queue
from services.common.arguments.alternates import KEPT_BY, Alternate, alternates, is_said_in, without
from services.common.arguments.argument import Said
from services.common.arguments.reading import Saying, Wrong, checked, said
from services.common.errors import PreconditionFailed
from services.common.message import arguments
from services.common.partition import partition_of
from services.common.topology.definitions import Queue
from services.common.topology.life import PERMANENT, Asker, Life
from services.common.topology.slots import SlotName
from services.router.topology import access, names
from services.router.topology.state import TopologyState
from services.router.topology.virtual_host import VirtualHost

Table = Mapping[str, Any]


def read(table: Table, name: str, virtual_host: str, life: Life) -> list[Alternate]:
    """What a declaration says of a queue with that life. Raises PreconditionFailed that names the argument.

    One that goes by itself has no DLQ, as temporary ones in Broker-J: theirs would stay, each under another name.
    """
    try:
        its = alternates(table, name)
    except Wrong as error:
        raise _refused(error, name, virtual_host) from None
    return [each for each in its if life == PERMANENT or not each.made]


def sayings(host: VirtualHost, its: Sequence[Alternate]) -> list[Saying]:
    """The same as other arguments say it."""
    return [each.saying(host.sources.__contains__) for each in its]


def check_there(host: VirtualHost, its: Sequence[Alternate], name: str, whose: Asker, *, durable: bool) -> None:
    """As Broker-J: there is where they lead to, and it lasts as long. Raises ResourceLocked, PreconditionFailed."""
    made = {each.destination for each in its if each.made}
    for each in its:
        if (lasts := _lasts(host, each.destination, whose)) is None and each.destination not in made:
            raise _refused(Wrong(each.name, f"names '{each.destination}', which is not there"), name, host.name)
        if durable and lasts is False:
            wrong = Wrong(each.name, f"leads to '{each.destination}', which is not durable, as the queue is")
            raise _refused(wrong, name, host.name)


def _lasts(host: VirtualHost, destination: str, whose: Asker) -> bool | None:
    """Whether it is durable; None: it is not there."""
    if source := host.sources.get(destination):
        return source.definition.durable
    if found := host.queues.get(destination):
        access.check_owner(found, whose)
        return found.durable
    return None


def to_make(host: VirtualHost, its: Sequence[Alternate]) -> list[str]:
    """The queues that are to be made with it."""
    return [each.destination for each in its if each.made and not _is_there(host, each.destination)]


def still_of(known: Queue, table: Table) -> list[Alternate]:
    """What a declaration says of a queue that is there, of that to which its dead letters go yet."""
    if not is_said_in(table):
        return []
    its_key = queue.DEAD_LETTER_KEY.of(said(arguments.load(changed.now(known.arguments, known.changed))))
    its = read(table, known.name, known.virtual_host, known.life)
    return [each for each in its if each.destination == its_key]


def _is_there(host: VirtualHost, name: str) -> bool:
    return name in host.sources or name in host.queues


def make(state: TopologyState, host: VirtualHost, name: str) -> Queue:
    """A DLQ: nobody's, durable, and without one of its own, as Broker-J makes it."""
    partition = partition_of(SlotName(host.name, name), state.partitions)
    return Queue(state.new_id(), host.name, name, partition, durable=True)


def kept(table: Table, found: Said, its: Sequence[Alternate]) -> Table:
    """Arguments as they are kept, by what they say together: the same for whoever reads them later."""
    others = without(table)
    return others | {name: found[name] for name in KEPT_BY if name in found} if its else others


def to_compare(host: VirtualHost, table: Table, known: Queue) -> Table:
    """Arguments of another declaration of a queue that is there, as that one's are kept. Raises PreconditionFailed.

    A former release kept these two, and they said nothing: they do not now.
    """
    its = read(table, known.name, host.name, known.life)
    if not its or is_said_in(before := arguments.load(known.arguments)):
        return without(table)
    further = [each.saying(partial(_is_exchange, host, said(before))) for each in its]
    try:
        return kept(table, checked(table, further), its)
    except Wrong as error:
        raise _refused(error, known.name, host.name) from None


def _is_exchange(host: VirtualHost, before: Said, name: str) -> bool:
    """Whether a name is an exchange's for a queue that has been declared: it is what it was then."""
    letters_to, its_key = queue.DEAD_LETTER_EXCHANGE.of(before), queue.DEAD_LETTER_KEY.of(before)
    if (letters_to, its_key) == ("", name):
        return False
    return name == letters_to or name in host.sources


def _refused(wrong: Wrong, name: str, virtual_host: str) -> PreconditionFailed:
    thing = names.called("queue", name, virtual_host)
    return PreconditionFailed(f"invalid arg '{wrong.name}' for {thing}: {wrong.why}")

"""`publishMessage` of a virtual host: what is published is a message of the caller, as of any client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from services.common.access import questions
from services.common.access.asked import Asked
from services.common.clock import epoch_ms
from services.mgmt.by_hand.client import channel
from services.mgmt.by_hand.keys import all_keys
from services.mgmt.by_hand.properties import Properties
from services.mgmt.model import manageable_message
from services.mgmt.model.answer import Answer, ToPublish
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import NotOffered
from services.mgmt.model.manageable_message import ManageableMessage
from services.mgmt.tree.caller import Caller
from services.mgmt.tree.destinations import Place, place_of

if TYPE_CHECKING:
    from services.mgmt.tree.mirror import Mirror
    from services.mgmt.tree.tree import Tree

_OVER_HTTP: Final = "publishMessage is for HTTP here: this node, or a gateway of an older release, publishes for nobody"
_FORMAT: Final = "amqp-0-9"


class Addressed(NamedTuple):
    """A message, and where it is to go."""

    message: ManageableMessage
    place: Place


def addressed(mirror: Mirror, virtual_host: str, said: Mapping[str, Any]) -> Addressed:
    """Raises IllegalConfiguration, and SyntaxFault for what no message can hold."""
    message = manageable_message.read(said)
    Properties(**message.properties).encode()
    return Addressed(message, place_of(mirror, virtual_host, message.address))


def needs(virtual_host: str, wanted: Addressed) -> Iterator[Asked]:
    """To publish it: asked from where the caller is, and by the gateway once more, from where mgmt is."""
    for key in all_keys(wanted.place.key, wanted.message.headers):
        yield questions.publish(virtual_host, wanted.place.exchange, key)


async def publish(tree: Tree, caller: Caller, found: ConfiguredObject, told: Mapping[str, Any]) -> int | Answer:
    """How many queues it is for, by their bindings just before; 0 where none has it.

    Over AMQP that is what the gateway tells that publishes it. Raises what the gateway refuses it with.
    """
    if caller.login is None and not caller.publishes:
        raise NotOffered(_OVER_HTTP)
    (message, place), host, house = told["message"], found.actual["name"], tree.house
    wanted = await house.dry_runs.route(host, place.exchange, place.key, dict(message.headers))
    count, properties = max(len(wanted.queues), 1), Properties(**message.sent(caller.name, epoch_ms()))
    if caller.login is None:
        said = ToPublish(place.exchange, place.key, _FORMAT, b"".join(properties.encode()), message.body)
        return Answer(count, publish=said)
    async with channel(house.settings, caller.login, host) as opened:
        routed = await opened.publish(place.exchange, place.key, properties, message.body)
    return count if routed else 0

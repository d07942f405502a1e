"""What is asked of access before something of a virtual host is changed: made of what is told of it."""

from __future__ import annotations

from services.common.access import questions
from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Other
from services.common.arguments import dead_letters
from services.mgmt.rabbitmq.changes import BindingEnds
from services.mgmt.rabbitmq.forms import ExchangeForm, QueueForm
from services.mgmt.tree.kept_arguments import named


def to_declare_queue(virtual_host: str, name: str, told: QueueForm) -> Asked:
    """With where its dead letters go."""
    its = questions.queue(durable=told.durable, exclusive=False, auto_delete=told.auto_delete)
    return questions.create_queue(virtual_host, name, dead_letters.letters_of(told.arguments, name, _is_not_known), its)


def to_declare_exchange(virtual_host: str, name: str, told: ExchangeForm) -> Asked:
    """With the exchange that gets what it routes nowhere."""
    its = (*questions.life(durable=told.durable, temporary=told.auto_delete), (Property.TYPE, told.type))
    return questions.create_exchange(virtual_host, name, named(told.arguments.get("alternate-exchange")), its)


def to_bind(
    action: Action, virtual_host: str, place: BindingEnds, key: str, of_queue: questions.Properties = ()
) -> Asked:
    """Or to unbind; `of_queue` is what the queue is like, where it is one."""
    other = Other(Kind.EXCHANGE if place.to_exchange else Kind.QUEUE, place.destination)
    return questions.bind(action, virtual_host, place.source, other, (*of_queue, (Property.ROUTING_KEY, key)))


def _is_not_known(_exchange: str) -> None:
    """Whether there is one of that name."""

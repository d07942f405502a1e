"""What is asked of access before something of a virtual host is changed: made of what is told of it."""

from __future__ import annotations

from typing import Any

from services.common.access import questions
from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Other
from services.mgmt.rabbitmq.changes import Place
from services.mgmt.rabbitmq.forms import ExchangeForm, QueueForm


def to_declare_queue(virtual_host: str, name: str, told: QueueForm) -> Asked:
    """With the exchange of its dead letters."""
    its = (*_lasting(told), (Property.EXCLUSIVE, False))
    return questions.create_queue(virtual_host, name, _named(told.arguments.get("x-dead-letter-exchange")), its)


def to_declare_exchange(virtual_host: str, name: str, told: ExchangeForm) -> Asked:
    """With the exchange that gets what it routes nowhere."""
    its = (*_lasting(told), (Property.TYPE, told.type))
    return questions.create_exchange(virtual_host, name, _named(told.arguments.get("alternate-exchange")), its)


def to_bind(action: Action, virtual_host: str, place: Place, key: str) -> Asked:
    """Or to unbind."""
    other = Other(Kind.EXCHANGE if place.to_exchange else Kind.QUEUE, place.destination)
    return questions.bind(action, virtual_host, place.source, other, ((Property.ROUTING_KEY, key),))


def _lasting(told: QueueForm | ExchangeForm) -> questions.Properties:
    return (
        (Property.DURABLE, told.durable),
        (Property.AUTO_DELETE, told.auto_delete),
        (Property.TEMPORARY, told.auto_delete),
    )


def _named(exchange: Any) -> str | None:  # noqa: ANN401 - whatever JSON has
    return exchange if isinstance(exchange, str) else None

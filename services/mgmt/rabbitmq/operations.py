"""What each call of hopline.objects does to what: as ../access/operations.py, for what is in virtual hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from services.common.access import questions
from services.common.access.action import Action
from services.common.access.asked import Asked
from services.mgmt.access.operations import CONFIGURE, OBSERVE, Question
from services.mgmt.rabbitmq.changes import BindingEnds
from services.mgmt.rabbitmq.forms import BindingForm
from services.mgmt.rabbitmq.kinds import declared
from services.mgmt.rabbitmq.needs import to_bind
from services.mgmt.rabbitmq.reading import read


def _bind(action: Action) -> Question:
    def asked(request: Any) -> Asked:  # noqa: ANN401 - a BindRequest
        key = read(BindingForm, request.told).routing_key
        return to_bind(action, request.virtual_host, place_of(request), key)

    return asked


def place_of(request: Any) -> BindingEnds:  # noqa: ANN401 - a BindRequest
    """Where its binding is."""
    return BindingEnds(request.source, request.destination, to_exchange=request.to_exchange)


def _publish(request: Any) -> Asked:  # noqa: ANN401 - a PublishRequest
    """The gateway checks the key, of the user that signs in there."""
    return questions.publish(request.virtual_host, request.exchange, "")


OBJECTS: Final[Mapping[str, Question]] = {
    "List": lambda _request: OBSERVE,
    "Show": lambda _request: OBSERVE,
    "Declare": lambda request: declared(request.kind).needs_to_declare(request),
    "Delete": lambda request: declared(request.kind).needs_to_delete(request),
    "Purge": lambda request: questions.of_queue(Action.PURGE, request.virtual_host, request.name, ()),
    "Bind": _bind(Action.BIND),
    "Unbind": _bind(Action.UNBIND),
    "CloseConnection": lambda _request: CONFIGURE,
    "Publish": _publish,
    "Get": lambda request: questions.of_queue(Action.CONSUME, request.virtual_host, request.queue, ()),
}
"""By the name of the method, of its request."""

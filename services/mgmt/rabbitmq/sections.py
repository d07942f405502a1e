"""Sections of RabbitMQ's definitions: how one item of each is taken, in the order in which they build on each other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from services.common.access.records import Permission, TopicPermission
from services.common.errors import BrokerError, SyntaxFault, Unavailable
from services.common.limits import USER, VIRTUAL_HOST, Subject
from services.mgmt.rabbitmq.changes import BindingEnds, Changes
from services.mgmt.rabbitmq.described import TYPES, describe
from services.mgmt.rabbitmq.forms import (
    VIRTUAL_HOST_LIMITS,
    NamedExchange,
    NamedOperatorPolicy,
    NamedPolicy,
    NamedQueue,
    NamedUser,
    PlacedBinding,
    PlacedLimits,
    PlacedPermission,
    PlacedTopicPermission,
    PolicyForm,
)
from services.mgmt.rabbitmq.host_said import host_said
from services.mgmt.rabbitmq.objects import Objects
from services.mgmt.rabbitmq.policies import OPERATORS
from services.mgmt.rabbitmq.users import put_user
from services.mgmt.tree.house import House

_TYPE: Final = "default_queue_type"
_NO_MEANING: Final = {"internal_cluster_id"}
"""Of the cluster that it comes from, and of nothing in it."""
_PLUGINS: Final = {
    "federation-upstream": "there is no federation here",
    "federation-upstream-set": "there is no federation here",
    "shovel": "there are no shovels here",
}


class NotTaken(BrokerError):
    """There is no such thing here."""


class Broker(NamedTuple):
    """The broker, as definitions change it."""

    house: House
    objects: Objects
    changes: Changes


async def _virtual_host(broker: Broker, item: Mapping[str, Any]) -> str:
    told, lost = host_said(item)
    said = dict(told.said)
    if said.get(_TYPE) not in (None, *TYPES):
        lost.append(f"queues are classic where nothing is said, not {said.pop(_TYPE)}")
    await broker.changes.create_virtual_host(told.name)
    if told.limits:  # before what is only said of it
        await broker.house.grants.put_limits(Subject(VIRTUAL_HOST, told.name), told.limits)
    return "; ".join([*lost, *await _described(broker, told.name, said)])


async def _described(broker: Broker, name: str, said: Mapping[str, Any]) -> list[str]:
    """What is lost of it. Raises Unavailable."""
    try:
        await describe(broker.house, name, said)
    except Unavailable:
        raise
    except BrokerError as error:
        return [f"nothing is said of it: {error.text}"]
    return []


async def _user(broker: Broker, item: Mapping[str, Any]) -> str:
    told = NamedUser.model_validate(item)
    await put_user(broker.house, told.name, told)
    if told.limits:
        await broker.house.grants.put_limits(Subject(USER, told.name), told.limits)
    return ""


async def _permission(broker: Broker, item: Mapping[str, Any]) -> str:
    told = PlacedPermission.model_validate(item)
    terms = {"configure": told.configure, "write": told.write, "read": told.read}
    await broker.house.grants.put_permission(Permission(user=told.user, virtual_host=told.vhost, **terms))
    return ""


async def _topic_permission(broker: Broker, item: Mapping[str, Any]) -> str:
    told = PlacedTopicPermission.model_validate(item)
    terms = {"exchange": told.exchange, "write": told.write, "read": told.read}
    await broker.house.grants.put_topic_permission(TopicPermission(user=told.user, virtual_host=told.vhost, **terms))
    return ""


async def _exchange(broker: Broker, item: Mapping[str, Any]) -> str:
    told = NamedExchange.model_validate(item)
    broker.objects.check_virtual_host(told.vhost)
    await broker.changes.declare_exchange(told.vhost, told.name, told)
    return ""


async def _queue(broker: Broker, item: Mapping[str, Any]) -> str:
    told = NamedQueue.model_validate(item)
    broker.objects.check_virtual_host(told.vhost)
    await broker.changes.declare_queue(told.vhost, told.name, told, restored=True)
    return ""


async def _binding(broker: Broker, item: Mapping[str, Any]) -> str:
    told = PlacedBinding.model_validate(item)
    broker.objects.check_virtual_host(told.vhost)
    if told.destination_type not in ("queue", "exchange"):
        raise SyntaxFault(f"a destination is a queue or an exchange, not {told.destination_type}")
    place = BindingEnds(told.source, told.destination, to_exchange=told.destination_type == "exchange")
    await broker.changes.bind(told.vhost, place, told)
    return ""


async def _parameter(broker: Broker, item: Mapping[str, Any]) -> str:
    component = str(item.get("component", ""))
    if component == VIRTUAL_HOST_LIMITS:
        told = PlacedLimits.model_validate(item)
        await broker.house.grants.put_limits(Subject(VIRTUAL_HOST, told.vhost), told.value)
        return ""
    if component == OPERATORS:
        await _operator_policy(broker, item)
        return ""
    raise NotTaken(_PLUGINS.get(component, f"there is nothing here that has parameters of {component!r}"))


async def _global_parameter(_broker: Broker, item: Mapping[str, Any]) -> str:
    if str(item.get("name")) in _NO_MEANING:
        return ""
    raise NotTaken("there are no global parameters here")


async def _policy(broker: Broker, item: Mapping[str, Any]) -> str:
    told = NamedPolicy.model_validate(item)
    broker.objects.check_virtual_host(told.vhost)
    form = PolicyForm.model_validate(item)
    await broker.changes.set_policy(told.vhost, told.name, form, operator=False)
    return ""


async def _operator_policy(broker: Broker, item: Mapping[str, Any]) -> None:
    told = NamedOperatorPolicy.model_validate(item)
    broker.objects.check_virtual_host(told.vhost)
    await broker.changes.set_policy(told.vhost, told.name, told.value, operator=True)


Take = Callable[[Broker, Mapping[str, Any]], Awaitable[str]]
"""Gives what is lost of it, if anything is. Raises BrokerError, and ValidationError for what is no such item."""

SECTIONS: Final[Mapping[str, Take]] = {
    "vhosts": _virtual_host,
    "users": _user,
    "permissions": _permission,
    "topic_permissions": _topic_permission,
    "exchanges": _exchange,
    "queues": _queue,
    "bindings": _binding,
    "parameters": _parameter,
    "global_parameters": _global_parameter,
    "policies": _policy,
}
IN_VIRTUAL_HOST: Final = frozenset({"exchanges", "queues", "bindings", "parameters", "policies"})
"""What definitions of one virtual host have, without its name in them."""
ABOUT: Final = frozenset({
    "rabbit_version", "rabbitmq_version", "product_name", "product_version", "rabbitmq_definition_format",
    "original_cluster_name", "original_vhost_name", "explanation", "metadata", "description", "default_queue_type",
    "name", "vhost",
})  # fmt: skip
"""What says where definitions come from."""

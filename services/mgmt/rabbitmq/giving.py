"""Definitions as RabbitMQ exports them: what is here, in a file that Hopline and RabbitMQ can take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from services.common.limits import USER, VIRTUAL_HOST
from services.common.release import RELEASE
from services.mgmt.rabbitmq.described import described
from services.mgmt.rabbitmq.forms import LIMITS, VIRTUAL_HOST_LIMITS
from services.mgmt.rabbitmq.grants import permissions, topic_permissions
from services.mgmt.rabbitmq.objects import Objects, Row
from services.mgmt.rabbitmq.policies import parameter
from services.mgmt.rabbitmq.users import hash_of
from services.mgmt.tree.house import House

SPOKEN: Final = "3.10.8"
"""The version of RabbitMQ whose management is spoken."""

_QUEUE: Final = ("name", "vhost", "durable", "auto_delete", "arguments")
_EXCHANGE: Final = ("name", "vhost", "type", "durable", "auto_delete", "internal", "arguments")
_BINDING: Final = ("source", "vhost", "destination", "destination_type", "routing_key", "arguments")


async def give(house: House, objects: Objects) -> dict[str, Any]:
    """All of it, with what is kept of passwords where that is of use elsewhere."""
    await objects.known()
    hosts, granted = objects.virtual_hosts(), await house.grants.all()
    of_users, of_hosts = await house.grants.limits(USER), await house.grants.limits(VIRTUAL_HOST)
    return {
        **_about(),
        "users": [
            {
                "name": user.name,
                "password_hash": (kept := hash_of(user))[0],
                "hashing_algorithm": kept[1],
                "tags": list(user.tags),
                "limits": of_users.get(user.name, {}),
            }
            for user in await house.users.all()
        ],
        "vhosts": [{"name": name, **_metadata(house, name)} for name in hosts],
        "permissions": permissions(granted, hosts),
        "topic_permissions": topic_permissions(granted),
        "parameters": [
            *({**_limits(of_hosts[name]), "vhost": name} for name in hosts if name in of_hosts),
            *(parameter(row) for name in hosts for row in objects.governed.rows(name, operator=True)),
        ],
        "global_parameters": [],
        "policies": [row for name in hosts for row in objects.governed.rows(name, operator=False)],
        **_topology(objects, hosts, without=()),
    }


async def give_virtual_host(house: House, objects: Objects, name: str) -> dict[str, Any]:
    """What is in one, without its name."""
    await objects.known()
    of_hosts = await house.grants.limits(VIRTUAL_HOST)
    return {
        "rabbit_version": SPOKEN,
        "parameters": [
            *([_limits(of_hosts[name])] if name in of_hosts else []),
            *(_without_host(parameter(row)) for row in objects.governed.rows(name, operator=True)),
        ],
        "policies": [_without_host(row) for row in objects.governed.rows(name, operator=False)],
        **_topology(objects, [name], without=("vhost",)),
    }


def _metadata(house: House, virtual_host: str) -> Row:
    """As `rabbitmqctl export_definitions` has it; without it where nothing is said."""
    metadata = described(house, virtual_host)
    return {"metadata": metadata} if any(metadata.values()) else {}


def _limits(values: Mapping[str, int]) -> dict[str, Any]:
    """As RabbitMQ keeps those of a virtual host."""
    return {"component": VIRTUAL_HOST_LIMITS, "name": LIMITS, "value": dict(values)}


def _about() -> dict[str, str]:
    return {
        "rabbit_version": SPOKEN,
        "rabbitmq_version": SPOKEN,
        "product_name": "Hopline",
        "product_version": RELEASE,
    }


def _topology(objects: Objects, hosts: Iterable[str], without: Iterable[str]) -> dict[str, list[Row]]:
    """Without what every virtual host has, and what goes with its connection."""
    found: dict[str, list[Row]] = {"queues": [], "exchanges": [], "bindings": []}
    for host in hosts:
        queues = [row for row in objects.queues(host) if not row["exclusive"]]
        lasting = {row["name"] for row in queues}
        exchanges = (row for row in objects.exchanges(host) if not _is_everywhere(row["name"]))
        bindings = (row for row in objects.bindings(host) if row["source"] and _lasts(row, lasting))
        found["queues"] += [_only(row, _QUEUE, without) for row in queues]
        found["exchanges"] += [_only(row, _EXCHANGE, without) for row in exchanges]
        found["bindings"] += [_only(row, _BINDING, without) for row in bindings]
    return found


def _without_host(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "vhost"}


def _is_everywhere(exchange: str) -> bool:
    return not exchange or exchange.startswith("amq.")


def _lasts(binding: Row, queues: set[str]) -> bool:
    return binding["destination_type"] == "exchange" or binding["destination"] in queues


def _only(row: Mapping[str, Any], fields: Iterable[str], without: Iterable[str]) -> Row:
    return {name: row[name] for name in fields if name not in without}

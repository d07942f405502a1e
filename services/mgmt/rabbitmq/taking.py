"""Definitions that were exported from RabbitMQ are taken: what can be, and the rest is told by name, with why."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from pydantic import ValidationError

from services.common.definitions import LeftOut, Taken
from services.common.errors import BrokerError, SyntaxFault, Unavailable
from services.mgmt.rabbitmq.said import read_json
from services.mgmt.rabbitmq.sections import ABOUT, IN_VIRTUAL_HOST, SECTIONS, Broker

_AT_ONCE: Final = 32
"""Of one section: the router decides what comes together in one go."""
_OLD: Final = re.compile(r"[12]\.|3\.[0-5]\.")
_OLD_ALGORITHM: Final = "rabbit_password_hashing_md5"
_NAMES: Final = ("name", "user", "source")

log = structlog.get_logger()


@dataclass(slots=True)
class Progress:
    """What became of those that have been tried: `done` things of `total`, in all sections."""

    done: int = 0
    total: int = 0
    taken: Taken = field(default_factory=Taken)


async def take(broker: Broker, data: bytes, virtual_host: str | None = None, progress: Progress | None = None) -> Taken:
    """All of it, or that of one virtual host, whose name it does not say. What is here already stays.

    Raises SyntaxFault for what is no JSON object, NotFound where there is no such virtual host, Unavailable where
    a service is away: then it can be taken again.
    """
    said = _read(data)
    await broker.objects.known()
    if virtual_host is not None:
        broker.objects.check_virtual_host(virtual_host)
    progress = progress or Progress()
    said = {**said, "users": [_with_algorithm(said, user) for user in said.get("users") or []]}
    progress.total = sum(len(said.get(name) or []) for name in SECTIONS)
    for name in SECTIONS:
        await _section(broker, name, said.get(name) or [], virtual_host, progress)
    taken = progress.taken
    taken.left_out += _unknown(said)
    log.info("definitions taken", taken=taken.taken, left_out=len(taken.left_out))
    return taken


def _with_algorithm(said: Mapping[str, Any], user: object) -> object:
    """Before 3.6 definitions did not say how their hashes are made: there was one way."""
    if isinstance(user, dict) and not user.get("hashing_algorithm") and _OLD.match(str(said.get("rabbit_version"))):
        return {**user, "hashing_algorithm": _OLD_ALGORITHM}
    return user


def _read(data: bytes) -> Mapping[str, Any]:
    said = read_json(data, "definitions are JSON, and this is")
    for name in SECTIONS:
        if not isinstance(said.get(name), list | None):
            raise SyntaxFault(f"{name}: a list is wanted")
    return said


async def _section(broker: Broker, name: str, items: list[Any], virtual_host: str | None, progress: Progress) -> None:
    """Its elements are done side by side, and told in their order. Where a service is away, the rest is left."""
    left_out: list[LeftOut | None] = [None] * len(items)
    turns = iter(enumerate(items))

    async def some() -> None:
        for number, item in turns:
            left_out[number] = await _item(broker, name, item, virtual_host)
            progress.done += 1

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(_AT_ONCE, len(items))):
                group.create_task(some())
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    told = [each for each in left_out if each]
    if items:
        progress.taken.taken[name] = len(items) - sum(not each.here for each in told)
    progress.taken.left_out += told


async def _item(broker: Broker, section: str, item: object, virtual_host: str | None) -> LeftOut | None:
    if not isinstance(item, dict):
        return LeftOut(kind=section, name="?", reason="an object is wanted")
    if virtual_host is not None:
        if section not in IN_VIRTUAL_HOST:
            return _left_out(section, item, "it is of no virtual host")
        item = {**item, "vhost": virtual_host}
    return await _tried(broker, section, item)


async def _tried(broker: Broker, section: str, item: Mapping[str, Any]) -> LeftOut | None:
    try:
        lost = await SECTIONS[section](broker, item)
        return _left_out(section, item, lost, here=True) if lost else None
    except Unavailable:
        raise
    except ValidationError as error:
        reason = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    except BrokerError as error:
        reason = error.text
    return _left_out(section, item, reason)


def _left_out(section: str, item: Mapping[str, Any], reason: str, *, here: bool = False) -> LeftOut:
    name = next((str(item[key]) for key in _NAMES if item.get(key)), "")
    if section == "bindings":
        name = f"{name} → {item.get('destination', '')} ({item.get('routing_key', '')})"
    return LeftOut(kind=section, vhost=str(item.get("vhost", "")), name=name, reason=reason, here=here)


def _unknown(said: Mapping[str, Any]) -> Iterator[LeftOut]:
    for name, items in said.items():
        if name not in SECTIONS and name not in ABOUT and items:
            yield LeftOut(kind=name, name="all", reason="there is no such section here")

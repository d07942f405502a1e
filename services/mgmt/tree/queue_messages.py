"""Operations of a queue that are about single messages of it: who may do that, and how it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from services.common.access.action import Action
from services.common.errors import NotFound
from services.common.message import columns
from services.common.selectors.selector import InvalidSelector, said_now
from services.common.topology.slots import first_slot
from services.mgmt.in_queues.messages import Place, Selection
from services.mgmt.model.answer import Answer
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.message_content import Content
from services.mgmt.model.message_info import infos
from services.mgmt.model.queue import MOST_INFOS
from services.mgmt.tree.recorded import record
from services.rpc import queue_pb2 as pb

if TYPE_CHECKING:
    from services.mgmt.tree.house import House

_HIGHEST: Final = (1 << 63) - 1
_Told = Mapping[str, Any]


class OfMessages(NamedTuple):
    """`needs` is what has to be allowed at the queue; to send messages elsewhere, they have to be published there."""

    needs: Action
    carry_out: Callable[[House, ConfiguredObject, _Told], Awaitable[Any]]


def _place(found: ConfiguredObject) -> Place:
    return Place(first_slot(int(found.incarnation)), found.actual["partition"], found.actual["name"])


# ------------------------------------------------------------------ which messages


async def _selection(told: _Told) -> Selection:
    """Raises IllegalConfiguration that names the parameter."""
    limit: int = told["limit"]
    if text := told["selector"]:
        try:
            await asyncio.to_thread(said_now, text)
        except InvalidSelector as error:
            raise IllegalConfiguration(f"parameter 'selector': {error}") from None
    ids = told.get("messageIds")
    uids = None if ids is None else [_uid(each, "messageIds") for each in ids]
    return Selection(uids, text, None if limit < 0 else min(limit, _HIGHEST))


def _uid(said: object, parameter: str) -> int:
    number = int(said) if isinstance(said, str) and said.isascii() and said.isdigit() and len(said) < 20 else said
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _HIGHEST:
        raise IllegalConfiguration(f"parameter '{parameter}': no message has the id {said!r}")
    return number


def _destination(house: House, found: ConfiguredObject, told: _Told) -> Place:
    host, name = found.path[1], told["destination"]
    for each in house.mirror.grouped("queue", "virtual_host").get(host, ()):
        if each.value["name"] == name:
            return Place(each.value["id"], each.value["partition"], name)
    raise IllegalConfiguration(f"parameter 'destination': there is no queue '{name}'")


# ------------------------------------------------------------------ what becomes of them


async def _delete(house: House, found: ConfiguredObject, told: _Told) -> list[int]:
    selection = await _selection(told)
    record(house.audit, "queue", "messages deleted", *found.path[1:])
    return await house.messages.drop(_place(found), selection)


async def _move(house: House, found: ConfiguredObject, told: _Told) -> list[int]:
    source, target = _place(found), _destination(house, found, told)
    if source.queue_id == target.queue_id:
        raise IllegalConfiguration(f"parameter 'destination': messages of '{source.name}' are there")
    selection = await _selection(told)
    record(house.audit, "queue", "messages moved", *found.path[1:], target.name)
    return await house.messages.move(source, target, selection)


async def _copy(house: House, found: ConfiguredObject, told: _Told) -> list[int]:
    source, target, selection = _place(found), _destination(house, found, told), await _selection(told)
    record(house.audit, "queue", "messages copied", *found.path[1:], target.name)
    return await house.messages.copy(source, target, selection)


# ------------------------------------------------------------------ what they are like


async def _infos(house: House, found: ConfiguredObject, told: _Told) -> Answer:
    """As Broker-J counts: the first message is number 0, and that of `last` is told as well."""
    first = min(max(told["first"], 0), _HIGHEST)
    most = MOST_INFOS if told["last"] < 0 else min(max(told["last"] - first + 1, 0), MOST_INFOS)
    replies = await house.messages.look(_place(found), Selection(most=most, first=first))
    its = list(chain.from_iterable(infos(reply, headers=told["includeHeaders"]) for reply in replies))
    total = replies[-1].message_count if replies else 0
    place = f"{first}-{first + len(its) - 1}" if its else "0-0"
    return Answer(its, {"Content-Range": f"{place}/{total}"})


async def _info(house: House, found: ConfiguredObject, told: _Told) -> dict[str, Any]:
    reply = await _one(house, found, told, bodies=False)
    return next(infos(reply, headers=told["includeHeaders"]))


async def _content(house: House, found: ConfiguredObject, told: _Told) -> Answer:
    reply = await _one(house, found, told, bodies=True)
    message, [uid] = reply.message, reply.message.uids
    [facts], [properties], [body] = columns.facts_in(message), columns.properties_in(message), message.bodies
    content = Content(uid, facts, properties, body)
    as_json, decompressed = told["returnJson"], told["decompressBeforeLimiting"]
    return await asyncio.to_thread(content.answer, told["limit"], as_json=as_json, decompressed=decompressed)


async def _one(house: House, found: ConfiguredObject, told: _Told, *, bodies: bool) -> pb.QueueReply:
    uid = _uid(told["messageId"], "messageId")
    for reply in await house.messages.look(_place(found), Selection([uid], most=1), bodies=bodies):
        if reply.message.uids:
            return reply
    raise NotFound(f"no message {uid} in queue '{found.actual['name']}'")


OF_MESSAGES: Final[Mapping[str, OfMessages]] = {
    "deleteMessages": OfMessages(Action.PURGE, _delete),
    "moveMessages": OfMessages(Action.CONSUME, _move),
    "copyMessages": OfMessages(Action.CONSUME, _copy),
    "getMessageInfo": OfMessages(Action.CONSUME, _infos),
    "getMessageInfoById": OfMessages(Action.CONSUME, _info),
    "getMessageContent": OfMessages(Action.CONSUME, _content),
}
"""By the operation."""

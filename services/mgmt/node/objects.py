"""Requests to objects: CREATE, READ, UPDATE, DELETE, and the operations that their classes declare."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

from services.common.access.action import Action
from services.common.errors import AccessRefused, NotFound, SyntaxFault
from services.mgmt.model.answer import Answer
from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.faults import NotOffered
from services.mgmt.node.exchanged import Asked, Reply
from services.mgmt.node.kinds import Type, above, itself
from services.mgmt.node.places import OBJECT_PATH, names_in, place
from services.mgmt.node.telling import QPID_TYPE, told
from services.mgmt.tree.caller import Caller
from services.mgmt.tree.changes import Changes
from services.mgmt.tree.tree import Tree

_ACTUALS: Final = "actuals"
_ADDRESSING: Final = frozenset({"operation", "type", "identity", "index", "key"})
_NO_ARGUMENTS: Final = ("JMS", "x-", "traceparent", "tracestate", "baggage")
"""How properties begin that clients and their instrumentation add."""


class Objects:
    """Of one type, for one who asks."""

    def __init__(self, tree: Tree, type_: Type, caller: Caller, asked: Asked) -> None:
        self._tree = tree
        self._type = type_
        self._caller = caller
        self._asked = asked
        self._keeper = tree.categories[type_.category]
        self._changes = Changes(tree, type_.category)
        self._is_itself = type_.category == itself(asked.virtual_host)

    async def carry_out(self, operation: str) -> Reply:
        """Raises BrokerError."""
        await self._tree.ready(self._keeper.fresh)
        if standard := _STANDARD.get(operation):
            return await standard(self)
        return await self._invoke(operation)

    async def _place(self, *, named: bool = True) -> tuple[str, ...]:
        """Of the object that is meant. That there is no such identity is told only to users who may look."""
        try:
            return place(self._tree, self._asked, self._type, named=named)
        except NotFound:
            await self._caller.check([self._keeper.sees])
            raise

    def _found(self, path: tuple[str, ...]) -> ConfiguredObject:
        found = self._changes.found(path)
        if found is None or not self._type.fits(found):
            raise NotFound(f"no {self._type.kind.category} is there")
        return found

    def _told(self, found: ConfiguredObject, status: HTTPStatus = HTTPStatus.OK, *, actuals: bool = True) -> Reply:
        return Reply.of(told(found, self._asked, actuals=actuals), status)

    def _check_changes(self, *, of_itself: bool) -> None:
        if not self._keeper.changes or (self._is_itself and not of_itself):
            raise NotOffered("Not implemented")

    # -------------------------------------------------------------- what all have

    async def _create(self) -> Reply:
        self._check_changes(of_itself=False)
        path, said = self._to_create(self._asked.map)
        wanted, refusal = self._changes.wanted(None, path, said)
        await self._changes.may(self._caller, Action.CREATE, path, wanted)
        if refusal:
            raise refusal
        return self._told(await self._changes.create(self._caller, path, wanted), HTTPStatus.CREATED)

    def _to_create(self, said: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Where, and what it is to be like."""
        if wrong := said.keys() & {"identity", "id"}:
            raise SyntaxFault(f"The '{min(wrong)}' cannot be set when creating an object")
        said.pop("type", None)
        if qpid_type := said.pop(QPID_TYPE, self._type.qpid_type):
            said["type"] = qpid_type
        named = said.pop(OBJECT_PATH, None)
        names = names_in(str(named)) if named is not None else (self._named(said),)
        return (*above(self._asked.virtual_host), *names), said

    def _named(self, said: Mapping[str, Any]) -> str:
        name = said.get("name") or self._asked.text("name")
        if not isinstance(name, str) or not name:
            raise SyntaxFault(f"The '{OBJECT_PATH}' must be supplied")
        return name

    async def _read(self) -> Reply:
        await self._caller.check([self._keeper.sees])
        return self._told(self._found(await self._place()), actuals=self._actuals())

    def _actuals(self) -> bool:
        """Broker-J has it in the body; a property says it as well."""
        body = self._asked.body if isinstance(self._asked.body, dict) else {}
        return str(body.get(_ACTUALS, self._asked.properties.get(_ACTUALS, True))).lower() == "true"

    async def _update(self) -> Reply:
        self._check_changes(of_itself=True)
        path, said = await self._place(), self._asked.map
        found = self._changes.found(path)
        try:
            said = self._to_update(found, said)
        except AccessRefused:
            await self._changes.may(self._caller, Action.UPDATE, path, {})
            raise
        if self._is_itself and said.get("desiredState") == "DELETED":
            raise NotOffered("Not implemented")
        wanted, refusal = self._changes.wanted(found, path, said) if found else ({}, None)
        action = Action.DELETE if wanted.get("desiredState") == "DELETED" else Action.UPDATE
        await self._changes.may(self._caller, action, path, wanted)
        found = self._found(path)
        if refusal:
            raise refusal
        updated = await self._changes.update(self._caller, found, wanted)
        return self._told(updated) if updated else Reply.of({}, HTTPStatus.NO_CONTENT)

    def _to_update(self, found: ConfiguredObject | None, said: dict[str, Any]) -> dict[str, Any]:
        """What a client has read it may send back, changed where it can be."""
        said.pop("type", None)
        named = said.pop(OBJECT_PATH, None)
        if (qpid_type := said.pop(QPID_TYPE, None)) is not None:
            said["type"] = qpid_type
        parent = found.parent if found else None
        fixed = {"identity": found.value("id") if found else None}
        fixed |= {parent.category.lower(): parent.actual["name"]} if parent else {}
        for name, value in fixed.items():
            if found and str(said.pop(name, value)) != value:
                raise AccessRefused(f"Cannot change the value of '{name}'")
        if named is not None and "name" not in said and (names := names_in(str(named))):
            said["name"] = names[-1]
        return said

    async def _delete(self) -> Reply:
        self._check_changes(of_itself=False)
        path = await self._place()
        await self._changes.may(self._caller, Action.DELETE, path, {})
        await self._changes.delete(self._found(path))
        return Reply.of({}, HTTPStatus.NO_CONTENT)

    # -------------------------------------------------------------- what each declares

    async def _invoke(self, operation: str) -> Reply:
        path = await self._place(named=False)
        if operation not in self._type.kind.operations or not self._changes.is_whole(path):
            await self._caller.check([self._keeper.sees])
            self._found(path)
            raise NotOffered("Not implemented")
        answer = await self._changes.invoke(self._caller, path, operation, self._arguments())
        return Reply.of(answer.value, publish=answer.publish) if isinstance(answer, Answer) else Reply.of(answer)

    def _arguments(self) -> dict[str, Any]:
        """Of properties and, where that is a map, the body."""
        body = self._asked.body if isinstance(self._asked.body, dict) else {}
        properties = {
            name: value
            for name, value in self._asked.properties.items()
            if name not in _ADDRESSING and not name.startswith(_NO_ARGUMENTS)
        }
        return properties | body


_STANDARD: Final[Mapping[str, Callable[[Objects], Awaitable[Reply]]]] = {
    "CREATE": Objects._create,  # noqa: SLF001 - the class's own table
    "READ": Objects._read,  # noqa: SLF001
    "UPDATE": Objects._update,  # noqa: SLF001
    "DELETE": Objects._delete,  # noqa: SLF001
}

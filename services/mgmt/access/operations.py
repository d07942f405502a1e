"""What each operation of mgmt does to what: tables. An operation that is in none is always refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from services.common.access import questions
from services.common.access.action import Action, Kind
from services.common.access.asked import Asked
from services.common.errors import SyntaxFault

ASK_MGMT = Asked(Action.ACCESS, Kind.MANAGEMENT)
"""Anything at all, over HTTP."""
OBSERVE = Asked(Action.ACCESS_LOGS, Kind.BROKER)
"""What passes through all virtual hosts."""
CONFIGURE = Asked(Action.CONFIGURE, Kind.BROKER)
"""What counts for all of it, or for messages of others: ports, capture, what users may do."""

Question = Callable[[Any], Asked]


def _always(asked: Asked) -> Question:
    return lambda _request: asked


def _user(action: Action) -> Question:
    return lambda request: Asked(action, Kind.USER, request.name)


def group(action: Action, name: str) -> Asked:
    """Of one group: what is changed of it are its members."""
    return (
        questions.update(Kind.GROUP, "", name, ["members"])
        if action is Action.UPDATE
        else Asked(action, Kind.GROUP, name)
    )


def _change(request: Any) -> Asked:  # noqa: ANN401 - an AccessChange
    if (field := request.WhichOneof("change")) is None:
        raise SyntaxFault("the request names no change")
    return CHANGES[field](request)


CHANGES: Mapping[str, Question] = {
    "put_permission": _always(CONFIGURE),
    "clear_permission": _always(CONFIGURE),
    "put_topic_permission": _always(CONFIGURE),
    "clear_topic_permission": _always(CONFIGURE),
    "put_group": lambda request: group(Action.UPDATE, request.put_group.name),
    "delete_group": lambda request: group(Action.DELETE, request.delete_group.name),
    "put_acl": _always(CONFIGURE),
    "remove_acl": _always(CONFIGURE),
    "join_group": lambda request: group(Action.UPDATE, request.join_group.group),
    "leave_group": lambda request: group(Action.UPDATE, request.leave_group.group),
    "put_limits": _always(CONFIGURE),
    "clear_limit": _always(CONFIGURE),
}
"""By the field of an AccessChange."""

RPCS: Mapping[str, Question] = {
    "PutUser": _user(Action.CREATE),
    "ChangeUser": _user(Action.UPDATE),
    "DeleteUser": _user(Action.DELETE),
    "ListUsers": _always(ASK_MGMT),
    "AddKeys": _user(Action.UPDATE),
    "SetTags": _user(Action.UPDATE),
    "PutProvider": _always(CONFIGURE),
    "RemoveProvider": _always(CONFIGURE),
    "ListProviders": _always(CONFIGURE),
    "ChangeAccess": _change,
    "ListAccess": _always(CONFIGURE),
    "TestAccess": _always(CONFIGURE),
    "Trace": _always(OBSERVE),
    "Search": _always(OBSERVE),
    "Connections": _always(OBSERVE),
    "ImportDefinitions": _always(CONFIGURE),
    "ExportDefinitions": _always(CONFIGURE),
    "Manage": _always(ASK_MGMT),  # and of its user, all that the operation inside needs
}
"""By the name of the method, of its request."""

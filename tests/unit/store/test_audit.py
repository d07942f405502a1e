"""Changes of records in the audit log, with their users."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from services.common.access import rules
from services.common.access.records import BEGUN, FILED_FOR, Permission
from services.rpc.store_pb2 import PutRecordsRequest, Record
from services.store.audit import KINDS, ChangeAudit

BY = "anna from 127.0.0.1"


class Kept:
    """Records of a store."""

    def __init__(self, **values: bytes) -> None:
        self._values = values

    def value_of(self, kind: str, _key: str) -> bytes | None:
        return self._values.get(kind)


def changes(request: PutRecordsRequest, **kept: bytes) -> list[Any]:
    return ChangeAudit(cast("Any", Kept(**kept)), cast("Any", None)).changes(request)


def test_all_that_is_set_of_access() -> None:
    """Users, permissions, groups and rules are among it; what the stack notes about them is its own affair."""
    assert set(rules.KINDS) - {BEGUN, FILED_FOR} <= KINDS


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_who_changed_what(kind: str) -> None:
    """Names of the fields that are others now, and none of what is in them."""
    former, now = {"name": "q", "secret": "before"}, {"name": "q", "secret": "after"}
    put = Record(kind=kind, key="it", value=json.dumps(now).encode())
    request = PutRecordsRequest(puts=[put], deletes=[Record(kind=kind, key="it")], actor=BY)
    told, deleted = changes(request, **{kind: json.dumps(former).encode()})
    assert (told.what, told.name, told.fields, told.by) == (kind, "it", ("secret",), BY)
    assert (deleted.change, deleted.by) == ("deleted", BY)
    assert "after" not in repr(told)


def test_a_permission() -> None:
    """A new one is told with all that it sets."""
    permission = Permission(user="bob", virtual_host="/", configure="", write="", read=".*")
    [told] = changes(PutRecordsRequest(puts=[Record(kind="permission", key="k", value=permission.to_json())], actor=BY))
    assert {"user", "read"} <= set(told.fields)

"""What is set for a virtual host that was deleted and made again, before mgmt has removed it."""

from __future__ import annotations

import json

from services.common.access.records import FILED_FOR, VIRTUAL_HOST, AclText, Permission, TopicPermission
from services.common.access.rules import Rules
from services.rpc.store_pb2 import Record


def _of(kind: str, name: str, number: int | None, *, deleted: bool = False) -> Record:
    """Of a virtual host, or what is filed for it; None: without an id."""
    value = {} if number is None else {"id": number}
    return Record(kind=kind, key=name, value=json.dumps(value).encode(), deleted=deleted)


def _rules(*more: Record) -> Rules:
    rules = Rules()
    in_work, everywhere = Permission(user="anna", virtual_host="work", read="^a"), Permission(user="anna")
    topic = TopicPermission(user="anna", virtual_host="work", exchange="t")
    acl = AclText(virtual_host="work", text="ACL DENY anna ALL")
    for kind, each in (
        ("permission", in_work), ("permission", everywhere), ("topic_permission", topic), ("acl", acl)
    ):  # fmt: skip
        rules.apply(Record(kind=kind, key=each.key, value=each.to_json()))
    for record in more:
        rules.apply(record)
    return rules


def _counts(rules: Rules) -> list[bool]:
    """Permission, topic permission, rules."""
    permission = rules.permission("anna", "work")
    assert permission is not None
    return [
        permission.virtual_host == "work",
        rules.topic_permission("anna", "work", "t") is not None,
        rules.acl("work") is not None,
    ]


def test_of_another_one() -> None:
    """It counts no more; what is set for all virtual hosts does. It counts again when it is filed for this one."""
    rules = _rules(_of(VIRTUAL_HOST, "work", 2), _of(FILED_FOR, "work", 1))
    assert _counts(rules) == [False] * 3
    rules.apply(_of(FILED_FOR, "work", 2))
    assert _counts(rules) == [True] * 3
    rules.apply(_of(VIRTUAL_HOST, "work", 2, deleted=True))
    rules.apply(_of(VIRTUAL_HOST, "work", 3))
    assert _counts(rules) == [False] * 3
    rules.apply(_of(FILED_FOR, "work", 2, deleted=True))
    assert _counts(rules) == [True] * 3


def test_where_nothing_says_for_which() -> None:
    """It is of the one that is there; also where that has no id, of a router that gives none."""
    for more in ([], [_of(VIRTUAL_HOST, "work", 2)], [_of(VIRTUAL_HOST, "work", None), _of(FILED_FOR, "work", 1)]):
        assert _counts(_rules(*more)) == [True] * 3
    assert _counts(_rules(_of(VIRTUAL_HOST, "work", 2), _of(FILED_FOR, "work", 0))) == [False] * 3

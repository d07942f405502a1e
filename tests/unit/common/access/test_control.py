"""The order of access controls, and what records become."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from services.common.access import questions as q
from services.common.access import records
from services.common.access.acl.control import Acl
from services.common.access.action import Action
from services.common.access.allow_all import AllowAll
from services.common.access.asked import Principal
from services.common.access.control import decide
from services.common.access.permissions import Permissions
from services.common.access.records import AclText, Group, Permission
from services.common.access.rules import Rules
from services.common.users import User
from services.rpc.store_pb2 import Record

BOTH = (Acl(), Permissions())
PUBLISH = q.publish("/", "x", "k")
EVERYTHING = Permission(user="anna", virtual_host="/", configure=".*", write=".*", read=".*")


def acl(text: str, virtual_host: str | None = None) -> Record:
    kept = AclText(virtual_host=virtual_host, text=text)
    return Record(kind=records.ACL, key=kept.key, value=kept.to_json())


def permission(kept: Permission = EVERYTHING) -> Record:
    return Record(kind=records.PERMISSION, key=kept.key, value=kept.to_json())


def rules(*kept: Record) -> Rules:
    made = Rules(begun=True)
    for each in kept:
        made.apply(each)
    return made


def test_without_rules_permissions_decide() -> None:
    """An ACL that is not loaded defers."""
    assert not decide(BOTH, Principal("anna"), PUBLISH, rules()).allowed
    assert decide(BOTH, Principal("anna"), PUBLISH, rules(permission())).allowed


def test_the_virtual_host_comes_first() -> None:
    """Its rules decide before the broker's, and those before permissions."""
    broker = acl("ACL DENY anna PUBLISH EXCHANGE")
    host = acl("CONFIG DEFAULTDEFER=TRUE\nACL ALLOW anna PUBLISH EXCHANGE name=x", "/")
    assert not decide(BOTH, Principal("anna"), PUBLISH, rules(broker, permission())).allowed
    verdict = decide(BOTH, Principal("anna"), PUBLISH, rules(broker, host, permission()))
    assert (verdict.allowed, verdict.rule) == (True, "acl: ACL ALLOW anna PUBLISH EXCHANGE name=x")
    assert not decide(BOTH, Principal("anna"), q.publish("/other", "x", "k"), rules(broker, host)).allowed


def test_no_control_decides() -> None:
    """Then it is denied."""
    verdict = decide([Acl()], Principal("anna"), PUBLISH, rules())
    assert (verdict.allowed, verdict.rule) == (False, "no rule decides")


def test_allow_all() -> None:
    """Allows what rules of a virtual host do not deny."""
    assert decide([AllowAll()], Principal("anna"), PUBLISH, rules()).allowed
    host = acl("ACL DENY anna PUBLISH EXCHANGE", "/")
    assert not decide([AllowAll(), Acl()], Principal("anna"), PUBLISH, rules(host)).allowed


def test_the_operator_of_the_stack() -> None:
    """May do everything, with any rules loaded."""
    assert decide(BOTH, Principal("", operator=True), PUBLISH, rules(acl("ACL DENY ALL ALL"))).allowed


def test_before_there_were_permissions() -> None:
    """Until mgmt has given users what they had, they may do what they could; rules that were loaded count."""
    before = Rules()
    assert decide(BOTH, Principal("anna"), PUBLISH, before).allowed
    before.apply(Record(kind=records.BEGUN, key=records.BEGUN_KEY, value=b"{}"))
    assert not decide(BOTH, Principal("anna"), PUBLISH, before).allowed


def test_a_key_that_was_looked_at_on_the_way() -> None:
    """Counts for the verdict though another decided."""
    host = acl("CONFIG DEFAULTDEFER=TRUE\nACL DENY anna PUBLISH EXCHANGE routing_key=secret", "/")
    verdict = decide(BOTH, Principal("anna"), PUBLISH, rules(host, permission()))
    assert (verdict.allowed, verdict.by_key) == (True, True)


def test_a_principal() -> None:
    """Has its groups and tags by the records, and no others when they are gone."""
    group = Group(name="clerks", members=("anna", "bob"))
    user = User(name="anna", password_hash="", tags=("monitoring",))
    made = rules(
        Record(kind=records.GROUP, key="clerks", value=group.to_json()),
        Record(kind="user", key="anna", value=user.to_json()),
    )
    anna = made.principal("anna", "10.0.0.1")
    assert (anna.groups, anna.tags, anna.host) == ({"clerks"}, {"monitoring"}, "10.0.0.1")
    for kind, key in ((records.GROUP, "clerks"), ("user", "anna")):
        made.apply(Record(kind=kind, key=key, deleted=True))
    assert made.principal("anna") == Principal("anna")


@pytest.mark.parametrize("kind", [records.PERMISSION, records.TOPIC_PERMISSION, records.ACL])
def test_what_cannot_be_read(kind: str) -> None:
    """Allows nothing: neither a permission, nor all keys, nor what unknown rules would have denied."""
    key = {
        records.PERMISSION: EVERYTHING.key,
        records.TOPIC_PERMISSION: records.topic_key("anna", "/", "x"),
        records.ACL: records.acl_key(None),
    }[kind]
    made = rules(permission())
    with pytest.raises(ValidationError):
        made.apply(Record(kind=kind, key=key, value=json.dumps({"new": 1}).encode()))
    assert not decide(BOTH, Principal("anna"), PUBLISH, made).allowed


def test_rules_that_cannot_be_parsed() -> None:
    """Deny everything as well."""
    made = rules(permission())
    with pytest.raises(ValueError, match="line 1"):
        made.apply(acl("nothing known"))
    assert not decide(BOTH, Principal("anna"), q.of_queue(Action.PURGE, "/", "q", ()), made).allowed


def test_expressions_are_checked() -> None:
    """One that is none does not become a permission."""
    with pytest.raises(ValidationError, match="no regular expression"):
        Permission(user="anna", read="(")

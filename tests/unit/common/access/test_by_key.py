"""Questions that differ in their keys alone: answered as each would be, and all but the key is looked at once."""

from __future__ import annotations

from unittest.mock import Mock

from hypothesis import given
from hypothesis import strategies as st

from services.common.access import questions as q
from services.common.access.acl.control import Acl
from services.common.access.acl.parse import parse
from services.common.access.acl.predicates import predicate
from services.common.access.acl.rule import Rule
from services.common.access.action import Property
from services.common.access.asked import Asked, Principal
from services.common.access.by_key import ByKey
from services.common.access.control import decide
from services.common.access.permissions import Permissions
from services.common.access.records import ACL, PERMISSION, TOPIC_PERMISSION, AclText, Permission, TopicPermission
from services.common.access.rules import Rules
from services.common.access.verdict import Decision
from services.rpc.store_pb2 import Record

CONTROLS = (Acl(), Permissions())
ANNA = Principal("anna", frozenset({"staff"}), host="192.0.2.7")
KEYS = st.text("ab.", max_size=4)
VALUES = st.one_of(KEYS, KEYS.map(lambda key: f"{key}*"))


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Lines of a file: most go by a key, or several."""
    parts = [
        draw(st.sampled_from(["ALLOW", "DENY", "DENY-LOG"])),
        draw(st.sampled_from(["anna", "staff", "bob", "ALL"])),
        draw(st.sampled_from(["PUBLISH EXCHANGE", "ALL ALL", "CONSUME QUEUE"])),
    ]
    if values := draw(st.lists(VALUES, max_size=2)):
        quoted = ", ".join(f'"{each}"' for each in values)
        parts.append(f"routing_key=[{quoted}]")
    if draw(st.booleans()):
        parts.append(draw(st.sampled_from(['name="x"', 'from_network="10.0.0.0/8"', 'from_hostname="desk"'])))
    return f"ACL {' '.join(parts)}\n"


FILES = st.builds(
    lambda lines, default: f"{''.join(lines)}CONFIG {default}=TRUE\n",
    st.lists(rules(), max_size=6),
    st.sampled_from(["DEFAULTDEFER", "DEFAULTDENY", "DEFAULTALLOW"]),
)


def kept(kind: str, made: AclText | Permission | TopicPermission) -> Record:
    return Record(kind=kind, key=made.key, value=made.to_json())


def fits(rule: Rule, asked: Asked) -> bool:
    """By a look at each property, as it was before there was anything quicker."""
    return all(predicate(wanted, values)(ANNA, asked) for wanted, values in rule.properties.items())


@given(FILES, st.lists(KEYS, min_size=1, max_size=6))
def test_the_first_that_fits(text: str, keys: list[str]) -> None:
    """Decides: one after the other, whichever keys were asked about before."""
    rule_set = parse(text)
    about = [rule for rule in rule_set.rules if rule.is_about(q.publish("/", "x", ""))]
    for key in keys:
        asked, expected = q.publish("/", "x", key), Decision.DEFERRED if about else rule_set.default
        for rule in about:
            if not rule.is_for(ANNA):
                continue
            others = {
                wanted: values for wanted, values in rule.properties.items() if wanted is not Property.ROUTING_KEY
            }
            if Property.FROM_HOSTNAME in others and all(
                predicate(*each)(ANNA, asked) for each in others.items() if each[0] is not Property.FROM_HOSTNAME
            ):
                expected = Decision.DENIED  # the host name is not known
                break
            if fits(rule, asked):
                expected = Decision.ALLOWED if rule.outcome.allows else Decision.DENIED
                break
        assert rule_set.decide(ANNA, asked).decision is expected


@given(FILES, FILES, st.sampled_from(["", "^a", "b$", ".*"]), st.booleans(), st.lists(KEYS, min_size=1, max_size=6))
def test_by_key(own: str, brokers: str, write: str, topic: bool, keys: list[str]) -> None:
    """As `decide`, also what is told; and it says whether another key may be decided otherwise."""
    known = Rules(begun=True)
    known.apply(kept(ACL, AclText(virtual_host="/", text=own)))
    known.apply(kept(ACL, AclText(text=brokers)))
    known.apply(kept(PERMISSION, Permission(user="anna", write=".*")))
    if topic:
        known.apply(kept(TOPIC_PERMISSION, TopicPermission(user="anna", exchange="x", write=write)))
    by_key = ByKey(CONTROLS, ANNA, q.publish("/", "x", keys[0]), known)
    decided = {key: decide(CONTROLS, ANNA, q.publish("/", "x", key), known) for key in keys}
    for key, expected in decided.items():
        told = by_key.verdict(key)
        assert (told.decision, told.rule, told.refused, told.logged) == (
            expected.decision, expected.rule, expected.refused, expected.logged,
        )  # fmt: skip
    if len({verdict.decision for verdict in decided.values()}) > 1:
        assert all(verdict.by_key for verdict in decided.values())


def test_a_thousand_rules_are_looked_at_once() -> None:
    """For a new key that costs a look-up, not a look at each of them."""
    lines = [f'ACL DENY ALL PUBLISH EXCHANGE name="x" routing_key="other.{number}.*"' for number in range(1000)]
    rule_set, looked = parse("\n".join([*lines, "ACL ALLOW ALL ALL"])), Mock(return_value=True)
    assert rule_set.decide(ANNA, q.publish("/", "x", "mine")).decision is Decision.ALLOWED
    for rule in rule_set.rules:
        object.__setattr__(rule, "_fits", (looked,))
    assert rule_set.decide(ANNA, q.publish("/", "x", "mine too")).decision is Decision.ALLOWED
    assert rule_set.decide(ANNA, q.publish("/", "x", "other.999.x")).decision is Decision.DENIED
    assert not looked.called

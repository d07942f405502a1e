"""ACL files: the grammar, and what Broker-J's own tests say of it (AclFileParserTest, RuleSetTest)."""

from __future__ import annotations

import pytest

from services.common.access.acl.parse import parse
from services.common.access.acl.rule import Outcome
from services.common.access.action import Action, Kind, Property
from services.common.access.asked import Asked, Principal
from services.common.access.verdict import Decision
from services.common.errors import SyntaxFault

ALLOWED, DENIED, DEFERRED = Decision.ALLOWED, Decision.DENIED, Decision.DEFERRED


def said(text: str, asked: Asked, user: str = "anna", groups: tuple[str, ...] = (), host: str = "") -> Decision:
    return parse(text).decide(Principal(user, frozenset(groups), host=host), asked).decision


def publish(exchange: str, key: str) -> Asked:
    return Asked(Action.PUBLISH, Kind.EXCHANGE, exchange, "/", properties=((Property.ROUTING_KEY, key),))


def queue(action: Action, name: str, *properties: tuple[Property, str | bool]) -> Asked:
    return Asked(action, Kind.QUEUE, name, "/", properties=properties)


def connect(name: str = "/") -> Asked:
    return Asked(Action.ACCESS, Kind.VIRTUALHOST, name, name)


# ------------------------------------------------------------------ the inventory's examples


def test_a_publisher_of_one_queue() -> None:
    """`name=""` is any name, the key has to be the one; others are left to the next to decide."""
    text = 'ACL ALLOW publisher PUBLISH EXCHANGE name="" routingKey="appqueue"'
    assert said(text, publish("", "appqueue"), "publisher") is ALLOWED
    assert said(text, publish("", "other"), "publisher") is DEFERRED
    assert said(text, publish("", "appqueue"), "somebody") is DEFERRED


def test_a_consumer_of_one_queue() -> None:
    """By the queue's whole name."""
    text = 'ACL ALLOW consumer CONSUME QUEUE name="appqueue"'
    assert said(text, queue(Action.CONSUME, "appqueue"), "consumer") is ALLOWED
    assert said(text, queue(Action.CONSUME, "appqueue2"), "consumer") is DEFERRED


def test_an_operator_of_some_methods() -> None:
    """A list of values, of which one ends with a star: what begins so fits."""
    text = 'ACL ALLOW operator INVOKE QUEUE method_name=["deleteMessages","getMessage*"]'
    for method, decision in (("deleteMessages", ALLOWED), ("getMessageContent", ALLOWED), ("clearQueue", DEFERRED)):
        assert said(text, queue(Action.INVOKE, "q", (Property.METHOD_NAME, method)), "operator") is decision


def test_a_network() -> None:
    """Networks match a client's address; a client without one matches, as with Broker-J."""
    text = 'ACL DENY-LOG all ACCESS VIRTUALHOST from_network="192.168.1.0/24"\nACL ALLOW ALL ALL'
    assert said(text, connect(), host="192.168.1.77") is DENIED
    assert said(text, connect(), host="::ffff:192.168.1.77") is DENIED
    assert said(text, connect(), host="192.168.2.77") is ALLOWED
    assert said(text, connect()) is DENIED


def test_everything_else() -> None:
    """`ACL DENY-LOG ALL ALL` denies what nothing before it allows, and wants it in the log."""
    verdict = parse("ACL DENY-LOG ALL ALL").decide(Principal("anna"), queue(Action.PURGE, "q"))
    assert (verdict.decision, verdict.logged) == (DENIED, True)
    assert verdict.rule == "acl: ACL DENY-LOG ALL ALL"


# ------------------------------------------------------------------ decisions


def test_the_first_that_fits_decides() -> None:
    """In the order of their numbers, one without comes ten after the last."""
    text = "5 ACL DENY all CREATE QUEUE\nACL ALLOW all CREATE QUEUE\n3 ACL ALLOW all CREATE QUEUE name=news.*\n"
    assert [rule.outcome for rule in parse(text).rules] == [Outcome.ALLOW, Outcome.DENY, Outcome.ALLOW]
    assert said(text, queue(Action.CREATE, "news.eu")) is ALLOWED
    assert said(text, queue(Action.CREATE, "orders")) is DENIED


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("", DENIED),
        ("CONFIG DEFAULTDEFER=TRUE", DEFERRED),
        ("config defaultallow=true", ALLOWED),
        ("CONFIG defaultdeny=true", DENIED),
        ("CONFIG defaultdefer=false defaultallow=true defaultdeny=false df=false", ALLOWED),
    ],
)
def test_the_default(text: str, decision: Decision) -> None:
    """Decides where no rule is about such an operation at all; where one is and does not fit, it is deferred."""
    assert said(text, queue(Action.PURGE, "q")) is decision
    assert said(f"{text}\nACL ALLOW bob PURGE QUEUE", queue(Action.PURGE, "q")) is DEFERRED
    assert said(f"{text}\nACL ALLOW bob PURGE QUEUE", queue(Action.DELETE, "q")) is decision


def test_groups() -> None:
    """A rule for a group is for its members; names are compared exactly, ALL however it is written."""
    text = "ACL ALLOW clerks CONSUME QUEUE\nACL DENY aLL CONSUME QUEUE"
    assert said(text, queue(Action.CONSUME, "q"), groups=("clerks", "others")) is ALLOWED
    assert said(text, queue(Action.CONSUME, "q"), groups=("Clerks",)) is DENIED


def test_no_rule_is_about_looking() -> None:
    """Broker-J does not check a passive declare: it is never denied, and left to the next control where rules defer."""
    look = queue(Action.LOOK, "q")
    assert said("ACL DENY ALL ALL", look) is ALLOWED
    assert said("CONFIG DEFAULTDEFER=TRUE\nACL DENY ALL ALL", look) is DEFERRED


# ------------------------------------------------------------------ properties


@pytest.mark.parametrize("spelt", ["routingKey", "routing_key", "ROUTINGKEY", "Routing_Key"])
def test_names_of_properties(spelt: str) -> None:
    """Case and underscores do not matter."""
    assert said(f"ACL ALLOW all PUBLISH EXCHANGE {spelt}=a", publish("x", "a")) is ALLOWED


@pytest.mark.parametrize(
    ("value", "fits"),
    [("news.*", True), ("*", True), ("''", True), ("*.eu", False), ("news", False), ("[a, news.*]", True)],
)
def test_stars(value: str, *, fits: bool) -> None:
    """A star counts at the end only, and an empty value is one."""
    text = f"ACL ALLOW all PUBLISH EXCHANGE routing_key={value}"
    assert said(text, publish("x", "news.eu")) is (ALLOWED if fits else DEFERRED)


def test_booleans() -> None:
    """`durable=true` is of what is durable; `tr*` is true as well."""
    for value in ("true", "TRUE", "tr*"):
        text = f"ACL ALLOW all CREATE QUEUE durable={value}"
        assert said(text, queue(Action.CREATE, "q", (Property.DURABLE, True))) is ALLOWED
        assert said(text, queue(Action.CREATE, "q", (Property.DURABLE, False))) is DEFERRED


def test_attributes_of_an_update() -> None:
    """An update of these attributes alone is allowed; `attribute_names` is the same property."""
    for name in ("attributes", "attribute_names"):
        text = f'ACL ALLOW all UPDATE QUEUE {name}="a,b"'
        assert said(text, queue(Action.UPDATE, "q", (Property.ATTRIBUTES, "b"))) is ALLOWED
        assert said(text, queue(Action.UPDATE, "q", (Property.ATTRIBUTES, "b,c"))) is DEFERRED


@pytest.mark.parametrize("network", ["10.*", "10.1.0.0/16", "10.1.2.3", "10.1.2.0/255.255.255.0", "10.1.2.*", "*"])
def test_networks(network: str) -> None:
    """As a prefix, a mask, a star, or one address."""
    assert said(f'ACL ALLOW all ACCESS VIRTUALHOST from_network="{network}"', connect(), host="10.1.2.3") is ALLOWED


def test_host_names() -> None:
    """A regular expression of the whole name; a client whose name is unknown is denied."""
    rules = parse(r'ACL ALLOW all ACCESS VIRTUALHOST from_hostname="desk[0-9]+\\.example"')
    named = Principal("anna", host="10.0.0.1", host_name="desk7.example")
    assert rules.wants_names
    assert rules.decide(named, connect()).decision is ALLOWED
    assert rules.decide(Principal("anna", host="10.0.0.1"), connect()).decision is DENIED


def test_the_key_is_looked_at() -> None:
    """A verdict says whether another routing key may have another: only where a rule that counts asks for it."""
    rules = parse("ACL DENY bob PUBLISH EXCHANGE routing_key=a\nACL ALLOW all PUBLISH EXCHANGE name=x")
    assert rules.decide(Principal("bob"), publish("x", "b")).by_key
    assert not rules.decide(Principal("anna"), publish("x", "b")).by_key


# ------------------------------------------------------------------ the file


def test_lines() -> None:
    """Comments, both quotes, a line that goes on, and escapes within quotes."""
    text = "# who\nACL ALLOW anna \\\nCONSUME QUEUE name='a \"q\"' # what\n\nACL ALLOW 'bob smith' ALL ALL"
    first, second = parse(text).rules
    assert (first.identity, first.properties[Property.NAME]) == ("anna", frozenset({'a "q"'}))
    assert second.identity == "bob smith"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("INVALID", "Not enough tokens at line 1"),
        ("INVALID DATA", "Unrecognised initial token 'INVALID' at line 1"),
        ("ACL ALLOW", "Not enough data for an acl at line 1"),
        ("CONFIG", "Not enough tokens at line 1"),
        ("CONFIG defaultdeny", "Not enough data for config at line 1"),
        ("3 CONFIG defaultdeny=true", "Number not allowed before 'CONFIG' at line 1"),
        ("3 ACL ALLOW a ALL\n3 ACL ALLOW b ALL", "Invalid rule number at line 2"),
        ("CONFIG default=false defaultdeny", "Incomplete property (key only) at line 1"),
        ("CONFIG default=false defaultdeny true", "Incomplete property (no equals) at line 1"),
        ("CONFIG default=false defaultdeny=", "Incomplete property (no value) at line 1"),
        ("\nACL ALLOW ALL \\ ALL", "Premature continuation character at line 2"),
        ("ACL unparsed ALL ALL", "Not a valid permission: unparsed at line 1"),
        ("ACL DENY ALL unparsed", "Not a valid operation: unparsed at line 1"),
        ("ACL DENY ALL ALL unparsed", "Not a valid object type: unparsed at line 1"),
        ("ACL DENY ALL ALL QUEUE name=[a,b", "Incomplete property (no close bracket) at line 1"),
        ("ACL DENY ALL ALL QUEUE size=1", "Not a valid property: size at line 1"),
        ("ACL DENY ALL PUBLISH QUEUE", "Operation PUBLISH is not allowed for QUEUE at line 1"),
        ("ACL DENY ALL LOOK QUEUE", "Not a valid operation: LOOK at line 1"),
        ("GROUP a b c", "GROUP keyword not supported at line 1"),
        ("ACL ALLOW ALL ACCESS VIRTUALHOST from_network=nowhere", "Not a network: nowhere at line 1"),
        ("ACL ALLOW OWNER ALL ALL", "OWNER is not supported"),
        ("ACL ALLOW ALL DELETE QUEUE created_by=a", "created_by is not supported"),
    ],
)
def test_faults(text: str, fault: str) -> None:
    """Each names its line, in Broker-J's words where it has any."""
    with pytest.raises(SyntaxFault) as raised:
        parse(text)
    assert raised.value.text.startswith(fault)

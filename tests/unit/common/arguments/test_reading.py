"""Arguments by RabbitMQ's names and by Broker-J's: each with its own meaning, no two that contradict each other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from services.common import plugins
from services.common.arguments import binding, queue
from services.common.arguments.broker_j import ALIASES
from services.common.arguments.reading import Wrong, checked, said
from services.common.message import arguments
from services.common.topology.definitions import Exchange
from services.common.topology.exchanges.exchange_type import Binding
from services.common.topology.message import OfHeaders
from services.common.topology.source import Source
from services.queue.machine.options import read_options

FILTERS = {"n": {"x-filter-jms-selector": ["a = 1"]}}
# A value that is right, what it says, one of a wrong type, and one that is impossible.
EACH: dict[str, tuple[Any, dict[str, Any], Any, Any]] = {
    "x-consumer-timeout": (1, {"x-consumer-timeout": 1}, "1", 0),
    "x-dead-letter-exchange": ("", {"x-dead-letter-exchange": ""}, 5, "x" * 256),
    "alternateExchange": ("e", {"x-dead-letter-exchange": "e", "expiryPolicy": "DELETE"}, 5, "x" * 256),
    "expiryPolicy": ("DELETE", {"expiryPolicy": "DELETE"}, 5, "delete"),
    "x-dead-letter-routing-key": ("k", {"x-dead-letter-routing-key": "k"}, 5, "x" * 256),
    "x-dead-letter-strategy": ("at-most-once", {"x-dead-letter-strategy": "at-most-once"}, 1, "never"),
    "x-delivery-limit": (-1, {"x-delivery-limit": -1}, True, -2),
    "x-expires": (1, {"x-expires": 1}, 1.5, 0),
    "x-max-in-memory-bytes": (0, {"x-max-in-memory-bytes": 0}, "0", -1),
    "x-max-in-memory-length": (0, {"x-max-in-memory-length": 0}, "0", -1),
    "x-max-length": (0, {"x-max-length": 0}, True, -1),
    "x-max-length-bytes": (0, {"x-max-length-bytes": 0}, 1.5, 1 << 63),
    "x-max-priority": (255, {"x-max-priority": 255}, "9", 256),
    "x-message-ttl": (0, {"x-message-ttl": 0}, "0", 1 << 50),
    "x-flow-resume-bytes": (7, {"x-flow-resume-bytes": 7}, "7", -1),
    "x-qpid-capacity": (5, {"x-max-length-bytes": 5, "x-overflow": "none"}, "5", -1),
    "x-qpid-flow-resume-capacity": (
        3,
        {"x-flow-resume-bytes": 3, "x-overflow": "producer-flow-control"},
        "3",
        -1,
    ),
    "minimumMessageTtl": (7, {"minimumMessageTtl": 7}, "7", -1),
    "x-queue-leader-locator": ("client-local", {"x-queue-leader-locator": "client-local"}, 1, None),
    "x-queue-master-locator": ("min-masters", {"x-queue-master-locator": "min-masters"}, 1, None),
    "x-queue-mode": ("lazy", {"x-queue-mode": "lazy"}, 1, "eager"),
    "x-queue-version": (2, {"x-queue-version": 2}, "2", 3),
    "x-quorum-initial-group-size": (3, {"x-quorum-initial-group-size": 3}, "3", 0),
    "x-single-active-consumer": (True, {"x-single-active-consumer": True}, 1, None),
    "x-qpid-lowest-priority": (3, {"x-qpid-lowest-priority": 3}, "3", 10),
    "qpid.queue_sort_key": ("k", {"qpid.queue_sort_key": "k"}, 1, ""),
    "sortKey": ("k", {"qpid.queue_sort_key": "k"}, True, "x" * 256),
    "qpid.last_value_queue_key": ("k", {"qpid.last_value_queue_key": "k"}, 1, ""),
    "lvqKey": ("k", {"qpid.last_value_queue_key": "k"}, 1, ""),
    "qpid.last_value_queue": (True, {"qpid.last_value_queue_key": "qpid.LVQ_key"}, "yes", False),
    "messageGroupType": ("SHARED_GROUPS", {"messageGroupType": "SHARED_GROUPS"}, 1, "SOME"),
    "messageGroupKeyOverride": ("k", {"messageGroupKeyOverride": "k"}, 1, ""),
    "messageGroupDefaultGroup": ("g", {"messageGroupDefaultGroup": "g"}, 1, None),
    "maximumDistinctGroups": (7, {"maximumDistinctGroups": 7}, "7", 0),
    "ensureNondestructiveConsumers": (True, {"ensureNondestructiveConsumers": True}, "x", None),
    "holdOnPublishEnabled": (True, {"holdOnPublishEnabled": True}, "true", None),
    "defaultFilters": (FILTERS, {"defaultFilters": FILTERS}, 1, {"n": {"x-filter-jms-selector": ["a ="]}}),
    "x-message-deduplication": (True, {"x-message-deduplication": True}, "true", None),
    "x-cache-size": (5, {"x-cache-size": 5}, "5", 0, 100_001),
    "x-cache-ttl": (5, {"x-cache-ttl": 5}, 1.5, 0),
    "noLocal": (True, {"noLocal": True}, 1, None),
    "no-local": ("true", {"noLocal": True}, 1, "x"),
    "qpid.ensure_nondestructive_consumers": ("True", {"ensureNondestructiveConsumers": True}, 1, "x"),
    "qpid.default_filters": (json.dumps(FILTERS), {"defaultFilters": json.dumps(FILTERS)}, "{", {"n": {"x": []}}),
    "qpid.group_header_key": ("k", {"messageGroupKeyOverride": "k", "messageGroupType": "STANDARD"}, 1, ""),
    "qpid.shared_msg_group": ("1", {"messageGroupType": "SHARED_GROUPS"}, [], "2"),
    "qpid.default-message-group": ("g", {"messageGroupDefaultGroup": "g"}, 1, None),
    "x-overflow": ("reject-publish", {"x-overflow": "reject-publish"}, {}, None),
    "x-delayed-retry-type": ("failed", {"x-delayed-retry-type": "failed"}, 1, "never"),
    "x-delayed-retry-min": (100, {"x-delayed-retry-min": 100}, "100", 0),
    "x-delayed-retry-max": (100, {"x-delayed-retry-max": 100}, 1.5, 0),
    "x-queue-type": ("classic", {"x-queue-type": "classic"}, 1, None),
    "qpid.max_count": (5, {"x-max-length": 5, "x-overflow": "none"}, "5", -2),
    "maximumQueueDepthMessages": (-1, {"x-overflow": "none"}, "5", -2),
    "qpid.max_size": (5, {"x-max-length-bytes": 5, "x-overflow": "none"}, "5", -2),
    "maximumQueueDepthBytes": (0, {"x-max-length-bytes": 0, "x-overflow": "none"}, True, -2),
    "qpid.policy_type": ("ring", {"x-overflow": "ring"}, 1, "explode"),
    "overflowPolicy": ("REJECT", {"x-overflow": "reject-publish"}, {}, "FLOW_TO_DISK"),
    "x-qpid-maximum-delivery-count": (1, {"x-delivery-limit": 0}, "1", -1),
    "maximumDeliveryAttempts": (0, {}, True, -1),
    "x-qpid-priorities": (10, {"x-max-priority": 9}, "10", 0),
    "priorities": (3, {"x-max-priority": 2, "x-qpid-lowest-priority": 3}, True, 257),
    "maximumMessageTtl": (7, {"x-message-ttl": 7}, "7", -1),
    "maximumLiveConsumers": (1, {"x-single-active-consumer": True}, "1", -1),
    "exclusive": ("LINK", {"exclusive": "LINK"}, True, "SHARED_SUBSCRIPTION"),
    "qpid.exclusivity_policy": ("SESSION", {"exclusive": "SESSION"}, 1, "connection"),
    "lifetimePolicy": ("PERMANENT", {"lifetimePolicy": "PERMANENT"}, 1, "DELETE_ON_CREATING_LINK_CLOSE"),
    "qpid.lifetime_policy": ("DELETE_ON_NO_LINKS", {"lifetimePolicy": "DELETE_ON_NO_LINKS"}, {}, "IN_USE"),
    "x-qpid-live-consumers": (3, {"x-qpid-live-consumers": 3}, "3", 1),
}


def test_every_argument_is_tried() -> None:
    """There is none but those below."""
    assert set(EACH) == {each.name for each in (*queue.ARGUMENTS, *ALIASES)}


@pytest.mark.parametrize("name", EACH)
def test_each(name: str) -> None:
    """A right value is taken for what it says; a wrong-typed and an impossible one are refused under the name given."""
    right, says, *wrong = EACH[name]
    assert checked({name: right}) == said({name: right}) == says
    for value in wrong:
        with pytest.raises(Wrong) as error:
            checked({name: value})
        assert error.value.name == name
        assert error.value.why.startswith("must be ")


def test_unknown_names_say_nothing() -> None:
    """As in RabbitMQ."""
    assert checked({"x-mine": 1, "x-max-length": 5}) == {"x-max-length": 5}


def test_the_same_twice() -> None:
    """Both names at once are fine where they say the same, and refused where they do not."""
    assert checked({"x-message-ttl": 5, "maximumMessageTtl": 5}) == {"x-message-ttl": 5}
    with pytest.raises(Wrong, match="'maximumMessageTtl' says something else than 'x-message-ttl'"):
        checked({"x-message-ttl": 5, "maximumMessageTtl": 6})


def test_a_capacity_with_a_resume_capacity() -> None:
    """The two say what either does, and the policy; another one beside them is a contradiction."""
    both = {"x-qpid-capacity": 5, "x-qpid-flow-resume-capacity": 3}
    said_so = {"x-max-length-bytes": 5, "x-overflow": "producer-flow-control", "x-flow-resume-bytes": 3}
    assert checked(both) == said_so
    with pytest.raises(Wrong, match="says something else than"):
        checked({**both, "qpid.policy_type": "RING"})


def test_a_last_value_queue_with_a_key() -> None:
    """The key that is said goes before the one that is meant where none is."""
    table = {"qpid.last_value_queue": 1, "qpid.last_value_queue_key": "k"}
    assert checked(table) == {"qpid.last_value_queue_key": "k"}


def test_names_with_different_meanings() -> None:
    """A limit drops by RabbitMQ's name and does nothing by Broker-J's: with both, the policy has to be said."""
    both = {"x-max-length": 5, "qpid.max_count": 5}
    with pytest.raises(
        Wrong, match=r"'qpid\.max_count' has another 'x-overflow' in mind than 'x-max-length': say which"
    ):
        checked(both)
    assert checked({**both, "qpid.policy_type": "RING"}) == {"x-max-length": 5, "x-overflow": "ring"}


def test_dead_letters_that_expired() -> None:
    """Among them by RabbitMQ's name and not by Broker-J's: with both, the policy has to be said."""
    both = {"x-dead-letter-exchange": "e", "alternateExchange": "e"}
    with pytest.raises(Wrong, match="has another 'expiryPolicy' in mind than 'x-dead-letter-exchange': say which"):
        checked(both)
    routes = {"expiryPolicy": "ROUTE_TO_ALTERNATE"}
    assert checked({**both, **routes}) == {"x-dead-letter-exchange": "e", **routes}


def test_how_many_keys_were_accepted_once() -> None:
    """More than may be declared now: the queue is there, and knows as many as may be."""
    assert queue.ONCE_MOST.of(said({"x-cache-size": 1 << 20})) == queue.MOST_KEYS
    assert queue.ONCE_MOST.of(checked({"x-cache-size": queue.MOST_KEYS})) == queue.MOST_KEYS


def test_what_was_accepted_once() -> None:
    """A table from before a name was known is read all the same: what is no value of it says nothing."""
    assert said({"qpid.max_count": "many", "x-max-length": 5}) == {"x-max-length": 5}


def test_selectors_that_cost_much() -> None:
    """They are refused where they are said now. What a former release took is heeded, or every message would pass."""
    text = " OR ".join(f"kind LIKE '%order_event{number:02}%'" for number in range(25))
    filters = {"n": {"x-filter-jms-selector": [text]}}
    for name in ("defaultFilters", "qpid.default_filters"):
        with pytest.raises(Wrong, match="more than 256 characters stand between"):
            checked({name: filters})
        assert read_options(1, "/", "q", 0, {name: filters}).default_selector == text
    bound = Binding("q", "k", arguments.dump({"x-filter-jms-selector": text}))
    with pytest.raises(Wrong, match="more than 256 characters stand between"):
        binding.check(arguments.load(bound.arguments))
    source = Source(Exchange("/", "e", "direct"), plugins.load("exchange_types", "direct")())
    source.bind(bound)
    assert source.route(["k"], OfHeaders({"kind": "other"}))[0] == set()
    assert source.route(["k"], OfHeaders({"kind": "an order-event07 of today"}))[0] == {"q"}

"""Attributes of queues and x-arguments: defaults and meanings as in Broker-J."""

from __future__ import annotations

from typing import Any

import pytest

from services.mgmt.model.faults import IllegalConfiguration
from services.mgmt.model.queue import Queue
from services.mgmt.model.queue_arguments import arguments_of, attributes_of, changed_arguments, new_arguments

# What is said in the model, and what a client would have declared.
BOTH: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    (
        {"maximumQueueDepthMessages": 5, "overflowPolicy": "RING"},
        {"x-max-length": 5, "x-overflow": "ring"},
    ),
    (
        {"maximumQueueDepthBytes": 0, "overflowPolicy": "REJECT"},
        {"x-max-length-bytes": 0, "x-overflow": "reject-publish"},
    ),
    (
        {"maximumQueueDepthMessages": 5, "overflowPolicy": "NONE"},
        {"x-max-length": 5, "x-overflow": "none"},
    ),
    (
        {"maximumQueueDepthMessages": 5, "overflowPolicy": "PRODUCER_FLOW_CONTROL"},
        {"x-max-length": 5, "x-overflow": "producer-flow-control"},
    ),
    ({"overflowPolicy": "REJECT_TO_ALTERNATE"}, {"x-overflow": "reject-publish-dlx"}),
    ({"maximumMessageTtl": 60000}, {"x-message-ttl": 60000}),
    (
        {"maximumMessageTtl": 60000, "minimumMessageTtl": 9},
        {"x-message-ttl": 60000, "minimumMessageTtl": 9},
    ),
    ({"maximumDeliveryAttempts": 1}, {"x-delivery-limit": 0}),
    ({"maximumDeliveryAttempts": 6}, {"x-delivery-limit": 5}),
    ({"priorities": 10}, {"x-max-priority": 9}),
    ({"priorities": 3}, {"x-max-priority": 2, "x-qpid-lowest-priority": 3}),
    ({"type": "sorted", "sortKey": "k"}, {"qpid.queue_sort_key": "k"}),
    ({"type": "lvq", "lvqKey": "k"}, {"qpid.last_value_queue_key": "k"}),
    (
        {"messageGroupType": "STANDARD", "messageGroupKeyOverride": "k", "maximumDistinctGroups": 7},
        {"messageGroupType": "STANDARD", "messageGroupKeyOverride": "k", "maximumDistinctGroups": 7},
    ),
    ({"ensureNondestructiveConsumers": True}, {"ensureNondestructiveConsumers": True}),
    ({"holdOnPublishEnabled": True}, {"holdOnPublishEnabled": True}),
    ({"noLocal": True}, {"noLocal": True}),
    ({"maximumLiveConsumers": 1}, {"x-single-active-consumer": True}),
    ({"maximumLiveConsumers": 3}, {"x-qpid-live-consumers": 3}),
    (
        {"alternateBinding": {"destination": "dead"}, "expiryPolicy": "DELETE"},
        {"x-dead-letter-exchange": "dead", "expiryPolicy": "DELETE"},
    ),
    (
        {
            "alternateBinding": {"destination": "dead", "attributes": {"routingKey": "k"}},
            "expiryPolicy": "ROUTE_TO_ALTERNATE",
        },
        {
            "x-dead-letter-exchange": "dead",
            "x-dead-letter-routing-key": "k",
            "expiryPolicy": "ROUTE_TO_ALTERNATE",
        },
    ),
    (
        {"alternateBinding": {"destination": "a queue"}, "expiryPolicy": "DELETE"},
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "a queue", "expiryPolicy": "DELETE"},
    ),
]


@pytest.mark.parametrize(("attributes", "table"), BOTH)
def test_both_ways(attributes: dict[str, Any], table: dict[str, Any]) -> None:
    """What is set in the model becomes the arguments that mean it, and they are read as it was set."""
    assert arguments_of(attributes, lambda name: name == "dead") == table
    kind = "priority" if "priorities" in attributes else "standard"
    assert attributes_of(table) == {"type": kind, **attributes}


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ({"maximumLiveConsumers": -1}, "must be 0 to 65536, not -1"),
        ({"alternateBinding": {"destination": ""}}, "a map with a destination is wanted"),
        ({"type": "sorted"}, "a queue of type sorted needs it"),
        ({"lvqKey": "k", "sortKey": ""}, "must be the name of a header"),
        ({"priorities": 0}, "must be 1 to 256, not 0"),
    ],
)
def test_what_no_queue_is_like(wanted: dict[str, Any], why: str) -> None:
    """What Broker-J has and no queue here can be is refused, with the attribute that says it."""
    with pytest.raises(IllegalConfiguration, match=why):
        arguments_of(wanted, lambda _: False)


def test_others_arguments() -> None:
    """Arguments that no attribute is for go along, and win."""
    wanted = {"maximumMessageTtl": 5, "arguments": {"x-expires": 9, "x-message-ttl": 6}}
    assert arguments_of(wanted, lambda _: False) == {"x-expires": 9, "x-message-ttl": 6}


ALTERNATE = {"alternateBinding": {"destination": "dead"}}
ROUTES = {"expiryPolicy": "ROUTE_TO_ALTERNATE"}
DELETES = {"expiryPolicy": "DELETE"}
NULL = {"expiryPolicy": None}


@pytest.mark.parametrize(
    ("wanted", "expiry"),
    [
        (ALTERNATE, "DELETE"),
        (ALTERNATE | ROUTES, "ROUTE_TO_ALTERNATE"),
        (ALTERNATE | {"arguments": ROUTES}, "ROUTE_TO_ALTERNATE"),
        (ROUTES, "ROUTE_TO_ALTERNATE"),
        (ALTERNATE | NULL, "DELETE"),
        (NULL, None),
        (NULL | {"arguments": {"x-dead-letter-exchange": "dead"}}, None),
        ({}, None),
    ],
)
def test_what_expires(wanted: dict[str, Any], expiry: str | None) -> None:
    """It is deleted, as in Broker-J, unless its policy is to go to the alternate."""
    assert new_arguments(wanted, lambda _: True).get("expiryPolicy") == expiry


@pytest.mark.parametrize(
    ("wanted", "found", "expiry"),
    [
        (ALTERNATE, {}, DELETES),
        (ALTERNATE, ROUTES, {}),
        (ALTERNATE, ALTERNATE | ROUTES, {}),
        (ALTERNATE | ROUTES, {}, ROUTES),
        (ROUTES, ALTERNATE | DELETES, ROUTES),
        (NULL, ALTERNATE | ROUTES, DELETES),
        (NULL | ALTERNATE, ROUTES, DELETES),
        (NULL, ROUTES, NULL),
        (NULL | {"alternateBinding": {}}, ALTERNATE | ROUTES, NULL),
        ({"alternateBinding": None}, ALTERNATE | ROUTES, ROUTES),
        ({"alternateBinding": {}}, ALTERNATE | DELETES, DELETES),
        ({"alternateBinding": {}}, {}, {}),
        ({"maximumMessageTtl": 5}, ALTERNATE | ROUTES, {}),
    ],
)
def test_what_expires_is_changed(wanted: dict[str, Any], found: dict[str, Any], expiry: dict[str, Any]) -> None:
    """DELETE comes with an alternate where no policy is, and with null; a policy stays, whatever the alternate does."""
    told = changed_arguments({**wanted}, found, lambda _: True)
    assert {name: value for name, value in told.items() if name == "expiryPolicy"} == expiry


def test_defaults() -> None:
    """Of a queue of which nothing is said: Broker-J's."""
    queue = Queue(None, {"name": "q"})
    assert (queue.exclusive, queue.lifetime_policy, queue.durable, queue.type) == (
        "NONE",
        "PERMANENT",
        True,
        "standard",
    )
    assert (queue.maximum_queue_depth_messages, queue.maximum_queue_depth_bytes, queue.overflow_policy) == (
        -1,
        -1,
        "NONE",
    )
    assert (queue.maximum_message_ttl, queue.maximum_delivery_attempts, queue.maximum_live_consumers) == (0, 0, 0)
    assert Queue.attributes["priorities"].default == "${queue.priorities}"
    assert Queue.context_defaults == {"queue.priorities": "10"}

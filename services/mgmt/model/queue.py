"""Queue: Broker-J's attributes, of those that a queue can be like here.

Those that are not immutable a queue heeds from when they are changed (`services/common/arguments/changed.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from services.mgmt.model.attribute import (
    APART,
    CONTENT,
    SINCE,
    Operation,
    Parameter,
    Statistic,
    attribute,
    derived,
    resetting,
)
from services.mgmt.model.configured_object import ConfiguredObject

OVERFLOW = ("NONE", "RING", "REJECT", "REJECT_TO_ALTERNATE", "PRODUCER_FLOW_CONTROL")
_APART = f"{SINCE}, {APART.format('QUEUES')}"
EXCLUSIVE = ("NONE", "CONNECTION", "SESSION", "LINK", "CONTAINER", "PRINCIPAL", "PRINCIPAL_CONTAINER")
_CHOSEN = {"messageIds": Parameter(list), "selector": Parameter(str, ""), "limit": Parameter(int, -1)}
_GOING = {"destination": Parameter(str, mandatory=True), **_CHOSEN}
MOST_INFOS = 10_000
"""Messages that are described in one answer."""


class Queue(ConfiguredObject):
    """One incarnation of a queue."""

    parent_kind = "VirtualHost"
    types = ("standard", "priority", "sorted", "lvq")
    passing = True
    context_defaults: ClassVar[Mapping[str, str]] = {"queue.priorities": "10"}
    amqp_names: ClassVar[Mapping[str, str]] = {
        "standard": "org.apache.qpid.StandardQueue",
        "priority": "org.apache.qpid.PriorityQueue",
    }

    type: str = attribute(
        "what is next in it: priority where there are priorities, sorted and lvq where there is a key",
        immutable=True,
        valid=types,
    )
    exclusive: str = attribute("whose alone it is", "NONE", valid=EXCLUSIVE, immutable=True)
    owner: str = derived("the connection whose alone it is")
    priorities: int = attribute("how many", "${queue.priorities}", types=("priority",), immutable=True)
    sort_key: str = attribute("the header by whose text it is sorted", types=("sorted",), immutable=True)
    lvq_key: str = attribute("the header of whose values only the last one is kept", types=("lvq",), immutable=True)
    maximum_queue_depth_messages: int = attribute("waiting messages; -1: any number", -1)
    maximum_queue_depth_bytes: int = attribute("of waiting messages' bodies; -1: any number", -1)
    overflow_policy: str = attribute("what a full queue does", "NONE", valid=OVERFLOW)
    maximum_message_ttl: int = attribute("milliseconds after which a message goes; 0: never", 0)
    minimum_message_ttl: int = attribute("milliseconds, for messages that say less themselves", 0)
    maximum_delivery_attempts: int = attribute("after which a message goes; 0: any number", 0)
    alternate_binding: dict[str, Any] = attribute(
        "{destination}: the exchange or queue that gets dead letters; {}: none"
    )
    expiry_policy: str = attribute(
        "ROUTE_TO_ALTERNATE: what is past its time goes there, too", "DELETE", valid=("DELETE", "ROUTE_TO_ALTERNATE")
    )
    message_group_type: str = attribute(
        "whose the messages of one group are", "NONE", valid=("NONE", "STANDARD", "SHARED_GROUPS"), immutable=True
    )
    message_group_key_override: str = attribute(
        "the header that says a message's group; else its own property", immutable=True
    )
    message_group_default_group: str = attribute("of messages that say none", "qpid.no-group", immutable=True)
    maximum_distinct_groups: int = attribute("that standard groups are told apart by", 255, immutable=True)
    ensure_nondestructive_consumers: bool = attribute("all its consumers browse", False, immutable=True)
    hold_on_publish_enabled: bool = attribute(
        "messages that say when they may be delivered wait until then", False, immutable=True
    )
    no_local: bool = attribute("no consumer is given what its connection publishes", False)
    default_filters: dict[str, Any] = attribute(
        "{name: {x-filter-jms-selector: [selector]}} or {name: {x-qpid-replay-period: [seconds]}}, of all consumers", {}
    )
    maximum_live_consumers: int = attribute("1: one consumer gets everything; 0: all", 0, immutable=True)
    message_durability: str = derived("what outlives the stack", valid=("DEFAULT", "NEVER"))
    arguments: dict[str, Any] = attribute("x-arguments as they count now", {}, immutable=True)
    partition: int = derived("of the 64 (HOPLINE_PARTITIONS) that queue processes share")

    queue_depth_messages = Statistic("messages in it")
    queue_depth_bytes = Statistic("memory that it holds for them", "BYTES")
    available_messages = Statistic("messages that wait for a consumer")
    unacknowledged_messages = Statistic("messages that were handed out, and not settled")
    consumer_count = Statistic("consumers", "COUNT")
    consumer_count_with_credit = Statistic("consumers that may be sent a message now", "COUNT")
    binding_count = Statistic("bindings that lead to it", "COUNT")
    total_enqueued_messages = Statistic(f"messages that have come into it, {_APART}", cumulative=True)
    total_expired_messages = Statistic(f"of these, those whose time has ended in it, {_APART}", cumulative=True)

    reset_statistics = resetting()
    clear_queue = Operation("Drops all messages that wait; gives their number", returns="Long")
    get_consumers = Operation("Its consumers", modifying=False, returns="List")
    move_messages = Operation(
        "Moves messages that wait, and are chosen by all that is said, to another queue; gives their ids",
        _GOING,
        returns="List",
    )
    copy_messages = Operation(
        "Copies messages, also those that consumers hold, into a queue; gives their ids", _GOING, returns="List"
    )
    delete_messages = Operation("Drops messages that wait; gives their ids", _CHOSEN, returns="List")
    get_message_info = Operation(
        f"Describes messages, from a place in the queue to another, {MOST_INFOS} at most; those of consumers first",
        {"first": Parameter(int, -1), "last": Parameter(int, -1), "includeHeaders": Parameter(bool, False)},
        modifying=False,
        returns="List",
    )
    get_message_info_by_id = Operation(
        "Describes one message",
        {"messageId": Parameter(int, mandatory=True), "includeHeaders": Parameter(bool, True)},
        modifying=False,
        returns="Map",
    )
    get_message_content = Operation(
        "The body of a message: as it is, or as JSON of a map, a list or a text",
        {
            "messageId": Parameter(int, mandatory=True),
            "limit": Parameter(int, -1),
            "returnJson": Parameter(bool, False),
            "decompressBeforeLimiting": Parameter(bool, False),
        },
        modifying=False,
        returns=CONTENT,
    )

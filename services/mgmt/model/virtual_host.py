"""VirtualHostNode and VirtualHost."""

from __future__ import annotations

from services.mgmt.model.attribute import Operation, Parameter, Statistic, attribute, extracting
from services.mgmt.model.configured_object import ConfiguredObject


class VirtualHostNode(ConfiguredObject):
    """Where Broker-J keeps a virtual host: a mapping. Each virtual host here has one, of its name; none has a store."""

    parent_kind = "Broker"
    types = ("ProvidedStore",)

    default_virtual_host_node: bool = attribute("whether clients that name no virtual host come here", False)


class VirtualHost(ConfiguredObject):
    """One virtual host. It is made and deleted with its node."""

    parent_kind = "VirtualHostNode"
    types = ("ProvidedStore",)

    connection_count = Statistic("connections", "COUNT")
    queue_count = Statistic("queues", "COUNT")
    exchange_count = Statistic("exchanges, but the default one", "COUNT")
    total_depth_of_queues_messages = Statistic("messages in all queues")
    total_depth_of_queues_bytes = Statistic("memory that all queues hold", "BYTES")

    extract_config = extracting()
    get_connections = Operation("Names of its connections", modifying=False, returns="List")
    get_connection = Operation(
        "The name of one, where there is one of that name",
        {"name": Parameter(str, mandatory=True)},
        modifying=False,
        returns="String",
    )
    close_idle_connections = Operation(
        "Closes those that have asked for nothing, and were sent no message, for so long; gives how many",
        {
            "idleTimeMillis": Parameter(int, mandatory=True),
            "waitForClose": Parameter(bool, False),
            "timeoutMillis": Parameter(int, 10_000),
        },
        returns="Integer",
    )
    publish_message = Operation(
        "Publishes a message of the caller's; gives how many queues it is for",
        {"message": Parameter(dict, mandatory=True)},
        returns="Integer",
    )
    clear_queues = Operation(
        "Purges queues; gives how many messages went", {"queues": Parameter(list, mandatory=True)}, returns="Long"
    )
    clear_matching_queues = Operation(
        "The same of those whose names a regular expression fits",
        {"queueNamePattern": Parameter(str, ".*")},
        returns="Long",
    )

"""Broker: the root of the tree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from services.mgmt.model.attribute import (
    SINCE,
    Operation,
    Parameter,
    Statistic,
    attribute,
    derived,
    extracting,
    resetting,
)
from services.mgmt.model.configured_object import ConfiguredObject

MODEL_VERSION = "9.1"
"""Of Broker-J's model, whose names these are."""


class Broker(ConfiguredObject):
    """All of a stack."""

    name: str = attribute("what it is called", "${broker.name}", immutable=True)
    context_defaults: ClassVar[Mapping[str, str]] = {"broker.name": "Broker"}

    build_version: str = derived("of Hopline")
    product_version: str = derived("of Hopline")
    model_version: str = derived("of Broker-J's model, as far as it is here", default=MODEL_VERSION)
    operating_system: str = derived("of the machine that manages")
    number_of_cores: int = derived("of the machine that manages")

    store_processes: dict[str, str] = derived(
        "each store process, and whether it writes or stands by; empty where there can be but one", default={}
    )

    queue_count = Statistic("queues in all virtual hosts", "COUNT")
    exchange_count = Statistic("exchanges in all virtual hosts", "COUNT")
    total_depth_of_queues_messages = Statistic("messages in all queues")
    total_depth_of_queues_bytes = Statistic("memory that all queues hold", "BYTES")
    messages_in = Statistic(f"messages read whole from their publishers, {SINCE}", cumulative=True)
    messages_out = Statistic(f"messages written to the sockets of consumers, {SINCE}", cumulative=True)
    bytes_in = Statistic(f"bodies and properties of messagesIn, {SINCE}", "BYTES", cumulative=True)
    process_cpu_time = Statistic(
        f"milliseconds of processors that all processes took, {SINCE}", "TIME_DURATION", cumulative=True
    )

    reset_statistics = resetting()
    extract_config = extracting()
    get_user = Operation("Who asks", modifying=False, returns="String")
    get_groups = Operation("Groups that who asks is in", modifying=False, returns="List")
    purge_user = Operation(
        "Deletes all preferences of a user, whichever provider knows him",
        {"origin": Parameter(str), "username": Parameter(str, mandatory=True)},
    )

"""BrokerLogger and BrokerLogInclusionRule: where logs go, and what is in them."""

from __future__ import annotations

from services.mgmt.model.attribute import derived
from services.mgmt.model.configured_object import ConfiguredObject

LEVELS = ("DEBUG", "INFO", "WARN", "ERROR")


class BrokerLogger(ConfiguredObject):
    """A mapping: each process writes to its standard error, as the settings say with which it was started."""

    parent_kind = "Broker"
    types = ("Console",)

    layout: str = derived("how lines are written: for people, or each as JSON", valid=("console", "json"))
    console_stream_target: str = derived("which of a process's streams", default="STDERR")


class BrokerLogInclusionRule(ConfiguredObject):
    """What a logger takes; it changes with the settings only."""

    parent_kind = "BrokerLogger"
    types = ("NameAndLevel",)

    logger_name: str = derived("whose lines: ROOT is everybody's whom no other rule names")
    level: str = derived("from which level on", valid=LEVELS)

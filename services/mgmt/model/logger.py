"""BrokerLogger and BrokerLogInclusionRule: where logs go, and what is in them."""

from __future__ import annotations

from services.common.log_rules import LEVELS, LOGGERS
from services.mgmt.model.attribute import attribute, derived
from services.mgmt.model.configured_object import ConfiguredObject


class BrokerLogger(ConfiguredObject):
    """A mapping: each process writes to its standard error, as the settings say with which it was started."""

    parent_kind = "Broker"
    types = ("Console",)

    layout: str = derived("how lines are written: for people, or each as JSON", valid=("console", "json"))
    console_stream_target: str = derived("which of a process's streams", default="STDERR")


class BrokerLogInclusionRule(ConfiguredObject):
    """Lines that are written, of a logger from a level on: what any rule takes is. `hopline` and `libraries` stay."""

    parent_kind = "BrokerLogger"
    types = ("NameAndLevel",)

    logger_name: str = attribute(
        "whose lines: all of Hopline's, those of one service, ROOT: of libraries",
        mandatory=True,
        immutable=True,
        valid=LOGGERS,
    )
    level: str = attribute("from which level on", mandatory=True, valid=tuple(LEVELS))

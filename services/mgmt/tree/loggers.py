"""BrokerLogger and BrokerLogInclusionRule: mappings of how each process logs (`../../common/log.py`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from services.mgmt.model.configured_object import ConfiguredObject
from services.mgmt.model.logger import BrokerLogger, BrokerLogInclusionRule
from services.mgmt.tree.category import Keeper, Own

_LEVELS: Final = {"debug": "DEBUG", "info": "INFO", "warning": "WARN", "error": "ERROR"}
_LIBRARIES: Final = {**_LEVELS, "debug": "WARN", "info": "WARN"}
"""Of what is not Hopline's own there are warnings at least, and no more."""


class BrokerLoggers(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = BrokerLogger

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - the broker
        yield {"name": "stderr", "layout": self.house.settings.log_format}, ""


class BrokerLogInclusionRules(Keeper):
    """See services.mgmt.tree.category.Category."""

    kind = BrokerLogInclusionRule

    def described(self, parent: ConfiguredObject | None) -> Iterator[Own]:  # noqa: ARG002 - there is one
        level = self.house.settings.log_level
        yield {"name": "hopline", "loggerName": "services.*", "level": _LEVELS[level]}, ""
        yield {"name": "libraries", "loggerName": "ROOT", "level": _LIBRARIES[level]}, ""

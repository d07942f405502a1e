"""Loggers and their inclusion rules as records. Pure."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from services.common.log_rules import BEYOND_KIND, LogRule
from services.rpc.store_pb2 import Record

LOGGER_KIND: Final = "logger"
RULE_KIND: Final = BEYOND_KIND
BROKER_GROUP: Final = "broker_loggers"
HOST_GROUP: Final = "virtual_host_loggers"
"""Groups of plug-ins."""
BY_NAME: Final = "NameAndLevel"
BY_WHOSE: Final = "UserOrConnectionSpecific"


class Place(NamedTuple):
    """Of a logger: the whole broker's, of no virtual host, or one of a virtual host."""

    virtual_host: str
    name: str

    @property
    def key(self) -> str:
        """Of its record."""
        return json.dumps(self, ensure_ascii=False)

    def key_of(self, rule: str) -> str:
        """Of the record of one of its rules."""
        return json.dumps([*self, rule], ensure_ascii=False)


class LoggerRecord(BaseModel):
    """One logger; `host` is which incarnation of its virtual host it is of."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: str
    attributes: Mapping[str, Any]
    without_hosts: bool = False
    """Whether lines about something in a virtual host are left out."""
    host: str = ""

    def to_json(self) -> bytes:
        """The record's value."""
        return self.model_dump_json().encode()


class RuleRecord(LogRule):
    """One rule of such a logger. Processes know its name and level; whose lines it takes counts where they arrive."""

    type: str = BY_NAME
    username: str = ".*"
    connection: str = ".*"
    container: str = ".*"
    host: str = ""


def logger_in(value: bytes) -> LoggerRecord | None:
    """Of a record's value; None for what is none."""
    with contextlib.suppress(ValidationError):
        return LoggerRecord.model_validate_json(value)
    return None


def rule_in(value: bytes) -> RuleRecord | None:
    """The same of a rule's."""
    with contextlib.suppress(ValidationError):
        return RuleRecord.model_validate_json(value)
    return None


def record_of(kind: str, key: str, value: LoggerRecord | RuleRecord) -> Record:
    """To be kept."""
    return Record(kind=kind, key=key, value=value.to_json())

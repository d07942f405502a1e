"""Loggers of the broker and of virtual hosts, and their inclusion rules: where lines go, and which."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from services.common import plugins
from services.common.log_rules import LEVELS, ROOT
from services.mgmt.loggers.records import BROKER_GROUP, BY_NAME, BY_WHOSE, HOST_GROUP
from services.mgmt.model.attribute import CONTENT, Operation, Parameter, Statistic, attribute, derived, resetting
from services.mgmt.model.configured_object import ConfiguredObject

CONSOLE: Final = "Console"
_FILE: Final = ("File",)
_MEMORY: Final = ("Memory",)
_SYSLOG: Final = ("Syslog",)
_GRAYLOG: Final = ("Graylog",)
_HERE: Final = "by this management process, since it began"


def _giving(what: str, parameters: dict[str, Parameter], returns: str = CONTENT) -> Operation:
    return Operation(what, parameters, modifying=False, returns=returns)


class _Logger(ConfiguredObject):
    """What those of the broker and of virtual hosts have in common."""

    file_name: str = attribute("of its file, below the folder for logs of the machine that manages", types=_FILE)
    roll_daily: bool = attribute("whether a file begins each day, by UTC", types=_FILE)
    roll_on_restart: bool = attribute("whether a file begins when management does", types=_FILE)
    compress_old_files: bool = attribute("whether former files are gzipped", types=_FILE)
    max_history: int = attribute("former files that are kept; where it rolls daily, days", types=_FILE)
    max_file_size: int = attribute("mebibytes, with which a file begins anew", types=_FILE)
    log_files: list[dict[str, Any]] = derived("name, lastModified, size of each, the latest first", types=_FILE)
    syslog_host: str = attribute("to which its lines go as datagrams", types=_SYSLOG)
    suffix_pattern: str = attribute("how its lines are written, in Logback's words", types=_SYSLOG)
    port: int = attribute("of that host", types=(*_SYSLOG, *_GRAYLOG))
    remote_host: str = attribute("to which its lines go as GELF, over TCP", mandatory=True, types=_GRAYLOG)
    message_origin_host: str = attribute("of which host that is told that they are", mandatory=True, types=_GRAYLOG)
    static_fields: dict[str, Any] = attribute("fields of each message beside its own", types=_GRAYLOG)
    layout: str = attribute("how its lines are written, in Logback's words", types=(CONSOLE, *_FILE))
    trouble: str = derived("why its lines do not get there; state is ERRORED then")

    error_count = Statistic(f"lines of level ERROR that it took, {_HERE}", "COUNT", cumulative=True)
    warn_count = Statistic(f"lines of level WARN that it took, {_HERE}", "COUNT", cumulative=True)

    get_file = _giving("One of its files", {"fileName": Parameter(str, mandatory=True)})
    get_files = _giving("Some of its files, zipped", {"fileName": Parameter(list, mandatory=True)})
    get_all_files = _giving("All of its files, zipped", {})
    reset_statistics = resetting()


class BrokerLogger(_Logger):
    """Lines of all processes. Console is a mapping: each writes to its standard error, as its settings say."""

    parent_kind = "Broker"
    types = (CONSOLE, *plugins.names(BROKER_GROUP))

    type: str = attribute("of those that are installed", mandatory=True, immutable=True, valid=types)
    virtual_host_log_event_excluded: bool = attribute("whether lines about a virtual host are left out", False)
    max_records: int = attribute("lines that are kept", types=_MEMORY)
    console_stream_target: str = derived("which of a process's streams", default="STDERR", types=(CONSOLE,))

    get_log_entries = _giving("Lines of a Memory logger, after one", {"lastLogId": Parameter(int, 0)}, "List")


class VirtualHostLogger(_Logger):
    """Lines that say that they are about its virtual host, of all processes."""

    parent_kind = "VirtualHost"
    types = plugins.names(HOST_GROUP)

    type: str = attribute("of those that are installed", mandatory=True, immutable=True, valid=types)


class _InclusionRule(ConfiguredObject):
    """What those of both have in common."""

    types: ClassVar[tuple[str, ...]] = (BY_NAME, BY_WHOSE)

    type: str = attribute("by what lines are taken", BY_NAME, immutable=True, valid=types)
    logger_name: str = attribute(
        "whose lines: a module, or a library's logger; services.gateway.*: all below it, or of that process; ROOT: all",
        ROOT,
        immutable=True,
    )
    level: str = attribute("from which level on", "INFO", valid=LEVELS)
    username: str = attribute("of whom, a regular expression", ".*", types=(BY_WHOSE,))
    connection_name: str = attribute("of which connection, the same", ".*", types=(BY_WHOSE,))
    remote_container_id: str = attribute("of which container, the same", ".*", types=(BY_WHOSE,))
    trouble: str = derived("why it takes nothing until it is changed; state is ERRORED then", types=(BY_WHOSE,))


class BrokerLogInclusionRule(_InclusionRule):
    """Lines that a logger takes: what any of its rules takes is. Of standard error, `hopline` and `libraries` stay."""

    parent_kind = "BrokerLogger"


class VirtualHostLogInclusionRule(_InclusionRule):
    """The same of a logger of a virtual host."""

    parent_kind = "VirtualHostLogger"

"""Logging: structlog, an event in words and keys; JSON lines or console. A line says what happened and what to do."""

from __future__ import annotations

import atexit
import logging
import sys
from collections.abc import Iterable
from typing import Final

from services.common.absent import absent
from services.common.log_console import PlainConsole
from services.common.log_lines import RECENT
from services.common.log_rules import LogRule, Taken, of_settings
from services.common.log_stream import LogStream
from services.common.printable import printable, printable_lines

# structlog would load rich and Pygments for coloured tracebacks, which our lines never have: 26 MB of an idle stack.
# So each service must import this module before any other that logs.
with absent("rich"):
    import structlog

_LONGEST = 2000  # characters of one value
_LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40, "exception": 40, "critical": 40}
_WHOSE: Final = "_whose"
_PASSED: Final = ("structlog", "services.common.few_lines", __name__)
"""Modules that log for others."""


class _Heeded:
    """What rules take: for standard error, and for all loggers together. Not before there are some: all."""

    def __init__(self) -> None:
        everything = (LogRule(logger="", level="ALL"),)
        self.service = ""
        self.console = self.all = Taken(everything, "")
        self.stream: LogStream | None = None


_HEEDED: Final = _Heeded()
"""Loggers are remembered, so the level cannot be theirs."""


def configure(service: str, style: str, level: str) -> None:
    """Sets up structlog for this process; every line carries the service's name. Lines of libraries look the same."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        cut,
    ]
    shown: list[structlog.typing.Processor] = (
        [structlog.processors.JSONRenderer()]
        if style == "json"
        else [show_plainly, structlog.dev.ConsoleRenderer(colors=True) if sys.stderr.isatty() else PlainConsole()]
    )
    stream = _HEEDED.stream = LogStream(sys.stderr)
    atexit.register(stream.write_out)
    structlog.configure(
        processors=[drop, *shared, tell, *shown],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS["debug"]),
        logger_factory=stream,
        cache_logger_on_first_use=True,
    )
    libraries = logging.StreamHandler(stream)
    libraries.setFormatter(_of_libraries(shared, *shown))
    libraries.addFilter(lambda record: _HEEDED.console.takes(record.levelno, record.name, own=False))
    logging.basicConfig(handlers=[libraries, _Telling(_of_libraries(shared, _tell_of_library))])
    RECENT.begin(service)
    _HEEDED.service = service.partition("-")[0]
    heed(of_settings(level).values())
    structlog.contextvars.bind_contextvars(service=service)


def write_out() -> None:
    """Writes the lines that wait, of a process that is about to end without further ado."""
    if _HEEDED.stream:
        _HEEDED.stream.write_out()


def _of_libraries(
    shared: list[structlog.typing.Processor], *last: structlog.typing.Processor
) -> structlog.stdlib.ProcessorFormatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
    )


def heed(console: Iterable[LogRule], beyond: Iterable[LogRule] = ()) -> None:
    """Lines that these rules take are written to standard error; those of loggers `beyond` it are kept for them."""
    of_console = list(console)
    _HEEDED.console = Taken(of_console, _HEEDED.service)
    _HEEDED.all = Taken([*of_console, *beyond], _HEEDED.service)
    # Never NOTSET, with which it would be as if there were no level.
    logging.getLogger().setLevel(max(_HEEDED.all.others, 1))


def drop(
    _logger: structlog.typing.WrappedLogger, method: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Ends a line that nobody wants to have; notes the module of another."""
    if (number := _LEVELS.get(method, _LEVELS["error"])) < _HEEDED.all.own:
        raise structlog.DropEvent
    module = _module()
    if not _HEEDED.all.takes(number, module, own=True):
        raise structlog.DropEvent
    line[_WHOSE] = module
    return line


def _module() -> str:
    """Of who logs: loggers have no names."""
    frame = sys._getframe(1)  # noqa: SLF001 - as libraries for logging do
    while (caller := frame.f_back) is not None:
        frame, name = caller, str(caller.f_globals.get("__name__", ""))
        if not name.startswith(_PASSED):
            return name
    return ""


def tell(
    _logger: structlog.typing.WrappedLogger, method: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Keeps a line for other loggers; ends one that is for them alone."""
    module = line.pop(_WHOSE)
    RECENT.add(_plain(line), module, own=True)
    if not _HEEDED.console.takes(_LEVELS.get(method, _LEVELS["error"]), module, own=True):
        raise structlog.DropEvent
    return line


class _Telling(logging.Handler):
    """The same of lines of libraries."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)

    def emit(self, record: logging.LogRecord) -> None:
        if _HEEDED.all.takes(record.levelno, record.name, own=False):
            try:
                self.format(record)
            except Exception:  # noqa: BLE001 - as of any handler: who logs goes on
                self.handleError(record)


def _tell_of_library(_logger: structlog.typing.WrappedLogger, _method: str, line: structlog.typing.EventDict) -> str:
    RECENT.add(_plain(line), line["logger"], own=False)
    return ""


def _plain(line: structlog.typing.EventDict) -> structlog.typing.EventDict:
    return show_plainly(None, "", dict(line))


def cut(
    _logger: structlog.typing.WrappedLogger, _method: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Shortens long texts to their beginning: a refused name may be as long as a frame, again and again."""
    for key, value in line.items():
        if isinstance(value, str) and len(value) > _LONGEST and key != "exception":
            line[key] = f"{value[:_LONGEST]}… ({len(value)} characters)"
    return line


def show_plainly(
    _logger: structlog.typing.WrappedLogger, _method: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Escapes what a terminal would obey: lines have names and texts that clients chose. JSON escapes them itself."""
    for key, value in line.items():
        if isinstance(value, str) and not value.isprintable():
            line[key] = printable_lines(value) if key == "exception" else printable(value)
    return line

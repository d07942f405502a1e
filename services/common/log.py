"""Logging: structlog, an event in words and keys; JSON lines or console. A line says what happened and what to do."""

from __future__ import annotations

import logging
import sys

from services.common.absent import absent
from services.common.printable import printable, printable_lines

# structlog would load rich and Pygments for coloured tracebacks, which our lines never have: 26 MB of an idle stack.
# So each service must import this module before any other that logs.
with absent("rich"):
    import structlog

_LONGEST = 2000  # characters of one value
_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_TAKEN = _LEVELS.copy()
"""By a line's method: what is missing here is dropped. Loggers are remembered, so the level cannot be theirs."""


def configure(service: str, style: str, level: str) -> None:
    """Sets up structlog for this process; every line carries the service's name. Lines of libraries look the same."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        cut,
    ]
    last: list[structlog.typing.Processor] = (
        [structlog.processors.JSONRenderer()]
        if style == "json"
        else [show_plainly, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())]
    )
    structlog.configure(
        processors=[drop, *shared, *last],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS["debug"]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    libraries = logging.StreamHandler(sys.stderr)
    libraries.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        )
    )
    logging.basicConfig(handlers=[libraries])
    take_from(level, level if _LEVELS[level] > logging.WARNING else "warning")
    structlog.contextvars.bind_contextvars(service=service)


def take_from(own: str, others: str) -> None:
    """From which level on lines are written: Hopline's own, and those of libraries."""
    _TAKEN.clear()
    _TAKEN.update({name: number for name, number in _LEVELS.items() if number >= _LEVELS[own]})
    logging.getLogger().setLevel(_LEVELS[others])


def drop(
    _logger: structlog.typing.WrappedLogger, method: str, line: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Ends a line that nobody wants to have."""
    if method in _LEVELS and method not in _TAKEN:
        raise structlog.DropEvent
    return line


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

"""A line of the log as people read it, without colours: as structlog's own renderer writes it, in a third of the time.

A gateway whose clients come and go by hundreds a second writes as many lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from services.common.absent import absent

with absent("rich"):  # see log.py
    import structlog

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger

_SELDOM: Final = frozenset(("stack", "exc_info", "logger", "logger_name"))
"""Who says one of these gets it from structlog."""
_SEPARATES: Final = frozenset(" \t=\r\n\"'")


class PlainConsole:
    """A processor, the last one."""

    def __init__(self) -> None:
        self._of_structlog = structlog.dev.ConsoleRenderer(colors=False)

    def __call__(self, logger: WrappedLogger, name: str, line: EventDict) -> str:
        """The line's text."""
        if not _SELDOM.isdisjoint(line) or "timestamp" not in line or "level" not in line:
            return self._of_structlog(logger, name, line)
        exception = line.pop("exception", None)
        text = f"{line.pop('timestamp')} [{line.pop('level'):<9}] {line.pop('event')!s:<30}"
        text = " ".join((text, *[f"{key}={_shown(line[key])}" for key in sorted(line)])).rstrip(" ")
        return text if exception is None else f"{text}\n{exception}"


def _shown(value: object) -> str:
    if not isinstance(value, str):
        return repr(value)
    return repr(value) if not _SEPARATES.isdisjoint(value) else value

"""Whether a store can write to the program that keeps its data (PostgreSQL, NATS); if not, since when, and why."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import structlog

from services.common.clock import epoch_ms
from services.common.errors import InternalError
from services.common.restored import utc

log = structlog.get_logger()

ENDS = "mend what the reason says, if it comes again; a store that is started again reads what is there"
"""What an operator does about a store that cannot go on."""


class Away(InternalError):
    """The program is away, or refuses for now; the request is tried again."""

    def __init__(self, text: str, do: str = "") -> None:
        """`do`: the remedy."""
        super().__init__(text)
        self.do = do


class Standing:
    """The standing with `what` ("the database"); `shown` names it for people, `do` is the usual remedy."""

    def __init__(self, shown: str, what: str, do: str) -> None:
        self._shown = shown
        self._what = what
        self._do = do
        self._since = 0  # ms, or 0
        self._tell_end: Callable[[BaseException], None] = lambda _: None
        self.trouble = ""
        self.ended: InternalError | None = None

    def watch(self, ended: Callable[[BaseException], None]) -> None:
        """`ended` is called once when this process can never write again."""
        self._tell_end = ended

    def lost(self, why: str, *, gone: bool, do: str = "", asked: int = 0) -> Away:
        """A request has failed: the program is `gone` or refuses; `do` is the remedy if it is not the usual one.

        `asked`: when that was (Unix ms), if not just now: one that hangs is given some seconds, in which nothing was
        written either. Gives the error to raise.
        """
        first, self._since = not self._since, self._since or asked or epoch_ms()
        how = "is away" if gone else "refuses"
        self.trouble = f"{self._shown} {how} since {utc(self._since)}: {why}"
        away = Away(self.trouble, do or self._do)
        if first:
            log.error("cannot write, commits wait", to=self._what, place=self._shown, reason=why, do=away.do)
        return away

    def back(self, **fates: str) -> None:
        """Requests work again; `fates` are the outcomes of what was under way, for the log."""
        if self._since:
            seconds = (epoch_ms() - self._since) / 1000
            log.info("it can write again", to=self._what, place=self._shown, seconds=seconds, **fates)
            self._since, self.trouble = 0, ""

    def end(self, why: str) -> NoReturn:
        """This process can never write again. Raises InternalError."""
        self._since, self.trouble = self._since or epoch_ms(), why
        self.ended = InternalError(why)
        log.critical("this process writes no more", reason=why, do=ENDS)
        self._tell_end(self.ended)
        raise self.ended

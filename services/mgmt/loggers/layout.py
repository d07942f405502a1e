"""How a line is written: a pattern in Logback's grammar, as far as its words mean something here. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Final

from services.mgmt.model.faults import IllegalConfiguration
from services.rpc.logs_pb2 import Line

DEFAULT: Final = "%date{\"yyyy-MM-dd'T'HH:mm:ss,SSSXXX\", UTC} %-5level [%thread] \\(%logger{2}\\) - %msg%n"
"""Broker-J's."""
_ISO: Final = "yyyy-MM-dd HH:mm:ss,SSS"
_PART: Final = re.compile(
    r"\\(?P<plain>.)|%%|%(?P<pad>-?\d{1,2})?(?:\.-?\d{1,2})?(?P<word>[a-zA-Z]+)(?:\{(?P<option>[^}]*)\})?|(?P<text>[^\\%]+)|(?P<stray>.)",
    re.DOTALL,
)
_LETTERS: Final = re.compile(r"'(?P<quoted>[^']*)'|yyyy|MM|dd|HH|mm|ss|SSS|XXX|[^A-Za-z']")
_FIELDS: Final = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "XXX": "Z"}

Part = Callable[[Line], str]


class Layout:
    """Of one logger."""

    def __init__(self, pattern: str, attribute: str = "layout") -> None:
        """Raises IllegalConfiguration for what it does not know."""
        self._attribute = attribute
        self._parts = [self._part(each) for each in _PART.finditer(pattern)]

    def __call__(self, line: Line) -> str:
        """A line in it."""
        return "".join(part(line) for part in self._parts)

    def _part(self, found: re.Match[str]) -> Part:
        if (word := found["word"]) is None:
            text = found["plain"] or found["text"] or "%"
            return lambda _: text
        return partial(_padded, self._word(word, found["option"]), int(found["pad"] or 0))

    def _word(self, word: str, option: str | None) -> Part:
        if word in {"d", "date"}:
            return self._date(option or _ISO)
        if word in {"c", "lo", "logger"}:
            return partial(_shortened, int(option)) if option and option.isdecimal() else lambda line: line.logger
        if (part := _WORDS.get(word)) is None:
            known = "date, level, thread, logger, msg, n"
            raise IllegalConfiguration(f"attribute '{self._attribute}': %{word} means nothing here; there are {known}")
        return part

    def _date(self, option: str) -> Part:
        """Times are UTC, whatever zone is asked for."""
        quoted = re.match(r'\s*"([^"]*)"', option)
        pattern = quoted[1] if quoted else option
        pattern = _ISO if pattern.strip() == "ISO8601" else pattern
        pieces = list(_LETTERS.finditer(pattern))
        if "".join(each[0] for each in pieces) != pattern:
            raise IllegalConfiguration(
                f"attribute '{self._attribute}': of dates there are yyyy, MM, dd, HH, mm, ss, SSS, XXX, not {pattern!r}"
            )
        return lambda line: "".join(_field(each, line.time_us) for each in pieces)


def _field(piece: re.Match[str], time_us: int) -> str:
    if (quoted := piece["quoted"]) is not None:
        return quoted or "'"
    if piece[0] == "SSS":
        return f"{time_us // 1000 % 1000:03}"
    return datetime.fromtimestamp(time_us // 1_000_000, UTC).strftime(_FIELDS.get(piece[0], piece[0]))


def _padded(part: Part, width: int, line: Line) -> str:
    text = part(line)
    return text.ljust(-width) if width < 0 else text.rjust(width)


def _shortened(most: int, line: Line) -> str:
    """Names before the last one to their first letters, as long as it is longer than wanted."""
    *first, last = line.logger.split(".")
    for index, name in enumerate(first):
        if len(".".join([*first, last])) <= most:
            break
        first[index] = name[:1]
    return ".".join([*first, last])


_WORDS: Final[dict[str, Part]] = {
    **dict.fromkeys(("p", "le", "level"), lambda line: str(line.level)),
    **dict.fromkeys(("t", "thread"), lambda line: str(line.instance)),
    **dict.fromkeys(("m", "msg", "message"), lambda line: str(line.text)),
    "n": lambda _: "\n",
}

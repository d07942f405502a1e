"""Times for people."""

from __future__ import annotations

from datetime import datetime

_MS, _SECOND = 1_000, 1_000_000
_MINUTE, _HOUR, _DAY = 60 * _SECOND, 3600 * _SECOND, 86_400 * _SECOND


def duration(microseconds: int) -> str:
    """In the two largest units that say something: `412 µs`, `3.1 ms`, `2.41 s`, `3 m 12 s`, `2 h 03 m`, `1 d 04 h`."""
    sign, span = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    return sign + _positive(span)


def moment(time_us: int) -> str:
    """In this machine's time zone, to the microsecond."""
    return datetime.fromtimestamp(time_us / _SECOND).astimezone().strftime("%Y-%m-%d %H:%M:%S.%f")


def _positive(span: int) -> str:
    if span < _MS:
        return f"{span} µs"
    if span < _SECOND:
        return f"{span / _MS:.1f} ms"
    if span < _MINUTE:
        return f"{span / _SECOND:.2f} s"
    if span < _HOUR:
        return f"{span // _MINUTE} m {span % _MINUTE // _SECOND:02} s"
    if span < _DAY:
        return f"{span // _HOUR} h {span % _HOUR // _MINUTE:02} m"
    return f"{span // _DAY} d {span % _DAY // _HOUR:02} h"

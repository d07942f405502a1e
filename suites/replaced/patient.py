"""A plug-in of pytest: tests of aio-pika may take longer than they say, as half a minute is short on a slow machine."""

from __future__ import annotations

import importlib
from typing import Any

TIMES = 4

_aiomisc: Any = importlib.import_module("aiomisc")  # only where aio-pika's tests are run
_timeout = _aiomisc.timeout


def timeout(seconds: float) -> object:
    """Aiomisc's decorator, with so many times the seconds."""
    return _timeout(seconds * TIMES)


_aiomisc.timeout = timeout

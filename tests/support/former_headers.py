"""Messages whose headers are no field table: a former release took them, so journals may have some."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from services.common.message.amqp_0_9 import FORMAT, layouts
from services.common.message.amqp_0_9.layouts import Layouts


@contextmanager
def any_headers_taken() -> Iterator[None]:
    """Gateways of this process take any headers as long as it lasts: what they publish is as if it had been stored."""
    try:
        # Nor is a layout learnt of what they take meanwhile.
        with patch.object(layouts, "check", lambda *_: 0), patch.object(Layouts, "_learn", lambda *_: None):
            yield
    finally:
        FORMAT._memo.clear()  # has found them to be in order

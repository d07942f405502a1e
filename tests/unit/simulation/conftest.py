from __future__ import annotations

import pytest

from tests.support.written_history import Written


@pytest.fixture
def told() -> Written:
    """A durable queue `q`."""
    written = Written()
    written.queue("q")
    return written

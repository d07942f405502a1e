from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.common import secret

SECRET = "0123456789abcdef"


@pytest.fixture
def known() -> Iterator[str]:
    """The secret of this process, for one test."""
    secret.use(SECRET)
    yield SECRET
    secret.use("")

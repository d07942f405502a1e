from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.apart import reopened


@pytest.fixture
async def apart(tmp_path: Path) -> Any:
    provider = await reopened(tmp_path)
    yield provider
    await provider.close()

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import LedgerFiles


@pytest.fixture
def ledger(tmp_path: Path) -> LedgerFiles:
    return LedgerFiles(tmp_path / "ledger")


@pytest.fixture
async def look_up(ledger: LedgerFiles) -> AsyncIterator[LookUp]:
    opened = LookUp(ledger.folder)
    yield opened
    await opened.stop()

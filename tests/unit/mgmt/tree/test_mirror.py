"""What the tree is read from."""

from __future__ import annotations

import pytest

from services.common.errors import Unavailable
from services.mgmt.tree import mirror
from services.mgmt.tree.mirror import Mirror


async def test_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Is told after some seconds: nobody waits for it without end."""
    monkeypatch.setattr(mirror, "_PATIENCE", 0.01)
    with pytest.raises(Unavailable, match="the store does not tell"):
        await Mirror().known()

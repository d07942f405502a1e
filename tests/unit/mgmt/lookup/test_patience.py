from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest

from services.mgmt.lookup.lookup import LookUp
from tests.support.ledger_files import LedgerFiles, uid


class _Coming:
    """What nobody has told yet: it is on file when it is asked for the `asked`-th time."""

    def __init__(self, ledger: LedgerFiles, asked: int) -> None:
        self._ledger = ledger
        self.left = asked

    def unfiled(self) -> Mapping[str, pa.Table]:
        self.left -= 1
        if self.left == 0:
            self._ledger.stage("received", uid(1))
            self._ledger.named("new", uid(1))
            self._ledger.file()
        return {}


@pytest.mark.parametrize(("patience", "found"), [((), 0), ((0.0,), 0), ((0.0, 0.0), 1), ((0.0, 0.0, 3600.0), 1)])
async def test_what_has_just_happened(ledger: LedgerFiles, patience: tuple[float, ...], found: int) -> None:
    """An id that is not there is looked for again, until it is, or patience is at its end."""
    look_up = LookUp(ledger.folder, _Coming(ledger, 3).unfiled, patience=patience)
    assert len((await look_up.trace("new")).journeys) == found
    await look_up.stop()


async def test_no_patience_in_trouble(ledger: LedgerFiles) -> None:
    """While nothing is put on file, there is nothing to wait for."""
    troubles: Iterator[str] = iter(["", *["a full disk"] * 9])
    look_up = LookUp(ledger.folder, trouble=lambda: next(troubles), patience=(3600.0,))
    assert (await look_up.trace("new")).trouble == "a full disk"
    await look_up.stop()

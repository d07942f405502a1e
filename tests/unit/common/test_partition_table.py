from __future__ import annotations

import pytest

from services.common.clients.partition_table import Owner, PartitionTable

NUMBER, UNOWNED = 5, 6


@pytest.mark.parametrize(("epoch", "is_believed"), [(2, False), (3, True), (4, True), (0, True), (None, True)])
def test_the_end_of_a_term(epoch: int | None, *, is_believed: bool) -> None:
    """What is said of a former term says nothing of the present one; where no term is named, it does."""
    table = PartitionTable({NUMBER: Owner("queue-1", "unix:q", 3)})
    terms = () if epoch is None else (epoch, epoch)
    assert table.ended((NUMBER, UNOWNED), terms) == ({NUMBER, UNOWNED} if is_believed else {UNOWNED})

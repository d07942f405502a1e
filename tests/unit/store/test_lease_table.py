"""The members of the lease table, in the order in which they were first heard."""

from __future__ import annotations

from services.store.lease_table import Alive, Table
from services.store.provider import LeaseRow


def _row(number: int, member: str) -> LeaseRow:
    return LeaseRow(name=f"partition/{number}", role="queue", epoch=1, member=member, address="q1")


def _heard(table: Table, member: str) -> None:
    table.renew(member, Alive("queue", "q1", 9.0, 2.0))


def _members(table: Table) -> list[str]:
    return [member.member for member in table.published("queue").members]


def test_after_a_start_of_the_store() -> None:
    """Of two holders that it reads, the one that is heard is the last at their address, whichever was read first."""
    table = Table()
    table.restore([_row(0, "living"), _row(1, "dead")], version=1, now=0.0, ttl=2.0)
    version = table.version
    _heard(table, "living")
    assert _members(table) == ["dead", "living"]
    assert table.version > version
    version = table.version
    _heard(table, "living")
    assert table.version == version


def test_one_after_the_other() -> None:
    """Who joins later stands behind, however often the former is heard."""
    table = Table()
    for member in ("former", "next", "former"):
        _heard(table, member)
    assert _members(table) == ["former", "next"]

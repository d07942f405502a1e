"""Files of the ledger as they are opened: what their footers say of columns is looked at first."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.mgmt.ledger.footers import opened, require_shape
from services.mgmt.ledger.schema import TABLES
from tests.support.ledger_files import SCHEMAS


def _range(kind: pa.DataType = pa.int64(), last: str = "last", *, nullable: bool = False) -> pa.DataType:  # noqa: B008 - a type
    return pa.struct([pa.field("first", kind, nullable=nullable), pa.field(last, kind, nullable=False)])


def _list(element: pa.DataType, *, nullable: bool = False) -> pa.Schema:
    return pa.schema([pa.field("uids", pa.list_(pa.field("element", element, nullable=nullable)))])


@pytest.mark.parametrize("table", TABLES)
def test_tables(table: str) -> None:
    """Every table passes, as mgmt writes it and as others may."""
    require_shape(TABLES[table])
    require_shape(SCHEMAS.get(table, TABLES[table]))


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(pa.schema([pa.field("queue", pa.string(), nullable=False)]), id="never null"),
        pytest.param(pa.schema([pa.field("queue", pa.list_(pa.string()))]), id="repeated"),
        pytest.param(pa.schema([pa.field("uids", _range())]), id="no list"),
        pytest.param(_list(_range(), nullable=True), id="a list of what may be null"),
        pytest.param(_list(_range(nullable=True)), id="an end that may be null"),
        pytest.param(_list(_range(last="lasu")), id="another name"),
        pytest.param(_list(pa.list_(_range())), id="a list in a list"),
    ],
)
def test_damaged(tmp_path: Path, schema: pa.Schema) -> None:
    """One in which a bit has flipped that tells how a column is nested is refused before Arrow looks further."""
    path = tmp_path / "a.parquet"
    pq.write_table(schema.empty_table(), path)
    with pytest.raises(ValueError, match="is not as in any table"):
        opened(path)

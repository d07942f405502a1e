from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from services.mgmt.lookup import id_pages
from services.mgmt.lookup.id_pages import that_may_have
from services.mgmt.lookup.raw_pages import Chunk, Page, chunk_of

IDS = sorted(f"id-{number * 7919 % 100_003:06}" for number in range(5000))
SMALL = {"data_page_size": 1024, "write_page_checksum": True}


def _written(folder: Path, ids: list[str], **settings: Any) -> tuple[str, list[Chunk]]:
    path = folder / "a.parquet"
    pq.write_table(pa.table({"id": ids}), path, row_group_size=2000, store_schema=False, **settings)
    footer = pq.read_metadata(path)
    return str(path), [chunk_of(footer.row_group(group).column(0)) for group in range(footer.num_row_groups)]


@pytest.mark.parametrize("compression", ["zstd", "none"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_every_id(tmp_path: Path, compression: str, dictionary: bool) -> None:
    """An id may be in the row group that has it, and in no other, whatever its pages are."""
    path, chunks = _written(tmp_path, IDS, compression=compression, use_dictionary=dictionary, **SMALL)
    for place in (0, 1, 1999, 2000, 3333, 4999):
        assert that_may_have(path, chunks, IDS[place]) == [place // 2000 == group for group in range(3)]
    for name in ("id-", "id-0000000", "", "é", "\udc80"):
        assert not any(that_may_have(path, chunks, name))


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"compression": "gzip"}, id="compression"),
        pytest.param({"data_page_version": "2.0"}, id="version of pages"),
        pytest.param({"use_dictionary": False, "column_encoding": {"id": "DELTA_BYTE_ARRAY"}}, id="encoding"),
    ],
)
def test_not_known(tmp_path: Path, settings: dict[str, Any]) -> None:
    """Where ids are written in a way that is not known, any may be there."""
    path, chunks = _written(tmp_path, IDS, **settings)
    assert that_may_have(path, chunks, "none") == [True] * 3


def _flipped(data: bytes, chunk: Chunk) -> bytes:
    place = chunk.begin + chunk.size - 1
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(_flipped, id="a bit"),
        pytest.param(lambda data, chunk: data[: chunk.begin + chunk.size // 2], id="cut off"),
        pytest.param(lambda data, chunk: data[: chunk.begin] + bytes(chunk.size), id="zeros"),
        pytest.param(lambda data, chunk: data[: chunk.begin] + b"\xff" * chunk.size, id="ones"),
        pytest.param(lambda data, chunk: data[: chunk.begin], id="nothing"),
    ],
)
def test_damage(tmp_path: Path, damage: Callable[[bytes, Chunk], bytes]) -> None:
    """A damaged page may have any id: who reads it finds out."""
    path, chunks = _written(tmp_path, IDS, compression="zstd", use_dictionary=False, **SMALL)
    Path(path).write_bytes(damage(Path(path).read_bytes(), chunks[0]))
    assert that_may_have(path, chunks[:1], "none") == [True]


def test_gone(tmp_path: Path) -> None:
    """So may a file that is gone."""
    path, chunks = _written(tmp_path, IDS)
    Path(path).unlink()
    assert that_may_have(path, chunks, "none") == [True] * 3


@pytest.mark.parametrize("compression", ["zstd", "none"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_any_bit_is_flipped(tmp_path: Path, compression: str, dictionary: bool) -> None:
    """Headers of pages have no checksum: whichever bit of a chunk is wrong, what it has is not said to be elsewhere."""
    path, [chunk] = _written(tmp_path, IDS[:20], compression=compression, use_dictionary=dictionary, **SMALL)
    data, damaged = bytearray(Path(path).read_bytes()), tmp_path / "damaged"
    for bit in range(8 * chunk.begin, 8 * (chunk.begin + chunk.size)):
        data[bit // 8] ^= 1 << bit % 8
        damaged.write_bytes(data)
        assert that_may_have(str(damaged), [chunk], IDS[7]) == [True], bit
        data[bit // 8] ^= 1 << bit % 8


@pytest.mark.parametrize("place", [0, 7, 8, 15, 16, 23])
def test_any_bit_is_flipped_of_several_pages(tmp_path: Path, place: int) -> None:
    """The same where a page is chosen by what its header says: for its first id, and its last."""
    settings = {"compression": "none", "use_dictionary": False, "write_batch_size": 8, **SMALL, "data_page_size": 1}
    path, [chunk] = _written(tmp_path, IDS[:24], **settings)
    data, damaged = bytearray(Path(path).read_bytes()), tmp_path / "damaged"
    for bit in range(8 * chunk.begin, 8 * (chunk.begin + chunk.size)):
        data[bit // 8] ^= 1 << bit % 8
        damaged.write_bytes(data)
        assert that_may_have(str(damaged), [chunk], IDS[place]) == [True], bit
        data[bit // 8] ^= 1 << bit % 8


def test_one_page_is_decompressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several pages, which are sorted, the one is looked into whose header says that it can have the id."""
    path, chunks = _written(tmp_path, IDS, compression="zstd", use_dictionary=False, write_batch_size=100, **SMALL)
    looked_at: list[int] = []
    content = id_pages._content

    def content_noted(page: Page, codec: str) -> bytes:
        looked_at.append(page.size)
        return content(page, codec)

    monkeypatch.setattr(id_pages, "_content", content_noted)
    for name in (IDS[2345], f"{IDS[2345]}-not"):
        looked_at.clear()
        assert that_may_have(path, chunks[1:2], name) == [name in IDS]
        assert len(looked_at) == 1

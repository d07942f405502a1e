"""A backup's file: whole and as it was written, or refused with what is wrong."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from services.common.errors import PreconditionFailed, ResourceError
from services.rpc.store_pb2 import BackupHead, BackupPiece, EntryBatch, KeptDequeues, Record
from services.store.backup.file import BackupReader, BackupWriter, verify

PIECES = [
    BackupPiece(head=BackupHead(time_ms=1_700_000_000_000, generation=3)),
    BackupPiece(running=5, entries=[EntryBatch(id=1, partition=2, content=3, count=4, entries=b"columns")]),
    BackupPiece(running=5, dequeues=[KeptDequeues(batch=1, left=3), KeptDequeues(batch=1, left=1)]),
    BackupPiece(running=5, records=[Record(kind="user", key="a"), Record(kind="queue", key="b")]),
    BackupPiece(running=5, origin=7, incarnation=8),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small one."""
    path = tmp_path / "small.backup"
    writer = BackupWriter(path)
    for piece in PIECES:
        writer.add(piece)
    writer.finish()
    return path


def test_round_trip(path: Path) -> None:
    """All pieces come back, in order, and the manifest has counted what is left."""
    with BackupReader(path) as reader:
        assert list(reader.pieces()) == PIECES
    manifest = reader.manifest
    assert (manifest.generation, manifest.time_ms, manifest.pieces) == (3, 1_700_000_000_000, 5)
    assert (manifest.partitions, manifest.batches, manifest.messages) == ([2], 1, 1)
    assert manifest.records == {"user": 1, "queue": 1}
    assert str(manifest).startswith("backup of 2023-11-14 22:13:20 UTC, generation 3, format 1")


def test_only_its_owner_reads_it(path: Path) -> None:
    """Messages, and what passwords are checked by, are for its owner."""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_damaged_byte_is_found(path: Path) -> None:
    """Whichever byte is another, the file is refused, and it is said which file."""
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        with pytest.raises(PreconditionFailed, match=r"small.backup"):
            verify(path)


def test_every_cut_is_found(path: Path) -> None:
    """Wherever the file was cut off, between two parts too."""
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(PreconditionFailed, match=r"small.backup"):
            verify(path)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda whole: whole + b"x", r"goes on after its end"),
        (lambda whole: whole[:-1], r"part 6, from byte \d+ on, is not whole: the file was cut off"),
        (lambda whole: whole.replace(b"columns", b"colunms"), r"part 2, from byte \d+ on, is damaged: its checksum"),
        (lambda whole: whole.replace(b"backup 1\n", b"backup 2\n"), r"has format 2, and this release reads 1"),
        (lambda _: b"PK\x03\x04 something else entirely", r"is no backup of Hopline"),
        (lambda _: b"", r"is no backup of Hopline"),
    ],
)
def test_says_what_is_wrong(path: Path, change: object, says: str) -> None:
    """In words, and where."""
    path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(PreconditionFailed, match=says):
        verify(path)


def test_a_part_that_is_left_out(tmp_path: Path) -> None:
    """A file without its last pieces is refused, though each of its parts is as it was written."""
    writer = BackupWriter(tmp_path / "short.backup")
    writer.add(PIECES[0])
    writer.finish()
    with pytest.raises(PreconditionFailed, match="tells of another backup"):
        verify(tmp_path / "short.backup")


def test_no_file(tmp_path: Path) -> None:
    """One line for a file that is not there, and for one that cannot be made."""
    with pytest.raises(PreconditionFailed, match="No such file"):
        verify(tmp_path / "none.backup")
    with pytest.raises(ResourceError, match="No such file"):
        BackupWriter(tmp_path / "nowhere" / "one.backup")


def test_no_other_is_overwritten(path: Path) -> None:
    """A backup that is there stays as it is."""
    with pytest.raises(PreconditionFailed, match="there already"):
        BackupWriter(path)
    assert verify(path).generation == 3


def test_nothing_is_left_of_what_was_not_finished(tmp_path: Path) -> None:
    """A backup that was broken off leaves no file, under no name."""
    writer = BackupWriter(tmp_path / "one.backup")
    writer.add(PIECES[0])
    writer.discard()
    assert list(tmp_path.iterdir()) == []

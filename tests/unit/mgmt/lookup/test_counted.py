"""How much is remembered of files."""

from __future__ import annotations

from pathlib import Path

from services.mgmt.lookup import counted
from services.mgmt.lookup.counted import Counted
from services.mgmt.lookup.versions import Version, version_of


def _files(folder: Path, count: int) -> list[tuple[str, Version]]:
    found = []
    for number in range(count):
        path = folder / str(number)
        path.touch()
        version = version_of(str(path))
        assert version
        found.append((str(path), version))
    return found


def test_a_fifth_too_much(tmp_path: Path) -> None:
    """Of files that are asked again and again, a fifth more than there is room for, most stay known."""
    files, known = _files(tmp_path, 60), Counted[int](500, 100)
    read = 0
    for _ in range(10):
        for path, version in files:
            if known.of(path, version) is None:
                read += 1
                known.learn_instead(path, version, 7, 10)
    assert read < 60 + 9 * 30
    assert sum(known.of(*file) is not None for file in files) == 50


def test_a_large_one_among_small_ones(tmp_path: Path) -> None:
    """As many go as it needs the room of, and no more."""
    files, known = _files(tmp_path, 61), Counted[int](600, 100)
    for path, version in files[:60]:
        known.learn(path, version, 7, 10)
    known.learn_instead(*files[60], 7, 205)
    assert known.of(*files[60]) == 7
    assert sum(known.of(*file) is not None for file in files) == 1 + 39


def test_files_that_are_gone(tmp_path: Path) -> None:
    """They make room, after a while."""
    files, known = _files(tmp_path, 3), Counted[int](3, 100)
    for path, version in files:
        known.learn(path, version, 7, 1)
    Path(files[1][0]).unlink()
    room = [known.has_room(1) for _ in range(counted._REFUSED)]
    assert (room[0], room[-1]) == (False, True)
    assert [known.of(*file) for file in files] == [7, None, 7]


def test_more_than_all(tmp_path: Path) -> None:
    """What alone is too much is not learnt, and nothing is forgotten for it; nor is what was gone before."""
    [one, other], known = _files(tmp_path, 2), Counted[int](3, 2)
    known.learn_instead(*one, 7, 1)
    known.learn_instead(*other, 7, 4)
    known.learn("gone", None, 7, 1)
    assert [known.of(*one), known.of(*other), known.of("gone", None)] == [7, None, None]


def test_number_of_files(tmp_path: Path) -> None:
    """Files of nothing are counted too."""
    files, known = _files(tmp_path, 3), Counted[int](3, 2)
    for path, version in files:
        known.learn(path, version, 7, 0)
    assert [known.of(*file) for file in files] == [7, 7, None]

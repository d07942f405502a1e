"""The step to the next generation: above all that can have been given since, and within the widths of each number."""

from __future__ import annotations

import pytest

from services.common.errors import ResourceError
from services.store.backup.generation import Generation, Given
from services.store.origins import LAST_ORIGIN

DAY = 24 * 3600.0
GIVEN = Given(1, origin=100, incarnation=3, epochs={"partition/1": 7, "router": 2})


def least(_below: int) -> int:
    return 0


def most(below: int) -> int:
    return below - 1


def test_everything_goes_up() -> None:
    """Epochs of all leases, also of those never held; origins, and starts of the store."""
    generation = Generation(GIVEN, ["partition/1", "partition/2"], 600.0, least)
    epochs = {name: row.epoch for name, row in generation.leases().items()}
    assert epochs == {"partition/1": (1 << 18) + 7, "partition/2": 1 << 18, "router": (1 << 18) + 2}
    assert all(row.member == "" for row in generation.leases().values())
    assert generation.number == 2
    assert generation.origin >= 100 + (1 << 17)
    assert generation.incarnation >= 3 + 600


@pytest.mark.parametrize("days", [0, 1, 29, 365])
@pytest.mark.parametrize("chance", [least, most])
def test_fits_where_epochs_are_packed(days: int, chance: object) -> None:
    """A router's versions have 24 bits for its epoch; analyses order by the low 17, which go up by a little only."""
    generation = Generation(GIVEN, ["router"], days * DAY, chance)  # type: ignore[arg-type]
    for name, row in generation.leases().items():
        before = GIVEN.epochs.get(name, 0)
        assert row.epoch << 40 < 1 << 64
        assert before <= row.epoch % (1 << 17) <= before + (1 << 11)
        assert not row.epoch & 1 << 17


@pytest.mark.parametrize("chance", [least, most])
def test_many_times(chance: object) -> None:
    """Fifty restores of young backups, one after the other, before numbers run out; and then it is said."""
    given = GIVEN
    for _ in range(50):
        generation = Generation(given, [], 3600.0, chance)  # type: ignore[arg-type]
        epochs = {name: row.epoch for name, row in generation.leases().items()}
        assert generation.origin < LAST_ORIGIN
        assert all(epoch % (1 << 18) < 1 << 17 for epoch in epochs.values())
        assert generation.incarnation << 32 < 1 << 63
        given = Given(generation.number, generation.origin, generation.incarnation, epochs)


def test_numbers_run_out() -> None:
    """Where one of them would not fit any more, that is said before anything is written."""
    for given in (Given(epochs={"router": 1 << 24}), Given(origin=LAST_ORIGIN), Given(incarnation=1 << 31)):
        with pytest.raises(ResourceError, match="run out"):
            Generation(given, [], 60.0)


def test_twice_from_one_backup() -> None:
    """Two restores that do not know of each other give other numbers, but for a chance in thousands."""
    found = [Generation(GIVEN, [], 60.0) for _ in range(20)]
    assert len({generation.leases()["router"].epoch for generation in found}) > 15
    assert len({generation.origin for generation in found}) > 15


def test_above_both() -> None:
    """Where the store that is replaced can be read, the step goes from the higher numbers."""
    both = GIVEN.and_of(Given(4, origin=50, incarnation=9, epochs={"router": 9, "partition/3": 1}))
    assert both == Given(4, 100, 9, {"partition/1": 7, "partition/3": 1, "router": 9})

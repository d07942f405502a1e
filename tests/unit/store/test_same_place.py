"""One place that is written in two ways is one place."""

from __future__ import annotations

import pytest

from services.common.errors import InternalError
from services.store.choice import Choice, with_configuration
from services.store.same_place import same_place


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("postgresql://db/x", "postgresql://db/x", True),
        ("postgresql://db/x", "postgres://db:5432/x?sslmode=require", True),
        ("postgresql://a@db/x", "postgresql://b:secret@DB/x", True),
        ("postgresql://one,two/x", "postgresql://two:5432/x", True),
        ("postgresql://x@db", "postgresql://db/x", True),
        ("postgresql://db/x", "postgresql://db/y", False),
        ("postgresql://db/x", "postgresql://db:5433/x", False),
        ("nats://n1", "nats://n1:4222/HOPLINE_STORE", True),
        ("nats://n1,n2,n3/S", "nats://n2/S?replicas=3", True),
        ("nats://[::1]/S", "nats://[::1]:4222/S", True),
        ("nats://n1/S", "nats://n1/C", False),
        ("nats://n1/x", "postgresql://n1/x", False),
        ("nats://[n1", "nats://n1", False),
    ],
)
def test_places(one: str, other: str, same: bool) -> None:
    """By servers with their ports and the name of the database or stream; users and options tell nothing."""
    assert same_place(one, other) is same_place(other, one) is same


def test_both_halves_in_one() -> None:
    """It is refused, whichever of the two ways is taken."""
    with pytest.raises(InternalError, match="X is where the messages are"):
        with_configuration(Choice("jetstream", "nats://n1"), "nats://n1/HOPLINE_STORE", "X")

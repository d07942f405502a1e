from __future__ import annotations

import pytest

from suites.kinds import KINDS
from suites.sources import REPLACED
from suites.suite import Suite
from suites.table import SUITES


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_rows_fit(suite: Suite) -> None:
    """Every suite is of a kind that there is, its stand-in files are there, and it is told what is known."""
    assert suite.kind in KINDS
    assert all((REPLACED / ours).is_file() for ours in suite.replaced.values())
    for value in suite.environment.values():
        assert value.format(host="localhost", port="5672", url="amqp://localhost:5672/")


def test_names_are_unique() -> None:
    """A name stands for one suite, since folders and listed differences go by it."""
    assert len({suite.name for suite in SUITES}) == len(SUITES)

from __future__ import annotations

import pytest

from suites.brokers import HOPLINE, RABBITMQ
from suites.comparison import Comparison
from suites.session import Played
from suites.table import SUITES


@pytest.mark.parametrize(
    ("played", "well"),
    [
        (Played(SUITES[0], results={HOPLINE: {}, RABBITMQ: {}}), True),
        (Played(SUITES[0], not_run={HOPLINE: "no npm", RABBITMQ: "no npm"}), True),
        (Played(SUITES[0], results={HOPLINE: {}}, not_run={RABBITMQ: "not installed"}), True),
        (Played(SUITES[0], results={RABBITMQ: {}}, not_run={HOPLINE: "it did not start"}), False),
        (Played(SUITES[0], results={HOPLINE: {}, RABBITMQ: {}}, gone={HOPLINE}), False),
        (Played(SUITES[0], comparison=Comparison(listed={"a": "on purpose"}, unsteady=["b"])), True),
        (Played(SUITES[0], comparison=Comparison(unlisted={"a": "541"})), False),
    ],
)
def test_only_hopline_is_judged(played: Played, well: bool) -> None:
    """A suite that could not be run, or that differs on purpose, is no fault; one at which Hopline fails is."""
    assert played.well is well

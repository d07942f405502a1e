"""Variables whose names are nearly a setting's."""

from __future__ import annotations

import re
from pathlib import Path

from structlog.testing import capture_logs

from services.supervisor.misspelt import misspelt, warn_of_misspelt

ROOT = Path(__file__).parents[3]


def test_a_slip_is_said() -> None:
    """It would have no effect, and nobody would know why."""
    with capture_logs() as told:
        warn_of_misspelt(["HOPLINE_QUEUE_PROCESES", "HOPLINE_AMPQ_PORT", "HOPLINE_DATA", "hopline_data", "HOME"])
    assert [(line["log_level"], line["variable"], line["near"]) for line in told] == [
        ("warning", "HOPLINE_AMPQ_PORT", "HOPLINE_AMQP_PORT"),
        ("warning", "HOPLINE_QUEUE_PROCESES", "HOPLINE_QUEUE_PROCESSES"),
    ]


def test_variables_of_compose_are_none() -> None:
    """They are in the shell of who runs both."""
    text = (ROOT / "docker-compose.yml").read_text() + (ROOT / "deploy" / "images.sh").read_text()
    assert misspelt(set(re.findall(r"HOPLINE_[A-Z_]+[A-Z]", text))) == {}

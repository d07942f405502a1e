from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.common.config import Settings

ROOT = Path(__file__).parents[2]
TABLES = (ROOT / "docs/settings.md").read_text() + "".join(
    (ROOT / "services/common" / folder / "README.md").read_text() for folder in ("ledger", "telemetry")
)


@pytest.mark.parametrize("setting", [f"HOPLINE_{name.upper()}" for name in Settings.model_fields])
def test_every_setting_is_described(setting: str) -> None:
    """A setting is in the table that an operator reads, or in one that it names."""
    assert re.search(rf"^\| .*`{setting}`.* \|", TABLES, re.MULTILINE)


def test_every_variable_of_compose_is_described() -> None:
    """What docker-compose.yml takes from its environment is in the README of deploy."""
    taken = set(re.findall(r"\$\{(HOPLINE_[A-Z_]+)", (ROOT / "docker-compose.yml").read_text()))
    told = set(re.findall(r"`(HOPLINE_[A-Z_]+)`", (ROOT / "deploy/README.md").read_text()))
    assert taken - told == set()

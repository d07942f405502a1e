"""Time zones, as Broker-J's console has its user choose one."""

from __future__ import annotations

from datetime import UTC, datetime

from services.mgmt.rest.model.time_zones import time_zones


def test_time_zones() -> None:
    """With summer time where it is summer, and places alone."""
    summer, winter = (
        {each["id"]: each for each in time_zones(datetime(2026, month, 1, tzinfo=UTC))} for month in (7, 1)
    )
    assert summer["Europe/Berlin"] == {
        "id": "Europe/Berlin", "name": "CEST", "offset": 120, "city": "Berlin", "region": "Europe",
    }  # fmt: skip
    assert (winter["Europe/Berlin"]["offset"], winter["America/New_York"]["city"]) == (60, "New York")
    assert winter["America/New_York"]["offset"] == -300
    assert not {"UTC", "Etc/GMT+1", "CET"} & set(summer)

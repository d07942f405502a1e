"""Every installed queue type, as a parameter."""

from __future__ import annotations

from functools import partial

import pytest

from services.common import plugins
from tests.support.queue_machine import Machine

NEEDS = {"priority": {"max_priority": 10}}


@pytest.fixture(params=plugins.names("queue_types"))
def make(request: pytest.FixtureRequest) -> partial[Machine]:
    """Makes a queue of the type."""
    return partial(Machine, request.param, **NEEDS.get(request.param, {}))

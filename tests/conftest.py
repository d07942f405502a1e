"""Hypothesis profiles: small by default, long for `make fuzz` (HYPOTHESIS_PROFILE=long)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile("default", max_examples=60, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.register_profile("long", max_examples=20_000, deadline=None, suppress_health_check=_SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

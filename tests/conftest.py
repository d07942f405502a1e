"""Hypothesis profiles: small by default, long for `make fuzz` (HYPOTHESIS_PROFILE=long). Logs as services have them."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import tempfile

import structlog
from argon2 import PasswordHasher
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from services.common import scram
from services.common.credentials import argon2

_SLOW_IS_FINE = [HealthCheck.too_slow, HealthCheck.data_too_large]

settings.register_profile(
    "default", max_examples=60, deadline=None, suppress_health_check=_SLOW_IS_FINE, derandomize=True
)
settings.register_profile("long", max_examples=20_000, deadline=None, suppress_health_check=_SLOW_IS_FINE)
# Hypothesis also tries constants of our own code, as far as it is imported: that depends on which tests ran before.
providers._get_local_constants = lambda: providers._local_constants
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Not structlog's own default: to draw a traceback with its locals takes longer than the leases of many tests last.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
    ]
)

# What hides passwords takes long on purpose. Here thousands are made and tried, and none is worth guessing: the least
# that argon2 knows, and that RFC 7677 allows SCRAM. Stacks that tests start have what users have.
argon2._HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
scram.ITERATIONS = 4096

# Keys of stacks that tests run are not put among those of the user who runs the tests.
_configuration = tempfile.TemporaryDirectory(prefix="hopline-configuration-")
atexit.register(_configuration.cleanup)
os.environ["XDG_CONFIG_HOME"] = _configuration.name

# A shell has what it starts in the background ignore Ctrl-C, and all that this starts: tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What was imported and collected stays: no collection of garbage needs to look through it again."""
    gc.collect()
    gc.freeze()

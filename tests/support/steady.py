"""The same examples in every run of the tests, others in each of `make fuzz`: for what is compared with a stranger.

A library that is met with something new may be wrong itself. `make fuzz` looks for that, not every run of the tests.
"""

from __future__ import annotations

from hypothesis import settings

STEADY = settings(derandomize=settings.default.max_examples < 1000)

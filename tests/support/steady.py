"""The same examples in every run of the tests, others in each of `make fuzz`: for what is compared with a stranger.

A library that is met with something new may be wrong itself. That is found out by who looks for it, not in between.
"""

from __future__ import annotations

from hypothesis import settings

STEADY = settings(derandomize=settings.default.max_examples < 1000)

"""The ways of running a suite, by name."""

from __future__ import annotations

from suites.kinds.go import Go
from suites.kinds.kind import Kind
from suites.kinds.node import Node
from suites.kinds.phpunit import PHPUnit
from suites.kinds.pytest import Pytest
from suites.kinds.rspec import RSpec

KINDS: dict[str, Kind] = {"go": Go(), "node": Node(), "phpunit": PHPUnit(), "pytest": Pytest(), "rspec": RSpec()}

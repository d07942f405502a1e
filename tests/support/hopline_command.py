"""The command line, as the operator of a stack uses it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.stack import Stack


class HoplineCommand:
    """`hopline`, asking one stack."""

    def __init__(self, stack: Stack) -> None:
        self.data = stack.data
        self.command = Path(sys.executable).with_name("hopline")
        self.environment = {
            **os.environ,
            "HOPLINE_DATA": str(stack.data),
            "HOPLINE_HTTP_PORT": str(stack.http_port),
            "HOPLINE_LOG_LEVEL": "error",
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [self.command, *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60, check=False)

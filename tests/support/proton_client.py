"""qpid-proton, an AMQP 1.0 client of another project, in a process of its own: see proton_program.py."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PYTHON = "/usr/bin/python3"
PROGRAM = Path(__file__).with_name("proton_program.py")


class Proton:
    """A client in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def do(self, what: str, **arguments: Any) -> dict[str, Any]:
        """What came of a command; an error is one of the test's."""
        answer = self.fails(what, **arguments)
        assert "error" not in answer, answer
        return answer

    def fails(self, what: str, **arguments: Any) -> dict[str, Any]:
        """What came of a command, which may be an error."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"do": what, **arguments}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "qpid-proton has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def running() -> Iterator[Proton]:
    command = [PYTHON, "-u", str(PROGRAM)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Proton(process)
        process.kill()

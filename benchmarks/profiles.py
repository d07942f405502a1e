"""Where a process spends its time: py-spy (`pip install py-spy`) looks at it from outside."""

from __future__ import annotations

import re
import subprocess
import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.failure import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

HERTZ = 500
_LINE = re.compile(r"(?P<frames>.+) (?P<count>\d+)")
_OURS = re.compile(r"(?P<function>[^;]+) \(\S*?(?P<file>services/[^:]+)(?::\d+)?\)")


@dataclass(frozen=True, slots=True)
class Stack:
    """Frames, outermost first, and in how many samples they were seen."""

    frames: str
    count: int


def stacks(lines: Iterable[str]) -> list[Stack]:
    """As py-spy writes them."""
    found = (_LINE.fullmatch(line.strip()) for line in lines)
    return [Stack(each["frames"], int(each["count"])) for each in found if each]


def by_function(seen: Iterable[Stack]) -> Counter[str]:
    """Samples by the innermost function of ours: with what libraries do for it."""
    counted = Counter[str]()
    for stack in seen:
        ours = [match for frame in stack.frames.split(";") if (match := _OURS.fullmatch(frame))]
        counted[f"{ours[-1]['function']} ({ours[-1]['file']})" if ours else "not ours"] += stack.count
    return counted


class Profile(threading.Thread):
    """Of one process for some seconds, after others. `working`: only while it runs Python; else also as it waits."""

    def __init__(
        self, py_spy: str, pid: int, file: Path, seconds: float, after: float = 0.0, *, working: bool = False
    ) -> None:
        super().__init__()
        self._file, self._after = file, after
        self._trouble = ""
        options = ["--pid", str(pid), "--duration", str(round(seconds)), "--rate", str(HERTZ), "--format", "raw"]
        self._command = [py_spy, "record", *options, "--full-filenames", "--output", str(file)]
        self._command += ["--gil"] if working else []

    def run(self) -> None:
        threading.Event().wait(self._after)
        done = subprocess.run(self._command, check=False, capture_output=True, text=True)
        self._trouble = done.stderr.strip()

    def stacks(self) -> list[Stack]:
        """Raises BenchmarkError where there are none."""
        self.join()
        if not self._file.exists():
            raise BenchmarkError(f"{self._command[0]} has written nothing: {self._trouble}")
        lines = self._file.read_text().splitlines()
        self._file.unlink()
        return stacks(lines)

"""What it costs a gateway to ask whether a client may: `python -m benchmarks.checks --py-spy PATH`.

A topic exchange, 100 keys in turn: with permissions alone, with rules of which the last fits, with a topic permission;
and keys that are always new, each of which is decided about.
py-spy (`pip install py-spy`) looks at the gateway meanwhile, and the share is told of its samples in which
it was asked. All of the look at what is wrong with a message counts, though it is not for access alone.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.brokers.hopline import COMMAND, Hopline
from benchmarks.failure import BenchmarkError
from benchmarks.session import OUT
from benchmarks.streams import STREAMS
from benchmarks.throughput import WARM_UP_SECONDS, throughput

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

EXCHANGE = "checked"
RULES, MANY = 100, 1000
HERTZ = 500
_OTHERS = 'ACL DENY user-{0} PUBLISH EXCHANGE name="{1}" routing_key="devices.{0}.*"\n'
_OF_ALL = 'ACL DENY ALL PUBLISH EXCHANGE name="{1}" routing_key="others.{0}.*"\n'
_ASKED = re.compile(
    r"services/common/access/|services/common/clients/access\.py|gateway/sessions/permitted\.py"
    r"|gateway/operations/needs\.py|(_fault|_refusal) \(\S*gateway/operations/publish\.py"
)
_LINE = re.compile(r"(?P<frames>.+) (?P<count>\d+)")


@dataclass(frozen=True, slots=True)
class Share:
    """Of samples."""

    asked: int
    all: int

    @property
    def percent(self) -> float:
        return 100 * self.asked / self.all if self.all else 0.0


def share(lines: Iterable[str]) -> Share:
    """Of stacks as py-spy writes them: frames, outermost first, and how often they were seen."""
    found = [(match["frames"], int(match["count"])) for line in lines if (match := _LINE.fullmatch(line.strip()))]
    return Share(sum(count for frames, count in found if _ASKED.search(frames)), sum(count for _, count in found))


def main(py_spy: str, seconds: float) -> None:
    """Prints a line for each."""
    OUT.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="checks-", dir=OUT))
    broker = Hopline()
    try:
        address = broker.start(folder)
        environment = {**os.environ, "HOPLINE_DATA": str(folder / "data")}
        for name, stream, commands in _shapes(folder):
            for command in commands:
                subprocess.run([COMMAND, *command], env=environment, check=True)
            profile = _Profile(py_spy, folder, seconds)
            profile.start()
            result = throughput(STREAMS[stream][1], broker, address, seconds + 1, EXCHANGE)
            found = share(profile.lines())
            rate = result.figures["messages/s"]
            print(f"{name:<30} {found.percent:5.2f} % of {found.all:,} samples, at {rate:,.0f} messages/s")
    finally:
        broker.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _shapes(folder: Path) -> Iterable[tuple[str, str, Sequence[Sequence[str]]]]:
    """What is set before each, and the stream."""
    topic = ("permissions", "topics", "set", "guest", EXCHANGE, "--write", "^devices\\.[0-9]+\\.", "--read", ".*")
    return (
        ("permissions", "topics", ()),
        (f"{RULES} rules", "topics", (_rules(folder, _OTHERS, RULES),)),
        (f"{MANY} rules of all by key", "topics", (_rules(folder, _OF_ALL, MANY),)),
        (f"{MANY} of them, new keys", "topics-new", ()),
        ("permissions, new keys", "topics-new", (("acl", "remove"),)),
        ("topic permission, new keys", "topics-new", (topic,)),
        ("topic permission", "topics", ()),
    )


def _rules(folder: Path, form: str, count: int) -> Sequence[str]:
    path = folder / f"rules-{count}"
    path.write_text("".join(form.format(number, EXCHANGE) for number in range(count - 1)) + "ACL ALLOW ALL ALL\n")
    return "acl", "load", str(path)


class _Profile(threading.Thread):
    """py-spy beside the gateway, from when the load is warm."""

    def __init__(self, py_spy: str, folder: Path, seconds: float) -> None:
        super().__init__()
        self._file = folder / "profile"
        self._trouble = ""
        pid = (folder / "data" / "run" / "gateway.pid").read_text().strip()
        options = ["--pid", pid, "--duration", str(round(seconds)), "--rate", str(HERTZ), "--format", "raw"]
        self._command = [py_spy, "record", *options, "--full-filenames", "--output", str(self._file)]

    def run(self) -> None:
        threading.Event().wait(2 * WARM_UP_SECONDS)
        done = subprocess.run(self._command, check=False, capture_output=True, text=True)
        self._trouble = done.stderr.strip()

    def lines(self) -> list[str]:
        """Raises BenchmarkError where there are none."""
        self.join()
        if not self._file.exists():
            raise BenchmarkError(f"{self._command[0]} has written nothing: {self._trouble}")
        lines = self._file.read_text().splitlines()
        self._file.unlink()
        return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--py-spy", default=shutil.which("py-spy") or "py-spy")
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    main(arguments.py_spy, arguments.seconds)

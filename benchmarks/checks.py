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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.brokers.hopline import COMMAND, Hopline
from benchmarks.profiles import Profile, Stack
from benchmarks.session import OUT
from benchmarks.streams import STREAMS
from benchmarks.throughput import WARM_UP_SECONDS, throughput

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

EXCHANGE = "checked"
RULES, MANY = 100, 1000
_OTHERS = 'ACL DENY user-{0} PUBLISH EXCHANGE name="{1}" routing_key="devices.{0}.*"\n'
_OF_ALL = 'ACL DENY ALL PUBLISH EXCHANGE name="{1}" routing_key="others.{0}.*"\n'
_ASKED = re.compile(
    r"services/common/access/|services/common/clients/access\.py|gateway/sessions/permitted\.py"
    r"|gateway/operations/needs\.py|(_fault|_refusal) \(\S*gateway/operations/publish\.py"
)


@dataclass(frozen=True, slots=True)
class Share:
    """Of samples."""

    asked: int
    all: int

    @property
    def percent(self) -> float:
        return 100 * self.asked / self.all if self.all else 0.0


def share(seen: Sequence[Stack]) -> Share:
    """Of what py-spy saw."""
    return Share(sum(each.count for each in seen if _ASKED.search(each.frames)), sum(each.count for each in seen))


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
            profile = Profile(py_spy, broker.pid("gateway"), folder / "profile", seconds, 2 * WARM_UP_SECONDS)
            profile.start()
            result = throughput(STREAMS[stream][1], broker, address, seconds + 1, EXCHANGE)
            found = share(profile.stacks())
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--py-spy", default=shutil.which("py-spy") or "py-spy")
    parser.add_argument("--seconds", type=float, default=5)
    arguments = parser.parse_args()
    main(arguments.py_spy, arguments.seconds)

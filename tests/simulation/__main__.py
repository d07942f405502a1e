"""`python -m tests.simulation`: histories from seeds, until one breaks a promise, or until told to stop."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from tests.simulation.draw import KINDS
from tests.simulation.plan import Plan
from tests.simulation.runner import Runner, report


def main() -> int:
    """1 when a promise was broken."""
    options = _options()
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of text is part of a history.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]], environment)
    if options.replay:
        plan = Plan.load(Path(options.replay).read_text())
        return report(plan, runs=options.shrink if options.again else 0, verbose=options.verbose, keep=options.keep)
    runner = Runner(json.loads(options.shape), options.workers, options.kind)
    if options.seed is not None:
        return report(runner.plan(options.seed), runs=options.shrink, verbose=options.verbose, keep=options.keep)
    failed = runner.run(options.start, options.count, options.seconds, stop=not options.go_on)
    for seed in failed[:1] if options.shrink else ():
        report(runner.plan(seed), runs=options.shrink, keep=options.keep)
    return int(bool(failed))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="this history alone")
    parser.add_argument("--from", dest="start", type=int, default=None, help="the first seed; without: any")
    parser.add_argument("--count", type=int, default=None, help="so many histories")
    parser.add_argument("--for", dest="seconds", type=float, default=None, help="seconds")
    parser.add_argument("--shape", default="{}", help='of the cluster, as JSON: {"gateways": 1}')
    parser.add_argument("--kind", default="", choices=["", *KINDS], help="of histories; without: all kinds")
    parser.add_argument("--replay", help="a history that was kept")
    parser.add_argument("--again", action="store_true", help="with --replay: try to make it shorter still")
    parser.add_argument("--shrink", type=int, default=200, help="runs in which a failure is made shorter; 0: it is not")
    parser.add_argument("--go-on", action="store_true", help="after a failure too")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--verbose", action="store_true", help="what services log")
    parser.add_argument("--keep", default=".", help="the folder for the shortest history that fails")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

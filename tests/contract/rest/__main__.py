"""`python -m tests.contract.rest`: any seed, and as many examples as are asked for; each fault as a line for curl."""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import urllib.request
from pathlib import Path

import tests.conftest  # noqa: F401 - logs as tests have them
from tests.support.rest_exploration import APIS, Exploration, operations
from tests.support.rest_inventory import Inventory
from tests.support.threaded_broker import ThreadedBroker, threaded_broker


def main() -> int:
    """1 when an answer was not as it should be."""
    options = _options()
    _say(f"seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder, threaded_broker(Path(folder)) as broker:
        return int(_explore(broker, options))


def _explore(broker: ThreadedBroker, options: argparse.Namespace) -> bool:
    inventory, port = Inventory(broker), broker.mgmt.http_port
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json") as answer:
        document = json.load(answer)
    exploration = Exploration(document, port, options.seed, options.examples, tuple(options.phases.split(",")))
    found = set()
    for operation in (each for api in APIS for each in operations(document, api) if re.search(options.only, each)):
        inventory.restore()
        for fault in exploration.faults(operation):
            if (fault.operation, fault.what) not in found:
                _say(str(fault))
            found.add((fault.operation, fault.what))
    inventory.close()
    return bool(found)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.contract.rest", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="without: any")
    parser.add_argument("--examples", type=int, default=100, help="of each operation, at most")
    parser.add_argument("--only", default="", help="operations in which that is found: 'PUT .*queue'")
    parser.add_argument("--phases", default="coverage,fuzzing", help="of schemathesis: coverage, fuzzing")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())

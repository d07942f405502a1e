"""The whole OpenAPI document, held against what is answered: Hopline's own paths, Broker-J's tree, RabbitMQ's API."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.rest_exploration import APIS, Exploration, api_of, operations
from tests.support.rest_inventory import Inventory
from tests.support.threaded_broker import ThreadedBroker, threaded_broker

_SEED, _EXAMPLES = 20_261_125, 3


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedBroker]:
    with threaded_broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="module")
def inventory(broker: ThreadedBroker) -> Iterator[Inventory]:
    inventory = Inventory(broker)
    yield inventory
    inventory.close()


@pytest.fixture(scope="module")
def document(broker: ThreadedBroker) -> dict[str, Any]:
    with urllib.request.urlopen(f"http://127.0.0.1:{broker.mgmt.http_port}/openapi.json") as answer:
        found: dict[str, Any] = json.load(answer)
    return found


@pytest.mark.timeout(600)  # a machine that does something else as well takes several times as long
@pytest.mark.parametrize("api", APIS)
def test_answers_are_as_described(
    api: str, broker: ThreadedBroker, inventory: Inventory, document: dict[str, Any]
) -> None:
    """For any request, valid or not: statuses, types and bodies are those that the document names.

    No answer is a server's fault, refusals say why, and no request is answered without a password.
    """
    exploration = Exploration(document, broker.mgmt.http_port, _SEED, _EXAMPLES)
    faults = []
    for operation in operations(document, api):
        inventory.restore()
        faults += exploration.faults(operation)
    assert not faults, "\n".join(map(str, faults))


def test_every_path_belongs_to_an_api(document: dict[str, Any]) -> None:
    """No operation of the document is left out above."""
    described = {f"{method.upper()} {path}" for path, its in document["paths"].items() for method in its}
    assert {each for api in APIS for each in operations(document, api)} == described
    assert {api_of(path) for path in document["paths"]} == set(APIS)

"""The manifests that keep the store elsewhere than on a disk of its own: each adds to those of deploy/kubernetes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from services.common.config import Settings
from services.store.choice import choose
from services.store.providers.jetstream_url import parse

BASE = Path(__file__).parents[3] / "deploy/kubernetes"
FOLDER = BASE.with_name("kubernetes-stores")
KUSTOMIZATION = "kustomization.yaml"
PLACES = ["postgres", "jetstream"]
VERSIONS = ["1.29", kubernetes_validate.latest_version()]


def _read(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def _kustomization(folder: Path) -> dict[str, Any]:
    [said] = _read(folder / KUSTOMIZATION)
    return said


def _patch(folder: Path, kind: str) -> Any:
    [patch] = [each for each in _kustomization(folder)["patches"] if each["target"]["kind"] == kind]
    return yaml.safe_load(patch["patch"])


def _container(workload: dict[str, Any]) -> dict[str, Any]:
    [container] = workload["spec"]["template"]["spec"]["containers"]
    return dict(container)


def _of(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    [found] = [each for each in documents if each["kind"] == kind]
    return found


STORE = _of(_read(BASE / "store.yaml"), "StatefulSet")
BUS = _of(_read(BASE / "nats.yaml"), "StatefulSet")
SERVERS = _read(FOLDER / "jetstream/nats.yaml")


@pytest.mark.parametrize("name", PLACES)
def test_it_can_be_built(name: str) -> None:
    """kustomize takes no folder that another one lies in which names it, and all that is named is there."""
    said = _kustomization(FOLDER / name)
    named = [(FOLDER / name / each).resolve() for each in (*said["resources"], *said["components"])]
    assert named[0] == BASE
    assert all(each.exists() and each not in (FOLDER / name).parents for each in named)
    files = {each.name for each in named if each.is_file()}
    assert files | {KUSTOMIZATION} == {each.name for each in (FOLDER / name).iterdir()}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", [*SERVERS, *_read(FOLDER / "several/budget.yaml")], ids=lambda each: each["kind"])
def test_schema(manifest: dict[str, Any], version: str) -> None:
    """Every manifest of theirs is what the API server's schema says, without a field that it does not know."""
    kubernetes_validate.validate(manifest, version, strict=True)


def test_several() -> None:
    """There are two store processes, all services are told so, and one at a time may be taken away."""
    store, told = (_patch(FOLDER / "several", kind) for kind in ("StatefulSet", "ConfigMap"))
    [budget] = _read(FOLDER / "several/budget.yaml")
    assert store["metadata"]["name"] == STORE["metadata"]["name"]
    assert told["data"] == {"HOPLINE_STORE_PROCESSES": str(store["spec"]["replicas"])}
    assert budget["spec"] == {"maxUnavailable": 1, "selector": STORE["spec"]["selector"]}
    [spread] = store["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"] == STORE["spec"]["selector"]


@pytest.mark.parametrize("name", PLACES)
def test_the_store_is_told_where(name: str) -> None:
    """The one container of the store is given another HOPLINE_STORE_URL than a Secret may have."""
    patched = _container(_patch(FOLDER / name, "StatefulSet"))
    assert patched["name"] == _container(STORE)["name"]
    [variable] = patched["env"]
    assert variable["name"] == "HOPLINE_STORE_URL"
    assert variable["name"] in {each["name"] for each in _container(STORE)["env"]}


def test_a_store_in_a_database() -> None:
    """Its URL is the operator's; commits wait for a standby."""
    [cluster] = _read(FOLDER / "postgres/cluster.yaml")
    [url] = _container(_patch(FOLDER / "postgres", "StatefulSet"))["env"]
    assert url["valueFrom"]["secretKeyRef"]["name"] == f"{cluster['metadata']['name']}-app"
    assert cluster["spec"]["instances"] > cluster["spec"]["postgresql"]["synchronous"]["number"] > 0


def test_a_store_in_jetstream() -> None:
    """The store finds all servers by their pods' names, and each server the others; they are as confined as the bus."""
    servers, service = _of(SERVERS, "StatefulSet"), _of(SERVERS, "Service")
    name = servers["metadata"]["name"]
    pods = [f"{name}-{number}.{service['metadata']['name']}" for number in range(servers["spec"]["replicas"])]
    [variable] = _container(_patch(FOLDER / "jetstream", "StatefulSet"))["env"]
    assert variable["valueFrom"] is None  # a variable has one or the other
    assert parse(variable["value"]).servers == tuple(f"{pod}:4222" for pod in pods)
    assert choose(Settings(store_url=variable["value"])).name == "jetstream"
    assert f"--peers={','.join(pods)}" in _container(servers)["args"]
    assert (servers["spec"]["serviceName"], service["spec"]["publishNotReadyAddresses"]) == (name, True)
    for same in ("securityContext", "readinessProbe", "livenessProbe", "volumeMounts", "envFrom"):
        assert _container(servers)[same] == _container(BUS)[same]


def test_servers_that_keep_the_store_reach_each_other() -> None:
    """Hopline's pods alone reach the port of the cluster, and two servers are there whatever is taken away."""
    [opened] = _patch(FOLDER / "jetstream", "NetworkPolicy")
    [policy] = _read(BASE / "network-policy.yaml")
    assert (opened["op"], opened["path"]) == ("add", "/spec/ingress/0/ports/-")
    assert "from" in policy["spec"]["ingress"][0]
    assert opened["value"] in [
        {"port": each["containerPort"]} for each in _container(_of(SERVERS, "StatefulSet"))["ports"]
    ]
    budget, servers = _of(SERVERS, "PodDisruptionBudget"), _of(SERVERS, "StatefulSet")
    assert budget["spec"] == {"maxUnavailable": 1, "selector": servers["spec"]["selector"]}
    assert servers["spec"]["podManagementPolicy"] == "Parallel"


def test_the_image_is_named_once() -> None:
    """Servers have the image that the store has, under whatever name it was put into a registry."""
    [copied] = _kustomization(FOLDER / "jetstream")["replacements"]
    servers = _of(SERVERS, "StatefulSet")
    [target] = copied["targets"]
    assert copied["source"]["name"] == STORE["metadata"]["name"]
    assert target["select"] == {"kind": "StatefulSet", "name": servers["metadata"]["name"]}
    assert _container(servers)["name"] in target["fieldPaths"][0]

"""What `kubectl apply -k` would send, as kubectl's own kustomize builds it: the parts fit together, not only each.

No cluster is asked: what an API server would refuse for other reasons than these, it has not been told.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

DEPLOY = Path(__file__).parents[3] / "deploy"
FOLDERS = ["kubernetes", "kubernetes-stores/postgres", "kubernetes-stores/jetstream"]
WORKLOADS = {"Deployment", "StatefulSet"}
FROM_ELSEWHERE = {"hopline", "hopline-postgres-app"}
"""Secrets that are in no manifest: one is made by hand (deploy/README.md), one by the database's operator."""

pytestmark = [
    pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed"),
    pytest.mark.parametrize("folder", FOLDERS),
]


@cache
def built(folder: str) -> list[dict[str, Any]]:
    """Every manifest, patched."""
    command = ["kubectl", "kustomize", str(DEPLOY / folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def _workloads(folder: str) -> list[dict[str, Any]]:
    return [each for each in built(folder) if each["kind"] in WORKLOADS]


def _containers(folder: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every workload's pod, with each of its containers."""
    for workload in _workloads(folder):
        pod = workload["spec"]["template"]["spec"]
        claims = [{"name": each["metadata"]["name"]} for each in workload["spec"].get("volumeClaimTemplates", ())]
        whole = {**pod, "volumes": [*pod.get("volumes", ()), *claims]}
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            yield whole, container


def _named(folder: str, kind: str) -> set[str]:
    return {each["metadata"]["name"] for each in built(folder) if each["kind"] == kind}


def _chosen(folder: str, selector: dict[str, str]) -> list[dict[str, Any]]:
    """The workloads whose pods have these labels."""
    return [
        each
        for each in _workloads(folder)
        if selector.items() <= each["spec"]["template"]["metadata"]["labels"].items()
    ]


def test_schema(folder: str) -> None:
    """With patches each is still what the API server's schema says; the operator's own kinds have a schema of its."""
    for manifest in built(folder):
        if "cnpg.io" not in manifest["apiVersion"]:
            kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)


def test_nothing_is_named_twice(folder: str) -> None:
    """Neither an object nor a variable of a container: the last one of two would win, or none."""
    objects = [(each["kind"], each["metadata"]["name"]) for each in built(folder)]
    assert len(objects) == len(set(objects))
    for _, container in _containers(folder):
        names = [each["name"] for each in container.get("env", ())]
        assert len(names) == len(set(names))


def test_variables_are_made_of_earlier_ones(folder: str) -> None:
    """Kubernetes puts in place of $(NAME) only what stands above it: a patch may have changed the order."""
    for _, container in _containers(folder):
        known: set[str] = set()
        for variable in container.get("env", ()):
            assert set(re.findall(r"\$\(([A-Z_]+)\)", variable.get("value") or "")) <= known
            known.add(variable["name"])


def test_what_is_mounted_or_read_is_there(folder: str) -> None:
    """A pod waits for ever for a ConfigMap, a Secret or a volume that nobody makes."""
    maps, secrets = _named(folder, "ConfigMap"), _named(folder, "Secret") | FROM_ELSEWHERE
    for pod, container in _containers(folder):
        assert {each["name"] for each in container.get("volumeMounts", ())} <= {each["name"] for each in pod["volumes"]}
        sources = [each["valueFrom"] for each in container.get("env", ()) if each.get("valueFrom")]
        refers = [*container.get("envFrom", ()), *sources]
        assert {each[kind]["name"] for each in refers for kind in each if kind.startswith("configMap")} <= maps
        assert {each[kind]["name"] for each in refers for kind in each if kind.startswith("secret")} <= secrets
        assert pod.get("serviceAccountName", "default") in _named(folder, "ServiceAccount") | {"default"}


def test_services_lead_to_pods(folder: str) -> None:
    """Each service, and each budget, has pods; each port of a service is one at which a container of theirs listens."""
    for manifest in built(folder):
        if manifest["kind"] == "PodDisruptionBudget":
            assert _chosen(folder, manifest["spec"]["selector"]["matchLabels"])
        if manifest["kind"] != "Service" or "selector" not in manifest["spec"]:
            continue
        workloads = _chosen(folder, manifest["spec"]["selector"])
        containers = [each for one in workloads for each in one["spec"]["template"]["spec"]["containers"]]
        listened = {value for each in containers for port in each["ports"] for value in port.values()}
        assert {port.get("targetPort", port["port"]) for port in manifest["spec"]["ports"]} <= listened

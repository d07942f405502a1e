from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from services.common.config import Settings

FOLDER = Path(__file__).parents[3] / "deploy/kubernetes"
KUSTOMIZATION = "kustomization.yaml"
# The last that still schedules these manifests, and the newest whose schemas are installed.
VERSIONS = ["1.29", kubernetes_validate.latest_version()]
SOURCES = {
    path.name: [document for document in yaml.safe_load_all(path.read_text()) if document]
    for path in sorted(FOLDER.glob("*.yaml"))
}
MANIFESTS = [(name, each) for name, documents in SOURCES.items() if name != KUSTOMIZATION for each in documents]
WORKLOADS = [each for _, each in MANIFESTS if each["kind"] in {"Deployment", "StatefulSet"}]


def _pod(workload: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = workload["spec"]["template"]["spec"]
    return pod


def _settings_of(workload: dict[str, Any]) -> set[str]:
    variables = _pod(workload)["containers"][0]["env"]
    return {variable["name"] for variable in variables if variable["name"].startswith("HOPLINE_")}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "manifest", [each for _, each in MANIFESTS], ids=[f"{name}:{each['kind']}" for name, each in MANIFESTS]
)
def test_schema(manifest: dict[str, Any], version: str) -> None:
    """Every manifest is what the API server's schema says, without a field that it does not know."""
    kubernetes_validate.validate(manifest, version, strict=True)


def test_kustomization_names_all() -> None:
    """`kubectl apply -k` applies every manifest that there is."""
    [kustomization] = SOURCES[KUSTOMIZATION]
    assert sorted([*kustomization["resources"], KUSTOMIZATION]) == sorted(SOURCES)


def test_every_service_is_there() -> None:
    """The five services are all deployed, each from the one image."""
    commands = [container["args"] for each in WORKLOADS for container in _pod(each)["containers"]]
    assert sorted(commands) == [["gateway"], ["mgmt"], ["queue"], ["router"], ["store"]]


def test_settings_exist() -> None:
    """Every variable that is set is one that Hopline reads."""
    [config] = SOURCES["config.yaml"]
    known = {f"HOPLINE_{field.upper()}" for field in Settings.model_fields}
    assert set(config["data"]).union(*map(_settings_of, WORKLOADS)) <= known


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each["metadata"]["name"])
def test_confinement(workload: dict[str, Any]) -> None:
    """No pod runs as root, writes to its image, keeps a capability, or is given variables that look like settings."""
    pod = _pod(workload)
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert not pod["enableServiceLinks"]
    assert not pod["automountServiceAccountToken"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each["metadata"]["name"])
def test_selectors(workload: dict[str, Any]) -> None:
    """A workload finds its own pods, and a service of the configuration finds them too."""
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert workload["spec"]["selector"]["matchLabels"].items() <= labels.items()
    services = [each for _, each in MANIFESTS if each["kind"] == "Service" and each["spec"]["selector"] == labels]
    # Queue processes need none: they tell their addresses themselves.
    assert bool(services) == (labels["app.kubernetes.io/component"] != "queue")

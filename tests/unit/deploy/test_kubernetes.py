from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from services.common.config import Settings

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "deploy/kubernetes"
COMPOSED = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
SERVICES = ("gateway", "mgmt", "queue", "router", "store")
KUSTOMIZATION = "kustomization.yaml"
_OPTIONAL = {"tls", "metrics"}  # Secrets that pods do without
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


def _container(workload: dict[str, Any]) -> dict[str, Any]:
    [container] = _pod(workload)["containers"]
    return dict(container)


def _component(workload: dict[str, Any]) -> str:
    return str(workload["metadata"]["labels"]["app.kubernetes.io/component"])


def _settings_of(workload: dict[str, Any]) -> set[str]:
    variables = _container(workload)["env"]
    return {variable["name"] for variable in variables if variable["name"].startswith("HOPLINE_")}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "manifest", [each for _, each in MANIFESTS], ids=[f"{name}:{each['kind']}" for name, each in MANIFESTS]
)
def test_schema(manifest: dict[str, Any], version: str) -> None:
    """Every manifest is what the API server's schema says, without a field that it does not know."""
    kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_restore_has_the_store_s_disk(version: str) -> None:
    """The pod that restores a backup is one that the API server takes, on the disk and by the user of the store."""
    pod = yaml.safe_load((FOLDER / "restore/pod.yaml").read_text())
    kubernetes_validate.validate(pod, version, strict=True)
    [store] = [each for each in WORKLOADS if _component(each) == "store"]
    [claim] = store["spec"]["volumeClaimTemplates"]
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"{claim['metadata']['name']}-hopline-store-0"}}
    assert pod["spec"]["volumes"] == [volume]
    assert pod["spec"]["securityContext"] == _pod(store)["securityContext"]


def test_kustomization_names_all() -> None:
    """`kubectl apply -k` applies every manifest that there is."""
    [kustomization] = SOURCES[KUSTOMIZATION]
    assert sorted([*kustomization["resources"], KUSTOMIZATION]) == sorted(SOURCES)


def test_every_service_is_there() -> None:
    """The five services and NATS are all deployed, from the one image."""
    containers = {_component(each): _container(each) for each in WORKLOADS}
    nats = containers.pop("nats")
    assert nats["args"][0] == "nats"
    assert {name: each["args"] for name, each in containers.items()} == {name: [name] for name in SERVICES}
    assert {each["image"] for each in [nats, *containers.values()]} == {"hopline"}


def test_nats_is_as_composed() -> None:
    """NATS runs with JetStream on its disk, at the port that the services are told, as it does in compose."""
    [nats] = [_container(each) for each in WORKLOADS if _component(each) == "nats"]
    asked = [word for flag in nats["args"] for word in flag.split("=")]
    assert set(COMPOSED["nats"]["command"]) <= set(asked)
    [config] = SOURCES["config.yaml"]
    assert config["data"]["HOPLINE_NATS_URL"] == "nats://hopline-nats:4222"


NEEDED = ("secret", "first-user")
"""Volumes without which no pod starts; keys were not there before, and no certificate has to be."""


@pytest.mark.parametrize("workload", WORKLOADS, ids=_component)
def test_nothing_secret_is_in_the_manifests(workload: dict[str, Any]) -> None:
    """What pods must not share with the world comes from a Secret that the operator makes: without it none starts."""
    assert not [each for _, each in MANIFESTS if each["kind"] == "Secret"]
    secrets = [
        each["secret"] for each in _pod(workload)["volumes"] if "secret" in each and each["name"] not in _OPTIONAL
    ]
    assert {secret["secretName"] for secret in secrets} == {"hopline"}
    needed = [each["secret"] for each in _pod(workload)["volumes"] if each["name"] in NEEDED and "secret" in each]
    assert not any(secret.get("optional") for secret in needed)
    mounts = {mount["name"]: mount["mountPath"] for mount in _container(workload)["volumeMounts"]}
    [config] = SOURCES["config.yaml"]
    assert config["data"]["HOPLINE_SECRET_FILE"] == f"{mounts['secret']}/secret"


@pytest.mark.parametrize("name", ["nats", "store", "mgmt"])
def test_disks(name: str) -> None:
    """A service with data has a disk that outlives its pod, and only one pod."""
    [workload] = [each for each in WORKLOADS if _component(each) == name]
    assert (workload["kind"], workload["spec"]["replicas"]) == ("StatefulSet", 1)
    [claim] = workload["spec"]["volumeClaimTemplates"]
    mounts = {mount["name"]: mount["mountPath"] for mount in _container(workload)["volumeMounts"]}
    assert mounts[claim["metadata"]["name"]] == "/var/lib/hopline"


@pytest.mark.parametrize("name", ["gateway", "queue", "router"])
def test_several(name: str) -> None:
    """Of what may be several there are two, replaced one after the other, with an address of their own to be told."""
    [workload] = [each for each in WORKLOADS if _component(each) == name]
    assert workload["spec"]["replicas"] == 2
    assert workload["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    budgets = [each for _, each in MANIFESTS if each["kind"] == "PodDisruptionBudget"]
    assert workload["spec"]["selector"] in [budget["spec"]["selector"] for budget in budgets]
    if name != "gateway":
        variables = {each["name"]: each.get("value") for each in _container(workload)["env"]}
        assert variables[f"HOPLINE_{name.upper()}_ADVERTISE"] == "$(POD_IP):7000"


@pytest.mark.parametrize("workload", WORKLOADS, ids=_component)
def test_probes(workload: dict[str, Any]) -> None:
    """Every pod says when it is ready and whether it lives, and has more time to stop than compose gives it."""
    container = _container(workload)
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
    assert _pod(workload)["terminationGracePeriodSeconds"] == 40
    assert set(container["resources"]) == {"requests", "limits"}


def test_only_our_pods_reach_grpc() -> None:
    """What asks for no user is open to pods of Hopline alone."""
    [policy] = [each["spec"] for _, each in MANIFESTS if each["kind"] == "NetworkPolicy"]
    ours = {"app.kubernetes.io/name": "hopline"}
    open_to_all = {port["port"] for rule in policy["ingress"] if "from" not in rule for port in rule["ports"]}
    assert policy["podSelector"]["matchLabels"] == ours
    assert open_to_all == {5671, 5672, 8080}
    assert all(
        one == {"podSelector": {"matchLabels": ours}} for rule in policy["ingress"] for one in rule.get("from", ())
    )


def test_settings_exist() -> None:
    """Every variable that is set is one that Hopline reads."""
    [config] = SOURCES["config.yaml"]
    known = {f"HOPLINE_{field.upper()}" for field in Settings.model_fields}
    assert set(config["data"]).union(*map(_settings_of, WORKLOADS)) <= known


def test_tls() -> None:
    """Gateways start with or without a Secret of certificates; clients and the network policy know the port."""
    [gateway] = [each for each in WORKLOADS if _component(each) == "gateway"]
    [volume] = [each for each in _pod(gateway)["volumes"] if each["name"] == "tls"]
    assert volume["secret"]["optional"]
    [mount] = [each for each in _container(gateway)["volumeMounts"] if each["name"] == "tls"]
    assert mount == {"name": "tls", "mountPath": "/etc/hopline-tls", "readOnly": True}
    assert {"name": "amqps", "containerPort": 5671} in _container(gateway)["ports"]
    [service] = [each for each in SOURCES["gateway.yaml"] if each["metadata"]["name"] == "hopline"]
    assert {"name": "amqps", "port": 5671, "targetPort": "amqps"} in service["spec"]["ports"]
    [policy] = SOURCES["network-policy.yaml"]
    assert {"port": 5671} in policy["spec"]["ingress"][1]["ports"]


def test_the_service_monitor_finds_mgmt() -> None:
    """Prometheus's operator comes to mgmt's service by its labels, to a port of it, and leaves labels as they are."""
    monitor = yaml.safe_load((FOLDER / "monitoring/service-monitor.yaml").read_text())["spec"]
    [service] = [each for each in SOURCES["mgmt.yaml"] if each["kind"] == "Service"]
    assert monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["metadata"]["labels"][monitor["jobLabel"]] == "hopline"
    [endpoint] = monitor["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert (endpoint["path"], endpoint["honorLabels"]) == ("/metrics", True)
    [mgmt] = [each for each in WORKLOADS if _component(each) == "mgmt"]
    [volume] = [each for each in _pod(mgmt)["volumes"] if each["name"] == "metrics"]
    said = endpoint["authorization"]["credentials"]
    assert (volume["secret"]["secretName"], volume["secret"]["optional"]) == (said["name"], True)
    variables = {each["name"]: each.get("value") for each in _container(mgmt)["env"]}
    assert variables["HOPLINE_METRICS_TOKEN_FILE"] == f"/run/secrets/hopline-metrics/{said['key']}"


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda each: each["metadata"]["name"])
def test_confinement(workload: dict[str, Any]) -> None:
    """No pod runs as root, writes to its image, keeps a capability, or is given variables that look like settings."""
    pod, container = _pod(workload), _container(workload)
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

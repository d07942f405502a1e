from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.common.config import Settings

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docker-compose.yml").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(TEXT)["services"]
POSTGRES: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "deploy/postgres/compose.yaml").read_text())["services"]
SERVERS = {name: said for name, said in POSTGRES.items() if name not in SERVICES}
# What only some of the tools know that the file is for (docker-compose 1.29 and docker compose 2).
TOO_NEW = ("start_interval", "required", "develop", "include", "attach", "annotations", "pull_policy")


@pytest.mark.parametrize("said", [*SERVICES.values(), *SERVERS.values()], ids=[*SERVICES, *SERVERS])
def test_confinement(said: dict[str, Any]) -> None:
    """No container runs as root, keeps a capability, gains privileges, or writes to its own file system."""
    assert said["user"].partition(":")[0] != "0"
    assert (said["cap_drop"], said["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert said["read_only"]
    assert said["init"]


@pytest.mark.parametrize("service", SERVICES)
def test_order(service: str) -> None:
    """Every service has a health check and time to stop, and waits for others in the long form."""
    said = SERVICES[service]
    assert said["healthcheck"]["test"]
    assert said["stop_grace_period"] == "30s"
    assert all(needed["condition"] for needed in said.get("depends_on", {}).values())


def test_a_store_in_a_database() -> None:
    """The store waits for two servers, which only those on the network reach; both are in its URL, no password is."""
    store = POSTGRES["store"]
    assert set(store["depends_on"]) == set(SERVERS) == {"postgres", "postgres-standby"}
    assert f"@{','.join(SERVERS)}/" in store["environment"]["HOPLINE_STORE_URL"]
    assert all(said["healthcheck"]["test"] and "ports" not in said for said in SERVERS.values())
    assert [said["command"][0] for said in SERVERS.values()] == list(SERVERS)


def test_servers_that_keep_the_store() -> None:
    """Each of the three is told of all of them and of its own name, and has a disk of its own; none is published."""
    servers = {name: said for name, said in SERVICES.items() if said.get("profiles") == ["jetstream"]}
    assert len(servers) == 3
    for name, said in servers.items():
        asked = dict(zip(said["command"][1::2], said["command"][2::2], strict=True))
        assert asked == {"--host": "0.0.0.0", "--peers": ",".join(servers), "--name": name}
        assert said["volumes"] == [f"{name}:/var/lib/hopline", "secret:/var/lib/hopline-secret"]
        assert "ports" not in said
    url = f"HOPLINE_STORE_URL=nats://{','.join(servers)} docker compose --profile jetstream up\n"
    assert url in (ROOT / "deploy/stores.md").read_text()


def test_queue_scales() -> None:
    """Queue processes have nothing that there is only one of: a name, a port, a disk of their own."""
    assert not {"container_name", "hostname", "ports"} & set(SERVICES["queue"])
    shared = ["spans:/var/lib/hopline-spans", "secret:/var/lib/hopline-secret"]
    assert SERVICES["queue"]["volumes"] == shared


def test_routers_scale() -> None:
    """Nor have routers: any number of them finds each other in the store's lease table."""
    assert not {"container_name", "hostname", "ports"} & set(SERVICES["router"])
    assert SERVICES["router"]["environment"]["HOPLINE_ROUTER_ADDRESS"] == "0.0.0.0:7000"


def test_store_processes_scale() -> None:
    """Nor have they: one that stands by is not at the store's port, and is as healthy as the one that is."""
    store = SERVICES["store"]
    assert not {"container_name", "hostname", "ports"} & set(store)
    assert store["environment"]["HOPLINE_STORE_ADDRESS"] == "store:7000"
    assert store["environment"]["HOPLINE_STORE_LISTEN"] == "0.0.0.0:7000"
    own = store["environment"]["HOPLINE_STORE_PROCESS_ADDRESS"]
    assert store["healthcheck"]["test"][-1] == own.replace("0.0.0.0", "127.0.0.1")
    told = {name: said["environment"].get("HOPLINE_STORE_PROCESSES") for name, said in SERVICES.items() if _ours(said)}
    assert set(told.values()) == {store["deploy"]["replicas"]} == {"${HOPLINE_STORE_PROCESSES:-1}"}


def _ours(said: dict[str, Any]) -> bool:
    return "HOPLINE_STORE_ADDRESS" in said.get("environment", {})


def test_ports_are_loopback_by_default() -> None:
    """Nothing is published to the network unless that was asked for: the default password is known to all."""
    ports = [port for said in SERVICES.values() for port in said.get("ports", ())]
    assert len(ports) == 6
    assert all(port.startswith("${HOPLINE_PUBLISH:-127.0.0.1}:") for port in ports)


def test_tls() -> None:
    """Certificates of the host are read only; what is made for trying out has a volume, with a folder in the image."""
    for name in ("gateway", "gateway-2"):
        said = SERVICES[name]
        assert {"${HOPLINE_TLS_FOLDER:-tls}:/etc/hopline-tls:ro", "self-signed:/var/lib/hopline/tls"} <= set(
            said["volumes"]
        )
        assert said["environment"]["HOPLINE_TLS_SELF_SIGNED"] == "${HOPLINE_TLS_SELF_SIGNED:-false}"
    assert [port.rpartition(":")[2] for port in SERVICES["gateway"]["ports"]] == ["5672", "5671"]
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    assert "-m 0700 /var/lib/hopline /var/lib/hopline/tls " in dockerfile  # else the volume would be root's
    assert "HOPLINE_DATA=/var/lib/hopline " in dockerfile


@pytest.mark.parametrize("service", ["spark-master", "spark-worker", "analyse"])
def test_native_code_runs(service: str) -> None:
    """Java unpacks its libraries into /tmp and maps them from there, as for Parquet files in zstd: it is not noexec."""
    (tmp,) = SERVICES[service]["tmpfs"]
    assert tmp.startswith("/tmp:")
    assert "exec" in tmp.split(",")


def test_settings_exist() -> None:
    """Every variable that a container is given is one that Hopline reads."""
    known = {f"HOPLINE_{field.upper()}" for field in Settings.model_fields}
    given = {name for said in SERVICES.values() for name in said.get("environment", ())}
    assert {name for name in given if name.startswith("HOPLINE_")} <= known


def test_spans() -> None:
    """Services that make spans can be told where to send them, and keep them in their volume otherwise."""
    for name in ("store", "router", "queue", "gateway", "gateway-2"):
        said = SERVICES[name]
        assert "spans:/var/lib/hopline-spans" in said["volumes"]
        assert said["environment"]["HOPLINE_SPANS"] == "/var/lib/hopline-spans"
        assert said["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"] == "${OTEL_EXPORTER_OTLP_ENDPOINT:-}"
    images = [SERVICES[name]["image"] for name in ("collector", "jaeger", "prometheus", "grafana")]
    assert all(re.fullmatch(r"\$\{HOPLINE_\w+_IMAGE:-[\w./-]+:[\w.]+\}", image) for image in images)


def test_metrics() -> None:
    """Prometheus is not published, and scrapes the stack; Grafana wants a password, and has the dashboard as a file."""
    said = SERVICES["prometheus"]
    assert "ports" not in said
    token = "${HOPLINE_METRICS_TOKEN:-/dev/null}"
    file = SERVICES["mgmt"]["environment"]["HOPLINE_METRICS_TOKEN_FILE"]
    assert f"{token}:{file}:ro" in SERVICES["mgmt"]["volumes"]
    assert f"{token}:/etc/prometheus/token:ro" in said["volumes"]
    beside = [volume.split(":")[0] for name in ("prometheus", "grafana") for volume in SERVICES[name]["volumes"]]
    assert all((ROOT / each).exists() for each in beside if each.startswith("./"))
    assert "HOPLINE_GRAFANA_PASSWORD" in SERVICES["grafana"]["environment"]["GF_SECURITY_ADMIN_PASSWORD"]
    assert not any("ANONYMOUS" in name for name in SERVICES["grafana"]["environment"])


def test_the_balancer_is_believed() -> None:
    """Gateways believe the balancer by a name that is its alone, and it says where clients are, by default."""
    said = {
        name: SERVICES[name]["environment"]["HOPLINE_PROXY_SOURCES"] for name in ("gateway", "gateway-2", "balancer")
    }
    [default] = set(said.values())
    name = default.removeprefix("${HOPLINE_PROXY_SOURCES-").removesuffix("}")
    [aliases] = [each["aliases"] for each in SERVICES["balancer"]["networks"].values()]
    assert aliases == [name]
    assert TEXT.count(name) == 2
    assert _settings(name).proxy_sources == (name,)


def _settings(sources: str) -> Settings:
    return Settings.model_validate({"proxy_sources": sources})


def test_common_subset() -> None:
    """The file says nothing that one of the tools does not understand."""
    assert [word for word in TOO_NEW if re.search(rf"^\s*{word}:", TEXT, re.MULTILINE)] == []

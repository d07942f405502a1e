"""Settings that are more than a number."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from pydantic import ValidationError
from pydantic_settings import DotEnvSettingsSource, SecretsSettingsSource

from services.common.config import Settings


@pytest.mark.parametrize(
    ("text", "networks"),
    [("", []), ("192.0.2.7", ["192.0.2.7/32"]), ("10.0.0.0/8, 2001:db8::/32,", ["10.0.0.0/8", "2001:db8::/32"])],
)
def test_balancers(monkeypatch: pytest.MonkeyPatch, text: str, networks: list[str]) -> None:
    """Addresses and networks, parted by commas."""
    monkeypatch.setenv("HOPLINE_PROXY_SOURCES", text)
    assert Settings().proxy_sources == tuple(map(ip_network, networks))


def test_balancers_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names beside them; what begins as an address is none, nor is what begins as an address of IPv6 does."""
    monkeypatch.setenv("HOPLINE_PROXY_SOURCES", "balancer.example, 10.0.0.0/8, lb-2, fd00::/8")
    assert Settings().proxy_sources == ("balancer.example", ip_network("10.0.0.0/8"), "lb-2", ip_network("fd00::/8"))


@pytest.mark.parametrize("text", ["a balancer", "lb:5672", "10.0.0.1/8", "192.0.2.7;192.0.2.8", "fd00::1/8", "-lb"])
def test_what_is_no_balancer(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """What is no name, and networks with more than their bits, are refused at the start and named."""
    monkeypatch.setenv("HOPLINE_PROXY_SOURCES", text)
    with pytest.raises(ValidationError, match="proxy_sources"):
        Settings()


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ("JAEGER_URL", "localhost:16686"),
        ("JAEGER_URL", "ftp://localhost"),
        ("JAEGER_URL", "http://localhost:99999"),
        ("JAEGER_ADDRESS", "jaeger"),
        ("JAEGER_ADDRESS", "jaeger:x"),
    ],
)
def test_what_is_no_jaeger(monkeypatch: pytest.MonkeyPatch, setting: str, text: str) -> None:
    """Values that could not be opened, or connected to, are refused at the start and named."""
    monkeypatch.setenv(f"HOPLINE_{setting}", text)
    with pytest.raises(ValidationError, match=setting.lower()):
        Settings()


@pytest.mark.parametrize("text", ["PLAIN AMQPLAIN", "plain,amqplain", " PLAIN , AMQPLAIN PLAIN,"])
def test_mechanisms(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Names of SASL mechanisms, parted by blanks or commas, in their order, each once."""
    monkeypatch.setenv("HOPLINE_SASL_MECHANISMS", text)
    assert Settings().sasl_mechanisms == ("PLAIN", "AMQPLAIN")


@pytest.mark.parametrize("text", ["", " , ", "PLAIN;AMQPLAIN", "A-NAME-OF-TOO-MANY-LETTERS"])
def test_what_is_no_mechanism(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """What no mechanism is called, and no mechanism at all, are refused at the start and named."""
    monkeypatch.setenv("HOPLINE_SASL_MECHANISMS", text)
    with pytest.raises(ValidationError, match="sasl_mechanisms"):
        Settings()


def test_there_are_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings come from the environment alone, and none is looked for in files: every command would wait for it."""
    looked: list[object] = []

    def look(source: object) -> dict[str, object]:
        looked.append(source)
        return {}

    for kind in (DotEnvSettingsSource, SecretsSettingsSource):
        monkeypatch.setattr(kind, "__call__", look)
    monkeypatch.setenv("HOPLINE_AMQP_PORT", "5679")
    assert Settings().amqp_port == 5679
    assert looked == []

"""The manifests against the API's own schemas, offline, and what they promise of the pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
#: Clusters in use: the oldest that this package and the API groups here share, and the newest known.
VERSIONS = ("1.30", kubernetes_validate.latest_version())


def manifest(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def test_there_is_one_of_each() -> None:
    kinds = sorted(yaml.safe_load(file.read_text(encoding="utf-8"))["kind"] for file in FILES)
    assert kinds == ["ConfigMap", "Deployment", "HorizontalPodAutoscaler", "Ingress", "Service"]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_manifest_fits_the_api(file: Path, version: str) -> None:
    for document in yaml.safe_load_all(file.read_text(encoding="utf-8")):
        kubernetes_validate.validate(document, version, strict=True)


def test_a_misspelt_field_would_be_seen() -> None:
    wrong = manifest("deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["securityContext"]["readOnlyRootFileSystem"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_a_pod_can_do_no_more_than_it_needs() -> None:
    pod = manifest("deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/tmp"]


def test_all_speak_of_the_same_pods_and_ports() -> None:
    deployment, service = manifest("deployment"), manifest("service")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    ports = {port["name"] for port in container["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    assert {container[probe]["httpGet"]["port"] for probe in ("readinessProbe", "livenessProbe")} <= ports
    [rule] = manifest("ingress")["spec"]["rules"]
    backend = rule["http"]["paths"][0]["backend"]["service"]
    assert backend["name"] == service["metadata"]["name"]
    assert backend["port"]["name"] in {port["name"] for port in service["spec"]["ports"]}
    assert manifest("autoscaler")["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]


def test_the_ingress_sends_the_proxys_headers() -> None:
    ours = (ROOT / "deploy" / "proxy" / "haproxy.cfg").read_text(encoding="utf-8")
    lines = manifest("ingress")["metadata"]["annotations"]["haproxy.org/response-set-header"].strip().splitlines()
    assert len(lines) == 6
    assert [line for line in lines if f"http-response set-header {line}\n" not in ours] == []


def test_the_controllers_log_leaves_the_query_and_the_address_out() -> None:
    log = manifest("controller")["data"]["log-format"]
    assert "%HPO" in log
    assert not {"%HU", "%HQ", "%r", "%{+Q}r", "%ci", "%hr", "%hrl"} & set(log.split())

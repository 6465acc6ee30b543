"""docker/kubernetes/: what the API's own schemas say of it, and whether its parts and the program fit together."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from config import serving
from config.operating.metrics_page import write_metrics
from tests.instances import ROOT

FOLDER = ROOT / "docker" / "kubernetes"
# What no pod runs: who is to be filled in, who tells another program, and the list of the others.
APART = {"secret.example.yml", "prometheus-adapter.yml", "kustomization.yml"}
VERSIONS = ["1.30", "latest"]
KUBECTL = shutil.which("kubectl")
OF_CLOUDS = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}
Manifest = dict[str, Any]


def read(name: str) -> list[Manifest]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


ALL = [one for path in sorted(FOLDER.glob("*.yml")) if path.name not in APART for one in read(path.name)]
SECRETS = read("secret.example.yml")
WORKLOADS = [one for one in ALL if "template" in one.get("spec", {})]
PODS = {one["metadata"]["name"]: one["spec"]["template"] for one in WORKLOADS}


def name_of(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


def of_kind(kind: str) -> list[Manifest]:
    return [one for one in ALL if one["kind"] == kind]


def containers(pod: Manifest) -> list[Manifest]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def validate(manifests: list[Manifest], version: str) -> bool:
    """Check manifests against a version of the API."""
    import kubernetes_validate

    version = kubernetes_validate.latest_version() if version == "latest" else version
    return all(kubernetes_validate.validate(manifest, version, strict=True) for manifest in manifests)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_api_takes_all(version: str) -> None:
    assert validate([*ALL, *SECRETS], version)


def test_the_list_names_every_file_and_every_image() -> None:
    (listed,) = read("kustomization.yml")
    assert set(listed["resources"]) == {path.name for path in FOLDER.glob("*.yml")} - APART
    used = {one["image"].partition(":")[0] for pod in PODS.values() for one in containers(pod)}
    assert {one["name"] for one in listed["images"]} == used
    compose = yaml.safe_load((ROOT / "docker" / "compose.yml").read_text())
    assert used == {one["image"].partition(":")[0] for one in compose["services"].values() if "build" in one}
    assert listed["namespace"] == of_kind("Namespace")[0]["metadata"]["name"]


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_kubectl_renders_the_list() -> None:
    done = subprocess.run([str(KUBECTL), "kustomize", str(FOLDER)], capture_output=True, text=True, check=True)
    rendered = list(yaml.safe_load_all(done.stdout))
    assert sorted(map(name_of, rendered)) == sorted(map(name_of, ALL)) and validate(rendered, VERSIONS[-1])


def test_selectors_find_the_pods_that_they_mean() -> None:
    for one in WORKLOADS:
        if one["kind"] != "Job":
            assert one["spec"]["selector"]["matchLabels"] == one["spec"]["template"]["metadata"]["labels"]
    selectors = {name_of(one): one["spec"]["selector"] for one in of_kind("Service")}
    selectors |= {name_of(one): one["spec"]["selector"]["matchLabels"] for one in of_kind("PodDisruptionBudget")}
    for who, wanted in selectors.items():
        found = [name for name, pod in PODS.items() if wanted.items() <= pod["metadata"]["labels"].items()]
        assert found == [who.split()[1]]
    assert {one["metadata"]["name"] for one in of_kind("PodDisruptionBudget")} == PODS.keys() - {"quorum-migrate"}


def test_what_is_named_is_there() -> None:
    known = {name_of(one) for one in [*ALL, *SECRETS]}
    for name, pod in PODS.items():
        volumes = {one["name"] for one in pod["spec"].get("volumes", [])}
        (workload,) = (one for one in WORKLOADS if one["metadata"]["name"] == name)
        volumes |= {one["metadata"]["name"] for one in workload["spec"].get("volumeClaimTemplates", [])}
        for container in containers(pod):
            assert {one["name"] for one in container["volumeMounts"]} <= volumes
            for source in container["envFrom"]:
                kind, named = ("ConfigMap", "configMapRef") if "configMapRef" in source else ("Secret", "secretRef")
                assert f"{kind} {source[named]['name']}" in known
    (scaler,) = of_kind("HorizontalPodAutoscaler")
    target = scaler["spec"]["scaleTargetRef"]
    assert f"{target['kind']} {target['name']}" in known
    (trainer,) = of_kind("StatefulSet")
    assert f"Service {trainer['spec']['serviceName']}" in known


def test_a_request_gets_from_the_ingress_to_the_port_of_the_site() -> None:
    (ingress,) = of_kind("Ingress")
    backend = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    (port,) = next(one for one in of_kind("Service") if one["metadata"]["name"] == backend["name"])["spec"]["ports"]
    (web,) = PODS["quorum-web"]["spec"]["containers"]
    (opened,) = web["ports"]
    assert backend["port"]["name"] == port["name"] and port["targetPort"] == opened["name"]
    dockerfile, number = (ROOT / "docker" / "Dockerfile").read_text(), opened["containerPort"]
    assert f"EXPOSE {number}\n" in dockerfile and f'"--port", "{number}"' in dockerfile
    hosts = {ingress["spec"]["rules"][0]["host"], *ingress["spec"]["tls"][0]["hosts"]}
    settings = of_kind("ConfigMap")[0]["data"]
    assert hosts == {settings["ALLOWED_HOSTS"]} and settings["CSRF_TRUSTED_ORIGINS"] == f"https://{hosts.pop()}"


def test_probes_ask_for_the_pages_that_need_neither_a_host_name_nor_tls() -> None:
    (web,) = PODS["quorum-web"]["spec"]["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = web[probe]["httpGet"]
        assert asked["port"] == web["ports"][0]["name"] and asked["path"] in ("/healthz", "/readyz")
    assert web["livenessProbe"]["httpGet"]["path"] != web["readinessProbe"]["httpGet"]["path"]
    for name, queue in (("quorum-worker", "judge"), ("quorum-trainer", "gpu")):
        (one,) = PODS[name]["spec"]["containers"]
        assert one["readinessProbe"]["exec"]["command"] == ["python", "docker/health.py", queue]
        assert "livenessProbe" not in one, "Redis may be away"


def names_read() -> Iterator[str]:
    """The variables that the program asks for."""
    asks = re.compile(r"(?:environ\.get|environ|read_secret|env\.\w+|\btext|\bsecret)[(\[]\s*\"([A-Z_0-9]+)\"")
    for app in ("config", "embedded", "jobs", "store", "corpus", "judges", "training"):
        for path in (ROOT / app).rglob("*.py"):
            yield from asks.findall(path.read_text())


def test_the_program_reads_every_variable_that_is_set_and_takes_its_value(tmp_path: Path) -> None:
    known = {*names_read(), *OF_CLOUDS}
    assert {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "QUORUM_STORE"} <= known
    given = set(of_kind("ConfigMap")[0]["data"]) | set(SECRETS[0]["stringData"])
    given |= {one["name"] for pod in PODS.values() for container in containers(pod) for one in container.get("env", [])}
    assert given <= known
    assert {"DATABASE_URL", "REDIS_URL", "SECRET_KEY", "QUORUM_STORE", "QUORUM_STOP_DELAY_S"} <= given
    given = {**of_kind("ConfigMap")[0]["data"], **SECRETS[0]["stringData"], "QUORUM_STOP_DELAY_S": "10"}
    given |= {"SECRET_KEY": "s" * 50, "QUORUM_VAR": str(tmp_path / "node"), "QUORUM_PRODUCTION": "1"}
    code = "from config.startup import refuse_unusable_settings as look; look(); from django.conf import settings;"
    code += "print(settings.STOP_DELAY_SECONDS, settings.WEB_PROCESSES, settings.ALLOWED_HOSTS, settings.STORE)"
    given = {**os.environ, **given, "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=given, capture_output=True, text=True)
    assert done.stdout.split() == ["10.0", "2", "['quorum.example.org']", "s3://quorum/instance"], done.stderr


@pytest.mark.parametrize("name", PODS)
def test_pods_run_as_nobody_special_on_a_file_system_that_cannot_be_written(name: str) -> None:
    spec = PODS[name]["spec"]
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] == 10001
    assert not spec["automountServiceAccountToken"] and not spec["enableServiceLinks"]
    var = of_kind("ConfigMap")[0]["data"]["QUORUM_VAR"]
    for container in containers(PODS[name]):
        rights = container["securityContext"]
        assert rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"]
        assert rights["capabilities"] == {"drop": ["ALL"]}
        mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
        # A folder in the volume, whose top belongs to root.
        assert mounts["/tmp"] == "tmp" and str(Path(var).parent) in mounts
        assert container["resources"]["requests"]["memory"] and container["resources"]["limits"]["memory"]
        is_trainer = container in PODS["quorum-trainer"]["spec"]["containers"]
        assert container["resources"]["limits"].get("nvidia.com/gpu", 0) == is_trainer, "a trainer owns one"


def test_pods_of_a_new_version_wait_for_the_job_that_migrates_and_nobody_is_killed_in_time() -> None:
    (job,) = PODS["quorum-migrate"]["spec"]["containers"]
    assert job["command"][:3] == ["python", "manage.py", "migrate"]
    for name in PODS.keys() - {"quorum-migrate"}:
        (first,) = PODS[name]["spec"]["initContainers"]
        (container,) = PODS[name]["spec"]["containers"]
        assert "manage.py migrate --check" in first["command"][-1] and first["image"] == container["image"]
        assert "command" not in container and "args" not in container, "the image says what runs"
    web = PODS["quorum-web"]["spec"]
    delay = float({one["name"]: one["value"] for one in web["containers"][0]["env"]}["QUORUM_STOP_DELAY_S"])
    probe = web["containers"][0]["readinessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] < delay
    assert web["terminationGracePeriodSeconds"] > delay + serving.STOP_S
    # A call may last for timeout_s, 60 seconds unless the judges file says otherwise.
    assert PODS["quorum-worker"]["spec"]["terminationGracePeriodSeconds"] >= 60 + 30


@pytest.mark.django_db
def test_the_scaler_asks_for_metrics_that_there_are() -> None:
    (values,) = read("prometheus-adapter.yml")
    rules = {one["seriesQuery"]: one for one in values["rules"]["external"]}
    (scaler,) = of_kind("HorizontalPodAutoscaler")
    told = write_metrics().decode()
    for metric in scaler["spec"]["metrics"]:
        asked = metric["external"]["metric"]
        rule = rules[asked["name"]]
        assert "<<.Series>>" in rule["metricsQuery"] and not rule["resources"]["namespaced"]
        wanted = asked.get("selector", {}).get("matchLabels", {})
        labels = ",".join(f'{name}="{value}"' for name, value in wanted.items())
        series = asked["name"] + (f"{{{labels}}}" if labels else "")
        assert re.search(rf"^{re.escape(series)} \d+\.0$", told, re.MULTILINE), "there also where nothing waits"

"""engine_ratio: the engine's calls/s divided by those of a bare SDK script with the same prompts."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from corpus.models import Collection
from judges.domain.debate import AGAINST, FOR
from judges.prompts import render
from judges.records import Inputs, Prompt
from tests import engine_parts as parts
from tests.modelserver.fixtures import LocalModels
from tools.bench import engine_parts as bench

PAIRS = int(os.environ.get("QUORUM_BENCH_PAIRS", 1500))
WARM_UP = 130
IN_FLIGHT = 128
PROVIDERS = {"openai": "openai-compatible", "anthropic": "anthropic", "google": "google"}  # By SDK.
Figure = dict[str, Any]


def bodies(collection: Collection, sdk: str) -> list[dict[str, Any]]:
    """Return the requests of the first debate round of every pair, as the provider makes them."""
    requests = []
    for pair in collection.pair_set.select_related("query", "document").order_by("pk"):
        query, document = pair.query, pair.document
        inputs = Inputs(query.text, tuple(query.answers), document.title, document.text, collection.relevance.of(query))
        for side, model in ((FOR, "yes+a"), (AGAINST, "yes+b")):
            requests.append(BODIES[sdk](model, render.turn_prompt(inputs, side, 1)))
    return requests


def _openai(model: str, prompt: Prompt) -> dict[str, Any]:
    schema = {"name": "answer", "schema": render.TURN_SCHEMA, "strict": True}
    messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
    body = {"model": model, "messages": messages, "temperature": 0, "max_tokens": 512}
    return body | {"response_format": {"type": "json_schema", "json_schema": schema}}


def _anthropic(model: str, prompt: Prompt) -> dict[str, Any]:
    system = [{"type": "text", "text": prompt.system, "cache_control": {"type": "ephemeral"}}]
    form = {"format": {"type": "json_schema", "schema": render.TURN_SCHEMA}}
    messages = [{"role": "user", "content": prompt.user}]
    return {"model": model, "max_tokens": 512, "system": system, "messages": messages, "output_config": form}


def _google(model: str, prompt: Prompt) -> dict[str, Any]:
    config = {
        "system_instruction": prompt.system,
        "response_mime_type": "application/json",
        "response_json_schema": render.TURN_SCHEMA,
        "temperature": 0,
        "max_output_tokens": 512,
        "automatic_function_calling": {"disable": True},
    }
    return {"model": model, "contents": prompt.user, "config": config}


BODIES = {"openai": _openai, "anthropic": _anthropic, "google": _google}


def bare(models: LocalModels, collection: Collection, sdk: str) -> Figure:
    """Return the script's calls/s, and its CPU time for each call."""
    models.reset()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        Path(file.name).write_text(json.dumps(bodies(collection, sdk)))
        script = str(Path(__file__).with_name("bare_sdk.py"))
        child = subprocess.Popen([sys.executable, script, sdk, models.base_url(PROVIDERS[sdk]), file.name])
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
    if status:
        raise RuntimeError("the bare script failed")
    requests = models.requests()
    return {"rate": bench.rate(requests), "ms": 1000 * (usage.ru_utime + usage.ru_stime) / len(requests)}


def engine(models: LocalModels, server: int, sdk: str, processes: int) -> Figure:
    """Return the engine's calls/s, and the CPU time of worker, PostgreSQL and server, after a campaign to warm up."""
    warm = parts.collection_of(WARM_UP, f"warm-{sdk}-{processes}")
    collection = parts.collection_of(PAIRS, f"{sdk}-{processes}")
    debaters = (f"{sdk}-a", f"{sdk}-b")
    limit = str(IN_FLIGHT // processes)
    limits = {"QUORUM_CALLS_IN_FLIGHT": limit, "QUORUM_PAIRS_IN_FLIGHT": limit, "QUORUM_LEASE_S": "30"}
    with bench.workers(processes, **limits) as child:
        bench.wait_until_finished(bench.begin(warm, "debate", debaters), 120)
        models.reset()
        is_counted = {
            "worker": lambda group, name: group == child.pid,
            "postgresql": lambda group, name: name.startswith("postgres"),
        }
        before = {part: bench.cpu_seconds(condition) for part, condition in is_counted.items()}
        server_before = cpu_of(server)
        bench.wait_until_finished(bench.begin(collection, "debate", debaters), 300)
        requests = models.requests()
        seconds_by_part = {part: bench.cpu_seconds(condition) - before[part] for part, condition in is_counted.items()}
        seconds_by_part["server"] = cpu_of(server) - server_before
    cpu = {f"{part}_cpu_ms": round(1000 * seconds / len(requests), 2) for part, seconds in seconds_by_part.items()}
    return {"rate": bench.rate(requests), "calls": len(requests), **cpu}


def cpu_of(pid: int) -> float:
    """Return the CPU seconds of one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / bench.TICK


def measure() -> list[Figure]:
    """Return the figures of one and two worker processes with each SDK."""
    figures = []
    with bench.model_server() as (models, server):
        bench.panel(models)
        for sdk, provider in PROVIDERS.items():
            for name, model in (("a", "yes+a"), ("b", "yes+b")):
                parts.make_judge(models, f"{sdk}-{name}", model, provider=provider)
            figures += [figure(models, server, sdk, processes, aim) for processes, aim in ((1, 0.75), (2, 0.95))]
    return figures


def figure(models: LocalModels, server: int, sdk: str, processes: int, aim: float) -> Figure:
    """Return the figure of an SDK and a number of worker processes."""
    engine_figures = engine(models, server, sdk, processes)
    script = bare(models, Collection.objects.get(name=f"{sdk}-{processes}"), sdk)
    return {
        "name": "engine_ratio",
        "case": f"{sdk} SDK, {processes} worker process{'es' * (processes > 1)}",
        "value": round(engine_figures["rate"] / script["rate"], 2),
        "unit": "of a bare script",
        "aim": aim,
        "calls_per_s": round(engine_figures["rate"], 1),
        "bare_calls_per_s": round(script["rate"], 1),
        **{name: value for name, value in engine_figures.items() if name != "rate"},
        "bare_cpu_ms": round(script["ms"], 2),
    }

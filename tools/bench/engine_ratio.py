"""engine_ratio: calls/s of the engine over those of a bare SDK script with the same prompts, in the same run."""

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
PROVIDERS = {"openai": "openai-compatible", "anthropic": "anthropic", "google": "google"}
"""By SDK."""
Figure = dict[str, Any]


def bodies(collection: Collection, sdk: str) -> list[dict[str, Any]]:
    """The requests of round 1 of every pair, as the provider makes them."""
    found = []
    for pair in collection.pair_set.select_related("query", "document").order_by("pk"):
        query, document = pair.query, pair.document
        inputs = Inputs(query.text, tuple(query.answers), document.title, document.text, collection.instruction)
        for seat, model in ((FOR, "yes+a"), (AGAINST, "yes+b")):
            found.append(BODIES[sdk](model, render.turn_prompt(inputs, seat, 1)))
    return found


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
    """Calls/s and CPU of the script."""
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
    """Calls/s and CPU of worker, PostgreSQL and server, on a warm worker; every attempt is committed."""
    warm = parts.collection_of(WARM_UP, f"warm-{sdk}-{processes}")
    collection = parts.collection_of(PAIRS, f"{sdk}-{processes}")
    debaters = (f"{sdk}-a", f"{sdk}-b")
    each = IN_FLIGHT // processes
    flight = {"QUORUM_CALLS_IN_FLIGHT": str(each), "QUORUM_PAIRS_IN_FLIGHT": str(each), "QUORUM_LEASE_S": "30"}
    with bench.workers(processes, **flight) as child:
        bench.wait_until_finished(bench.begin(warm, "debate", debaters), 120)
        models.reset()
        picks = {
            "worker": lambda group, name: group == child.pid,
            "postgresql": lambda group, name: name.startswith("postgres"),
        }
        before = {part: bench.cpu_seconds(pick) for part, pick in picks.items()}
        own = cpu_of(server)
        bench.wait_until_finished(bench.begin(collection, "debate", debaters), 300)
        requests = models.requests()
        spent = {part: bench.cpu_seconds(pick) - before[part] for part, pick in picks.items()}
        spent["server"] = cpu_of(server) - own
    cpu = {f"{part}_cpu_ms": round(1000 * seconds / len(requests), 2) for part, seconds in spent.items()}
    return {"rate": bench.rate(requests), "calls": len(requests), **cpu}


def cpu_of(pid: int) -> float:
    """CPU seconds of one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / bench.TICK


def measure() -> list[Figure]:
    """One and two worker processes through each SDK, each against the script of the same run."""
    figures = []
    with bench.model_server() as (models, server):
        bench.panel(models)
        for sdk, provider in PROVIDERS.items():
            for name, model in (("a", "yes+a"), ("b", "yes+b")):
                parts.make_judge(models, f"{sdk}-{name}", model, provider=provider)
            figures += [figure(models, server, sdk, processes, aim) for processes, aim in ((1, 0.75), (2, 0.95))]
    return figures


def figure(models: LocalModels, server: int, sdk: str, processes: int, aim: float) -> Figure:
    """One row."""
    found = engine(models, server, sdk, processes)
    script = bare(models, Collection.objects.get(name=f"{sdk}-{processes}"), sdk)
    return {
        "name": "engine_ratio",
        "case": f"{sdk} SDK, {processes} worker process{'es' * (processes > 1)}",
        "value": round(found["rate"] / script["rate"], 2),
        "unit": "of a bare script",
        "aim": aim,
        "calls_per_s": round(found["rate"], 1),
        "bare_calls_per_s": round(script["rate"], 1),
        **{name: value for name, value in found.items() if name != "rate"},
        "bare_cpu_ms": round(script["ms"], 2),
    }

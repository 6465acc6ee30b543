"""engine_ratio: calls/s of the engine over those of a bare SDK script with the same prompts, in the same run."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from corpus.models import Collection
from judges import prompts
from judges.debate import AGAINST, FOR
from judges.records import Inputs
from tests import engine_parts as parts
from tests.bench import engine_parts as bench
from tests.modelserver.fixtures import LocalModels

PAIRS = int(os.environ.get("QUORUM_BENCH_PAIRS", 1500))
WARM_UP = 130
IN_FLIGHT = 128
Figure = dict[str, Any]


def bodies(collection: Collection) -> list[dict[str, Any]]:
    """The requests of round 1 of every pair, as the provider makes them."""
    schema = {"name": "answer", "schema": prompts.TURN_SCHEMA, "strict": True}
    found = []
    for pair in collection.pair_set.select_related("query", "document").order_by("pk"):
        query, document = pair.query, pair.document
        inputs = Inputs(query.text, tuple(query.answers), document.title, document.text, collection.instruction)
        for side, model in ((FOR, "yes+a"), (AGAINST, "yes+b")):
            prompt = prompts.turn_prompt(inputs, side, 1)
            messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
            body = {"model": model, "messages": messages, "temperature": 0, "max_tokens": 512}
            found.append(body | {"response_format": {"type": "json_schema", "json_schema": schema}})
    return found


def bare(models: LocalModels, collection: Collection) -> Figure:
    """Calls/s and CPU of the script."""
    models.reset()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        Path(file.name).write_text(json.dumps(bodies(collection)))
        args = [sys.executable, str(Path(__file__).with_name("bare_sdk.py")), models.openai, file.name]
        child = subprocess.Popen(args)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
    if status:
        raise RuntimeError("the bare script failed")
    requests = models.requests()
    return {"rate": bench.rate(requests), "ms": 1000 * (usage.ru_utime + usage.ru_stime) / len(requests)}


def engine(models: LocalModels, server: int, processes: int) -> Figure:
    """Calls/s and CPU of worker, PostgreSQL and server, on a warm worker; every attempt is committed."""
    warm = parts.collection_of(WARM_UP, f"warm-{processes}")
    collection = parts.collection_of(PAIRS, f"engine-{processes}")
    each = IN_FLIGHT // processes
    flight = {"QUORUM_CALLS_IN_FLIGHT": str(each), "QUORUM_PAIRS_IN_FLIGHT": str(each), "QUORUM_LEASE_S": "30"}
    with bench.workers(processes, **flight) as child:
        bench.wait_until_finished(bench.begin(warm, "debate"), 120)
        models.reset()
        picks = {
            "worker": lambda group, name: group == child.pid,
            "postgresql": lambda group, name: name.startswith("postgres"),
        }
        before = {part: bench.cpu_seconds(pick) for part, pick in picks.items()}
        own = cpu_of(server)
        bench.wait_until_finished(bench.begin(collection, "debate"), 300)
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
    """One and two worker processes, each against the script of the same run."""
    figures = []
    with bench.model_server() as (models, server):
        bench.panel(models)
        for processes, aim in ((1, 0.8), (2, 1.0)):
            found = engine(models, server, processes)
            script = bare(models, Collection.objects.get(name=f"engine-{processes}"))
            figure = {"name": "engine_ratio", "case": f"{processes} worker process{'es' * (processes > 1)}"}
            figure |= {"value": round(found["rate"] / script["rate"], 2), "unit": "of a bare script", "aim": aim}
            figure |= {"calls_per_s": round(found["rate"], 1), "bare_calls_per_s": round(script["rate"], 1)}
            figure |= {name: value for name, value in found.items() if name != "rate"}
            figures.append(figure | {"bare_cpu_ms": round(script["ms"], 2)})
    return figures

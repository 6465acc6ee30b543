"""`make bench`: measure each figure in a separate process and database, print JSON lines, and write the table.

A figure is a module here with `measure() -> list[dict]`, which returns {"name", "value", "unit"} and other keys such as
"case" and "aim". `python -m tools.bench [module ...]` measures some of them, without writing the table.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tools.bench import report

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
ORDER = (
    "engine_ratio", "paid_twice", "judging", "slow_clients", "import_per_s", "export_s", "agreement_s",
    "training_ratio", "rerank_ratio", "agreement_crowd", "large_campaign", "lock_waits",
)  # fmt: skip
LIMIT_S = 900
Figure = dict[str, Any]


def modules() -> list[str]:
    """Return the names of modules with a figure, those of the contract's table first and in its order."""
    paths = [path for path in HERE.glob("*.py") if "def measure()" in path.read_text() and path.stem != "__main__"]
    names = [path.stem for path in paths]
    return sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def environment(var: Path) -> dict[str, str]:
    """Return environment variables for separate services, as durable as real ones, without access to other machines."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    settings = {"QUORUM_VAR": str(var), "QUORUM_LOOPBACK_ONLY": "1", "DJANGO_SETTINGS_MODULE": "config.settings"}
    return {**inherited, **settings}


def fresh_database(settings: dict[str, str], module: str) -> str:
    """Create a database with the migrated tables, and return its address."""
    import psycopg

    name = f"bench_{module}"
    address = settings["DATABASE_URL"]
    with psycopg.connect(address.replace("/quorum?", "/postgres?"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE quorum")
    return address.replace("/quorum?", f"/{name}?")


def run_one(module: str, settings: dict[str, str]) -> list[Figure]:
    """Return the figures of one module; a failure becomes a figure without a value, so that the others are measured."""
    settings = {**settings, "DATABASE_URL": fresh_database(settings, module), "QUORUM_PREFIX": f"bench-{module}"}
    args = [sys.executable, "-m", "tools.bench", "--measure", module]
    try:
        process = subprocess.run(
            args, cwd=ROOT, env=settings, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return [{"name": module, "value": None, "unit": "", "error": f"did not end in {LIMIT_S} s"}]
    lines = [line for line in process.stdout.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        last = process.stderr.strip().splitlines()[-1:] or ["printed nothing"]
        return [{"name": module, "value": None, "unit": "", "error": last[0][:300]}]
    return [json.loads(line) for line in lines]


def measure(module: str) -> None:
    """Print one JSON line for each figure of a module, in the child process."""
    import django

    django.setup()
    for figure in importlib.import_module(f"tools.bench.{module}").measure():
        print(json.dumps(figure, ensure_ascii=False), flush=True)


def calibrate(address: str) -> dict[str, float]:
    """Return this machine's speed: PostgreSQL's inserts per second in one transaction, Python's MB/s of parsed JSON."""
    import psycopg

    rows = 20_000
    with psycopg.connect(address) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE calibration (id bigint PRIMARY KEY, text text)")
        started_at = time.perf_counter()
        for number in range(rows):
            cursor.execute(
                "INSERT INTO calibration VALUES (%s, %s)", (number, "a line of about forty characters, more")
            )
        inserts = rows / (time.perf_counter() - started_at)
    text = json.dumps(
        [{"query_id": f"q{n}", "doc_id": f"d{n}", "grade": 1, "text": "word " * 20} for n in range(50_000)]
    )
    started_at = time.perf_counter()
    json.loads(text)
    return {
        "inserts_per_s": round(inserts),
        "json_mb_per_s": round(len(text) / 1e6 / (time.perf_counter() - started_at)),
    }


def main(module_names: list[str]) -> int:
    """Measure the figures of these modules, by default of all, and return the exit code, 1 if any failed."""
    if unknown := set(module_names) - set(modules()):
        print(f"no such figure: {', '.join(sorted(unknown))}; there are {', '.join(modules())}", file=sys.stderr)
        return 2
    var = Path(tempfile.mkdtemp(prefix="quorum-bench-"))
    settings = environment(var)
    os.environ.update(settings)
    from embedded import ensure_services, redis_url
    from embedded.addresses import database_url

    figures: list[Figure] = []
    try:
        subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], cwd=ROOT, env=settings, check=True)
        ensure_services(var)
        settings |= {"DATABASE_URL": database_url(var), "REDIS_URL": redis_url(var)}
        assert urlsplit(settings["DATABASE_URL"]).path == "/quorum"
        calibration = calibrate(settings["DATABASE_URL"])
        for module in module_names or modules():
            for figure in run_one(module, settings):
                figures.append({**figure, "calibration": calibration})
                print(json.dumps(figures[-1], ensure_ascii=False), flush=True)
    finally:
        shutil.rmtree(var, ignore_errors=True)
    if not module_names:
        (ROOT / "docs" / "benchmarks.md").write_text(report.page(figures, calibration))
    return 1 if any(figure.get("value") is None for figure in figures) else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:]))

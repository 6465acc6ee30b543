"""`loss_ablation --models M1 M2 M3 M4 --base B --member NAME RUN QRELS --out DIR`: the four losses side by side."""

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
    """Rerank each member's run by the base and by four models, and compare them."""

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
        """Check everything, rerank what is not reranked yet, and write the table."""
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
            found = {}
            for system, (model, asked) in systems.items():
                path = out / f"{name}.{system}.run"
                if not path.exists():
                    self.stderr.write(f"{name}: reranking with {system}")
                    how = {option: options[option] for option in ("depth", "device", "precision")}
                    done = rerank_run(
                        model,
                        run,
                        collection_named(name),
                        path,
                        insert=qrels,
                        prompt=asked,
                        say=self.stderr.write,
                        **how,
                    )
                    self.stderr.write(describe_rerank(done))
                found[system] = evaluate_run(read_qrels(qrels), read_run(path), [MEASURE]).per_query[MEASURE]
            measured[name] = found
        document = write_tables(out, measured)
        for line in result_lines(document):
            self.say(line)
        return document


def check_members(given: list[list[str]]) -> list[tuple[str, Path, Path]]:
    """Return members with files, read once so that bad ones are told. BadInput."""
    members = [(name, Path(run), Path(qrels)) for name, run, qrels in given]
    for name, run, qrels in members:
        collection_named(name)
        if not read_run(run).keys() & read_qrels(qrels).keys():
            raise BadInput(f"{run} and {qrels} have no query in common: name the qrels of this run's queries")
    names = [name for name, *_ in members]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInput(f"--member {twice} is given twice: name each collection once")
    return members

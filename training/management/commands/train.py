"""`train RECIPE --data DIR --base DIR_OR_ID --out DIR`: train a model, as a job of the GPU queue."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.utils.module_loading import import_string

from actions.options import add_arguments, read_arguments
from corpus.commands import QuorumCommand
from corpus.errors import BadInput, Incomplete, QuorumError
from corpus.models import Collection
from training.jobs import lifecycle, worker_pool
from training.jobs.options import TrainingOptions, read_config
from training.jobs.services import start_training
from training.models import Job
from training.recipes import table
from training.recipes.table import RECIPES


class Command(QuorumCommand):
    """Queue a training, and wait for it if asked to."""

    positional = ("recipe",)
    help = "Fine-tune a reranker or an embedding model on an export in the recipe's format, on the queue `gpu`."

    def arguments(self, parser: CommandParser) -> None:
        add_arguments(parser, TrainingOptions, self.positional)
        parser.add_argument(
            "--out", type=Path, required=True, metavar="DIR", help="output folder for the model; must be new or empty"
        )
        parser.add_argument("--config", type=Path, metavar="F.toml", help="TOML file with options; those here win")
        parser.add_argument("--wait", action="store_true", help="wait for the end and show progress")

    def run(self, **options: Any) -> object:
        """Queue the training, wait for it if asked to, and return its document."""
        training_options = read_arguments(TrainingOptions, options, **read_config(options))
        recipe = training_options.recipe
        read = import_string(RECIPES[recipe].reader)
        collection = Collection.objects.filter(name=read(Path(training_options.data)).collection).first()
        job = start_training(self.actor, collection, training_options, out=options["out"])
        if rates := table.find_far_rate(recipe, table.recipe_options(recipe, training_options.option_values)):
            self.stderr.write(f"warning: {table.FAR_RATE % rates}")
        self.stderr.write(f"job {job.number} waits in the queue ({job.device})")
        if options["wait"]:
            try:
                worker_pool.wait_for([job], lambda: self.line(job), self.stderr.write)
            except KeyboardInterrupt:
                name = job.collection.name if job.collection else lifecycle.SHARED
                self.stderr.write(
                    f"interrupted: job {job.number} continues from its checkpoint once a worker serves the queue; "
                    f"to end it: manage.py training {name} cancel --job {job.number}"
                )
                raise
        return self.end(job, waited=options["wait"])

    def line(self, job: Job) -> str:
        """Return the progress of a job as one line."""
        share = f"step {job.done} of {job.total}, " if job.total else ""
        phase = f"{job.phase or job.get_state_display()}{f' ({job.words})' if job.words else ''}"
        return f"job {job.number}: {share}{phase}"

    def end(self, job: Job, *, waited: bool) -> object:
        """Return the document of a job. Raises BadInput, Incomplete or QuorumError if it ended without a model."""
        metrics = job.result.get("metrics")
        # The measures are returned with the verdict and the figures behind it.
        if metrics is not None:
            metrics = {**metrics, **{name: job.result.get(name) for name in ("gain", "rankings")}}
        document = {
            "job": job.number,
            "state": job.state,
            "steps": job.result.get("steps", job.done),
            "loss_first": job.result.get("loss_first"),
            "loss_last": job.result.get("loss_last"),
            "metrics": metrics,
            "out": job.options["out"],
        }
        if not waited:
            return document
        if job.state == Job.State.REFUSED:
            raise BadInput(job.error)
        if job.state == Job.State.CANCELLED:
            raise Incomplete(f"Job {job.number} was cancelled after step {job.done}", document)
        if job.state == Job.State.FAILED:
            raise QuorumError(f"Job {job.number} failed: {job.error}; its log is {job.folder}/log.txt")
        gain = job.result.get("gain") or {}
        self.say(f"{job.options['out']}: {job.words}; {gain.get('words') or 'not measured: there is no dev split'}")
        if (rankings := job.result.get("rankings")) and gain.get("first_stage"):
            base = "random head" if gain["random_head"] else "base"
            means = f"{gain['first_stage']['mean']:.4f}, {base} {gain['base']:.4f}, trained {gain['tuned']:.4f}"
            self.say(f"{gain['measure']} over {rankings['queries']} queries: {gain['first_stage']['name']} {means}")
        return document

"""Syntheses as jobs that ask models: what each kind is made of, and its work.

Bundles come into a folder to train on; queries without passages, into the collection as soon as they are written.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Count, Q, Sum
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from benchmark.models import Synthesis, SyntheticBundle
from benchmark.synthesis import files, queries
from benchmark.synthesis.bundles import draw_personas
from benchmark.synthesis.conversation import SeedOutcome, SeedTask, write_bundle
from benchmark.synthesis.estimates import estimate_synthesis
from benchmark.synthesis.options import AskOptions, BundleOptions, KeywordOptions
from benchmark.synthesis.seeds import Seed, bundled_personas, choose_seeds, read_personas
from corpus.errors import BadInput
from corpus.models import Collection
from jobs import leases
from jobs.leases import Lease
from judges.campaigns.estimates import Estimate
from judges.conversations.requests import Conversation, Subject
from judges.model_jobs import jobs
from judges.model_jobs.jobs import BatchOutcome, JobPlan, ModelJobKind, Options, start_service
from judges.models import Campaign
from judges.prompts.render import prompt_versions
from judges.records import Judge
from judges.retrieval import model_requests
from store.files import exists, publish

BATCH = 512  # Seeds whose outcomes are stored together; every answer is stored as it comes.
PHASES = {Synthesis.Product.BUNDLES.value: gettext_noop("writing bundles")}
WRITING_QUERIES = gettext_noop("writing queries")
# What the names of the prompts of each kind begin with.
PROMPTS = {
    Synthesis.Product.BUNDLES.value: "synth-",
    Synthesis.Product.KEYWORDS.value: "query-keywords",
    Synthesis.Product.ASK.value: "query-ask",
}


class Syntheses(ModelJobKind[Synthesis]):
    """Syntheses: conversations about seeds, each a bundle or a query in the end, or dropped."""

    model, task, purpose = Synthesis, "benchmark.make_synthesis", "synthesis"
    name, home = "synthesis", "syntheses"
    title, question = gettext_lazy("Synthetic queries"), gettext_lazy("Write these synthetic queries?")
    missing = gettext_lazy("Synthesis not found.")
    started, controlled, detail = "synthesis.started", "synthesis.control", "synthesis"
    roles = {"judge": "persona"}

    def shown_in(self, collection: Collection) -> dict[str, Any]:
        """Offer the models, and the training sets whose queries can be rewritten."""
        choices = super().shown_in(collection)["choices"]
        writers = [(name, name) for name in model_requests.judges_for("compose")]
        sets = [(folder.name, label) for folder, label in queries.list_training_sets(collection)]
        return {"choices": {**choices, "writer": [("", _("the same model")), *writers], "data": sets}}

    def plan(self, collection: Collection, options: Options) -> JobPlan:
        """Complete the options and choose the seeds."""
        kind = Synthesis.Product(options.get("kind") or Synthesis.Product.BUNDLES).value
        judge, writer = judges_of(options)
        seed = options.get("seed", 0)
        kept: dict[str, Any] = {"limit": options.get("limit"), "judge": judge.name, "writer": writer.name}
        kept |= {"prompts": prompts_digest(kind), "seed": seed}
        # A bundle's split and voices are part of what it is; a query's are not, and its ways add their own options.
        if kind == Synthesis.Product.BUNDLES:
            personas = read_personas(Path(path)) if (path := options.get("personas")) else bundled_personas()
            kept |= {"dev": options.get("dev", 0.0), "personas": list(personas)}
            seeds = choose_seeds(collection, options["source"], seed=seed, limit=kept["limit"])
        else:
            own, seeds = queries.choose_sources(collection, kind, options, seed)
            kept |= own
        # The source is a path or a name: the texts of the seeds count, not where they lie.
        texts = [(one.id, one.text, one.query is None) for one in seeds]
        return JobPlan(
            {**kept, "source": options.get("source")},
            _distinct(judge, writer),
            made_of=[kept, [judge.id, writer.id], texts],
            total=len(seeds),
            columns={"kind": kind},
            parts=seeds,
        )

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate:
        judge, kind = plan.judges[0], plan.columns["kind"]
        if kind == Synthesis.Product.BUNDLES:
            return estimate_synthesis(plan.parts, judge, plan.judges[-1], plan.options["personas"])
        return queries.estimate_queries(collection, kind, judge, plan.parts)

    def begin(self, job: Synthesis, plan: JobPlan) -> None:
        SyntheticBundle.objects.bulk_create(
            SyntheticBundle(synthesis=job, place=place, seed_id=one.id, seed_text=one.text, query=one.query)
            for place, one in enumerate(plan.parts)
        )

    def judges_of(self, job: Synthesis) -> list[Judge]:
        return _distinct(*judges_of(job.options))

    def count_done(self, job: Synthesis) -> tuple[int, int]:
        rows = SyntheticBundle.objects.filter(synthesis=job).count()
        return rows - pending_rows(job).count(), rows

    def work(self, job: Synthesis, lease: Lease) -> None:
        """Write what all seeds that wait become; then the folder of bundles. Queries are imported batch by batch.

        Raises Incomplete: what there is stays.
        """
        # Seeds written by two versions of the prompts would be one set in name only.
        if job.options["prompts"] != prompts_digest(job.kind):
            raise BadInput(_("The prompts have changed since it began: start a new one"))
        of_bundles = job.kind == Synthesis.Product.BUNDLES
        if not of_bundles:  # Those that a worker stored and did not import before it was killed.
            queries.import_synthetic(job, SyntheticBundle.objects.filter(synthesis=job, bundle__isnull=False))
        campaign = self.campaign_of(job)

        def write(keys: Sequence[int]) -> BatchOutcome:
            rows = list(SyntheticBundle.objects.filter(pk__in=keys).order_by("place"))
            if not of_bundles and not (rows := _leave_out_known(job, rows)):
                return BatchOutcome(0, 0)
            found = _talk_about(job, campaign, rows, lease)
            # A seed that got no response keeps its row empty, so that going on asks for it again.
            transient = [one for one in found.answers if one is not None and one.reason == "error"]
            _store_outcomes(job, rows, found.answers)
            if not of_bundles:
                queries.import_synthetic(job, rows)
            error = transient[-1].problem if transient else ""
            return BatchOutcome(len(rows), len(rows) - len(transient), error, found.spent, found.stopped)

        keys = list(pending_rows(job).values_list("pk", flat=True))
        done = jobs.ask_in_batches(job, lease.should_stop, jobs.in_batches(keys, BATCH), write, job.total)
        # A worker that wrote the folder and was killed before it said so must not write it twice.
        if done and of_bundles and not exists(job.folder):
            files.write_folder(job, job.folder)
            publish(job.folder)


SYNTHESES = Syntheses()
# The service that starts a synthesis, by what it makes.
STARTS = {
    record.product.value: start_service(SYNTHESES, record) for record in (BundleOptions, KeywordOptions, AskOptions)
}


def prompts_digest(kind: str) -> str:
    """The hash of all prompts of a kind of synthesis: with other prompts it is another one."""
    texts = [digest for name, (digest, _text) in prompt_versions().items() if name.startswith(PROMPTS[kind])]
    return sha256("".join(texts).encode()).hexdigest()


def judges_of(options: Mapping[str, Any]) -> tuple[Judge, Judge]:
    """Return who answers the steps, and who writes the passages: the same judge unless a writer is named.

    Raises BadInput.
    """
    judge = model_requests.judge_for("persona", str(options.get("judge") or ""))
    name = str(options.get("writer") or "")
    return judge, model_requests.judge_for("compose", name) if name else judge


def _distinct(judge: Judge, writer: Judge) -> list[Judge]:
    return list({one.id: one for one in (judge, writer)}.values())


def pending_rows(synthesis: Synthesis) -> Any:
    """Seeds of which neither a bundle came nor a reason to drop it, in order."""
    return SyntheticBundle.objects.filter(synthesis=synthesis, bundle__isnull=True, step="").order_by("place")


def _leave_out_known(synthesis: Synthesis, rows: Sequence[SyntheticBundle]) -> list[SyntheticBundle]:
    """The seeds from which no query was written yet; the others come to their end here."""
    way = queries.WAYS[synthesis.kind]
    known = queries.known_sources(synthesis.collection, way)
    there = [one for one in rows if one.seed_id in known]
    _store_outcomes(synthesis, there, [SeedOutcome(step=way.role, reason=queries.PRESENT)] * len(there))
    return [one for one in rows if one.seed_id not in known]


def _talk_about(
    synthesis: Synthesis, campaign: Campaign, rows: Sequence[SyntheticBundle], lease: Lease
) -> model_requests.Replies[SeedOutcome]:
    # In the versions of when its campaign was opened; one judge that also writes stands there once.
    judge, *others = model_requests.judges_in(campaign)
    options, seeds = synthesis.options, {_subject_of(one).query: one for one in rows}
    instruction = synthesis.collection.relevance.definition(answers=False).statement

    async def talk(conversation: Conversation) -> SeedOutcome:
        one = seeds[conversation.subject.query]
        if synthesis.kind != Synthesis.Product.BUNDLES:
            way = queries.WAYS[synthesis.kind]
            return await queries.write_query(conversation, way, Seed(one.seed_id, one.seed_text), judge)
        shown = tuple(draw_personas(options["personas"], options["seed"], one.seed_id))
        writer = others[0] if others else judge
        return await write_bundle(conversation, SeedTask(one.seed_id, one.seed_text, shown, judge, writer, instruction))

    # The denominator is all seeds, also those of earlier turns, so that the bar never goes back.
    before, phase = synthesis.total - pending_rows(synthesis).count(), PHASES.get(synthesis.kind, WRITING_QUERIES)
    subjects = [_subject_of(one) for one in rows]
    return jobs.hold_conversations(campaign, subjects, talk, lease, done=before, total=synthesis.total, phase=phase)


def _subject_of(one: SyntheticBundle) -> Subject:
    """A seed of a file is no query of the collection: its place, below 0, stands for it."""
    return Subject(one.query or -1 - one.place, one.seed_text, one.seed_id)


def _store_outcomes(
    synthesis: Synthesis, rows: Sequence[SyntheticBundle], outcomes: Sequence[SeedOutcome | None]
) -> None:
    """Keep what came of seeds; those without a response wait. Raises LeaseLost."""
    made, dropped = [], []
    for row, outcome in zip(rows, outcomes, strict=True):
        if outcome is None or outcome.reason == "error":
            continue
        if outcome.bundle is not None:
            row.bundle, row.near_duplicates = outcome.bundle, outcome.near_duplicates
            made.append(row)
        else:
            row.step, row.reason, row.problem = outcome.step, outcome.reason, outcome.problem
            dropped.append(row)
    with transaction.atomic():
        leases.lock_held(synthesis)
        SyntheticBundle.objects.bulk_update(made, ["bundle", "near_duplicates"], batch_size=100)
        SyntheticBundle.objects.bulk_update(dropped, ["step", "reason", "problem"], batch_size=100)


def describe_synthesis(synthesis: Synthesis) -> dict[str, Any]:
    """Return the outcome so far and the cost, for a page or a program."""
    if synthesis.kind == Synthesis.Product.BUNDLES:
        counts = SyntheticBundle.objects.filter(synthesis=synthesis).aggregate(
            bundles=Count("pk", filter=Q(bundle__isnull=False)),
            dropped=Count("pk", filter=~Q(step="")),
            dropped_negatives=Sum("near_duplicates", default=0),
        )
    else:
        counts = queries.count_synthetic(synthesis)
    return {
        "collection": synthesis.collection.name,
        "synthesis": synthesis.number,
        "kind": synthesis.kind,
        "state": synthesis.state,
        "seeds": synthesis.total,
        **counts,
        **jobs.cost_of(synthesis),
    }


def summarise_writing(job: Synthesis) -> tuple[str, dict[str, Any]]:
    """Say how many queries were written, and what became of the others; with the document."""
    made = describe_synthesis(job)
    line = (
        f"{made['written']:,} queries written with {made['pairs']:,} pairs; {made['there_before']:,} "
        f"were there before; {sum(made['failed'].values()):,} brought no query; {made['calls']:,} calls"
    )
    return line, made

"""Syntheses as jobs that ask models.

Bundles are written to a folder for training; queries without passages are imported as soon as they are written.
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
from benchmark.synthesis.bundles import draw_personas, draw_seeds
from benchmark.synthesis.conversation import SeedOutcome, SeedTask, write_bundle
from benchmark.synthesis.estimates import estimate_synthesis
from benchmark.synthesis.options import AskOptions, BundleOptions, KeywordOptions
from benchmark.synthesis.queries import choose_documents, choose_training_queries, list_training_sets
from benchmark.synthesis.seeds import (
    QUERIES,
    Seed,
    bundled_personas,
    collection_seeds,
    file_seeds,
    read_personas,
)
from corpus.errors import BadInput
from corpus.models import Collection, Pair, Query
from jobs import leases
from jobs.leases import Lease
from judges.campaigns.estimates import NO_MIX, Estimate, of_calls
from judges.campaigns.token_mixes import mixes_of
from judges.conversations.requests import Conversation, Subject
from judges.model_jobs import jobs
from judges.model_jobs.jobs import BatchOutcome, JobPlan, ModelJobKind, Options, start_service
from judges.prompts.answers.formats import FORMATS, schema_of
from judges.prompts.render import prompt_versions
from judges.records import Judge
from judges.retrieval import model_requests
from store.files import exists, publish

BATCH = 512  # Seeds whose outcomes are stored together.
PHASES = {Synthesis.Product.BUNDLES.value: gettext_noop("writing bundles")}
WRITING_QUERIES = gettext_noop("writing queries")
# Prefixes of the names of each kind's prompts.
PROMPTS = {
    Synthesis.Product.BUNDLES.value: "synth-",
    Synthesis.Product.KEYWORDS.value: "query-keywords",
    Synthesis.Product.ASK.value: "query-ask",
}


class Syntheses(ModelJobKind[Synthesis]):
    """Syntheses: conversations about seeds, each of which yields a bundle or a query, or is dropped."""

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
        settings: dict[str, Any] = {"limit": options.get("limit"), "judge": judge.name, "writer": writer.name}
        settings |= {"prompts": prompts_digest(kind), "seed": seed}
        # The dev split and the personas belong to bundles only; queries have their own options.
        if kind == Synthesis.Product.BUNDLES:
            personas = read_personas(Path(path)) if (path := options.get("personas")) else bundled_personas()
            settings |= {"dev": options.get("dev", 0.0), "personas": list(personas)}
            source = options["source"]
            seeds = collection_seeds(collection) if source == QUERIES else file_seeds(Path(source))
            if not seeds:
                message = _("%(name)s has no query to begin from: import queries, or name a file of seeds")
                raise BadInput(message % {"name": collection.name} if source == QUERIES else f"{source} holds no query")
            drawn_ids = set(draw_seeds((seed_query.id for seed_query in seeds), seed, settings["limit"]))
            seeds = [seed_query for seed_query in seeds if seed_query.id in drawn_ids]
        else:
            settings["pairs"] = options.get("pairs", 20)
            if kind == Synthesis.Product.KEYWORDS:
                share, source = options.get("share", 0.3), options["source"]
                # A page sends the name of a training set, a command its path.
                folders = {folder.name: folder for folder, _label in list_training_sets(collection)}
                seeds = choose_training_queries(collection, folders.get(source) or Path(source), share=share, seed=seed)
                settings["share"] = share
            else:
                seeds = choose_documents(collection, limit=options["limit"], seed=seed)
        # The job depends on the texts of the seeds, not on the path or name of their source.
        texts = [(source.id, source.text, source.query is None) for source in seeds]
        return JobPlan(
            {**settings, "source": options.get("source")},
            _distinct(judge, writer),
            made_of=[settings, [judge.id, writer.id], texts],
            total=len(seeds),
            columns={"kind": kind},
            parts=seeds,
        )

    def estimate(self, collection: Collection, plan: JobPlan) -> Estimate:
        judge, kind = plan.judges[0], plan.columns["kind"]
        if kind == Synthesis.Product.BUNDLES:
            return estimate_synthesis(plan.parts, judge, plan.judges[-1], plan.options["personas"])
        # Only queries that have not been written yet are calls.
        method = queries.METHODS[kind]
        written_sources = queries.used_sources(collection, method)
        unused = [source for source in plan.parts if source.id not in written_sources]
        sample = [method.prompt(source.text) for source in unused[: queries.SAMPLED]]
        mix = mixes_of([judge]).get(judge.id, NO_MIX)
        return of_calls(judge, len(unused), sample, schema_of(FORMATS[method.role]), method.likely, mix)

    def begin(self, job: Synthesis, plan: JobPlan) -> None:
        SyntheticBundle.objects.bulk_create(
            SyntheticBundle(synthesis=job, place=position, seed_id=source.id, seed_text=source.text, query=source.query)
            for position, source in enumerate(plan.parts)
        )

    def judges_of(self, job: Synthesis) -> list[Judge]:
        return _distinct(*judges_of(job.options))

    def count_done(self, job: Synthesis) -> tuple[int, int]:
        rows = SyntheticBundle.objects.filter(synthesis=job).count()
        return rows - pending_rows(job).count(), rows

    def work(self, job: Synthesis, lease: Lease) -> None:
        """Write the bundles or queries of all pending seeds. Raises Incomplete, which keeps what is stored.

        For each batch of seeds:
        1. Leave out seeds from which a query was written before.
        2. Hold a conversation about each seed.
        3. Store the outcomes, and import queries.

        In the end write the folder of bundles.
        """
        # Texts from two versions of the prompts would be one set in name only.
        if job.options["prompts"] != prompts_digest(job.kind):
            raise BadInput(_("The prompts have changed since it began: start a new one"))
        writes_bundles = job.kind == Synthesis.Product.BUNDLES
        # A worker may have been killed between storing queries and importing them.
        if not writes_bundles:
            queries.import_synthetic(job, SyntheticBundle.objects.filter(synthesis=job, bundle__isnull=False))
        campaign = self.campaign_of(job)
        # In the versions of the campaign; a judge that also writes the passages is listed once.
        judge, *others = model_requests.judges_in(campaign)
        writer = others[0] if others else judge
        instruction = job.collection.relevance.definition(answers=False).statement

        def write(keys: Sequence[int]) -> BatchOutcome:
            rows = list(SyntheticBundle.objects.filter(pk__in=keys).order_by("place"))
            if not writes_bundles:
                method = queries.METHODS[job.kind]
                used_sources = queries.used_sources(job.collection, method)
                used = [row for row in rows if row.seed_id in used_sources]
                _store_outcomes(job, used, [SeedOutcome(step=method.role, reason=queries.PRESENT)] * len(used))
                rows = [row for row in rows if row.seed_id not in used_sources]
                if not rows:
                    return BatchOutcome(0, 0)
            seeds = {_subject_of(row).query: row for row in rows}

            async def hold(conversation: Conversation) -> SeedOutcome:
                row = seeds[conversation.subject.query]
                if not writes_bundles:
                    seed = Seed(row.seed_id, row.seed_text)
                    return await queries.write_query(conversation, queries.METHODS[job.kind], seed, judge)
                personas = tuple(draw_personas(job.options["personas"], job.options["seed"], row.seed_id))
                task = SeedTask(row.seed_id, row.seed_text, personas, judge, writer, instruction)
                return await write_bundle(conversation, task)

            # Progress counts all seeds, including those of earlier turns, so that the bar never goes back.
            done, phase = job.total - pending_rows(job).count(), PHASES.get(job.kind, WRITING_QUERIES)
            subjects = [_subject_of(row) for row in rows]
            replies = jobs.hold_conversations(campaign, subjects, hold, lease, done=done, total=job.total, phase=phase)
            # A seed without a response keeps its row empty, so that a resumed job asks for it again.
            transient = [outcome for outcome in replies.answers if outcome is not None and outcome.reason == "error"]
            _store_outcomes(job, rows, replies.answers)
            if not writes_bundles:
                queries.import_synthetic(job, rows)
            error = transient[-1].problem if transient else ""
            return BatchOutcome(len(rows), len(rows) - len(transient), error, replies.spent, replies.stopped)

        keys = list(pending_rows(job).values_list("pk", flat=True))
        is_done = jobs.ask_in_batches(job, lease.should_stop, jobs.in_batches(keys, BATCH), write, job.total)
        # A worker may have been killed after it wrote the folder; it must not be written twice.
        if is_done and writes_bundles and not exists(job.folder):
            files.write_folder(job, job.folder)
            publish(job.folder)


SYNTHESES = Syntheses()
# The service that starts a synthesis, by its product.
STARTS = {
    record.product.value: start_service(SYNTHESES, record) for record in (BundleOptions, KeywordOptions, AskOptions)
}


def prompts_digest(kind: str) -> str:
    """Return the hash of all prompts of a kind of synthesis; with other prompts it is another synthesis."""
    texts = [digest for name, (digest, _text) in prompt_versions().items() if name.startswith(PROMPTS[kind])]
    return sha256("".join(texts).encode()).hexdigest()


def judges_of(options: Mapping[str, Any]) -> tuple[Judge, Judge]:
    """Return the judge of all steps and the writer of the passages, by default the same. Raises BadInput."""
    judge = model_requests.judge_for("persona", str(options.get("judge") or ""))
    name = str(options.get("writer") or "")
    return judge, model_requests.judge_for("compose", name) if name else judge


def _distinct(judge: Judge, writer: Judge) -> list[Judge]:
    return list({model.id: model for model in (judge, writer)}.values())


def pending_rows(synthesis: Synthesis) -> Any:
    """Return the seeds without a bundle or a reason to drop them, in order."""
    return SyntheticBundle.objects.filter(synthesis=synthesis, bundle__isnull=True, step="").order_by("place")


def _subject_of(row: SyntheticBundle) -> Subject:
    """Return the subject of a conversation; a seed from a file, which is no query, has its negative position."""
    return Subject(row.query or -1 - row.place, row.seed_text, row.seed_id)


def _store_outcomes(
    synthesis: Synthesis, rows: Sequence[SyntheticBundle], outcomes: Sequence[SeedOutcome | None]
) -> None:
    """Store the outcomes of seeds, leaving those without a response pending. Raises LeaseLost."""
    with_bundle, dropped = [], []
    for row, outcome in zip(rows, outcomes, strict=True):
        if outcome is None or outcome.reason == "error":
            continue
        if outcome.bundle is not None:
            row.bundle, row.near_duplicates = outcome.bundle, outcome.near_duplicates
            with_bundle.append(row)
        else:
            row.step, row.reason, row.problem = outcome.step, outcome.reason, outcome.problem
            dropped.append(row)
    with transaction.atomic():
        leases.lock_held(synthesis)
        SyntheticBundle.objects.bulk_update(with_bundle, ["bundle", "near_duplicates"], batch_size=100)
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
        # Count the outcomes of the sources; `failed` by reason, `pairs` of the written queries.
        rows = SyntheticBundle.objects.filter(synthesis=synthesis)
        with_bundle = rows.filter(bundle__isnull=False)
        failed = dict(rows.exclude(step="").order_by("reason").values_list("reason").annotate(rows=Count("pk")))
        present = failed.pop(queries.PRESENT, 0)
        counts = {"written": with_bundle.count(), "there_before": present, "failed": failed}
        counts["waiting"] = synthesis.total - with_bundle.count() - present - sum(failed.values())
        ids = list(with_bundle.values_list("bundle__query_id", flat=True))
        current = Query.objects.filter(collection=synthesis.collection, external_id__in=ids, is_current=True)
        counts = counts | {"pairs": Pair.objects.filter(query__in=current, is_candidate=True).count()}
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
    """Return a line about the written queries and the other outcomes, and the document with all figures."""
    summary = describe_synthesis(job)
    line = (
        f"{summary['written']:,} queries written with {summary['pairs']:,} pairs; {summary['there_before']:,} "
        f"were there before; {sum(summary['failed'].values()):,} brought no query; {summary['calls']:,} calls"
    )
    return line, summary

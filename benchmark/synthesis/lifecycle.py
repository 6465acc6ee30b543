"""Life cycle of a synthesis: start or join, work under a lease, cancel, go on.

Bundles come into a folder to train on; queries without passages, into the collection as soon as they are written.
"""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Count, Q, Sum
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from benchmark.models import Synthesis, SyntheticBundle
from benchmark.synthesis import files, queries
from benchmark.synthesis.bundles import draw_personas
from benchmark.synthesis.conversation import SeedOutcome, SeedTask, write_bundle
from benchmark.synthesis.estimates import estimate_synthesis
from benchmark.synthesis.seeds import Seed, bundled_personas, choose_seeds
from corpus.errors import BadInput, Incomplete, QuorumError
from corpus.models import Collection
from jobs import leases
from jobs.leases import Lease
from jobs.models import JobState
from jobs.notifications import notify
from judges.campaigns.estimates import Estimate
from judges.conversations.requests import Conversation, ConversationResults, Subject, hold_conversations
from judges.costs.ledger import ledger_rows, sum_rows
from judges.models import Campaign
from judges.prompts.render import prompt_versions
from judges.records import Judge
from judges.retrieval import job_campaigns, model_requests
from judges.retrieval.job_campaigns import LIMITS, limits_of, replace_limits
from store.files import exists, publish

Talk = Callable[[Conversation], Awaitable[SeedOutcome]]

MAKE_SYNTHESIS = "benchmark.make_synthesis"
BATCH = 512  # Seeds whose outcomes are stored together; every answer is stored as it comes.
MOST_DEV = 0.5
PHASES = {Synthesis.Product.BUNDLES.value: gettext_noop("writing bundles")}
WRITING_QUERIES = gettext_noop("writing queries")
# What the names of the prompts of each kind begin with.
PROMPTS = {
    Synthesis.Product.BUNDLES.value: "synth-",
    Synthesis.Product.KEYWORDS.value: "query-keywords",
    Synthesis.Product.ASK.value: "query-ask",
}


def kind_of(options: Mapping[str, Any]) -> str:
    """Return the kind of synthesis; bundles, where the options do not say."""
    return Synthesis.Product(options.get("kind") or Synthesis.Product.BUNDLES).value


def check_options(collection: Collection, options: Mapping[str, Any]) -> tuple[dict[str, Any], list[Seed]]:
    """The options, completed, and the seeds. Raises BadInput for what is known to be wrong before anybody works."""
    kind = kind_of(options)
    judge, writer = judges_of(options)
    seed = int(options.get("seed") or 0)
    known = {name: options.get(name) for name in ("source", "limit")}
    known |= {"judge": judge.name, "writer": writer.name, "prompts": prompts_digest(kind), "seed": seed}
    # A bundle's split and voices are part of what it is; a query's are not, and its ways add their own options.
    if kind == Synthesis.Product.BUNDLES:
        dev = float(options.get("dev") or 0)
        if not 0 <= dev <= MOST_DEV:
            raise BadInput(_("dev %(dev)s: give a share from 0 to %(most)s") % {"dev": f"{dev:g}", "most": MOST_DEV})
        known |= {"dev": dev, "personas": list(options.get("personas") or bundled_personas())}
        seeds = choose_seeds(collection, options["source"], seed=seed, limit=known["limit"])
    else:
        own, seeds = queries.choose_sources(collection, kind, options, seed)
        known |= own
    # Limits are kept beside the rest, and _key_of takes them out again: more money does not make it another synthesis.
    limits = limits_of(options)
    model_requests.check_limits(collection, _distinct(judge, writer), **limits)
    return replace_limits(known, limits), seeds


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


def _find_judges(synthesis: Synthesis) -> list[Judge]:
    return _distinct(*judges_of(synthesis.options))


def _distinct(judge: Judge, writer: Judge) -> list[Judge]:
    return list({one.id: one for one in (judge, writer)}.values())


def estimate_cost(collection: Collection, options: Mapping[str, Any]) -> Estimate:
    """Estimate the calls and cost of a synthesis. Raises BadInput as `start_or_join` does."""
    kind = kind_of(options)
    known, seeds = check_options(collection, options)
    judge, writer = judges_of(known)
    if kind == Synthesis.Product.BUNDLES:
        return estimate_synthesis(seeds, judge, writer, known["personas"])
    return queries.estimate_queries(collection, kind, judge, seeds)


def start_or_join(*, collection: Collection, options: Mapping[str, Any], by: str = "") -> Synthesis:
    """Resume the synthesis of these seeds and options where there is one, else start it.

    Raises BadInput. What it may spend is no part of what it is: other limits replace the old ones.
    """
    known, seeds = check_options(collection, options)
    key = _key_of(known, seeds)
    found = find_synthesis(collection, key)
    if found is not None:
        limits = limits_of(known)
        # A synthesis that is ready has nothing left to spend on.
        if found.state != JobState.READY and limits != limits_of(found.options):
            set_limits(found, **limits)
        go_on(found)
        return Synthesis.objects.select_related("collection").get(pk=found.pk)
    try:
        # Row and seeds in one transaction: a worker never claims a synthesis whose seeds are not there yet.
        with transaction.atomic():
            made = Synthesis.objects.create(
                collection=collection, kind=kind_of(options), options=known, key=key, total=len(seeds), made_by=by
            )
            rows = enumerate(seeds)
            SyntheticBundle.objects.bulk_create(
                SyntheticBundle(synthesis=made, place=place, seed_id=one.id, seed_text=one.text, query=one.query)
                for place, one in rows
            )
            # The notice goes out after the commit: a worker woken before it would find nothing.
            transaction.on_commit(lambda: notify(MAKE_SYNTHESIS))
    except IntegrityError:  # somebody began the same one in between
        return Synthesis.objects.select_related("collection").get(collection=collection, key=key)
    return made


def find_synthesis(collection: Collection, key: str) -> Synthesis | None:
    """The collection's synthesis of this key, however far it is."""
    return Synthesis.objects.select_related("collection").filter(collection=collection, key=key).first()


def _key_of(options: Mapping[str, Any], seeds: Sequence[Seed]) -> str:
    """Return the hash of a synthesis's options, judges and seeds; the seeds' texts count, not where they lie."""
    # The source is a path or a name; the texts of the seeds stand below.
    kept = {name: value for name, value in options.items() if name not in (*LIMITS, "source")}
    made_of = [kept, [one.id for one in judges_of(options)], [(one.id, one.text, one.query is None) for one in seeds]]
    return sha256(json.dumps(made_of, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def set_limits(synthesis: Synthesis, *, budget: float | None, max_calls: int | None) -> None:
    """Set the synthesis's limits in all; None: no limit. `go_on` then resumes it. Raises BadInput."""
    job_campaigns.set_job_limits(synthesis, partial(_find_judges, synthesis), budget=budget, max_calls=max_calls)


def cancel_synthesis(synthesis: Synthesis) -> bool:
    """Cancel a synthesis; finished bundles stay. Returns False when it is over already."""
    return leases.cancel(synthesis, **count_progress(synthesis))


def go_on(synthesis: Synthesis) -> bool:
    """Make the rest of a cancelled or failed synthesis. False in any other state."""
    went = leases.resume(synthesis)
    if went:
        transaction.on_commit(lambda: notify(MAKE_SYNTHESIS))
    return went


def count_progress(synthesis: Synthesis) -> dict[str, int]:
    """Return `done` and `total`: the seeds that came to their end, and all."""
    rows = SyntheticBundle.objects.filter(synthesis=synthesis)
    return {"done": rows.count() - pending_rows(synthesis).count(), "total": rows.count()}


def pending_rows(synthesis: Synthesis) -> Any:
    """Seeds of which neither a bundle came nor a reason to drop it, in order."""
    return SyntheticBundle.objects.filter(synthesis=synthesis, bundle__isnull=True, step="").order_by("place")


def work_on_synthesis(synthesis: Synthesis, shutting_down: Any) -> None:
    """Make a claimed synthesis, until it is over or somebody else's, or waits again because this worker ends."""
    leases.perform(
        synthesis,
        lambda lease: _write_all(synthesis, lease),
        stopping=shutting_down,
        # Of what a judge or the collection is to blame for, the row keeps the words; anything else is a bug and goes to
        # the log.
        expected=QuorumError,
        last=lambda: count_progress(synthesis),
    )


def _write_all(synthesis: Synthesis, lease: Lease) -> None:
    """Write what all seeds that wait become; then the folder of bundles. Queries are imported batch by batch.

    Raises Incomplete when the limits are reached, and in the end when some seeds got no answer: what there is stays.
    """
    # Seeds written by two versions of the prompts would be one set in name only.
    if synthesis.options["prompts"] != prompts_digest(synthesis.kind):
        raise BadInput(_("the prompts have changed since it began: start a new one"))
    of_bundles = synthesis.kind == Synthesis.Product.BUNDLES
    if not of_bundles:  # Those that a worker stored and did not import before it was killed.
        queries.import_synthetic(synthesis, SyntheticBundle.objects.filter(synthesis=synthesis, bundle__isnull=False))
    campaign = job_campaigns.campaign_of(synthesis, partial(_find_judges, synthesis), f"synthesis {synthesis.pk}")
    failed, error = 0, ""
    for keys in _in_batches(list(pending_rows(synthesis).values_list("pk", flat=True))):
        if lease.should_stop():
            return
        rows = list(SyntheticBundle.objects.filter(pk__in=keys).order_by("place"))
        if not of_bundles and not (rows := _leave_out_known(synthesis, rows)):
            continue
        found = _talk_about(synthesis, campaign, rows, lease)
        # A seed that got no response keeps its row empty, so that going on asks for it again.
        transient = [one for one in found.results if one is not None and one.reason == "error"]
        _store_outcomes(synthesis, rows, found.results)
        if not of_bundles:
            queries.import_synthetic(synthesis, rows)
        if found.stopped:
            return
        if found.spent:
            raise job_campaigns.describe_stop(synthesis, found.spent)
        failed, error = failed + len(transient), transient[-1].problem if transient else error
        # No answer to a whole batch: the endpoint is down, and the other batches would only wait for its time-outs.
        if len(transient) == len(rows):
            break
    if failed:
        told = _("%(failed)s of %(total)s seeds got no response (%(error)s). Resume to retry them")
        raise Incomplete(told % {"failed": f"{failed:,}", "total": f"{synthesis.total:,}", "error": error})
    # A worker that wrote the folder and was killed before it said so must not write it twice.
    if of_bundles and not exists(synthesis.folder):
        files.write_folder(synthesis, synthesis.folder)
        publish(synthesis.folder)


def _leave_out_known(synthesis: Synthesis, rows: Sequence[SyntheticBundle]) -> list[SyntheticBundle]:
    """The seeds from which no query was written yet; the others come to their end here."""
    way = queries.WAYS[synthesis.kind]
    known = queries.known_sources(synthesis.collection, way)
    there = [one for one in rows if one.seed_id in known]
    _store_outcomes(synthesis, there, [SeedOutcome(step=way.role, reason=queries.PRESENT)] * len(there))
    return [one for one in rows if one.seed_id not in known]


def _in_batches(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    return (keys[at : at + BATCH] for at in range(0, len(keys), BATCH))


def _talk_about(
    synthesis: Synthesis, campaign: Campaign, rows: Sequence[SyntheticBundle], lease: Lease
) -> ConversationResults[SeedOutcome]:
    talk = (_bundle_talk if synthesis.kind == Synthesis.Product.BUNDLES else _query_talk)(synthesis, campaign, rows)
    # The denominator is all seeds, also those of earlier turns, so that the bar never goes back.
    before, phase = synthesis.total - pending_rows(synthesis).count(), PHASES.get(synthesis.kind, WRITING_QUERIES)
    lease.progress(before, synthesis.total, phase)
    return hold_conversations(
        campaign,
        [_subject_of(one) for one in rows],
        talk,
        stopped=lease.should_stop,
        done=lambda ended: lease.note(before + ended, synthesis.total, phase),
    )


def _bundle_talk(synthesis: Synthesis, campaign: Campaign, rows: Sequence[SyntheticBundle]) -> Talk:
    # In the versions of when its campaign was opened; one judge that also writes stands there once.
    judge, *others = model_requests.judges_in(campaign)
    options = synthesis.options
    told = synthesis.collection.relevance.definition(answers=False).statement
    tasks = {}
    for one in rows:
        shown = tuple(draw_personas(options["personas"], options["seed"], one.seed_id))
        tasks[_subject_of(one).query] = SeedTask(
            one.seed_id, one.seed_text, shown, judge, others[0] if others else judge, told
        )

    async def talk(conversation: Conversation) -> SeedOutcome:
        return await write_bundle(conversation, tasks[conversation.subject.query])

    return talk


def _query_talk(synthesis: Synthesis, campaign: Campaign, rows: Sequence[SyntheticBundle]) -> Talk:
    judge, way = model_requests.judges_in(campaign)[0], queries.WAYS[synthesis.kind]
    seeds = {_subject_of(one).query: Seed(one.seed_id, one.seed_text) for one in rows}

    async def talk(conversation: Conversation) -> SeedOutcome:
        return await queries.write_query(conversation, way, seeds[conversation.subject.query], judge)

    return talk


def _subject_of(one: SyntheticBundle) -> Subject:
    """A seed of a file is no query of the collection: its place, below 0, stands for it."""
    return Subject(one.query or -1 - one.place, one.seed_text, one.seed_id)


def _store_outcomes(
    synthesis: Synthesis, rows: Sequence[SyntheticBundle], outcomes: Sequence[SeedOutcome | None]
) -> None:
    """Keep what came of seeds; those that got no response wait. Raises LeaseLost when it is somebody else's."""
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
    spent = sum_rows("", ledger_rows(Campaign(pk=synthesis.campaign))) if synthesis.campaign else None
    of_bundles = synthesis.kind == Synthesis.Product.BUNDLES
    return {
        "collection": synthesis.collection.name,
        "synthesis": synthesis.number,
        "kind": synthesis.kind,
        "state": synthesis.state,
        "seeds": synthesis.total,
        **(_count_bundles(synthesis) if of_bundles else queries.count_synthetic(synthesis)),
        "calls": spent.calls if spent else 0,
        "calls_cached": spent.cached if spent else 0,
        "cost": spent.paid.usd if spent and spent.paid else 0.0,
    }


def _count_bundles(synthesis: Synthesis) -> dict[str, int]:
    return SyntheticBundle.objects.filter(synthesis=synthesis).aggregate(
        bundles=Count("pk", filter=Q(bundle__isnull=False)),
        dropped=Count("pk", filter=~Q(step="")),
        dropped_negatives=Sum("near_duplicates", default=0),
    )

"""Celery's side of annotation: exports, figures of large collections, and what asks judges or the web."""

from annotation.agreement import cached_results as agreement
from annotation.aspects import drafts
from annotation.exports.listing import MAKE
from annotation.exports.snapshots import begin_again, write_snapshot
from annotation.label_quality.statistics import COMPUTE, store_statistics
from annotation.models import Snapshot, StoredAgreement
from annotation.models.quality_control import ArgumentsRequest
from annotation.panels.self_checks import TASK, run_later
from annotation.policies import cached_results as policies
from annotation.policies import lara_live
from annotation.quality_control import gold_reasons, near_pairs
from corpus.errors import Incomplete, QuorumError
from corpus.models import Collection
from jobs.leases import Lease
from jobs.models import BackgroundJob
from jobs.tasks import CHORES, register_background
from judges.models import Campaign


def _make_snapshot(job: BackgroundJob, lease: Lease) -> None:
    """Make an export that was asked for; quiet when its row is gone or somebody made it already."""
    waiting = Snapshot.objects.select_related("collection").filter(state=Snapshot.State.MAKING)
    if (row := waiting.filter(pk=job.subject).first()) is None:
        return
    if job.fencing_token > 1:
        begin_again(row)
    write_snapshot(row, lambda rows: lease.progress(rows, 0))


make_snapshot = register_background(MAKE, _make_snapshot, expected=QuorumError)


def _compute_statistics(job: BackgroundJob, _lease: Lease) -> None:
    """Compute what a large collection's pages show; quiet when it is gone."""
    if (found := Collection.objects.filter(pk=job.subject).first()) is not None:
        store_statistics(found)


def _compute_agreement(job: BackgroundJob, _lease: Lease) -> None:
    """Measure what an agreement page asked for; quiet when it is gone."""
    found = StoredAgreement.objects.select_related("collection").filter(pk=job.subject).first()
    if found is not None:
        agreement.store(found)


def _compare_policies(job: BackgroundJob, _lease: Lease) -> None:
    """Replay every policy on a campaign's answers; quiet when it is gone."""
    found = Campaign.objects.select_related("collection").filter(pk=job.subject).first()
    if found is not None:
        policies.store_comparison(found)


def _compare_near_pairs(job: BackgroundJob, _lease: Lease) -> None:
    """Look for near-duplicates with different labels; quiet when the collection is gone."""
    if (found := Collection.objects.filter(pk=job.subject).first()) is not None:
        near_pairs.store_groups(found)


compute_statistics = register_background(COMPUTE, _compute_statistics)
compute_agreement = register_background(agreement.COMPUTE, _compute_agreement)
compare_policies = register_background(policies.COMPUTE, _compare_policies)
compare_near_pairs = register_background(near_pairs.COMPUTE, _compare_near_pairs)


def _self_check(job: BackgroundJob, _lease: Lease) -> None:
    """Ask judges known questions. A worker that died may have paid for some, so that is for a person to ask again."""
    if job.fencing_token > 1:
        raise Incomplete("the worker that asked the judges was ended")
    run_later(job.subject, job.arguments["judges"])


def _write_gold_reasons(job: BackgroundJob, lease: Lease) -> None:
    """Let the configured models argue about gold pairs; quiet when the request is gone or done."""
    waiting = ArgumentsRequest.objects.select_related("collection", "gold_set").filter(ended_at=None)
    if (found := waiting.filter(pk=job.subject).first()) is not None:
        gold_reasons.process_request(found, lease)


def _fetch_passage(job: BackgroundJob, _lease: Lease) -> None:
    drafts.fetch_draft(job.subject)


self_check = register_background(TASK, _self_check, expected=QuorumError)
write_gold_reasons = register_background(gold_reasons.WRITE, _write_gold_reasons, expected=QuorumError)
fetch_passage = register_background(drafts.FETCH, _fetch_passage)


def _go_on_with_lara(job: BackgroundJob, _lease: Lease) -> None:
    """Hand out the next batch where people have settled the last; quiet when there is nothing to do."""
    found = Campaign.objects.select_related("collection").filter(pk=job.subject, policy=lara_live.POLICY).first()
    if found is not None:
        lara_live.step(found)


go_on_with_lara = register_background(lara_live.GO_ON, _go_on_with_lara, expected=QuorumError)

CHORES.append(("", lara_live.wake))

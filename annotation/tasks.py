"""Background tasks of annotation: exports, imports, cached results, and work that asks judges or the web."""

from annotation.agreement import cached_results as agreement
from annotation.data.imports import importing
from annotation.data.imports.uploads import sweep_uploads
from annotation.data.web_search.searching import WEB_SEARCHES
from annotation.exports.listing import EXPORT_TASK
from annotation.exports.snapshots import begin_again, write_snapshot
from annotation.home.inbox.mails import send_inbox_mails
from annotation.models.imports import FileImport
from annotation.models.quality_control import ArgumentsRequest
from annotation.models.snapshots import Snapshot
from annotation.quality.label_errors import suspects
from annotation.quality.label_quality.statistics import STATISTICS
from annotation.quality.panels.self_checks import TASK, run_later
from annotation.quality.policies import cached_results as policies
from annotation.quality.policies import lara_live
from annotation.work.aspects import drafts
from annotation.work.comparing.by_judges.judging import COMPARISON_JUDGINGS
from annotation.work.quality_control import gold_reasons
from corpus.errors import Incomplete, QuorumError
from corpus.search import full_text
from jobs.leases import Lease
from jobs.models import BackgroundJob
from jobs.tasks import CHORES, JobKind, register_background, register_job_kind, register_result
from judges.models import Campaign
from store.files import sweep_contents


def _make_snapshot(job: BackgroundJob, lease: Lease) -> None:
    """Write a requested export; do nothing where its row is gone or it is already written."""
    unfinished = Snapshot.objects.select_related("collection").filter(state=Snapshot.State.MAKING)
    if (row := unfinished.filter(pk=job.subject).first()) is None:
        return
    # A first worker died, and may have left incomplete files.
    if job.fencing_token > 1:
        begin_again(row)
    write_snapshot(row, lambda rows: lease.progress(rows, 0))


make_snapshot = register_background(EXPORT_TASK, _make_snapshot, expected=QuorumError)


compute_statistics = register_result(STATISTICS)
compute_agreement = register_result(agreement.AGREEMENT)
compare_policies = register_result(policies.POLICIES)
find_label_errors = register_result(suspects.LABEL_ERRORS)


def _self_check(job: BackgroundJob, _lease: Lease) -> None:
    """Run a self-check of judges; not a second time after a worker died, since its calls may have cost money."""
    if job.fencing_token > 1:
        raise Incomplete("The worker that ran the self-check was stopped")
    run_later(job.subject, job.arguments["judges"])


def _write_gold_reasons(job: BackgroundJob, lease: Lease) -> None:
    """Have the configured models argue about gold pairs; do nothing where the request is gone or done."""
    unfinished = ArgumentsRequest.objects.select_related("collection", "gold_set").filter(ended_at=None)
    if (request := unfinished.filter(pk=job.subject).first()) is not None:
        gold_reasons.process_request(request, lease)


def _go_on_with_lara(job: BackgroundJob, _lease: Lease) -> None:
    """Continue a campaign of LARA; do nothing where it is gone."""
    campaigns = Campaign.objects.select_related("collection").filter(policy=lara_live.POLICY)
    if (campaign := campaigns.filter(pk=job.subject).first()) is not None:
        lara_live.step(campaign)


self_check = register_background(TASK, _self_check, expected=QuorumError)
write_gold_reasons = register_background(gold_reasons.WRITE, _write_gold_reasons, expected=QuorumError)
fetch_passage = register_background(drafts.FETCH, lambda job, _lease: drafts.fetch_draft(job.subject))
go_on_with_lara = register_background(lara_live.GO_ON, _go_on_with_lara, expected=QuorumError)
index_documents = register_background(
    full_text.INDEX,
    lambda job, lease: full_text.index_documents(job.subject, lease.progress, lease.should_stop),
)
import_files = register_job_kind(JobKind(importing.TASK, FileImport, importing.perform_import))
compare_documents = register_job_kind(
    JobKind(COMPARISON_JUDGINGS.task, COMPARISON_JUDGINGS.model, COMPARISON_JUDGINGS.perform)
)
search_web = register_job_kind(JobKind(WEB_SEARCHES.task, WEB_SEARCHES.model, WEB_SEARCHES.perform))

# On the unnamed queue, that of ordinary workers; trainers do not run these.
CHORES += [("", lara_live.wake), ("", sweep_uploads), ("", sweep_contents), ("", send_inbox_mails)]

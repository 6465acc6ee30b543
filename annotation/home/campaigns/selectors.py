"""The list of a collection's campaigns, and the provider accounts that their judges call."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.db.models import Prefetch
from django.utils import timezone

from annotation.home.campaigns.counts import CampaignCounts, load_raw_counters, name_counts
from corpus.models import Collection
from judges.campaigns.configurations import describe_panel
from judges.campaigns.judge_reports import describe_reports, judge_reports, other_models
from judges.engine import notifications
from judges.engine.account_states import Account, AccountState, read_account_states
from judges.models import Campaign, JudgeVersion
from judges.models.batches import Batch
from judges.presets import PRESETS

MAX_LISTED_CAMPAIGNS = 200


@dataclass(frozen=True, slots=True)
class AccountUse:
    """A provider account, and the judges of a campaign that call it."""

    state: AccountState
    judge_ids: tuple[int, ...]
    title: str = ""  # The provider's name for people, with the server where the judges name one.


@dataclass(frozen=True, slots=True)
class CampaignActivity:
    """What a running campaign is doing, as Redis knows it."""

    pairs_per_minute: float  # Average number of finished pairs since the campaign was created.
    seconds_left: float | None  # Time for the remaining pairs at this speed; None until a pair is finished.
    waiting_reason: str  # Why the campaign waits for a worker; empty if it does not wait.
    accounts: tuple[AccountUse, ...]  # Accounts of the debaters and voters; offline judges have none.


@dataclass(frozen=True, slots=True)
class ListedCampaign:
    """A campaign in the list."""

    campaign: Campaign
    counts: CampaignCounts
    # How many votes decide, and which voters are the same model asked more than once; empty without a panel.
    vote_rule: str
    judge_notes: tuple[str, ...]  # Notes on judges with unusable answers, and on other models that answered.
    open_batches: tuple[Batch, ...]
    activity: CampaignActivity | None  # None unless the campaign is running and judges pairs.

    @property
    def only_bills_finished_job(self) -> bool:
        """Whether the campaign only bills the calls of another job, such as a retrieval run, and this job is over."""
        is_over = self.campaign.state in (Campaign.State.FINISHED, Campaign.State.CANCELLED)
        return self.campaign.kind == Campaign.Kind.COSTS and is_over

    @property
    def has_unconfirmed_batch(self) -> bool:
        """Whether a batch was sent without a reply, so that the provider may or may not have accepted it."""
        return any(batch.is_unconfirmed for batch in self.open_batches)


def list_campaigns(collection: Collection) -> list[ListedCampaign]:
    """Return a collection's newest campaigns, newest first. Runs six statements, and reads Redis for running ones."""
    open_batches = Prefetch("batches", Batch.objects.filter(ended_at=None).order_by("pk"), to_attr="open_batches")
    campaigns = list(collection.campaigns.prefetch_related(open_batches).order_by("-pk")[:MAX_LISTED_CAMPAIGNS])
    campaign_ids = [campaign.pk for campaign in campaigns]
    raw_counters_by_campaign = load_raw_counters(campaign_ids)
    reports_by_campaign = judge_reports(campaign_ids) if campaign_ids else {}
    judge_ids = {judge_id for campaign in campaigns for judge_id in (*campaign.voters, *campaign.debaters)}
    judges = JudgeVersion.objects.in_bulk(judge_ids)
    listed_campaigns = []
    for campaign in campaigns:
        raw_counters = raw_counters_by_campaign[campaign.pk]
        counts = name_counts(raw_counters)
        # In the order of the panel; a judge occurs once for each of its samples.
        voters = [judges[judge_id] for judge_id in campaign.voters if judge_id in judges]
        debaters = [judges[judge_id] for judge_id in campaign.debaters if judge_id in judges]
        reports = reports_by_campaign.get(campaign.pk, ())
        # The keys of some raw counters contain the name of a model that answered instead of the judge's own model.
        judge_notes = describe_reports(reports, other_models(raw_counters))
        activity = None
        if campaign.state == Campaign.State.RUNNING and campaign.kind != Campaign.Kind.COSTS:
            elapsed_seconds = (timezone.now() - campaign.created_at).total_seconds()
            pairs_per_minute = counts.finished / max(1.0, elapsed_seconds) * 60
            activity = CampaignActivity(
                pairs_per_minute=pairs_per_minute,
                seconds_left=(counts.pairs - counts.finished) / pairs_per_minute * 60 if counts.finished else None,
                waiting_reason=notifications.describe_wait(campaign),
                accounts=tuple(_read_account_uses([*debaters, *voters])),
            )
        listed_campaigns.append(
            ListedCampaign(
                campaign=campaign,
                counts=counts,
                vote_rule=describe_panel(campaign.policy, voters, campaign.majority, early_stop=campaign.early_stop),
                judge_notes=tuple(judge_notes),
                open_batches=tuple(campaign.open_batches),
                activity=activity,
            )
        )
    return listed_campaigns


def read_accounts(campaign: Campaign) -> list[AccountUse]:
    """Return the provider accounts of a campaign's debaters and voters. Reads Redis."""
    return _read_account_uses(JudgeVersion.objects.filter(pk__in=[*campaign.debaters, *campaign.voters]))


def _read_account_uses(judges: Iterable[JudgeVersion]) -> list[AccountUse]:
    """Return each account that the judges call, by name; an empty list if Redis cannot be reached."""
    judge_ids_by_account: dict[Account, list[int]] = {}
    for judge in judges:
        # Offline judges call no provider.
        if judge.provider != "offline":
            account = (judge.provider, judge.base_url, judge.api_key_env)
            judge_ids_by_account.setdefault(account, []).append(judge.pk)
    if not judge_ids_by_account:
        return []
    uses = []
    for account, state in read_account_states(judge_ids_by_account).items():
        provider, base_url, _key = account
        title = PRESETS[provider].title if provider in PRESETS else provider
        if base_url:
            title = f"{title} ({urlsplit(base_url).netloc})"
        uses.append(AccountUse(state, tuple(judge_ids_by_account[account]), title))
    return uses

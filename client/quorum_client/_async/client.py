"""The site, and one collection with all its parts."""

import os
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any

import httpx2

from quorum_client._async.aspects import AsyncAspectReviews, AsyncAspects
from quorum_client._async.campaigns import AsyncAudits, AsyncCampaigns
from quorum_client._async.files import AsyncExports, AsyncImports, AsyncQueryLists
from quorum_client._async.judges import AsyncJudges, AsyncLabelErrors, AsyncPolicies, AsyncPrices
from quorum_client._async.model_jobs import (
    AsyncAgents,
    AsyncAnswers,
    AsyncHoleFillings,
    AsyncSyntheses,
    AsyncWebSearches,
)
from quorum_client._async.pair_acts import AsyncAuditLog, AsyncPairActs, AsyncSuites
from quorum_client._async.people import AsyncConflicts, AsyncInvitations, AsyncMembers, AsyncTasks
from quorum_client._async.quality import (
    AsyncAttentionChecks,
    AsyncExclusions,
    AsyncGold,
    AsyncQualityControl,
)
from quorum_client._async.rankings import AsyncLeaderboard, AsyncQrels, AsyncReports, AsyncRuns
from quorum_client._async.resources import AsyncResource
from quorum_client._async.studies import AsyncReferenceStudies, AsyncStudies
from quorum_client._async.trainings import AsyncCurves, AsyncModels, AsyncTrainings
from quorum_client._async.transport import AsyncTransport
from quorum_client._async.webhooks import AsyncWebhooks
from quorum_client.answers import build_body
from quorum_client.models import (
    CollectionIn,
    CollectionOut,
    ContractDocument,
    DocumentOut,
    JudgmentOut,
    MeasuredOut,
    PairOut,
    QualityOut,
    QueryOut,
    SettingsIn,
    SettingsOut,
)
from quorum_client.retries import RetryPolicy


class AsyncSettings(AsyncResource):
    """Settings of a collection."""

    async def read(self) -> SettingsOut:
        """Read the settings."""
        return await self.transport.read(SettingsOut, self.at("settings"))

    async def change(
        self, asked: SettingsIn | None = None, *, if_match: SettingsOut | None = None, **fields: Any
    ) -> SettingsOut:
        """Change settings, all that are given or none; with `if_match` only where nobody changed them meanwhile."""
        body = build_body(SettingsIn, asked, fields)
        return await self.transport.change(SettingsOut, self.at("settings"), body, if_match)

    async def apply_preset(self, preset: str) -> SettingsOut:
        """Set what a paper's study used: `dream`."""
        return await self.transport.post(SettingsOut, self.at("settings", "preset"), {"preset": preset})


class AsyncAgreement(AsyncResource):
    """Agreement of assessors. Nobody named: every judge, person and import."""

    async def read(self, assessors: Sequence[str] = (), **options: Any) -> dict[str, Any]:
        """Measure kappa, alpha and Dawid-Skene: `people`, `judges`, `binarize`, `population`, `bootstrap`."""
        params = {"assessors": [*assessors], **options}
        return (await self.transport.read(ContractDocument, self.at("agreement"), params)).document

    async def read_table(self, assessors: Sequence[str] = (), **options: Any) -> str:
        """Read every two assessors with all measures as CSV."""
        return await self.transport.read_text(self.at("agreement.csv"), {"assessors": [*assessors], **options})

    async def measure(self, assessors: Sequence[str] = (), **options: Any) -> MeasuredOut:
        """Have the table of a large collection measured by a worker."""
        return await self.transport.post(MeasuredOut, self.at("agreement"), {"assessors": [*assessors], **options})


class AsyncCollection(AsyncResource):
    """A collection. Its lists are read page by page while you iterate."""

    def __init__(self, transport: AsyncTransport, collection: str) -> None:
        super().__init__(transport, collection)
        # Parts hold the connection and the name, and nothing that was read: they can be kept.
        here = transport, collection
        self.settings = AsyncSettings(*here)
        self.members = AsyncMembers(*here)
        self.invitations = AsyncInvitations(*here)
        self.tasks = AsyncTasks(*here)
        self.conflicts = AsyncConflicts(*here)
        self.campaigns = AsyncCampaigns(*here)
        self.audits = AsyncAudits(*here)
        self.imports = AsyncImports(*here)
        self.exports = AsyncExports(*here)
        self.query_lists = AsyncQueryLists(*here)
        self.agreement = AsyncAgreement(*here)
        self.runs = AsyncRuns(*here)
        self.qrels = AsyncQrels(*here)
        self.reports = AsyncReports(*here)
        self.leaderboard = AsyncLeaderboard(*here)
        self.trainings = AsyncTrainings(*here)
        self.models = AsyncModels(*here)
        self.curves = AsyncCurves(*here)
        self.quality_control = AsyncQualityControl(*here)
        self.attention_checks = AsyncAttentionChecks(*here)
        self.gold = AsyncGold(*here)
        self.exclusions = AsyncExclusions(*here)
        self.studies = AsyncStudies(*here)
        self.reference_studies = AsyncReferenceStudies(*here)
        self.aspects = AsyncAspects(*here)
        self.aspect_reviews = AsyncAspectReviews(*here)
        self.judges = AsyncJudges(*here)
        self.prices = AsyncPrices(*here)
        self.label_errors = AsyncLabelErrors(*here)
        self.policies = AsyncPolicies(*here)
        self.hole_fillings = AsyncHoleFillings(*here)
        self.answers = AsyncAnswers(*here)
        self.agents = AsyncAgents(*here)
        self.syntheses = AsyncSyntheses(*here)
        self.web_searches = AsyncWebSearches(*here)
        self.pair_acts = AsyncPairActs(*here)
        self.audit_log = AsyncAuditLog(*here)
        self.webhooks = AsyncWebhooks(*here)

    async def read(self) -> CollectionOut:
        """Read the collection."""
        return await self.transport.read(CollectionOut, self.at())

    def queries(self) -> AsyncIterator[QueryOut]:
        """Iterate over the queries in their current versions."""
        return self.transport.iterate(QueryOut, self.at("queries"))

    def documents(self) -> AsyncIterator[DocumentOut]:
        """Iterate over the documents in their current versions."""
        return self.transport.iterate(DocumentOut, self.at("documents"))

    def pairs(self) -> AsyncIterator[PairOut]:
        """Iterate over the pairs with their labels."""
        return self.transport.iterate(PairOut, self.at("pairs"))

    async def pair(self, number: int) -> PairOut:
        """Read one pair with its label."""
        return await self.transport.read(PairOut, self.at("pairs", number))

    def judgments(self) -> AsyncIterator[JudgmentOut]:
        """Iterate over the judgments that hold now."""
        return self.transport.iterate(JudgmentOut, self.at("judgments"))

    async def measure_quality(self) -> MeasuredOut:
        """Have the stored statistics of a large collection computed anew."""
        return await self.transport.post(MeasuredOut, self.at("quality"))

    async def quality(self) -> QualityOut:
        """Say whether the labels can go out, and what is in the way."""
        return await self.transport.read(QualityOut, self.at("quality"))


class AsyncQuorum:
    """A site of Quorum, in the name of one access token (Account > Access tokens)."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        retries: RetryPolicy | None = None,
        timeout: float = 60.0,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self.transport = AsyncTransport(
            base_url, token, retries=retries or RetryPolicy(), timeout=timeout, transport=transport
        )
        self.suites = AsyncSuites(self.transport)

    @classmethod
    def from_environment(cls, **options: Any) -> "AsyncQuorum":
        """Return a client for QUORUM_URL with QUORUM_TOKEN."""
        missing = [name for name in ("QUORUM_URL", "QUORUM_TOKEN") if not os.environ.get(name)]
        if missing:
            raise ValueError(f"set {' and '.join(missing)}")
        return cls(os.environ["QUORUM_URL"], os.environ["QUORUM_TOKEN"], **options)

    async def collections(self) -> Sequence[CollectionOut]:
        """List the collections that the token reaches, by name."""
        return await self.transport.read(tuple[CollectionOut, ...], "collections")

    def collection(self, name: str) -> AsyncCollection:
        """Return a collection by its name; nothing is asked yet."""
        return AsyncCollection(self.transport, name)

    async def create_collection(self, asked: CollectionIn | None = None, **fields: Any) -> AsyncCollection:
        """Create a collection (`name`, `title`, `grades` ...). Needs an owner's token for all collections."""
        body = build_body(CollectionIn, asked, fields)
        made = await self.transport.post(CollectionOut, "collections", body)
        return self.collection(made.name)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.transport.aclose()

    async def __aenter__(self) -> "AsyncQuorum":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

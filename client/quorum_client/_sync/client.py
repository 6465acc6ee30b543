"""The site, and one collection with all its parts."""

import os
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any

import httpx2

from quorum_client._sync.aspects import AspectReviews, Aspects
from quorum_client._sync.campaigns import Audits, Campaigns
from quorum_client._sync.files import Exports, Imports, QueryLists
from quorum_client._sync.judges import Judges, LabelErrors, Policies, Prices
from quorum_client._sync.model_jobs import (
    Agents,
    Answers,
    HoleFillings,
    Syntheses,
    WebSearches,
)
from quorum_client._sync.pair_acts import AuditLog, PairActs, Suites
from quorum_client._sync.people import Conflicts, Invitations, Members, Tasks
from quorum_client._sync.quality import (
    AttentionChecks,
    Exclusions,
    Gold,
    QualityControl,
)
from quorum_client._sync.rankings import Leaderboard, Qrels, Reports, Runs
from quorum_client._sync.resources import Resource
from quorum_client._sync.studies import ReferenceStudies, Studies
from quorum_client._sync.trainings import Curves, Models, Trainings
from quorum_client._sync.transport import Transport
from quorum_client._sync.webhooks import Webhooks
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


class Settings(Resource):
    """Settings of a collection."""

    def read(self) -> SettingsOut:
        """Read the settings."""
        return self.transport.read(SettingsOut, self.at("settings"))

    def change(
        self, asked: SettingsIn | None = None, *, if_match: SettingsOut | None = None, **fields: Any
    ) -> SettingsOut:
        """Change settings, all that are given or none; with `if_match` only where nobody changed them meanwhile."""
        body = build_body(SettingsIn, asked, fields)
        return self.transport.change(SettingsOut, self.at("settings"), body, if_match)

    def apply_preset(self, preset: str) -> SettingsOut:
        """Set what a paper's study used: `dream`."""
        return self.transport.post(SettingsOut, self.at("settings", "preset"), {"preset": preset})


class Agreement(Resource):
    """Agreement of assessors. Nobody named: every judge, person and import."""

    def read(self, assessors: Sequence[str] = (), **options: Any) -> dict[str, Any]:
        """Measure kappa, alpha and Dawid-Skene: `people`, `judges`, `binarize`, `population`, `bootstrap`."""
        params = {"assessors": [*assessors], **options}
        return (self.transport.read(ContractDocument, self.at("agreement"), params)).document

    def read_table(self, assessors: Sequence[str] = (), **options: Any) -> str:
        """Read every two assessors with all measures as CSV."""
        return self.transport.read_text(self.at("agreement.csv"), {"assessors": [*assessors], **options})

    def measure(self, assessors: Sequence[str] = (), **options: Any) -> MeasuredOut:
        """Have the table of a large collection measured by a worker."""
        return self.transport.post(MeasuredOut, self.at("agreement"), {"assessors": [*assessors], **options})


class Collection(Resource):
    """A collection. Its lists are read page by page while you iterate."""

    def __init__(self, transport: Transport, collection: str) -> None:
        super().__init__(transport, collection)
        # Parts hold the connection and the name, and nothing that was read: they can be kept.
        here = transport, collection
        self.settings = Settings(*here)
        self.members = Members(*here)
        self.invitations = Invitations(*here)
        self.tasks = Tasks(*here)
        self.conflicts = Conflicts(*here)
        self.campaigns = Campaigns(*here)
        self.audits = Audits(*here)
        self.imports = Imports(*here)
        self.exports = Exports(*here)
        self.query_lists = QueryLists(*here)
        self.agreement = Agreement(*here)
        self.runs = Runs(*here)
        self.qrels = Qrels(*here)
        self.reports = Reports(*here)
        self.leaderboard = Leaderboard(*here)
        self.trainings = Trainings(*here)
        self.models = Models(*here)
        self.curves = Curves(*here)
        self.quality_control = QualityControl(*here)
        self.attention_checks = AttentionChecks(*here)
        self.gold = Gold(*here)
        self.exclusions = Exclusions(*here)
        self.studies = Studies(*here)
        self.reference_studies = ReferenceStudies(*here)
        self.aspects = Aspects(*here)
        self.aspect_reviews = AspectReviews(*here)
        self.judges = Judges(*here)
        self.prices = Prices(*here)
        self.label_errors = LabelErrors(*here)
        self.policies = Policies(*here)
        self.hole_fillings = HoleFillings(*here)
        self.answers = Answers(*here)
        self.agents = Agents(*here)
        self.syntheses = Syntheses(*here)
        self.web_searches = WebSearches(*here)
        self.pair_acts = PairActs(*here)
        self.audit_log = AuditLog(*here)
        self.webhooks = Webhooks(*here)

    def read(self) -> CollectionOut:
        """Read the collection."""
        return self.transport.read(CollectionOut, self.at())

    def queries(self) -> Iterator[QueryOut]:
        """Iterate over the queries in their current versions."""
        return self.transport.iterate(QueryOut, self.at("queries"))

    def documents(self) -> Iterator[DocumentOut]:
        """Iterate over the documents in their current versions."""
        return self.transport.iterate(DocumentOut, self.at("documents"))

    def pairs(self) -> Iterator[PairOut]:
        """Iterate over the pairs with their labels."""
        return self.transport.iterate(PairOut, self.at("pairs"))

    def pair(self, number: int) -> PairOut:
        """Read one pair with its label."""
        return self.transport.read(PairOut, self.at("pairs", number))

    def judgments(self) -> Iterator[JudgmentOut]:
        """Iterate over the judgments that hold now."""
        return self.transport.iterate(JudgmentOut, self.at("judgments"))

    def measure_quality(self) -> MeasuredOut:
        """Have the stored statistics of a large collection computed anew."""
        return self.transport.post(MeasuredOut, self.at("quality"))

    def quality(self) -> QualityOut:
        """Say whether the labels can go out, and what is in the way."""
        return self.transport.read(QualityOut, self.at("quality"))


class Quorum:
    """A site of Quorum, in the name of one access token (Account > Access tokens)."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        retries: RetryPolicy | None = None,
        timeout: float = 60.0,
        transport: httpx2.BaseTransport | None = None,
    ) -> None:
        self.transport = Transport(
            base_url, token, retries=retries or RetryPolicy(), timeout=timeout, transport=transport
        )
        self.suites = Suites(self.transport)

    @classmethod
    def from_environment(cls, **options: Any) -> "Quorum":
        """Return a client for QUORUM_URL with QUORUM_TOKEN."""
        missing = [name for name in ("QUORUM_URL", "QUORUM_TOKEN") if not os.environ.get(name)]
        if missing:
            raise ValueError(f"set {' and '.join(missing)}")
        return cls(os.environ["QUORUM_URL"], os.environ["QUORUM_TOKEN"], **options)

    def collections(self) -> Sequence[CollectionOut]:
        """List the collections that the token reaches, by name."""
        return self.transport.read(tuple[CollectionOut, ...], "collections")

    def collection(self, name: str) -> Collection:
        """Return a collection by its name; nothing is asked yet."""
        return Collection(self.transport, name)

    def create_collection(self, asked: CollectionIn | None = None, **fields: Any) -> Collection:
        """Create a collection (`name`, `title`, `grades` ...). Needs an owner's token for all collections."""
        body = build_body(CollectionIn, asked, fields)
        made = self.transport.post(CollectionOut, "collections", body)
        return self.collection(made.name)

    def close(self) -> None:
        """Close the connections."""
        self.transport.close()

    def __enter__(self) -> "Quorum":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

"""Records of the API's responses, with the names of the schemas in `/api/v1/openapi.json`.

They are immutable, and do not have fields that this version does not know.
"""

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, PrivateAttr

# States of unfinished jobs, runs, trainings and exports.
UNFINISHED = frozenset({"waiting", "running", "queued", "making"})
SUCCESSFUL = frozenset({"ready", "finished"})


class Record(BaseModel):
    """Base class of all records."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    # Private, so that `model_dump` leaves it out.
    _etag: str | None = PrivateAttr(None)

    @property
    def etag(self) -> str | None:
        """ETag of the state that was read, for `if_match`; None for a row of a list."""
        return self._etag

    def tag(self, etag: str | None) -> None:
        """Store the ETag of the state that was read."""
        self._etag = etag


class WorkRecord(Record):
    """Work in the background."""

    number: int
    state: str
    error: str
    done: int = 0
    total: int = 0

    def find_end(self) -> str | None:
        """Return "" for success, else the problem; None before the end."""
        if self.state in UNFINISHED:
            return None
        return "" if self.state in SUCCESSFUL else self.error or self.state

    def count_done(self) -> tuple[int, int]:
        """Return the amount of work done, and the total, 0 where that is not known."""
        return self.done, self.total


class CollectionOut(Record):
    """A collection and its scale, whose highest grade is `grades`."""

    name: str
    title: str
    instruction: str
    grades: int
    relevant_from: int
    overlap: int
    created_at: datetime


class SettingsOut(Record):
    """Settings of a collection."""

    title: str
    rubric: str
    overlap: int
    order: str
    rounds: str
    lease_minutes: int
    min_judgment_ms: int
    relevant_from: int
    grade_names: list[str]
    daily_target: int
    document_format: str
    long_documents: str
    hourly_rate: float | None
    budget: float | None
    daily_budget: float | None
    lab: bool
    arms: dict[str, int]
    instruction: str
    instruction_version: int
    guidelines: str
    guidelines_version: int


class QueryOut(Record):
    """A query: `id` is the file's own, `number` the database's."""

    number: int
    id: str
    text: str
    answers: list[str]
    instruction: str
    metadata: dict[str, Any]


class DocumentOut(Record):
    """A document: `id` is the file's own, `number` the database's."""

    number: int
    id: str
    title: str
    text: str
    metadata: dict[str, Any]


class PairOut(Record):
    """A pair of a query and a document by their ids, with its label where it has one."""

    number: int
    query: str
    document: str
    grade: int | None
    origin: str | None
    teacher_score: float | None


class LabelledText(Record):
    """A labelled pair with its texts."""

    query_id: str
    document_id: str
    query: str
    document: str
    grade: int
    origin: str


class JudgmentOut(Record):
    """A current judgment, neither superseded nor withdrawn."""

    number: int
    query: str
    document: str
    assessor: str
    kind: str
    step: str
    grade: int
    comment: str
    created_at: datetime


class QualityOut(Record):
    """Whether the labels are ready for export, and why not. `failure`: why that could not be measured."""

    can_go_out: bool
    reasons: list[dict[str, Any]]
    failure: str
    status: dict[str, Any]


class ContractDocument(Record):
    """A document as the command of its name prints it with --json."""

    document: dict[str, Any]


class ImportOut(WorkRecord):
    """An import. It can be started once `checked` is true; `report` counts what the files contain."""

    checked: bool
    imported: bool
    files: list[dict[str, Any]]
    report: dict[str, Any]


class ExportOut(WorkRecord):
    """An export. Its files can be downloaded once it is `ready`."""

    format: str
    files: list[str]
    manifest: dict[str, Any]
    created_at: datetime

    def count_done(self) -> tuple[int, int]:
        """Return 1 of 1 when it is ready; there is no finer progress."""
        return int(self.state == "ready"), 1


class CostRecord(Record):
    """Expected and most calls to models, and their cost in USD; None: no known price."""

    calls: float
    calls_most: float
    cost: float | None
    cost_most: float | None


class EstimateOut(CostRecord):
    """Expected work of models and people for a campaign. `people_by`: basis of the people's share."""

    pairs: int
    pairs_to_people: int
    hours_of_people: float
    people_by: str


class StartedOut(Record):
    """The campaign that was started or joined, and its new pairs. `campaign` None: nothing was left to judge."""

    campaign: int | None
    added: int
    joined: bool


class CampaignOut(Record):
    """A campaign: a policy with a panel over the pairs of a collection."""

    number: int
    policy: str
    state: str
    panel: str
    rounds: int
    budget: float | None
    spent: float
    created_at: datetime
    finished_at: datetime | None


class StatusOut(Record):
    """Progress of a campaign: the document of the command `status`."""

    status: dict[str, Any]

    def find_end(self) -> str | None:
        """Return "" for success, else the problem; None before the end, also while a person has paused it."""
        state, because = self.status["state"], self.status.get("paused_because")
        # A person may resume it at any time; after a provider's refusal something has to be fixed first.
        if state == "running" or (state == "paused" and not because):
            return None
        return "" if state == "finished" else because or state

    def count_done(self) -> tuple[int, int]:
        """Return the number of pairs that the judges have finished, and of all pairs."""
        status = self.status
        return status["labelled"] + status["escalated"] + status["failed"], status["pairs"]


class ControlledOut(Record):
    """A campaign after an action. `retried`: pairs that are judged again."""

    number: int
    state: str
    retried: int


class RunOut(WorkRecord):
    """A ranking of documents for each query."""

    name: str
    kind: str
    depth: int
    created_at: datetime
    search: dict[str, Any] = {}


class RunEstimateOut(CostRecord):
    """Estimate of making a run. `asks`: whether it calls models."""

    asks: bool


class ImportedRunOut(Record):
    """A run that was imported, and what was left out of its file."""

    number: int
    name: str
    queries: int
    lines: int
    unknown_queries: int
    unknown_documents: int
    excluded: int
    missing_queries: int
    depth: int


class SystemOut(Record):
    """A run on the leaderboard; systems with a letter in common do not differ significantly."""

    run: int
    name: str
    place: int
    letters: str
    value: float | None
    low: float | None
    high: float | None
    difference: dict[str, Any] | None
    values: dict[str, float | None]
    missing: int
    outdated: int | None = None
    seconds: float | None
    usd: float | None


class LeaderboardOut(Record):
    """All ready runs by the newest qrels. `is_current`: no run or qrels are newer."""

    state: str
    is_current: bool
    report: int | None
    measure: str
    weights: str = "plain"
    k: int | None
    queries: int
    systems: list[SystemOut]


class ReportOut(WorkRecord):
    """The runs by two versions of the qrels. `result` is empty until it is ready."""

    result: dict[str, Any]
    created_at: datetime


class JobOut(WorkRecord):
    """A training, or another job with a model; `model`: the one that a training published."""

    kind: str
    device: str
    phase: str
    verdict: str
    model: int | None
    created_at: datetime
    ended_at: datetime | None


class ModelOut(Record):
    """A model trained here. `changed_labels`: training labels that have changed since."""

    number: int
    name: str
    recipe: str
    base: str
    summary: dict[str, Any]
    is_here: bool
    changed_labels: int
    created_at: datetime


class ModelFileOut(Record):
    """A file of a model."""

    name: str
    bytes: int

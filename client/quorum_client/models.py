"""The models of the API: generated (client/generate.py), not to be edited."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field, RootModel

from quorum_client.answers import ApiModel


class CollectionOut(ApiModel):
    """A collection and its scale."""

    name: str
    title: str
    instruction: str
    grades: int
    relevant_from: int
    overlap: int
    created_at: AwareDatetime


class FieldProblem(ApiModel):
    """What is wrong with one field: where it stands in the request, and why."""

    field: str
    problem: str


class ProblemDetails(ApiModel):
    """A refusal."""

    title: str
    status: int
    detail: str
    errors: Annotated[list[FieldProblem], Field(validate_default=True)] = []


class CollectionIn(ApiModel):
    """A new collection."""

    model_config = ConfigDict(
        extra="forbid",
    )
    name: Annotated[
        str,
        Field(
            description="Used in addresses; never changes.",
            max_length=63,
            pattern="^[a-z0-9][a-z0-9_-]*$",
        ),
    ]
    title: Annotated[str, Field(max_length=200)] = ""
    instruction: Annotated[
        str,
        Field(
            description="What makes a document relevant; empty: a built-in rubric.",
            max_length=50000,
        ),
    ] = ""
    grades: Annotated[int, Field(description="The highest grade; 0 is the lowest.", ge=1, le=100)] = 3


class QueryOut(ApiModel):
    """A query: `id` is the file's own, `number` the database's."""

    number: int
    id: str
    text: str
    answers: list[str]
    instruction: str
    metadata: dict[str, Any]


class DocumentOut(ApiModel):
    """A document: `id` is the file's own, `number` the database's."""

    number: int
    id: str
    title: str
    text: str
    metadata: dict[str, Any]


class PageDocumentOut(ApiModel):
    items: list[DocumentOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class PairOut(ApiModel):
    """A pair of a query and a document, with its label where it has one."""

    number: int
    query: str
    document: str
    grade: int | None
    origin: str | None
    teacher_score: float | None


class JudgmentOut(ApiModel):
    """A judgment that holds now: superseded and withdrawn ones are left out."""

    number: int
    query: str
    document: str
    assessor: str
    kind: str
    step: str
    grade: int
    comment: str
    created_at: AwareDatetime


class PageJudgmentOut(ApiModel):
    items: list[JudgmentOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class ArmsOut(ApiModel):
    """How often each experiment arm comes, as weights."""

    shown: int
    hidden: int
    reveal: int


class SettingsOut(ApiModel):
    """What holds in a collection."""

    title: str
    rubric: str
    overlap: int
    order: str
    rounds: str
    lease_minutes: int
    min_judgment_ms: int
    relevant_from: int
    daily_target: int
    markdown: bool
    hourly_rate: float | None
    budget: float | None
    daily_budget: float | None
    arms: ArmsOut
    instruction: str
    instruction_version: int
    guidelines: str
    guidelines_version: int


class ArmsIn(ApiModel):
    """How often each experiment arm comes, as weights; at least one is above 0."""

    model_config = ConfigDict(
        extra="forbid",
    )
    shown: Annotated[int, Field(ge=0, le=1000)] = 0
    hidden: Annotated[int, Field(ge=0, le=1000)] = 0
    reveal: Annotated[int, Field(ge=0, le=1000)] = 0


class SettingsIn(ApiModel):
    """What changes. A field that is left out, or null, stays as it is; of the three amounts null means no amount."""

    model_config = ConfigDict(
        extra="forbid",
    )
    title: Annotated[str | None, Field(max_length=200)] = None
    rubric: Literal["auto", "sufficiency", "helpfulness"] | None = None
    overlap: Annotated[int | None, Field(description="People for each pair.", ge=1, le=25)] = None
    order: Literal["uncertain", "query", "random"] | None = None
    rounds: Literal["all", "final"] | None = None
    lease_minutes: Annotated[int | None, Field(ge=1, le=1440)] = None
    min_judgment_ms: Annotated[int | None, Field(ge=0, le=10000)] = None
    relevant_from: Annotated[int | None, Field(ge=1, le=100)] = None
    daily_target: Annotated[int | None, Field(ge=0, le=10000)] = None
    markdown: bool | None = None
    hourly_rate: Annotated[float | None, Field(description="USD.", ge=0.0, le=10000.0)] = None
    budget: Annotated[float | None, Field(description="USD, all campaigns.", ge=0.0, le=1000000000.0)] = None
    daily_budget: Annotated[float | None, Field(description="USD in a day.", ge=0.0, le=1000000000.0)] = None
    arms: ArmsIn | None = None
    instruction: Annotated[
        str | None,
        Field(
            description="What makes a document relevant: a new version of it.",
            max_length=50000,
        ),
    ] = None
    guidelines: Annotated[
        str | None,
        Field(
            description="What annotators are told: a new version of it.",
            max_length=50000,
            min_length=1,
        ),
    ] = None


class MemberOut(ApiModel):
    """A member."""

    number: int
    username: str
    role: Literal["annotator", "adjudicator", "admin"]
    active: bool
    paused: bool


class PageMemberOut(ApiModel):
    items: list[MemberOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class MemberIn(ApiModel):
    """What changes; a field that is left out, or null, stays as it is."""

    model_config = ConfigDict(
        extra="forbid",
    )
    role: Literal["annotator", "adjudicator", "admin"] | None = None
    active: Annotated[bool | None, Field(description="False ends the membership; its judgments stay.")] = None
    paused: Annotated[bool | None, Field(description="Somebody who is paused gets no pairs.")] = None
    note: Annotated[
        str,
        Field(description="What somebody who is paused reads about it.", max_length=500),
    ] = ""


class InvitationOut(ApiModel):
    """An invitation that is open. Whoever opens its link joins."""

    number: int
    role: Literal["annotator", "adjudicator", "admin"]
    note: str
    link: str
    limit: int
    uses_left: int
    mailed: bool
    expires_at: AwareDatetime
    closed: Annotated[str, Field(description="Why it cannot be accepted any more; empty: it can.")]


class PageInvitationOut(ApiModel):
    items: list[InvitationOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class InvitationIn(ApiModel):
    """Whom to invite: a link for each name. Where the site sends mail, names that are addresses get it by mail."""

    model_config = ConfigDict(
        extra="forbid",
    )
    people: Annotated[
        list[str],
        Field(description="Names or email addresses.", max_length=200, min_length=1),
    ]
    role: Literal["annotator", "adjudicator", "admin"] = "annotator"
    days: Annotated[int, Field(ge=1, le=90)] = 14


class ReusableLinkIn(ApiModel):
    """A link that several people use."""

    model_config = ConfigDict(
        extra="forbid",
    )
    note: Annotated[str, Field(max_length=200)] = ""
    role: Literal["annotator", "adjudicator", "admin"] = "annotator"
    limit: Annotated[int, Field(description="People who may join by it.", ge=2, le=10000)] = 20
    last_day: date


class QuoteOut(ApiModel):
    """A sentence that a side quotes; `label` names its place in the document (empty: it is not there)."""

    text: str
    label: str


class TurnOut(ApiModel):
    """What one side says in a round of the debate."""

    round: int
    side: Literal["for", "against"]
    verdict: int | None
    reason: str
    quotes: list[QuoteOut]


class Span(RootModel[tuple[int, int]]):
    root: Annotated[tuple[int, int], Field(max_length=2, min_length=2)]


class JudgmentIn(ApiModel):
    """A judgment."""

    model_config = ConfigDict(
        extra="forbid",
    )
    item: Annotated[int, Field(ge=0, lt=9007199254740992)]
    token: Annotated[str, Field(max_length=100)]
    grade: Annotated[int, Field(ge=0, le=100)]
    comment: Annotated[str, Field(max_length=5000)] = ""
    milliseconds: Annotated[
        int | None,
        Field(description="Time that the person spent on it.", ge=0, le=86400000),
    ] = None
    spans: Annotated[
        list[Span],
        Field(
            description="Evidence: [start, end) in characters.",
            max_length=100,
            validate_default=True,
        ),
    ] = []


class FlagIn(ApiModel):
    """A pair for the adjudicators."""

    model_config = ConfigDict(
        extra="forbid",
    )
    item: Annotated[int, Field(ge=0, lt=9007199254740992)]
    token: Annotated[str, Field(max_length=100)]
    note: Annotated[str, Field(max_length=5000)] = ""


class UndoIn(ApiModel):
    """The pair whose decision is taken back."""

    model_config = ConfigDict(
        extra="forbid",
    )
    item: Annotated[int, Field(ge=0, lt=9007199254740992)]


class OpinionOut(ApiModel):
    """What somebody said of the pair, without a name: a grade, a flag, or (neither) why it was skipped."""

    number: int
    grade: int | None
    comment: str
    flagged: bool
    note: str


class DecisionIn(ApiModel):
    """The decision on a conflict."""

    model_config = ConfigDict(
        extra="forbid",
    )
    item: Annotated[int, Field(ge=0, lt=9007199254740992)]
    shown: Annotated[
        str,
        Field(
            description="As the conflict was read with: it says since when.",
            max_length=500,
        ),
    ] = ""
    grade: Annotated[int, Field(ge=0, le=100)]
    comment: Annotated[str, Field(max_length=5000)] = ""
    milliseconds: Annotated[
        int | None,
        Field(description="Time that the person spent on it.", ge=0, le=86400000),
    ] = None


class DecidedItemIn(ApiModel):
    """The conflict whose decision is taken back."""

    model_config = ConfigDict(
        extra="forbid",
    )
    item: Annotated[int, Field(ge=0, lt=9007199254740992)]


class CampaignOut(ApiModel):
    """A campaign."""

    number: int
    policy: str
    state: str
    panel: str
    rounds: int
    budget: float | None
    spent: float
    created_at: AwareDatetime
    finished_at: AwareDatetime | None


class PageCampaignOut(ApiModel):
    items: list[CampaignOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class StartedOut(ApiModel):
    """What starting did. `campaign` null: nothing was left to judge."""

    campaign: int | None
    added: int
    joined: bool


class CampaignIn(ApiModel):
    """Which panel judges by which policy, and where it stops: the options of the command `judge`."""

    model_config = ConfigDict(
        extra="forbid",
    )
    policy: Annotated[
        Literal["debate", "ensemble", "debate+ensemble", "single", "human"] | None,
        Field(description="Null: what the panel can do."),
    ] = None
    panel: Annotated[str | None, Field(description="Null: the panel that is in use.", max_length=100)] = None
    rounds: Annotated[int | None, Field(ge=1, le=5)] = None
    agents: Literal[4] | None = None
    temperature: Annotated[float | None, Field(ge=0.0, le=2.0)] = None
    adjudicator: Annotated[str, Field(max_length=100)] = ""
    filter: Annotated[list[str], Field(max_length=3)] = []
    batch: bool = False
    limit: Annotated[int | None, Field(description="Pairs at most.", ge=1, lt=2147483648)] = None
    budget: Annotated[float | None, Field(description="USD.", gt=0.0, le=1000000000.0)] = None
    max_calls: Annotated[int | None, Field(ge=1, lt=4611686018427387904)] = None
    again: Annotated[
        bool,
        Field(description="Judge pairs that this configuration has judged already."),
    ] = False
    failed_to_people: bool = False


class EstimateOut(ApiModel):
    """What a campaign is expected to take; `cost` null: no judge has a known price."""

    pairs: int
    calls: float
    calls_most: float
    cost: Annotated[float | None, Field(description="USD.")]
    cost_most: float | None
    pairs_to_people: int
    hours_of_people: float
    people_by: Annotated[
        str,
        Field(description="policy or collection: earlier campaigns here; rule; paper: DREAM, table 11."),
    ]


class StatusOut(ApiModel):
    """How far a campaign is: the document of the command `status`."""

    status: dict[str, Any]


class ControlledOut(ApiModel):
    """A campaign after an act; `retried`: pairs that are judged again."""

    number: int
    state: str
    retried: int


class AuditOut(ApiModel):
    """A campaign with pairs that were drawn for people to check."""

    campaign: int
    policy: str
    state: str
    drawn: int
    resolved: int


class PageAuditOut(ApiModel):
    items: list[AuditOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class ShareOut(ApiModel):
    """A measured share with its 95% interval; `reason`: why there is none."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None


class AuditedPairsOut(ApiModel):
    """How many pairs now wait for people that did not before."""

    pairs: int


class DrawIn(ApiModel):
    """How large the sample becomes: the same request again changes nothing."""

    model_config = ConfigDict(
        extra="forbid",
    )
    up_to: Annotated[
        int,
        Field(
            description="Drawn pairs in all, of the route or of the campaign.",
            ge=0,
            lt=1000000000,
        ),
    ]
    route: Annotated[
        str,
        Field(
            description="The key of a route, as the audit names it: r1.m5.y. Empty: all routes.",
            max_length=40,
        ),
    ] = ""


class RouteIn(ApiModel):
    """A route of the audit."""

    model_config = ConfigDict(
        extra="forbid",
    )
    route: Annotated[
        str,
        Field(
            description="The key of a route, as the audit names it: r1.m5.y.",
            max_length=40,
        ),
    ]


class ResumeIn(ApiModel):
    """Whether a route that was stopped labels again."""

    model_config = ConfigDict(
        extra="forbid",
    )
    route: Annotated[
        str,
        Field(
            description="The key of a route, as the audit names it: r1.m5.y.",
            max_length=40,
        ),
    ]
    stop: Annotated[bool, Field(description="Take it back: people judge its further pairs.")] = False


class ImportedFileOut(ApiModel):
    """What a file holds, as it was recognised or said: `columns` of a table, from its header to the field."""

    name: str
    member: Annotated[str, Field(description="The file in an archive, or the sheet of a workbook.")]
    kind: Annotated[
        str,
        Field(
            description="documents, queries, pairs, qrels, judgments, runs, all (queries, documents and pairs), queries-pairs, documents-pairs; empty: it is left out."
        ),
    ]
    columns: dict[str, str]
    problem: str


class ImportOptionsIn(ApiModel):
    """What is said of an import before it starts; what is left out of `kinds` and `columns` stays as it is."""

    model_config = ConfigDict(
        extra="forbid",
    )
    bm25: Annotated[
        int,
        Field(description="Candidates for each query, found by BM25.", ge=0, le=1000),
    ] = 0
    graded_by: Annotated[
        Literal["", "human", "judge", "reference"],
        Field(
            description="Whose grades the files hold: human ones settle pairs, others measure; empty: human where a file names its assessors, else reference."
        ),
    ] = ""
    query_ids: Annotated[
        Literal["num", "position"],
        Field(description="Where query ids come from: the file, or their places 1, 2, ... in it."),
    ] = "num"
    empty: Annotated[
        Literal["refuse", "keep"],
        Field(description="What happens to documents without text."),
    ] = "refuse"
    update: Annotated[bool, Field(description="Update documents whose text changed (keeps history).")] = False
    kinds: Annotated[
        dict[str, str],
        Field(description="By the file's name, or name/member; skip: leave it out."),
    ] = {}
    columns: Annotated[
        dict[str, dict[str, str]],
        Field(description="By the file's name: its header's columns and fields."),
    ] = {}


class ExportOut(ApiModel):
    """An export. Its files can be downloaded once it is `ready`."""

    number: int
    format: str
    state: str
    error: str
    files: list[str]
    manifest: dict[str, Any]
    created_at: AwareDatetime


class PageExportOut(ApiModel):
    items: list[ExportOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class SetIn(ApiModel):
    """Options of a training set; docs/exports.md says what each does."""

    model_config = ConfigDict(
        extra="forbid",
    )
    split: Annotated[float, Field(gt=0.0, le=1.0)] = 0.9
    seed: Annotated[int, Field(ge=0, lt=2147483648)] = 0
    teacher: Literal["scores", "votes", "labels"] | None = None
    preset: Literal["paper", "released"] = "paper"
    labels: Literal["resolved", "people", "machine"] = "resolved"
    relevant_from: Annotated[int | None, Field(ge=1, le=100)] = None
    agreement: Annotated[float | None, Field(ge=0.0, le=1.0)] = None
    negatives: Annotated[int | None, Field(ge=1, lt=2147483648)] = None
    documents: Annotated[int | None, Field(ge=1, lt=2147483648)] = None
    near: Annotated[float | None, Field(gt=0.0, le=1.0)] = 0.8
    balance: bool = False
    balance_entropy: Literal["filled", "prism"] = "filled"
    shape: Literal["pair", "triplet", "n-tuple", "list"] = "pair"
    synthetic_dev: bool = False
    allow_incomplete: bool = False


class UploadedFilesIn(ApiModel):
    """Uploads that came whole."""

    model_config = ConfigDict(
        extra="forbid",
    )
    uploads: Annotated[list[int], Field(description="Their numbers.", max_length=100, min_length=1)]


class UploadOut(ApiModel):
    """An upload that no import uses yet. `received`: the bytes that have come; it goes on from there."""

    number: int
    name: str
    size: int
    received: int
    expires_at: Annotated[
        AwareDatetime,
        Field(description="It may be deleted then, unless another part comes."),
    ]


class AgreementIn(ApiModel):
    """Whose agreement is measured, and how surely."""

    model_config = ConfigDict(
        extra="forbid",
    )
    assessors: Annotated[list[str], Field(max_length=100)] = []
    people: bool = False
    judges: bool = False
    binarize: Annotated[
        int | None,
        Field(description="Grades from here on count as 1, all others as 0.", ge=1, le=100),
    ] = None
    population: Literal["all", "escalated", "audited"] = "all"
    bootstrap: Annotated[int, Field(description="Resamples for 95% intervals; 0: none.", ge=0, le=2000)] = 0


class ContractDocument(ApiModel):
    """A document of the contract: the JSON of the command of this name."""

    document: dict[str, Any]


class MeasuredOut(ApiModel):
    """Whether agreement was measured at once; else a worker measures it: ask for the table again."""

    done: bool


class AssessorsIn(ApiModel):
    """Whose agreement is measured on which pairs; nobody named: every judge, person and import."""

    model_config = ConfigDict(
        extra="forbid",
    )
    assessors: Annotated[list[str], Field(max_length=100)] = []
    people: bool = False
    judges: bool = False
    binarize: Annotated[
        int | None,
        Field(description="Grades from here on count as 1, all others as 0.", ge=1, le=100),
    ] = None
    population: Literal["all", "escalated", "audited"] = "all"


class ReasonOut(ApiModel):
    """Why labels should not go out: so many pairs, of so many routes; `value` is a share or an alpha."""

    key: str
    count: int
    routes: int
    value: float


class RunOut(ApiModel):
    """A ranking of documents for each query."""

    number: int
    name: str
    kind: str
    state: str
    depth: int
    done: int
    total: int
    error: str
    created_at: AwareDatetime
    search: Annotated[
        dict[str, Any],
        Field(
            description="Where an index was searched: its recall, and the queries and depth that it was measured on."
        ),
    ] = {}


class RunIn(ApiModel):
    """A run that is made here."""

    model_config = ConfigDict(
        extra="forbid",
    )
    name: Annotated[str, Field(max_length=100)]
    kind: Literal["bm25", "hybrid", "rewrite", "reasoning", "dense", "rerank", "sparse", "rerank-folder"] = "bm25"
    depth: Annotated[int, Field(description="Documents of each query.", ge=1, le=10000)] = 100
    options: Annotated[
        dict[str, str | int | float],
        Field(
            description="The options of its kind: docs/hole-filling.md. What is left out has the value that the page offers.",
            max_length=20,
        ),
    ] = {}


class RunEstimateOut(ApiModel):
    """What making a run is expected to ask of models; `asks` false: nothing. `cost` null: no known price."""

    asks: bool
    calls: float
    calls_most: float
    cost: Annotated[float | None, Field(description="USD.")]
    cost_most: float | None


class ImportedRunOut(ApiModel):
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


class QrelsOut(ApiModel):
    """A version of the qrels; it never changes."""

    number: int
    kind: str
    note: str
    counts: dict[str, Any]
    created_at: AwareDatetime


class QrelsIn(ApiModel):
    """What a new version of the qrels holds."""

    model_config = ConfigDict(
        extra="forbid",
    )
    kind: Annotated[
        Literal["original", "labels"],
        Field(description="The imported reference grades, or all labels of now."),
    ]


class DifferenceOut(ApiModel):
    """A system's mean less that of the best, with its interval and test, both corrected by Holm."""

    run: int
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    is_significant: bool


class SystemOut(ApiModel):
    """A run on the leaderboard; systems with a letter in common do not differ significantly."""

    run: int
    name: str
    place: int
    letters: str
    value: float | None
    low: float | None
    high: float | None
    difference: Annotated[DifferenceOut | None, Field(description="From the best; null: it is the best.")]
    values: dict[str, float | None]
    missing: Annotated[int, Field(description="Queries for which it has nothing: they count 0.")]
    seconds: float | None
    usd: float | None


class ReportOut(ApiModel):
    """A benchmark report; `result` is empty until it is ready."""

    number: int
    state: str
    done: int
    total: int
    error: str
    result: dict[str, Any]
    created_at: AwareDatetime


class ReportIn(ApiModel):
    """Which runs are measured by which two versions of the qrels."""

    model_config = ConfigDict(
        extra="forbid",
    )
    runs: Annotated[
        list[int],
        Field(description="Their numbers; none: all that are ready.", max_length=1000),
    ] = []
    before: Annotated[
        int | None,
        Field(description="A version of the qrels; null: the first.", ge=1, lt=2147483648),
    ] = None
    after: Annotated[
        int | None,
        Field(description="A version of the qrels; null: the newest.", ge=1, lt=2147483648),
    ] = None
    k: Annotated[int | None, Field(description="Null: 10, or what all runs have.", ge=1, le=1000)] = None
    aspects_k: Annotated[
        int | None,
        Field(description="Depth of alpha-nDCG and A-Recall; null: k.", ge=1, le=1000),
    ] = None


class JobOut(ApiModel):
    """A job of training: a training, or scoring with a model that one published."""

    number: int
    kind: str
    state: str
    device: str
    phase: str
    done: int
    total: int
    error: str
    verdict: Annotated[str, Field(description="Whether the training gained anything, in a sentence.")]
    model: Annotated[int | None, Field(description="The model that a training published.")]
    created_at: AwareDatetime
    ended_at: AwareDatetime | None


class PageJobOut(ApiModel):
    items: list[JobOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class TrainingIn(ApiModel):
    """What is trained on what. The base is named by `base`, or is a model of this collection by `model`."""

    model_config = ConfigDict(
        extra="forbid",
    )
    recipe: Annotated[str, Field(max_length=50)]
    export: Annotated[
        int,
        Field(
            description="The number of an export in the recipe's format.",
            ge=1,
            lt=9223372036854775808,
        ),
    ]
    base: Annotated[
        str,
        Field(
            description="tiny:…, a folder of the site's base models, or a hub id.",
            max_length=300,
        ),
    ] = ""
    model: Annotated[
        int | None,
        Field(description="The number of a model.", ge=1, lt=9223372036854775808),
    ] = None
    preset: Annotated[
        str,
        Field(description="Empty: tiny for a tiny base, else paper.", max_length=50),
    ] = ""
    device: Literal["cpu", "cuda"] = "cpu"
    options: Annotated[
        dict[str, bool | int | float | str],
        Field(description="docs/training.md.", max_length=100),
    ] = {}


class TrainingSetOut(ApiModel):
    """An export that a training can learn from."""

    export: int
    format: str
    description: str


class ModelOut(ApiModel):
    """A published model. `is_here`: its files are on this machine, so that it can be served and used."""

    number: int
    name: str
    recipe: str
    base: str
    summary: dict[str, Any]
    is_here: bool
    changed_labels: Annotated[int, Field(description="Labels that it learned from and that are others now.")]
    created_at: AwareDatetime


class PageModelOut(ApiModel):
    items: list[ModelOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class UseIn(ApiModel):
    """How a model is run."""

    model_config = ConfigDict(
        extra="forbid",
    )
    precision: Annotated[str, Field(max_length=20)] = "auto"
    max_new_tokens: Annotated[int, Field(description="Of what it writes.", ge=1, le=4096)] = 512


class WebhookOut(ApiModel):
    """A webhook."""

    number: int
    url: str
    events: list[str]
    description: str
    active: bool
    disabled: Annotated[
        str,
        Field(description="person, failing or gone: why it is not active; else empty."),
    ]
    failing_since: AwareDatetime | None
    created_at: AwareDatetime


class WebhookSecretOut(ApiModel):
    """A webhook with its new secret, which is shown only now."""

    webhook: WebhookOut
    secret: str


class WebhookIn(ApiModel):
    """A new webhook."""

    model_config = ConfigDict(
        extra="forbid",
    )
    url: Annotated[str, Field(description="Begins with https://.", max_length=2000, min_length=1)]
    events: Annotated[
        list[
            Literal[
                "campaign.ended", "campaign.stopped", "task.resolved", "audit.alarm", "export.ready", "training.ended"
            ]
        ],
        Field(max_length=6, min_length=1),
    ]
    description: Annotated[str, Field(max_length=200)] = ""


class WebhookChanges(ApiModel):
    """What changes of a webhook; null: it stays."""

    model_config = ConfigDict(
        extra="forbid",
    )
    url: Annotated[str | None, Field(max_length=2000, min_length=1)] = None
    events: Annotated[
        list[
            Literal[
                "campaign.ended", "campaign.stopped", "task.resolved", "audit.alarm", "export.ready", "training.ended"
            ]
        ]
        | None,
        Field(max_length=6, min_length=1),
    ] = None
    description: Annotated[str | None, Field(max_length=200)] = None
    active: Annotated[
        bool | None,
        Field(description="False: nothing is sent, and what is pending fails."),
    ] = None


class WebhookAttemptOut(ApiModel):
    """One request and what came back. `answer`: the first 1,000 bytes, or the error of the connection."""

    at: AwareDatetime
    status: int | None
    milliseconds: int
    problem: Annotated[
        str,
        Field(description="Empty: delivered. Else status, redirect, timeout, name, address, ..."),
    ]
    answer: str


class WebhookDeliveryOut(ApiModel):
    """An event that is sent, with its attempts. `id` is the header webhook-id."""

    number: int
    id: str
    event: str
    data: dict[str, Any]
    state: Annotated[Literal["pending", "delivered", "failed"], Field(title="DeliveryState")]
    created_at: AwareDatetime
    attempts: list[WebhookAttemptOut]


class PageWebhookDeliveryOut(ApiModel):
    items: list[WebhookDeliveryOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class ReplayedOut(ApiModel):
    """How many deliveries will be sent again."""

    replayed: int


class ReplayIn(ApiModel):
    """Which deliveries are sent again."""

    model_config = ConfigDict(
        extra="forbid",
    )
    delivery: Annotated[
        int | None,
        Field(
            description="Its number; null: all that failed.",
            ge=1,
            lt=9223372036854775808,
        ),
    ] = None


class PageQueryOut(ApiModel):
    items: list[QueryOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class PagePairOut(ApiModel):
    items: list[PairOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class TaskOut(ApiModel):
    """A pair that the person holds. `item` and `token` go with every decision on it."""

    query: str
    answers: list[str]
    instruction: str
    title: str
    document: str
    source: str
    highest_grade: int
    debate: list[TurnOut]
    item: int
    token: str
    seconds_left: Annotated[
        int,
        Field(description="Of the lease; negative: it ran out and may be lent to somebody else."),
    ]
    asks: Annotated[
        Literal["grade", "texts"],
        Field(description="texts: contribution and evidence, which the page takes."),
    ]
    why: str
    step: Annotated[
        str,
        Field(description="first or final where the debate is shown after a first judgment; else empty."),
    ]
    first_grade: int | None


class SkipIn(ApiModel):
    """A pair that the person cannot judge."""

    model_config = ConfigDict(
        extra="forbid",
    )
    item: Annotated[int, Field(ge=0, lt=9007199254740992)]
    token: Annotated[str, Field(max_length=100)]
    reason: Annotated[
        Literal["unclear-query", "unreadable", "language", "knowledge", "other"],
        Field(title="SkipReason"),
    ]


class ConflictOut(ApiModel):
    """A pair that annotators could not settle. `item` and `shown` go with the decision on it."""

    query: str
    answers: list[str]
    instruction: str
    title: str
    document: str
    source: str
    highest_grade: int
    debate: list[TurnOut]
    item: int
    shown: str
    why: str
    opinions: list[OpinionOut]


class ConflictsOut(ApiModel):
    """The conflict to decide, if any; the item of your own last decision, which can be taken back."""

    conflict: ConflictOut | None
    waiting: int
    last_item: int | None


class RouteOut(ApiModel):
    """How right the labels are that a campaign gave by one route. `most`: pairs that can be drawn at most."""

    key: str
    description: str
    label: int
    labelled: int
    drawn: int
    resolved: int
    right: int
    accuracy: ShareOut
    verdict: Annotated[
        str,
        Field(description="enough: surely within the limit; over: surely beyond it; open."),
    ]
    stopped: Annotated[bool, Field(description="Further pairs of this route go to people.")]
    enough: Annotated[
        int,
        Field(description="Drawn pairs that give an interval of 5 points to each side, or `most`."),
    ]
    most: int


class ImportOut(ApiModel):
    """An import. Once its check is `ready` (`checked` true) it can be started; `report` counts what was found."""

    number: int
    state: str
    checked: bool
    imported: bool
    files: list[ImportedFileOut]
    report: dict[str, Any]
    error: str
    done: int
    total: int


class PageImportOut(ApiModel):
    items: list[ImportOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class ExportIn(ApiModel):
    """What to export."""

    model_config = ConfigDict(
        extra="forbid",
    )
    format: Annotated[
        Literal[
            "qrels",
            "csv",
            "judgments",
            "debates",
            "marks",
            "aspects",
            "prism",
            "beir",
            "sentence-transformers",
            "parquet",
            "trl",
            "erank-sft",
            "rtriever",
            "flagembedding",
            "ms-swift",
            "ms-swift-embedding",
            "tevatron",
            "mteb",
        ],
        Field(description="Its name: docs/exports.md."),
    ]
    origins: Annotated[
        list[str] | None,
        Field(description="Whose labels; null: everybody's.", max_length=50),
    ] = None
    leave_out_failed: Annotated[
        bool,
        Field(description="Without unsettled labels of routes that failed their audit."),
    ] = False
    set: Annotated[SetIn | None, Field(description="Of formats that are training sets.")] = None


class PageUploadOut(ApiModel):
    items: list[UploadOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class QualityOut(ApiModel):
    """Whether the labels can go out, and why not; `failure`: why that could not be measured."""

    can_go_out: bool
    reasons: list[ReasonOut]
    failure: str
    status: dict[str, Any]


class PageRunOut(ApiModel):
    items: list[RunOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class LeaderboardOut(ApiModel):
    """All ready runs by the newest qrels."""

    state: Annotated[
        str,
        Field(description="missing: nobody asked for it; else that of the report on the runs of now."),
    ]
    is_current: Annotated[
        bool,
        Field(description="The systems are those of the report on the runs and qrels of now."),
    ]
    report: int | None
    measure: str
    k: int | None
    queries: int
    systems: list[SystemOut]


class PageReportOut(ApiModel):
    items: list[ReportOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class PageWebhookOut(ApiModel):
    items: list[WebhookOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class QueueOut(ApiModel):
    """The pair that is held, if any; and why there is none where something closes the queue."""

    task: TaskOut | None
    waiting: int
    judged_today: int
    closed: Annotated[
        str,
        Field(description="paused, consent, failed, untested, practice, trial, passed: see the page."),
    ] = ""


class AuditDetailsOut(ApiModel):
    """The audit of a campaign; without routes while it has labelled nothing."""

    campaign: int
    policy: str
    state: str
    drawn: int
    resolved: int
    can_draw: Annotated[
        bool,
        Field(description="The campaign has ended, so that every label has the same chance."),
    ]
    accuracy: ShareOut | None
    covered: Annotated[
        float | None,
        Field(description="Share of the labels whose route has a resolved audit."),
    ]
    limit: Annotated[
        float | None,
        Field(description="The share of wrong labels above which a route is stopped."),
    ]
    conflicts: int
    routes: list[RouteOut]

"""The models of the API: generated (client/generate.py), not to be edited."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field, RootModel, StringConstraints
from typing_extensions import TypeAliasType

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


class PairActOut(ApiModel):
    """An act on pairs. `count`: pairs that it changes at most, or that it changed."""

    number: int
    kind: str
    state: Annotated[str, Field(description="planned, done or undone.")]
    pairs: int
    count: int
    option: str
    options: Annotated[
        dict[str, str],
        Field(description="What can be chosen, while it is planned: the option and its words."),
    ]
    can_undo: bool
    made_by: str
    created_at: AwareDatetime
    done_at: AwareDatetime | None
    undone_at: AwareDatetime | None


class Pair(RootModel[int]):
    root: Annotated[int, Field(ge=1, lt=9223372036854775808)]


class PairActIn(ApiModel):
    """An act on pairs, which is carried out once it is run."""

    model_config = ConfigDict(
        extra="forbid",
    )
    kind: Literal["send", "reassign", "priority", "exclude", "reinstate", "export"]
    pairs: Annotated[
        list[Pair],
        Field(
            description="Their numbers; those of other collections are left out.",
            max_length=20000,
            min_length=1,
        ),
    ]


class HandedOverOut(ApiModel):
    """Number of pairs that were given to the adjudicators."""

    count: int


class PairActRunIn(ApiModel):
    """Option with which an act is carried out, where it has some."""

    model_config = ConfigDict(
        extra="forbid",
    )
    option: Annotated[str, Field(max_length=20)] = ""


class ArmsOut(ApiModel):
    """Weights of the experiment arms, by which they are drawn."""

    shown: int
    hidden: int
    reveal: int


class SettingsOut(ApiModel):
    """Current settings of a collection."""

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
    long_documents: str
    hourly_rate: float | None
    budget: float | None
    daily_budget: float | None
    arms: ArmsOut
    instruction: str
    instruction_version: int
    guidelines: str
    guidelines_version: int


class ArmsIn(ApiModel):
    """Weights of the experiment arms, by which they are drawn; at least one is above 0."""

    model_config = ConfigDict(
        extra="forbid",
    )
    shown: Annotated[int, Field(ge=0, le=1000)] = 0
    hidden: Annotated[int, Field(ge=0, le=1000)] = 0
    reveal: Annotated[int, Field(ge=0, le=1000)] = 0


class SettingsIn(ApiModel):
    """Changes of settings. A field that is left out, or null, stays; of the three amounts null means no amount."""

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
    long_documents: Annotated[
        Literal["cut", "people", "windows", "context"] | None,
        Field(description="What is done with documents above 24,000 characters."),
    ] = None
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


class PresetIn(ApiModel):
    """The settings of a paper's study: dream is DREAM's."""

    model_config = ConfigDict(
        extra="forbid",
    )
    preset: Literal["dream"]


class MemberOut(ApiModel):
    """A member."""

    number: int
    username: str
    role: Literal["annotator", "adjudicator", "admin"]
    active: bool
    paused: bool
    expert: Annotated[bool, Field(description="Grades gold pairs.")]
    qualified: Annotated[bool, Field(description="Passed the qualification test, or was let pass.")]
    failed: bool


class PageMemberOut(ApiModel):
    items: list[MemberOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class MemberIn(ApiModel):
    """Changes of a member; a field that is left out, or null, stays as it is."""

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
    expert: Annotated[bool | None, Field(description="Grades gold pairs.")] = None


class InvitationOut(ApiModel):
    """An invitation that is open. Whoever opens its link joins."""

    number: int
    role: Literal["annotator", "adjudicator", "admin"]
    note: str
    link: Annotated[str | None, Field(description="Null for a token without the scope `manage`.")]
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


class EvidenceDraftOut(ApiModel):
    """Contribution and evidence as they were found: a judge's that failed its checks, or empty."""

    contribution: str
    evidence: str
    writer: str
    problems: list[str]
    scores: dict[str, float]


class QuoteOut(ApiModel):
    """A sentence that a side quotes; `label` names its place in the document (empty: it is not there)."""

    text: str
    label: str


class TurnOut(ApiModel):
    """Statement of one side in a round of the debate."""

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


class EvidenceTextsIn(ApiModel):
    """Contribution and evidence of a pair that asks for texts."""

    model_config = ConfigDict(
        extra="forbid",
    )
    item: Annotated[int, Field(ge=0, lt=9007199254740992)]
    token: Annotated[str, Field(max_length=100)]
    contribution: Annotated[str, Field(max_length=20000)]
    evidence: Annotated[str, Field(max_length=20000)]
    milliseconds: Annotated[
        int | None,
        Field(description="Time that the person spent on it.", ge=0, le=86400000),
    ] = None
    rating: Annotated[int | None, Field(description="Of the texts as they were found.", ge=1, le=5)] = None


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
    """Opinion of an annotator on the pair, without a name: a grade, a flag, or (neither) why it was skipped."""

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


class QualityControlOut(ApiModel):
    """The settings of quality control, and the consent that annotators are asked for."""

    checks: float
    repeats: float
    batch: int
    qualification: bool
    pass_mark: int
    tests: Annotated[
        list[int],
        Field(description="Numbers of the qualification tests, the oldest first."),
    ]
    consent: Annotated[str | None, Field(description="Null: nobody is asked.")]
    consent_version: int


class QualityControlIn(ApiModel):
    """Changes of the settings of quality control; a field that is left out, or null, stays as it is."""

    model_config = ConfigDict(
        extra="forbid",
    )
    checks: Annotated[
        float | None,
        Field(description="The share of attention checks in the work.", ge=0.0, le=0.5),
    ] = None
    repeats: Annotated[
        float | None,
        Field(description="The share of pairs that come again.", ge=0.0, le=0.5),
    ] = None
    batch: Annotated[int | None, Field(description="Pairs of a batch.", ge=5, le=1000)] = None
    qualification: Annotated[bool | None, Field(description="Annotators pass a test first.")] = None
    pass_mark: Annotated[int | None, Field(description="Percent.", ge=0, le=100)] = None


class JobEstimateOut(ApiModel):
    """Expected calls of a job to models, and their cost. `cost` null: no known price."""

    calls: float
    calls_most: float
    cost: Annotated[float | None, Field(description="USD.")]
    cost_most: float | None


class CheckCountOut(ApiModel):
    """Number of attention checks that an act was about."""

    count: int


class ChecksIn(ApiModel):
    """Number and form of attention checks that are made of gold pairs."""

    model_config = ConfigDict(
        extra="forbid",
    )
    count: Annotated[int, Field(ge=1, le=10000)] = 20
    seed: Annotated[int, Field(ge=0, lt=2147483648)] = 0
    form: Annotated[
        Literal["own", "dream"],
        Field(description="dream: arguments about something else (DREAM, F.2)."),
    ] = "own"


class BatchOut(ApiModel):
    """A closed batch of somebody's work, and what its attention checks said."""

    number: int
    member: int
    username: str
    batch: Annotated[int, Field(description="From 0.")]
    size: int
    checks: Annotated[int, Field(description="Answered.")]
    missed: int
    outcome: Literal["accepted", "returned", "unchecked"]
    created_at: AwareDatetime


class PageBatchOut(ApiModel):
    items: list[BatchOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class QualificationTestOut(ApiModel):
    """The number of a qualification test."""

    test: int


class QualificationTestIn(ApiModel):
    """The size of a new qualification test, without its practice."""

    model_config = ConfigDict(
        extra="forbid",
    )
    size: Annotated[int, Field(ge=1, le=10000)] = 20
    seed: Annotated[int, Field(ge=0, lt=2147483648)] = 0


class ConsentIn(ApiModel):
    """Text that annotators agree to before their next pair; null: nobody is asked any more."""

    model_config = ConfigDict(
        extra="forbid",
    )
    text: Annotated[str | None, Field(max_length=20000)]


class ExclusionOut(ApiModel):
    """Judgments and texts of a member that were excluded (manually, or with their batch), or reinstated."""

    number: int
    member: int
    username: str
    why: Annotated[str, Field(description="person, batch or pairs.")]
    note: str
    batch: int | None
    since: AwareDatetime | None
    judgments: int
    texts: int
    reinstates: Annotated[int | None, Field(description="The exclusion that this act took back.")]
    is_reinstated: bool
    made_by: str | None
    created_at: AwareDatetime


class PageExclusionOut(ApiModel):
    items: list[ExclusionOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class ExclusionIn(ApiModel):
    """Member whose judgments and texts are excluded from everything."""

    model_config = ConfigDict(
        extra="forbid",
    )
    member: Annotated[int, Field(description="Its number.", ge=1, lt=9223372036854775808)]
    note: Annotated[str, Field(max_length=1000)] = ""
    since: Annotated[
        AwareDatetime | None,
        Field(description="Only judgments from then on; null: all."),
    ] = None


class NearPairsOut(ApiModel):
    """Groups of nearly equal pairs whose labels differ; `all` false: only the newest labels were compared."""

    compared: int
    all: bool
    at: AwareDatetime | None
    groups: list[dict[str, Any]]


class ComparedOut(ApiModel):
    """State of a comparison; `done` false: a worker compares the labels later."""

    done: bool


class GoldOut(ApiModel):
    """A gold sample, and how far experts and reviewers are; practice pairs are not counted."""

    number: int
    seed: int
    spot: float
    created_at: AwareDatetime
    ended_at: AwareDatetime | None
    pairs: int
    graded: int
    relevant: int
    spots: int
    looked: Annotated[int, Field(description="Reviewed.")]
    done: bool


class PageGoldOut(ApiModel):
    items: list[GoldOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class GoldIn(ApiModel):
    """A sample that experts grade."""

    model_config = ConfigDict(
        extra="forbid",
    )
    size: Annotated[int, Field(ge=1, le=10000)] = 50
    seed: Annotated[int, Field(ge=0, lt=2147483648)] = 0
    spot: Annotated[
        float,
        Field(description="The share that somebody else reviews.", ge=0.0, le=1.0),
    ] = 0.2


class GoldTaskOut(ApiModel):
    """A gold pair to grade. `pair` and `shown` go with the grade."""

    query: str
    answers: list[str]
    instruction: str
    title: str
    document: str
    source: str
    highest_grade: int
    debate: list[TurnOut]
    pair: int
    shown: str
    practice: bool


class GoldGradeIn(ApiModel):
    """A grade of a gold pair."""

    model_config = ConfigDict(
        extra="forbid",
    )
    pair: Annotated[int, Field(ge=0, lt=9007199254740992)]
    shown: Annotated[
        str,
        Field(description="As the pair was read with: it says since when.", max_length=500),
    ] = ""
    grade: Annotated[int, Field(ge=0, le=100)]
    comment: Annotated[str, Field(max_length=5000)] = ""
    milliseconds: Annotated[
        int | None,
        Field(description="Time that the person spent on it.", ge=0, le=86400000),
    ] = None


class GoldAnswerOut(ApiModel):
    """Grade of a gold pair by an expert, or by a reviewer after them."""

    username: str
    who: Annotated[str, Field(description="expert or senior.")]
    grade: int
    comment: str
    created_at: AwareDatetime


class GoldPairOut(ApiModel):
    """A pair of a gold sample with what was said about it."""

    number: int
    pair: int
    query: str
    document: str
    practice: bool
    spot: bool
    stratum: str
    answers: list[GoldAnswerOut]


class PageGoldPairOut(ApiModel):
    items: list[GoldPairOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class AspectQueryOut(ApiModel):
    """A query with the state of its aspects."""

    number: int
    id: str
    text: Annotated[str, Field(description="Its beginning.")]
    aspects: int
    kept: int
    to_review: int
    reviewed: Annotated[
        bool | None,
        Field(description="By a second person; false: the aspects changed since."),
    ]


class PageAspectQueryOut(ApiModel):
    items: list[AspectQueryOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class AspectTotalsOut(ApiModel):
    """Counts of a collection's queries and aspects, and how many queries were reviewed."""

    queries: int
    decomposed: int
    aspects: int
    reviewed: int


class SampleOut(ApiModel):
    """Agreement of two persons on importances, where a sample was drawn."""

    drawn: int
    agreement: Annotated[
        dict[str, Any] | None,
        Field(description="Kappa and percent agreement with their 95% intervals."),
    ]


class SampleIn(ApiModel):
    """A sample of queries whose aspects a second person weighs without seeing the weights."""

    model_config = ConfigDict(
        extra="forbid",
    )
    size: Annotated[int, Field(ge=1, le=5000)] = 50
    seed: Annotated[int, Field(ge=0, lt=2147483648)] = 0


class BlindAspectOut(ApiModel):
    """An aspect without its weight."""

    id: str
    text: str
    rationale: str


class WeighingOut(ApiModel):
    """A query of the sample to weigh, if any. `revision` goes with the importances."""

    revision: int | None
    query: str
    text: str
    aspects: list[BlindAspectOut]
    weighed: int
    drawn: int


ImportancesAdditionalProperty = TypeAliasType(
    "ImportancesAdditionalProperty",
    Annotated[int, Field(description="1: peripheral, 5: dominant.", ge=1, le=5)],
)


class WeighedIn(ApiModel):
    """The importance of each aspect of a query of the sample."""

    model_config = ConfigDict(
        extra="forbid",
    )
    revision: Annotated[int, Field(ge=1, lt=9223372036854775808)]
    importances: Annotated[
        dict[Annotated[str, StringConstraints(max_length=255)], ImportancesAdditionalProperty],
        Field(max_length=20),
    ]
    comment: Annotated[str, Field(max_length=5000)] = ""


class AspectOut(ApiModel):
    """An aspect with the documents that are kept under it."""

    id: str
    text: str
    rationale: str
    importance: int
    weight: float
    documents: list[str]


class AspectRevisionOut(ApiModel):
    """An act on the aspects of a query."""

    number: int
    act: str
    note: str
    author: str
    created_at: AwareDatetime


class DiscardedOut(ApiModel):
    """A document that supports no aspect, and why."""

    document: str
    reason: str


class QueryAspectsOut(ApiModel):
    """The aspects of a query and its documents. `revision` goes with an act as `base`."""

    number: int
    id: str
    revision: int
    aspects: list[AspectOut]
    to_review: list[str]
    discarded: list[DiscardedOut]
    undoable: Annotated[int | None, Field(description="The revision that can be taken back.")]
    history: list[AspectRevisionOut]


class Aspect(RootModel[str]):
    root: Annotated[str, Field(max_length=255)]


class Document(RootModel[str]):
    root: Annotated[str, Field(max_length=255)]


class WordingIn(ApiModel):
    """Wording of an aspect: what it is about, and in one or two sentences why an answer needs it."""

    model_config = ConfigDict(
        extra="forbid",
    )
    text: Annotated[str, Field(max_length=2000)] = ""
    rationale: Annotated[str, Field(max_length=2000)] = ""
    importance: Annotated[int, Field(description="1: peripheral, 5: dominant.", ge=1, le=5)] = 3


class ReviewOut(ApiModel):
    """A review of a query's aspects."""

    number: int
    query: str
    reviewer: str
    state: Annotated[str, Field(description="open, submitted or released.")]
    accepted: bool | None
    created_at: AwareDatetime
    submitted_at: AwareDatetime | None


class ReviewedAspectOut(ApiModel):
    """An aspect under review; without importances until the reviewer gave theirs."""

    id: str
    text: str
    rationale: str
    importance: int | None
    first: Annotated[int | None, Field(description="The first person's importance.")]


class ReviewedDocumentOut(ApiModel):
    """The first person's decision on a document."""

    document: str
    aspect: str
    reason: str


class WeightsIn(ApiModel):
    """Your own importance of each aspect, given before you see the first ones."""

    model_config = ConfigDict(
        extra="forbid",
    )
    importances: Annotated[
        dict[Annotated[str, StringConstraints(max_length=255)], ImportancesAdditionalProperty],
        Field(max_length=20),
    ]


class VerdictIn(ApiModel):
    """Accepted, or changed with the reason."""

    model_config = ConfigDict(
        extra="forbid",
    )
    accept: bool
    reason: Annotated[str, Field(max_length=1000)] = ""


class DocumentVerdictIn(ApiModel):
    """Verdict on a decision about a document; where it is changed, the aspects that the document supports instead."""

    model_config = ConfigDict(
        extra="forbid",
    )
    accept: bool
    reason: Annotated[str, Field(max_length=1000)] = ""
    document: Annotated[str, Field(max_length=255)]
    aspect: Annotated[
        str,
        Field(
            description="Under which it was kept; empty: it was discarded.",
            max_length=255,
        ),
    ] = ""
    aspects: Annotated[list[Aspect], Field(max_length=20, validate_default=True)] = []


class DebateEffectOut(ApiModel):
    """Votes with and without the debate, and every paired study: docs/debate-effect.md."""

    document: dict[str, Any]


class PairedStudyOut(ApiModel):
    """A paired study."""

    number: int
    seed: int
    overlap: int
    pairs: int
    created_at: AwareDatetime
    ended_at: AwareDatetime | None


class PairedStudyIn(ApiModel):
    """A paired study: who takes part, in two groups by lot, over how many pairs."""

    model_config = ConfigDict(
        extra="forbid",
    )
    people: Annotated[
        list[int],
        Field(description="Numbers of members.", max_length=1000, min_length=1),
    ]
    pairs: Annotated[int, Field(ge=1, le=2000)] = 50
    overlap: Annotated[int, Field(description="People of each group for a pair.", ge=1, le=25)] = 3
    gold: Annotated[bool, Field(description="Only pairs with a reference grade.")] = True
    seed: Annotated[
        int | None,
        Field(description="Null: that of the collection.", ge=0, lt=2147483648),
    ] = None


class JudgeOut(ApiModel):
    """A configured model, and its place on the panel of the collection."""

    name: str
    provider: str
    model: str
    has_key: bool
    needs_key: bool
    debates: bool
    votes: bool
    works: Annotated[
        bool | None,
        Field(description="What its newest test said; null: it was never tested."),
    ]
    problem: str


class PanelOut(ApiModel):
    """The panel of a collection: who debates, who votes."""

    name: str
    debate: list[str]
    judges: list[str]
    majority: int


class PanelIn(ApiModel):
    """Models that debate and models that vote in new campaigns."""

    model_config = ConfigDict(
        extra="forbid",
    )
    judges: Annotated[list[str], Field(description="1, 3, 5, 7 or 9.", max_length=100, min_length=1)]
    debate: Annotated[
        list[str] | None,
        Field(
            description="For, against; none: nobody debates; null: the debaters of the present panel.",
            max_length=2,
        ),
    ] = None
    default: Annotated[bool, Field(description="For all new campaigns of the site, too; owners alone.")] = False


class SelfCheckIn(ApiModel):
    """Judges whose self-check runs."""

    model_config = ConfigDict(
        extra="forbid",
    )
    judges: Annotated[list[str], Field(max_length=100, min_length=1)]


class SelfCheckOut(ApiModel):
    """The newest self-check of a judge in this collection; `passes` null: there was none."""

    judge: str
    passes: bool | None
    findings: dict[str, Any]


class SelfCheckStartedOut(ApiModel):
    """Judges that a worker will ask."""

    judges: list[str]


class JudgesFileOut(ApiModel):
    """
    The judges file in use; after it was loaded, with the names of judges that are new or changed.

    extra_headers, extra_body and token_command are masked for a token without the scope `manage`.
    """

    text: str
    changed: list[str]


class JudgesFileIn(ApiModel):
    """The judges file, which is loaded whole or not at all."""

    model_config = ConfigDict(
        extra="forbid",
    )
    text: Annotated[str, Field(max_length=200000)]


class PriceOut(ApiModel):
    """The price of a judge that holds, in USD for a million tokens; null: it is not known."""

    number: int
    judge: str
    model: str
    source: str
    can_change: bool
    input_price: float | None
    output_price: float | None
    cached_input_price: float | None
    written_input_price: float | None
    reasoning_price: float | None
    batch_input_price: float | None
    batch_output_price: float | None
    batch_cached_input_price: float | None


class PriceIn(ApiModel):
    """The price of a judge; what is left out or null costs as docs/costs.md says. All null: the price is taken away."""

    model_config = ConfigDict(
        extra="forbid",
    )
    input_price: Annotated[
        float | None,
        Field(description="USD for a million tokens.", ge=0.0, le=1000000.0),
    ] = None
    output_price: Annotated[
        float | None,
        Field(description="USD for a million tokens.", ge=0.0, le=1000000.0),
    ] = None
    cached_input_price: Annotated[
        float | None,
        Field(description="USD for a million tokens.", ge=0.0, le=1000000.0),
    ] = None
    written_input_price: Annotated[
        float | None,
        Field(description="USD for a million tokens.", ge=0.0, le=1000000.0),
    ] = None
    reasoning_price: Annotated[
        float | None,
        Field(description="USD for a million tokens.", ge=0.0, le=1000000.0),
    ] = None
    batch_input_price: Annotated[
        float | None,
        Field(description="USD for a million tokens.", ge=0.0, le=1000000.0),
    ] = None
    batch_output_price: Annotated[
        float | None,
        Field(description="USD for a million tokens.", ge=0.0, le=1000000.0),
    ] = None
    batch_cached_input_price: Annotated[
        float | None,
        Field(description="USD for a million tokens.", ge=0.0, le=1000000.0),
    ] = None
    note: Annotated[str, Field(description="Where the price is from.", max_length=200)] = ""


class CanariesOut(ApiModel):
    """Schedule of the tests whether judges follow hostile text, of the whole site. 0 hours: never."""

    hours: int
    paid: Annotated[bool, Field(description="All judges are asked; false: the free ones.")]
    asked: Annotated[bool, Field(description="A worker asks them now.")] = False


class CanariesIn(ApiModel):
    """Changes of the schedule of canaries."""

    model_config = ConfigDict(
        extra="forbid",
    )
    hours: Annotated[int | None, Field(ge=0, le=8784)] = None
    paid: bool | None = None


class CanariesAskIn(ApiModel):
    """Judges to test with canaries now."""

    model_config = ConfigDict(
        extra="forbid",
    )
    paid: Annotated[bool, Field(description="All judges; false: the free ones.")] = False


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
    """The campaign that was started or joined, and its new pairs. `campaign` null: nothing was left to judge."""

    campaign: int | None
    added: int
    joined: bool


class CampaignIn(ApiModel):
    """Panel, policy and limits of a campaign: the options of the command `judge`."""

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
    """Estimate of a campaign: calls, cost and people's hours; `cost` null: no judge has a known price."""

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


class EvidenceIn(ApiModel):
    """Writer of contributions and evidence for relevant pairs, the judge who measures them, and limits."""

    model_config = ConfigDict(
        extra="forbid",
    )
    writer: Annotated[str, Field(max_length=100)]
    measure: Annotated[str, Field(description="Empty: rules only.", max_length=100)] = ""
    limit: Annotated[int | None, Field(description="Pairs at most.", ge=1, lt=2147483648)] = None
    budget: Annotated[float | None, Field(description="USD.", ge=1e-06, le=1000000000.0)] = None
    max_calls: Annotated[int | None, Field(ge=1, lt=2147483648)] = None


class StatusOut(ApiModel):
    """Progress of a campaign: the document of the command `status`."""

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
    """Number of pairs that wait for people now and did not before."""

    pairs: int


class DrawIn(ApiModel):
    """Size that the sample shall have: the same request again changes nothing."""

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
    """A stopped route that shall label again, or (`stop`) not."""

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
    """Content of a file, as it was recognised or said: `columns` of a table, from its header to the field."""

    name: str
    member: Annotated[str, Field(description="The file in an archive, or the sheet of a workbook.")]
    kind: Annotated[
        str,
        Field(
            description="documents, queries, pairs, qrels, judgments, runs, all (queries, documents and pairs), queries-pairs, documents-pairs; empty: it is left out, or no worker has looked into it yet."
        ),
    ]
    columns: dict[str, str]
    problem: str


class ImportOptionsIn(ApiModel):
    """Options of an import before it starts; files that `kinds` and `columns` leave out stay as they are."""

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
    keep_runs: Annotated[bool, Field(description="Runs are added to the benchmark, too.")] = True
    skip_unknown: Annotated[bool, Field(description="Leave out rows that name no known query or document.")] = False
    keep_self: Annotated[
        bool,
        Field(description="Keep a query that is a document among its own candidates."),
    ] = False
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
    near: Annotated[
        float | None,
        Field(
            description="Similarity from which texts stay in one split; null: off; left out: 0.8, off for beir and mteb.",
            gt=0.0,
            le=1.0,
        ),
    ] = None
    balance: bool = False
    balance_entropy: Literal["filled", "prism"] = "filled"
    shape: Literal["pair", "triplet", "n-tuple", "list"] = "pair"
    synthetic_dev: bool = False
    allow_incomplete: bool = False
    named_splits: Annotated[
        dict[Literal["train", "dev", "test"], str],
        Field(description="A kept list of queries, or the split that queries carry, by the split that they become."),
    ] = {}
    qrels: Annotated[
        int | None,
        Field(
            description="For beir and mteb: the grades of this version of the qrels, all in test.",
            ge=1,
            lt=2147483648,
        ),
    ] = None


class QueryListOut(ApiModel):
    """A kept list of queries: they enter no training set, unless it names the list as a split."""

    name: str
    queries: int
    made_by: str
    changed_at: AwareDatetime


class QueryListIn(ApiModel):
    """The queries of a list."""

    model_config = ConfigDict(
        extra="forbid",
    )
    query_ids: Annotated[list[str], Field(max_length=1000000, min_length=1)]


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


class WebSearchOut(ApiModel):
    """A web search."""

    number: int
    state: Annotated[str, Field(description="waiting, running, ready, failed or cancelled.")]
    phase: str
    done: int
    total: int
    error: str
    made_by: str
    created_at: AwareDatetime
    ended_at: AwareDatetime | None
    budget: Annotated[float | None, Field(description="USD in all; null: no limit.")]
    max_calls: int | None
    campaign: Annotated[int | None, Field(description="Keeps its calls and what they cost.")]
    judge: str
    documents: Annotated[int, Field(description="That it added to the collection.")]
    pairs: int


class WebSearchIn(ApiModel):
    """Search service, and the queries that it searches for."""

    model_config = ConfigDict(
        extra="forbid",
    )
    budget: Annotated[float | None, Field(description="USD.", ge=1e-06, le=1000000000.0)] = None
    max_calls: Annotated[int | None, Field(ge=1, lt=2147483648)] = None
    judge: Annotated[
        str,
        Field(
            description="The search service, as the judges file names it.",
            max_length=100,
        ),
    ]
    limit: Annotated[
        int | None,
        Field(description="Queries, drawn at random; null: all.", ge=1, lt=2147483648),
    ] = 20
    seed: Annotated[int, Field(ge=0, lt=2147483648)] = 0
    fetch: Annotated[
        bool,
        Field(description="Fetch each page from its own site where robots.txt allows it."),
    ] = False


class FoundPageOut(ApiModel):
    """A page that was found for a query: the document that it became, or why it became none."""

    number: int
    query: str
    rank: int
    url: str
    title: str
    document: str | None
    problem: str
    answered_at: AwareDatetime | None


class PageFoundPageOut(ApiModel):
    items: list[FoundPageOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class LimitsIn(ApiModel):
    """Limits of what a job may spend in all; null: none. For `go-on` a limit that is left out stays as it is."""

    model_config = ConfigDict(
        extra="forbid",
    )
    budget: Annotated[float | None, Field(description="USD.", ge=1e-06, le=1000000000.0)] = None
    max_calls: Annotated[int | None, Field(ge=1, lt=2147483648)] = None


class AgreementIn(ApiModel):
    """Assessors whose agreement is measured, and the resamples for its intervals."""

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
    """State of a measurement; `done` false: a worker measures later, so ask for the result again."""

    done: bool


class AssessorsIn(ApiModel):
    """Assessors whose agreement is measured, and on which pairs; none named: every judge, person and import."""

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
    """Reason why labels should not go out: its pairs (`count`) and routes; `value` is a share or an alpha."""

    key: str
    count: int
    routes: int
    value: float


class PoliciesIn(ApiModel):
    """Campaign on whose answers policies are compared; null: the newest that has answers."""

    model_config = ConfigDict(
        extra="forbid",
    )
    campaign: Annotated[int | None, Field(ge=1, lt=9223372036854775808)] = None


class PoliciesOut(ApiModel):
    """Every policy replayed on a campaign's stored answers; `document` null: a worker has not compared them yet."""

    at: Annotated[
        AwareDatetime | None,
        Field(description="Of a large collection: when a worker compared them; null: now."),
    ]
    document: dict[str, Any] | None


class SuspectOut(ApiModel):
    """A label that something speaks against. `dawid_skene`, `model`: the probability of the other label."""

    pair: int
    query: str
    document: str
    relevant: Annotated[bool, Field(description="The label.")]
    score: Annotated[float, Field(description="Log-odds of an error.")]
    against: Annotated[int, Field(description="Votes of judges for the other label.")]
    votes: int
    dawid_skene: float | None
    others: Annotated[int, Field(description="Of its near-duplicates, those with the other label.")]
    group: int
    model: float | None


class SuspectsOut(ApiModel):
    """Suspected label errors, the most suspicious first; `at` null: nobody asked for them yet."""

    at: AwareDatetime | None
    state: Annotated[str, Field(description="Of the last search by a worker; empty: there was none.")]
    suspects: list[SuspectOut]


class AuditEntryOut(ApiModel):
    """An act: who did it, to whom, and what it was about. Texts of documents are never in it."""

    number: int
    at: AwareDatetime
    who: str | None
    act: str
    whom: str | None
    details: dict[str, Any]


class PageAuditEntryOut(ApiModel):
    items: list[AuditEntryOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


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
    """Expected calls to models of making a run, and their cost; `asks` false: none. `cost` null: no known price."""

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
    """Content of a new version of the qrels."""

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
    """Runs to measure, and the two versions of the qrels to measure them by."""

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


class FillingOut(ApiModel):
    """A hole filling. Its campaign can be paused and resumed as every other one."""

    number: int
    state: Annotated[
        str,
        Field(description="preparing, judging, people, finishing, filled or cancelled."),
    ]
    runs: list[int]
    depth: int
    before: Annotated[int, Field(description="The version of the qrels that is completed.")]
    after: Annotated[int | None, Field(description="The filled version; null: there is none yet.")]
    campaign: Annotated[int | None, Field(description="Null: people judge every pair.")]
    policy: str
    funnel: Annotated[dict[str, Any], Field(description="Pairs by step: docs/hole-filling.md.")]
    error: str
    made_by: str
    created_at: AwareDatetime
    ended_at: AwareDatetime | None


class PageFillingOut(ApiModel):
    items: list[FillingOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class FillingIn(ApiModel):
    """A hole filling: whose documents are pooled to which depth, and who judges those without a grade."""

    model_config = ConfigDict(
        extra="forbid",
    )
    policy: Literal["people", "debate+ensemble", "debate", "ensemble", "single"] = "people"
    panel: Annotated[str, Field(description="Empty: the panel that is in use.", max_length=100)] = ""
    filter: Annotated[
        list[str],
        Field(description="None, or three judges of different families.", max_length=3),
    ] = []
    budget: Annotated[float | None, Field(description="USD.", ge=1e-06, le=1000000000.0)] = None
    max_calls: Annotated[int | None, Field(ge=1, lt=2147483648)] = None
    runs: Annotated[
        list[int],
        Field(description="Their numbers; none: all that are ready.", max_length=1000),
    ] = []
    depth: Annotated[int, Field(ge=1, le=1000)] = 10
    qrels: Annotated[
        int | None,
        Field(
            description="The version to complete; null: the newest.",
            ge=1,
            lt=2147483648,
        ),
    ] = None


class FillingEstimateOut(ApiModel):
    """Estimate of a hole filling: its pool, the pairs that are judged already, and what judges would be asked."""

    calls: float
    calls_most: float
    cost: Annotated[float | None, Field(description="USD.")]
    cost_most: float | None
    queries: int
    pool: int
    judged: int
    candidates: int
    known: Annotated[
        int,
        Field(description="Of the candidates: people labelled them, nobody is asked again."),
    ]


class SendIn(ApiModel):
    """Number of pairs to judge, of those that could decide the order of the runs."""

    model_config = ConfigDict(
        extra="forbid",
    )
    policy: Literal["people", "debate+ensemble", "debate", "ensemble", "single"] = "people"
    panel: Annotated[str, Field(description="Empty: the panel that is in use.", max_length=100)] = ""
    filter: Annotated[
        list[str],
        Field(description="None, or three judges of different families.", max_length=3),
    ] = []
    budget: Annotated[float | None, Field(description="USD.", ge=1e-06, le=1000000000.0)] = None
    max_calls: Annotated[int | None, Field(ge=1, lt=2147483648)] = None
    first: Annotated[int, Field(description="The most informative first.", ge=1, le=2000)] = 100


class AgentJobOut(ApiModel):
    """A job with agents."""

    number: int
    state: Annotated[str, Field(description="waiting, running, ready, failed or cancelled.")]
    phase: str
    done: int
    total: int
    error: str
    made_by: str
    created_at: AwareDatetime
    ended_at: AwareDatetime | None
    budget: Annotated[float | None, Field(description="USD in all; null: no limit.")]
    max_calls: int | None
    campaign: Annotated[int | None, Field(description="Keeps its calls and what they cost.")]
    kind: Annotated[str, Field(description="search, grade or reference.")]
    graded: Annotated[int | None, Field(description="Of a grading: the number of the search.")]
    protocol: str


class PageAgentJobOut(ApiModel):
    items: list[AgentJobOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class AgentJobIn(ApiModel):
    """Agents search, a judge grades their answers, or a writer writes reference answers."""

    model_config = ConfigDict(
        extra="forbid",
    )
    budget: Annotated[float | None, Field(description="USD.", ge=1e-06, le=1000000000.0)] = None
    max_calls: Annotated[int | None, Field(ge=1, lt=2147483648)] = None
    kind: Literal["search", "grade", "reference"] = "search"
    retrievers: Annotated[
        list[str],
        Field(description="Of a search: bm25, and names of runs.", max_length=100),
    ] = ["bm25"]
    agents: Annotated[list[str], Field(description="Of a search: models.", max_length=100)] = []
    protocol: Annotated[
        Literal["fixed", "adaptive"],
        Field(description="Of a search, or whose answers are graded."),
    ] = "fixed"
    tokenizer: Annotated[
        str,
        Field(
            description="Of a search: the base model whose tokenizer cuts documents; blank: none.",
            max_length=200,
        ),
    ] = ""
    halves: Annotated[
        Literal["up", "even"],
        Field(description="Of grades: where halves of the completeness go."),
    ] = "up"
    judge: Annotated[
        str,
        Field(description="Of the others: who grades, or who writes.", max_length=100),
    ] = ""


class AgentBoardOut(ApiModel):
    """Retrievers by agents, with what their searches and answers come to: docs/agents.md."""

    document: dict[str, Any]


class TraceOut(ApiModel):
    """All that one agent did with one retriever about one query."""

    number: int
    query: str
    retriever: str
    agent: str
    rounds: list[dict[str, Any]]
    answers: list[dict[str, Any]]
    stop: str
    searches: int


class ReferenceStudyOut(ApiModel):
    """A study of reference answers, how far it is, and what it found: a line for completeness and one for quality."""

    number: int
    seed: int
    created_at: AwareDatetime
    closed_at: AwareDatetime | None
    queries: int
    written: int
    rated: int
    results: list[dict[str, Any]]


class ReferenceStudyIn(ApiModel):
    """Number of queries that people write about, and the seed that draws them."""

    model_config = ConfigDict(
        extra="forbid",
    )
    queries: Annotated[int, Field(ge=1, lt=2147483648)] = 40
    seed: Annotated[int, Field(ge=0, lt=2147483648)] = 0


class StudyAspectOut(ApiModel):
    """An aspect that an answer should cover."""

    text: str
    importance: int


class StudyPassageOut(ApiModel):
    """A passage that an answer may cite."""

    document: str
    text: str


class WritingOut(ApiModel):
    """The query that you write about, if one is reserved for you; and how many are free."""

    query: str | None
    text: str
    aspects: list[StudyAspectOut]
    passages: list[StudyPassageOut]
    free: int


class ReferenceTextIn(ApiModel):
    """Your answer to the query that is reserved for you; passages are cited as [id]."""

    model_config = ConfigDict(
        extra="forbid",
    )
    answer: Annotated[str, Field(max_length=20000, min_length=1)]


class RatingTaskOut(ApiModel):
    """Two answers to a query, in random order; `answer` goes with the grades. Null: nothing is left for you."""

    answer: int | None
    query: str
    text: str
    first: str
    second: str
    aspects: list[StudyAspectOut]
    waiting: int


class GradesIn(ApiModel):
    """Grades of an answer, from 1 to 5."""

    model_config = ConfigDict(
        extra="forbid",
    )
    completeness: Annotated[int, Field(ge=1, le=5)]
    quality: Annotated[int, Field(ge=1, le=5)]


class RatingIn(ApiModel):
    """Grades of the answer that was shown first and of the other."""

    model_config = ConfigDict(
        extra="forbid",
    )
    answer: Annotated[int, Field(ge=1, lt=9223372036854775808)]
    first: GradesIn
    second: GradesIn


class AnswerEvaluationOut(ApiModel):
    """An evaluation of answers."""

    number: int
    state: Annotated[str, Field(description="waiting, running, ready, failed or cancelled.")]
    phase: str
    done: int
    total: int
    error: str
    made_by: str
    created_at: AwareDatetime
    ended_at: AwareDatetime | None
    budget: Annotated[float | None, Field(description="USD in all; null: no limit.")]
    max_calls: int | None
    campaign: Annotated[int | None, Field(description="Keeps its calls and what they cost.")]
    runs: list[int]
    generators: list[str]
    judge: str
    k: int
    contexts: str


class PageAnswerEvaluationOut(ApiModel):
    items: list[AnswerEvaluationOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class AnswersIn(ApiModel):
    """Models that answer from the documents of runs, and the judge who says whether the answers are right."""

    model_config = ConfigDict(
        extra="forbid",
    )
    budget: Annotated[float | None, Field(description="USD.", ge=1e-06, le=1000000000.0)] = None
    max_calls: Annotated[int | None, Field(ge=1, lt=2147483648)] = None
    runs: Annotated[
        list[str],
        Field(description="Their names; none: all that are ready.", max_length=1000),
    ] = []
    generators: Annotated[list[str], Field(description="Models.", max_length=100, min_length=1)]
    judge: Annotated[
        str,
        Field(description="Compares answers with the reference answers.", max_length=100),
    ]
    k: Annotated[int, Field(description="Documents that a generator sees.", ge=1, le=100)] = 10
    contexts: Literal["document", "evidence"] = "document"


class AnswerFiguresOut(ApiModel):
    """Figures of the answers by two versions of the qrels: docs/answers.md."""

    document: dict[str, Any]


class GeneratedAnswerOut(ApiModel):
    """An answer. `correct` null: the judge gave no verdict."""

    number: int
    query: str
    run: str
    generator: str
    answer: str
    correct: bool | None
    is_exact_match: bool
    problem: str


class PageGeneratedAnswerOut(ApiModel):
    items: list[GeneratedAnswerOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class SynthesisOut(ApiModel):
    """A synthesis. `made` of the seeds became a query, `dropped` did not."""

    number: int
    state: Annotated[str, Field(description="waiting, running, ready, failed or cancelled.")]
    phase: str
    done: int
    total: int
    error: str
    made_by: str
    created_at: AwareDatetime
    ended_at: AwareDatetime | None
    budget: Annotated[float | None, Field(description="USD in all; null: no limit.")]
    max_calls: int | None
    campaign: Annotated[int | None, Field(description="Keeps its calls and what they cost.")]
    kind: Annotated[str, Field(description="bundles, keywords or ask.")]
    judge: str
    writer: str
    made: int
    dropped: int


class SynthesisIn(ApiModel):
    """Queries for a model to write: with passages (bundles), keyword forms of training queries, or from documents."""

    model_config = ConfigDict(
        extra="forbid",
    )
    budget: Annotated[float | None, Field(description="USD.", ge=1e-06, le=1000000000.0)] = None
    max_calls: Annotated[int | None, Field(ge=1, lt=2147483648)] = None
    kind: Literal["bundles", "keywords", "ask"] = "bundles"
    judge: Annotated[str, Field(description="The model.", max_length=100)]
    writer: Annotated[
        str,
        Field(
            description="Of bundles: who writes the passages; empty: the same model.",
            max_length=100,
        ),
    ] = ""
    limit: Annotated[
        int | None,
        Field(
            description="Seeds, drawn at random; null: all queries.",
            ge=1,
            lt=2147483648,
        ),
    ] = 20
    seed: Annotated[int, Field(ge=0, lt=2147483648)] = 0
    dev: Annotated[
        float | None,
        Field(description="Of bundles: the share of a dev split.", ge=0.0, le=0.5),
    ] = None
    export: Annotated[
        int | None,
        Field(
            description="Of keywords: the training set's number.",
            ge=1,
            lt=9223372036854775808,
        ),
    ] = None
    share: Annotated[
        float,
        Field(
            description="Of keywords: the share of its training queries.",
            ge=0.001,
            le=1.0,
        ),
    ] = 0.3
    pairs: Annotated[
        int,
        Field(description="Of keywords and ask: documents for each query.", ge=1, le=1000),
    ] = 20


class SyntheticQueryOut(ApiModel):
    """A query that was written from a seed, or why none was. `bundle`: docs/synthesis.md."""

    number: int
    seed: str
    seed_text: str
    query: str | None
    bundle: dict[str, Any] | None
    step: Annotated[str, Field(description="Where it was dropped; empty: it was not.")]
    reason: str


class AddedOut(ApiModel):
    """Rows that an import of bundles added, all marked synthetic."""

    queries: int
    documents: int
    pairs: int


class SuiteOut(ApiModel):
    """A suite."""

    number: int
    name: str
    title: str
    members: list[str]


class SuiteIn(ApiModel):
    """A suite, with its collections in the order of their columns."""

    model_config = ConfigDict(
        extra="forbid",
    )
    name: Annotated[str, Field(max_length=63)]
    title: Annotated[str, Field(max_length=200)] = ""
    members: Annotated[
        list[str],
        Field(description="Names of collections.", max_length=100, min_length=1),
    ]


class SuiteSystemOut(ApiModel):
    """A system by members, and the unweighted mean; null where a member has nothing of it."""

    system: str
    values: list[dict[str, Any] | None]
    mean: dict[str, Any] | None
    tests: dict[str, Any]


class SuiteSystemsOut(ApiModel):
    """The systems of a suite by one measure, the best first."""

    measure: str
    members: list[str]
    systems: list[SuiteSystemOut]


class SuiteAnswerOut(ApiModel):
    """RAGAlign of a system and a generator by members, and the unweighted mean; system empty: over all systems."""

    system: str
    generator: str
    values: list[dict[str, Any] | None]
    mean: dict[str, Any] | None
    graded: Annotated[
        dict[str, Any],
        Field(description="values and mean of graded RAGAlign, by nDCG in place of Hit."),
    ]


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
    """Recipe, data and base of a training. The base is named by `base`, or by `model`, one of this collection."""

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


class JudgeOutputsIn(ApiModel):
    """Judge who scores what models wrote, and the budget for each model."""

    model_config = ConfigDict(
        extra="forbid",
    )
    judge: Annotated[str, Field(max_length=100)]
    budget: Annotated[float | None, Field(description="USD; null: no limit.", ge=0.0, le=1000000000.0)] = 5.0


class LossesIn(ApiModel):
    """Models to compare by their losses, and the run whose documents they rank."""

    model_config = ConfigDict(
        extra="forbid",
    )
    model: Annotated[
        int,
        Field(
            description="The first of the four: that of the pointwise loss.",
            ge=1,
            lt=9223372036854775808,
        ),
    ]
    run: Annotated[
        int | None,
        Field(description="The number of a run; null: BM25.", ge=1, lt=9223372036854775808),
    ] = None


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


class ModelFileOut(ApiModel):
    """A file of a model."""

    name: str
    bytes: int


class UseIn(ApiModel):
    """Options of running a model."""

    model_config = ConfigDict(
        extra="forbid",
    )
    precision: Annotated[str, Field(max_length=20)] = "auto"
    max_new_tokens: Annotated[int, Field(description="Of what it writes.", ge=1, le=4096)] = 512


class CurvePointOut(ApiModel):
    """A training of a curve; `value` null: its model was not measured yet."""

    training: int
    state: str
    asked: int
    labels: int | None
    queries: int | None
    value: float | None
    low: float | None
    high: float | None


class CurveIn(ApiModel):
    """Learning curve to begin: a training, the numbers of labels to repeat it with, and the order of the queries."""

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
    points: Annotated[list[int], Field(description="Numbers of labels.", max_length=20, min_length=1)]
    order: Literal["time", "random"] = "time"


class WebhookOut(ApiModel):
    """A webhook."""

    number: int
    url: Annotated[
        str,
        Field(description="Without its path for a token without the scope `manage`."),
    ]
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
    """Changes of a webhook; a field that is null stays as it is."""

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
    """Attempt to deliver an event. `answer`: its first 1,000 bytes, or the error of the connection."""

    at: AwareDatetime
    status: int | None
    milliseconds: int
    problem: Annotated[
        str,
        Field(description="Empty: delivered. Else status, redirect, timeout, name, address, ..."),
    ]
    answer: Annotated[str, Field(description="Masked for a token without the scope `manage`.")]


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
    """Number of deliveries that will be sent again."""

    replayed: int


class ReplayIn(ApiModel):
    """Deliveries to send again."""

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


class FieldProblem(ApiModel):
    """Problem of one field: its place in the request, and what is wrong."""

    field: str
    problem: str


class ProblemDetails(ApiModel):
    """A refusal of a request."""

    title: str
    status: int
    detail: str
    errors: Annotated[list[FieldProblem], Field(validate_default=True)] = []


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


class PagePairActOut(ApiModel):
    items: list[PairActOut]
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
        Field(description="Of the lease; negative: it ran out and may be assigned to somebody else."),
    ]
    asks: Annotated[
        Literal["grade", "texts"],
        Field(description="texts: contribution and evidence, which write takes."),
    ]
    texts: Annotated[
        EvidenceDraftOut | None,
        Field(description="What stands there of contribution and evidence."),
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


class CheckPoolOut(ApiModel):
    """Attention checks that there are, the answers to them, and gold pairs that could become some."""

    standing: int
    answered: int
    gold: int
    debated: int
    relevant: int
    ordinary: Annotated[int, Field(description="Ordinary pairs that show what a check must look like.")]
    batches: Annotated[int, Field(description="Closed batches.")]
    missed: Annotated[int, Field(description="Of them, with a missed check: they were returned.")]
    unchecked: int
    arguments: Annotated[
        JobEstimateOut,
        Field(description="Of having models argue about gold that lacks it."),
    ]


class GoldQueueOut(ApiModel):
    """The gold pair to grade next, if any."""

    task: GoldTaskOut | None


class AspectActIn(ApiModel):
    """Fields of an act on aspects or documents; docs/api.md says which act takes which."""

    model_config = ConfigDict(
        extra="forbid",
    )
    text: Annotated[str, Field(max_length=2000)] = ""
    rationale: Annotated[str, Field(max_length=2000)] = ""
    importance: Annotated[int, Field(description="1: peripheral, 5: dominant.", ge=1, le=5)] = 3
    base: Annotated[
        int | None,
        Field(
            description="The revision that you read: refused if another is.",
            ge=0,
            lt=2147483648,
        ),
    ] = None
    aspect: Annotated[str, Field(max_length=255)] = ""
    aspects: Annotated[list[Aspect], Field(max_length=20, validate_default=True)] = []
    importances: Annotated[
        dict[Annotated[str, StringConstraints(max_length=255)], ImportancesAdditionalProperty],
        Field(max_length=20),
    ] = {}
    parts: Annotated[
        list[WordingIn],
        Field(description="Of split.", max_length=4, validate_default=True),
    ] = []
    revision: Annotated[
        int,
        Field(description="Of undo: the one that is taken back.", ge=0, lt=2147483648),
    ] = 0
    document: Annotated[str, Field(max_length=255)] = ""
    documents: Annotated[
        list[Document],
        Field(
            description="Of join: passages that follow each other.",
            max_length=100,
            validate_default=True,
        ),
    ] = []
    reason: Annotated[str, Field(max_length=5000)] = ""
    title: Annotated[str, Field(max_length=1000)] = ""
    passage: Annotated[str, Field(max_length=1000000)] = ""
    url: Annotated[str, Field(description="Of paste: where the passage is from.", max_length=2000)] = ""


class PageReviewOut(ApiModel):
    items: list[ReviewOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class ReviewTaskOut(ApiModel):
    """A review with the step that comes next: weights, aspects, documents, or (empty) none for you."""

    number: int
    query: str
    reviewer: str
    state: Annotated[str, Field(description="open, submitted or released.")]
    accepted: bool | None
    created_at: AwareDatetime
    submitted_at: AwareDatetime | None
    query_number: int
    mine: bool
    step: str
    base: int
    aspects: list[ReviewedAspectOut]
    documents: list[ReviewedDocumentOut]
    said: Annotated[dict[str, Any], Field(description="What was said in each step so far.")]


class CriteriaIn(ApiModel):
    """Verdicts on the aspects by criterion, and new importances where the weights are changed."""

    model_config = ConfigDict(
        extra="forbid",
    )
    base: Annotated[int, Field(description="The revision that you read.", ge=0, lt=2147483648)]
    criteria: dict[Literal["granularity", "balance", "coverage", "weights"], VerdictIn]
    importances: Annotated[
        dict[Annotated[str, StringConstraints(max_length=255)], ImportancesAdditionalProperty],
        Field(max_length=20),
    ] = {}


class DecisionsIn(ApiModel):
    """Verdicts on all decisions about documents."""

    model_config = ConfigDict(
        extra="forbid",
    )
    base: Annotated[int, Field(description="The revision that you read.", ge=0, lt=2147483648)]
    decisions: Annotated[list[DocumentVerdictIn], Field(max_length=2000)]


class PagePairedStudyOut(ApiModel):
    items: list[PairedStudyOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class PagePriceOut(ApiModel):
    items: list[PriceOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class RouteOut(ApiModel):
    """Accuracy of the labels that a campaign gave by one route. `most`: pairs that can be drawn at most."""

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
    """Format and options of an export."""

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
    aggregate: Annotated[
        Literal["majority", "dawid-skene", "resolved"] | None,
        Field(description="Labels made of all grades, with Dawid-Skene's posterior; null: the labels as they are."),
    ] = None
    assessors: Annotated[
        list[str],
        Field(
            description="With aggregate: whose grades, by name, or people and judges; none: all.",
            max_length=1000,
        ),
    ] = []
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


class PageWebSearchOut(ApiModel):
    items: list[WebSearchOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class QualityOut(ApiModel):
    """Quality of the labels: whether they can go out, and why not; `failure`: why it could not be measured."""

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


class PageTraceOut(ApiModel):
    items: list[TraceOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class PageReferenceStudyOut(ApiModel):
    items: list[ReferenceStudyOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class PageSynthesisOut(ApiModel):
    items: list[SynthesisOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class PageSyntheticQueryOut(ApiModel):
    items: list[SyntheticQueryOut]
    next: Annotated[
        int | None,
        Field(description="Ask for the next page with `after` set to this; null: it was the last."),
    ] = None


class CurveOut(ApiModel):
    """A learning curve; `last` and `next` say what the last labels bought, and what more would."""

    number: int
    recipe: str
    order: Annotated[str, Field(description="time or random.")]
    measure: str
    made_by: str
    created_at: AwareDatetime
    points: list[CurvePointOut]
    last: str
    next: str


class PageCurveOut(ApiModel):
    items: list[CurveOut]
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

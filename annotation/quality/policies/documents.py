"""The types of the comparison of policies as JSON (report.evaluate_policies), which is stored and printed."""

from typing import NotRequired, TypedDict


class StatisticDocument(TypedDict):
    """A value with its 95% interval over `n` pairs; without a value, the reason."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    reason: str | None


class ClasswiseDocument(TypedDict):
    """The accuracy of labels by class, and over both classes."""

    recall_relevant: StatisticDocument
    recall_not_relevant: StatisticDocument
    balanced_accuracy: StatisticDocument


class LatencyDocument(TypedDict):
    """The latency of a pair in milliseconds, over a sample of pairs: two medians and two means."""

    summed: float  # Median if the calls run one after another.
    wall: float  # Median if calls run in parallel where none waits for another.
    mean_summed: float
    mean_wall: float


class PolicyDocument(TypedDict):
    """A policy and its figures, which only an available policy has. Costs are USD, or None if they are unknown."""

    name: str  # The policy with its parameters, such as "debate, 2 rounds".
    policy: str  # The policy alone, such as "debate".
    current: NotRequired[bool]  # Whether it is the campaign's own policy.
    available: bool
    reason: str | None  # Why it is not available.
    pairs: int
    escalated: int  # Pairs that go to people.
    escalation: float  # The share of these pairs.
    failed: int  # Pairs with neither a label nor a task for people.
    collapsed: NotRequired[int]  # Pairs in whose debate an agent changed sides without a new quote.
    own: ClasswiseDocument  # Accuracy of the labels that the policy decides without people.
    after: dict[str, ClasswiseDocument]  # Accuracy over all pairs, by who resolves the escalated ones.
    calls: int
    machine: float | None  # Cost of the judges.
    judgments: int  # Judgments that people would give.
    latency_ms: LatencyDocument | None  # None if no pair has calls.


class CellDocument(TypedDict):
    """A cell of the cross table, with the fields of crossing.CrossingCell and two of its properties."""

    row: str
    column: str
    pairs: int
    label: int | None
    escalated: bool
    known: int
    right: int
    key: str
    error: StatisticDocument


class PeopleDocument(TypedDict):
    """The fields of crossing.SimulatedPeople."""

    overlap: int
    seconds: float | None
    hourly_rate: float | None


class ComparisonDocument(TypedDict):
    """The comparison of all policies on the stored answers of one campaign."""

    collection: str
    campaign: int  # Number of the campaign.
    reference: str  # What labels are compared with: "gold" for reference grades, "people", or "none".
    population: str  # Sentence about the pairs that the figures are of, without a full stop.
    people: PeopleDocument
    policies: list[PolicyDocument]
    debate_by_ensemble: list[CellDocument]

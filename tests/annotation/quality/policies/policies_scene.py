"""Ten pairs with scripted answers and reference grades, from which every policy's figures can be worked out by hand."""

from dataclasses import dataclass

from corpus.models import Collection, Pair
from judges.models import Attempt, Campaign, JudgeVersion, Work
from tests.evidence import build_attempt, make_assessor, make_campaign, make_judge, make_judgment, make_prompt
from tests.factories import make_collection, make_pair

TURN, VOTE = 0.002, 0.001
"""USD of a call."""


@dataclass(frozen=True)
class Scripted:
    """`debate`: (for, against) by round; `votes`: one letter a judge, y, n or r for refused; `gold`: 1 or 0."""

    debate: tuple[tuple[int, int], ...]
    votes: str
    gold: int


SCRIPT = [
    Scripted(((1, 1),), "yyyyy", 1),
    Scripted(((1, 1),), "yyyyn", 1),
    Scripted(((1, 1),), "yyynn", 0),
    Scripted(((0, 0),), "nnnnn", 0),
    Scripted(((0, 0),), "nnnny", 0),
    Scripted(((1, 0), (0, 0)), "yyynn", 0),
    Scripted(((1, 0), (1, 0), (1, 1)), "yyyyy", 1),
    Scripted(((1, 0), (0, 1), (1, 0)), "ynnnn", 1),
    Scripted(((0, 0),), "nynyy", 1),
    Scripted(((0, 0),), "rnnny", 0),
]
OUTCOMES = ["1", "1", "1", "0", "0", "conflict", "1", "disagreement", "conflict", "0"]
"""Of the campaign's own policy: debate + ensemble, 3 rounds, 3 of 5."""


def scripted_campaign(*, rounds: int = 3, **values: object) -> Campaign:
    """The ten pairs, judged; the second pair's third vote needed two tries."""
    books = make_collection("books", overlap=2, hourly_rate=36.0)
    judges = [make_judge(f"judge-{number}") for number in range(1, 6)]
    campaign = make_campaign(books, judges, policy="debate+ensemble", rounds=rounds, **values)
    reference = make_assessor(books, "reference", "reference")
    for number, one in enumerate(SCRIPT):
        pair = make_pair(books)
        answers(campaign, pair, judges, one, retried=number == 1)
        make_judgment(pair, reference, one.gold)
        end(campaign, pair, OUTCOMES[number])
    return campaign


def answers(
    campaign: Campaign, pair: Pair, judges: list[JudgeVersion], one: Scripted, *, retried: bool = False, window: int = 0
) -> None:
    """The turns and votes of a pair, or of a window of its document."""
    prompt, rows = make_prompt(), []
    for round, verdicts in enumerate(one.debate[: campaign.rounds], 1):
        for side, verdict, judge, ms in zip(("for", "against"), verdicts, judges, (100, 150), strict=False):
            values = {"role": side, "round": round, "cost": TURN, "milliseconds": ms, "window": window}
            rows.append(build_attempt(campaign, pair, judge, verdict, prompt, **values))
    for place, letter in enumerate(one.votes):
        values = {"place": place, "cost": VOTE, "milliseconds": 10 * (place + 1), "window": window}
        if retried and place == 2:
            failed = {**values, "outcome": "unparsed", "counts": False}
            rows.append(build_attempt(campaign, pair, judges[2], None, prompt, **failed))
        verdict = {"y": 1, "n": 0, "r": None}[letter]
        number = 2 if retried and place == 2 else 1
        rows.append(build_attempt(campaign, pair, judges[place], verdict, prompt, number=number, **values))
    Attempt.objects.bulk_create(rows)


def end(campaign: Campaign, pair: Pair, outcome: str) -> Work:
    """The pair's work, ended as labelled (0, 1) or escalated (the reason)."""
    labelled = outcome in ("0", "1")
    return Work.objects.create(
        campaign=campaign,
        pair=pair,
        state="labelled" if labelled else "escalated",
        label=int(outcome) if labelled else None,
        reason="" if labelled else outcome,
        claims=1,
    )


def pairs_of(collection: Collection) -> list[Pair]:
    """In the order of the script."""
    return list(Pair.objects.filter(collection=collection).order_by("pk"))

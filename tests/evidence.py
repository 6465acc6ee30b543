"""Rows that a judged collection has: judges, campaigns, votes, turns, judgments. For tests of reports and exports."""

from datetime import UTC, datetime
from itertools import count

from corpus.models import Assessor, Collection, Judgment, Label, Pair
from judges.models import Attempt, Audit, Campaign, JudgeVersion, PromptVersion
from tests.factories import make_item

_numbers = count(1)
THEN = datetime(2026, 11, 1, 9, 30, tzinfo=UTC)


def make_judge(name: str, version: int = 1, **values: object) -> JudgeVersion:
    """A judge of an OpenAI-compatible server; the highest version is current."""
    JudgeVersion.objects.filter(name=name).update(is_current=False)
    return JudgeVersion.objects.create(
        name=name, version=version, provider="openai-compatible", **{"model": f"m-{name}", **values}
    )


def make_campaign(collection: Collection, judges: list[JudgeVersion], **values: object) -> Campaign:
    """A finished campaign of the policy `ensemble` unless told otherwise."""
    values = {"policy": "ensemble", "panel": "main", "state": "finished", **values}
    ids = [judge.pk for judge in judges]
    return Campaign.objects.create(collection=collection, voters=ids, debaters=ids[:2], **values)


def make_prompt() -> PromptVersion:
    """The prompt of all votes and turns here, made once."""
    return PromptVersion.objects.get_or_create(name="vote-plain", sha256="0" * 64, defaults={"text": ""})[0]


def build_attempt(
    campaign: Campaign, pair: Pair, judge: JudgeVersion, verdict: int | None, prompt: PromptVersion, **values: object
) -> Attempt:
    """A counted vote, labelled unless the verdict is None (then refused), that is not stored yet."""
    defaults = {
        "role": "vote",
        "outcome": "labelled" if verdict is not None else "refused",
        "counts": True,
        "cache_key": f"{next(_numbers):064}",
        "started_at": THEN,
        "milliseconds": 120,
    }
    return Attempt(campaign=campaign, pair=pair, judge=judge, prompt=prompt, verdict=verdict, **{**defaults, **values})


def make_attempt(campaign: Campaign, pair: Pair, judge: JudgeVersion, verdict: int | None, **values: object) -> Attempt:
    """A counted vote, labelled unless the verdict is None (then refused)."""
    attempt = build_attempt(campaign, pair, judge, verdict, make_prompt(), **values)
    attempt.save(force_insert=True)
    return attempt


def make_votes(campaign: Campaign, pair: Pair, judges: list[JudgeVersion], verdicts: list[int | None]) -> None:
    """One vote of each judge, in the order of the panel."""
    prompt = make_prompt()
    Attempt.objects.bulk_create(
        build_attempt(campaign, pair, judge, verdict, prompt, place=place)
        for place, (judge, verdict) in enumerate(zip(judges, verdicts, strict=True))
    )


def make_turn(campaign: Campaign, pair: Pair, judge: JudgeVersion, side: str, round: int, verdict: int) -> Attempt:
    """A turn of a debate that quotes two sentences: one that is in the document and one that is not."""
    return make_attempt(
        campaign,
        pair,
        judge,
        verdict,
        role=side,
        round=round,
        reason=f"Round {round}, {side}.",
        quotes=[{"text": "A mapping object", "start": 0, "end": 16}, {"text": "Elsewhere", "start": None, "end": None}],
    )


def make_assessor(collection: Collection, name: str, kind: str = "person") -> Assessor:
    return Assessor.objects.get_or_create(collection=collection, kind=kind, name=name)[0]


def make_judgment(pair: Pair, assessor: Assessor, grade: int | None, **values: object) -> Judgment:
    """A final judgment unless told otherwise; a `supersedes` with grade None withdraws."""
    values.setdefault("step", "final" if assessor.kind in ("person", "policy") else "import")
    return Judgment.objects.create(pair=pair, assessor=assessor, grade=grade, **values)


def make_label(pair: Pair, grade: int, origin: str = "people") -> Label:
    return Label.objects.create(pair=pair, grade=grade, origin=origin)


def make_audit(campaign: Campaign, pair: Pair, people: list[Assessor], grade: int, stratum: str = "r1.m5.y") -> None:
    """A pair with the label 1, drawn for certain, on which these people say so."""
    item = make_item(pair, "audit", campaign=campaign.pk, state="settled", overlap=2, taken=2, done=2)
    Audit.objects.create(campaign=campaign, pair=pair, item=item, stratum=stratum, probability=1.0, label=1)
    for person in people:
        make_judgment(pair, person, grade, item=item, milliseconds=20_000)

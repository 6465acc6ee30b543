"""Measuring existing texts by a judge: a trained model's answers, or the targets of a collection (Prism 5.3)."""

from collections.abc import Callable, Iterable, Sequence

from django.db.models import Q

from corpus.evidence import measures
from corpus.evidence.targets import newest_targets
from corpus.models import Collection, Label, Pair, Target
from judges.campaigns.evidence_campaigns import writer_configuration
from judges.costs.judge_records import judge_of
from judges.domain import evidence_quality as quality
from judges.domain.verdicts import NoVerdict
from judges.engine import targets
from judges.engine.calls import Caller
from judges.engine.leases import Claimed
from judges.evidence.outputs import JudgedOutput, OutputRow
from judges.models import JudgeVersion
from judges.prompts.answers import evidence as writings
from judges.records import Judge
from judges.workers.inline_runner import InlineResult, ask_inline


def rows_of_targets(collection: Collection) -> list[OutputRow]:
    """Return the latest good target of each pair, as an answer with verdict yes."""
    targets_by_pair = {target.pair_id: target for target in newest_targets(collection)}
    pairs = Pair.objects.filter(pk__in=targets_by_pair).select_related("query", "document").order_by("pk")
    texts = {
        key: measures.EvidenceTarget(target.contribution, target.evidence).text
        for key, target in targets_by_pair.items()
    }
    return [_output_row(pair, 1, f"yes\n{texts[pair.pk]}", verdict_given=True) for pair in pairs]


def rows_of_outputs(
    collection: Collection, outputs: Sequence[tuple[str, str, int | None, str]]
) -> list[OutputRow | None]:
    """Return (query id, document id, label or None, output) as rows; None if the collection has no such pair."""
    ids = Q(query__external_id__in={query for query, *_ in outputs}, query__is_current=True)
    ids &= Q(document__external_id__in={document for _, document, *_ in outputs}, document__is_current=True)
    pairs = Pair.objects.filter(ids, collection=collection).select_related("query", "document")
    pairs_by_ids = {(pair.query.external_id, pair.document.external_id): pair for pair in pairs}
    labels = dict(Label.objects.filter(pair__in=pairs, aspect=None).values_list("pair", "grade"))
    rows: list[OutputRow | None] = []
    for query, document, label, output in outputs:
        pair = pairs_by_ids.get((query, document))
        if pair is not None and label is None and pair.pk in labels:
            label = int(labels[pair.pk] >= collection.relevant_from)
        rows.append(_output_row(pair, label, output) if pair else None)
    return rows


def _output_row(pair: Pair, label: int | None, output: str, *, verdict_given: bool = False) -> OutputRow:
    document = f"{pair.document.title}\n{pair.document.text}" if pair.document.title else pair.document.text
    return OutputRow(pair.pk, pair.query.text, document, label, output, verdict_given)


def score_meaning(collection: Collection, judge: Judge) -> str:
    """Return fidelity to teacher if the judge's model wrote targets of this collection, else quality."""
    writers = Target.objects.filter(pair__collection=collection, kind=Target.Kind.JUDGE).values_list("writer")
    versions = map(judge_of, JudgeVersion.objects.filter(name__in=writers.distinct()))
    is_teacher = any(quality.have_same_model(judge, writer) for writer in versions)
    return quality.TEACHER_FIDELITY if is_teacher else quality.QUALITY


def measure_rows(
    collection: Collection,
    name: str,
    rows: Iterable[OutputRow],
    *,
    lister: str = "",
    budget: float | None = None,
    done: Callable[[int], None] = lambda count: None,
) -> InlineResult[JudgedOutput]:
    """Ask the judge for entities and scores of each row that has a target. Raises BadInput for an unknown judge.

    `lister`: name of another judge that lists the entities (Prism uses two models).
    """
    targets_by_pair = {row.pair: row.target for row in rows if row.target is not None}

    async def ask(caller: Caller, claimed: Claimed) -> JudgedOutput | None:
        target = targets_by_pair[claimed.pair]
        assert target is not None
        try:
            judge, *extra_judges = caller.plan.voters
            entities_turn, scores_turn = await targets.measure_target(caller, claimed, judge, target, 1, *extra_judges)
        except targets.FailedTarget:
            return None
        entities = () if isinstance(entities_turn, NoVerdict) else writings.entities_of(entities_turn)
        if isinstance(scores_turn, NoVerdict):
            return entities, None
        rules = measures.measure_target(
            target, query=claimed.inputs.query, document=claimed.inputs.titled_document, model_entities=entities
        )
        return entities, quality.cap_scores(writings.scores_of(scores_turn), rules)

    configuration = writer_configuration(name, "" if lister == name else lister)
    return ask_inline(collection, configuration, "measuring", list(targets_by_pair), ask, budget=budget, done=done)

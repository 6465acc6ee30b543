"""Services of the gate: tell a verdict, have the pairs that decide judged, and tell it again."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from django.utils.translation import override

from actions.services import Actor, action
from benchmark.bounds.differences import BoundedMeasure, Differences, compare_rankings, read_measures
from benchmark.gate.options import GateOptions
from benchmark.gate.summary import build_result
from benchmark.gate.verdict import GateVerdict, tell_verdict
from benchmark.hole_filling import planning
from benchmark.hole_filling import services as hole_filling
from benchmark.hole_filling.funnel import Funnel
from benchmark.hole_filling.options import DEEPEST, FillingOptions
from benchmark.hole_filling.stages import advance_filling, filled_rows
from benchmark.models import Filling, Gate, Qrels, Run
from benchmark.qrels import versions
from benchmark.report.inputs import count_outdated, load_judgments
from benchmark.report.reports import SEED
from benchmark.report.weighting import COUNTS, counts_of, no_counts
from benchmark.runs import rankings
from benchmark.runs.builders import ready_run
from benchmark.significance.query_weights import weights_by_count
from corpus.errors import BadInput, BadOption
from corpus.models import Collection, Query
from judges.campaigns.estimates import Estimate


def _note(options: GateOptions, gate: Gate) -> dict[str, Any]:
    return {**options.noted(), "gate": gate.number, "verdict": gate.verdict}


@action("gate.decided", noted=_note)
def decide_gate(actor: Actor, collection: Collection, options: GateOptions) -> Gate:
    """Tell whether a new run may replace an old one: pass, fail or cannot tell. Every verdict is kept.

    1. Find the runs, the measures and the version of the qrels.
    2. Compare the rankings by the queries of the qrels, with bounds where documents are unjudged.
    3. Store the verdict.
    4. With `judge`, start judging the pairs that decide, if no verdict is possible without them.

    Raises BadOption and BadInput.
    """
    run = ready_run(collection, options.run, "run")
    against = ready_run(collection, options.against, "against")
    measures = read_measures(options.measures, relevant_from=collection.relevant_from, top=collection.grades)
    for ranked in (run, against):
        # As in reports: a measure at a larger k would count the documents as missing that the run cannot have.
        for name, measure in measures.items():
            if measure.k and ranked.depth and ranked.depth < measure.k:
                message = _("%(measure)s needs more documents than run %(run)s returns for a query (%(depth)s).")
                raise BadOption("measures", message % {"measure": name, "run": ranked.name, "depth": ranked.depth})
    version = _find_version(collection, options.qrels, actor.name)
    verdict, result = _measure(collection, options, (run, against), measures, version)
    gate = Gate.objects.create(
        collection=collection,
        run=run,
        against=against,
        options=options.model_dump(mode="json", exclude={"run", "against", "judge", "budget"}),
        verdict=verdict.verdict,
        result=result,
        made_by=actor.name,
    )
    gate.refresh_from_db()  # The number is set by the database.
    if options.judge and verdict.deciding:
        filling_options = filling_options_of(gate, budget=options.budget)
        _attach(gate, hole_filling.start_filling(actor, collection, filling_options, pairs=verdict.deciding))
    return gate


@action("gate.judging", noted=lambda _options, gate: {"gate": gate.number, "filling": gate.filling.number})
def judge_deciding(actor: Actor, gate: Gate, options: FillingOptions) -> Gate:
    """Have the pairs that decide a verdict judged, by a hole filling over them. Raises BadOption and BadInput."""
    pairs = deciding_pairs(gate)
    if not pairs:
        raise BadInput(_("No unjudged pair decides this verdict."))
    return _attach(gate, hole_filling.start_filling(actor, gate.collection, options, pairs=pairs))


def estimate_deciding(gate: Gate, options: FillingOptions) -> Estimate | None:
    """Estimate the calls and the cost of judging the pairs that decide; None if nothing is left to judge."""
    runs = planning.named_runs(gate.collection, options)
    version = versions.version_numbered(gate.collection, int(gate.result["qrels"]))
    return planning.estimate_cost(gate.collection, runs, version, options, pairs=deciding_pairs(gate))


def decide_again(actor: Actor, gate: Gate) -> Gate:
    """Tell a verdict again by what has been judged since: a new row with the same options. Raises BadInput."""
    options: dict[str, Any] = {**gate.options, "run": gate.run.name, "against": gate.against.name}
    if gate.filling is not None and (version := version_so_far(gate.filling, actor.name)) is not None:
        options["qrels"] = version.number
    return decide_gate(actor, gate.collection, GateOptions.read(options))


def version_so_far(filling: Filling, by: str) -> Qrels | None:
    """Return a version with what is settled of a filling, which goes on; None where nothing is settled."""
    filling = advance_filling(filling)
    if filling.after is not None:
        return filling.after
    if not Funnel.of(filling).settled:
        return None
    return versions.store_version(
        filling.collection, Qrels.Kind.FILLED, filled_rows(filling), parent=filling.before, by=by
    )


def filling_options_of(gate: Gate, **judging: Any) -> FillingOptions:
    """Return the options of the hole filling that judges what decides a verdict."""
    return FillingOptions.read({**ranking_options(gate), **judging})


def ranking_options(gate: Gate) -> dict[str, Any]:
    """Return the options of a hole filling that the gate itself sets."""
    # The depth is that of the record: its pairs are those that decide.
    depth = min(max(int(gate.result["depth"]), 1), DEEPEST)
    return {"runs": [gate.run.name, gate.against.name], "depth": depth, "qrels": gate.result["qrels"]}


def deciding_pairs(gate: Gate) -> list[tuple[int, int]]:
    """Return the pairs (query, document) that decide a verdict, computed anew on its version of the qrels."""
    if not gate.result["deciding_pairs"]:
        return []
    collection, options = gate.collection, gate.options
    measures = read_measures(options["measures"], relevant_from=collection.relevant_from, top=collection.grades)
    version = versions.version_numbered(collection, int(gate.result["qrels"]))
    options = GateOptions.read({**options, "run": gate.run.name, "against": gate.against.name})
    verdict, _result = _measure(collection, options, (gate.run, gate.against), measures, version)
    return verdict.deciding


def _attach(gate: Gate, filling: Filling) -> Gate:
    gate.filling = filling
    gate.save(update_fields=["filling"])
    return gate


def _find_version(collection: Collection, number: int | None, by: str) -> Qrels:
    """Return the version to measure by: the numbered one, or the newest."""
    if number is not None:
        try:
            return versions.version_numbered(collection, number)
        except BadInput as error:
            raise BadOption("qrels", str(error)) from None
    imported = Qrels.objects.filter(collection=collection, kind__in=(Qrels.Kind.ORIGINAL, Qrels.Kind.IMPORTED))
    latest = versions.latest_version(collection)
    if latest is None:
        return versions.first_version(collection, by)
    # Where all grades are labels made here, the labels of now count, and not those of the last version.
    return latest if imported.exists() else versions.labels_version(collection, by)


def _measure(
    collection: Collection,
    options: GateOptions,
    runs: tuple[Run, Run],
    measures: Mapping[str, BoundedMeasure],
    version: Qrels,
) -> tuple[GateVerdict, dict[str, Any]]:
    """Compare the runs by the queries of a version; return the verdict, and the document of it without a number."""
    judged = load_judgments(version)
    depths = [measure.k for measure in measures.values()]
    deepest = None if None in depths else max(filter(None, depths))
    loaded = rankings.load([run.pk for run in runs], deepest)
    new, old = (loaded[run.pk] for run in runs)
    # Before anything is judged, the gate says how many pairs decide, as bounds of an unjudged pool do in a report.
    queries = sorted(judged or new.keys() | old.keys())
    if not queries:
        raise BadInput(_("Neither run has a ranking: choose others."))
    differences = {
        name: compare_rankings(measure, new, old, judged, queries, collection.grades)
        for name, measure in measures.items()
    }
    counts = counts_of(collection) if options.weights == COUNTS else None
    if counts == {}:
        raise BadOption("weights", no_counts(collection))
    verdict = tell_verdict(
        differences,
        max_drop=options.max_drop,
        confidence=options.confidence,
        weights=None if counts is None else weights_by_count([counts.get(query) for query in queries]),
        seed=SEED,
    )
    longest = max((len(documents) for ranking in (new, old) for documents in ranking.values()), default=0)
    outdated = count_outdated(version, loaded, deepest)
    # English, as every document of a command; pages have the reason in the reader's words.
    with override("en"):
        result = build_result(verdict)
    result |= {
        "run": runs[0].name,
        "against": runs[1].name,
        "queries": len(queries),
        "missing": {"run": len(set(queries) - set(new)), "against": len(set(queries) - set(old))},
        "outdated": {"run": outdated.get(runs[0].pk, 0), "against": outdated.get(runs[1].pk, 0)},
        "unmeasured": len((set(new) | set(old)) - set(queries)),
        "qrels": version.number,
        "depth": max(depth or longest for depth in depths),
        "confidence": options.confidence,
        "weights": options.weights,
        "without_count": 0 if counts is None else sum(query not in counts for query in queries),
        "losses": _largest_losses(verdict, differences, queries),
    }
    return verdict, result


def _largest_losses(verdict: GateVerdict, differences: Mapping[str, Differences], queries: list[int]) -> dict[str, Any]:
    """Return the queries that lost most by the measure that fails, or by the first one."""
    measure = next(
        (name for name, outcome in verdict.measures.items() if outcome.verdict == "fail"), next(iter(verdict.measures))
    )
    values = differences[measure]
    change = values.new - values.old
    positions = [position for position in np.argsort(change, kind="stable")[:10].tolist() if change[position] < 0]
    names = dict(Query.objects.filter(pk__in=[queries[at] for at in positions]).values_list("pk", "external_id"))
    rows = [
        {
            "query": names.get(queries[at], ""),
            "old": round(float(values.old[at]), 9),
            "new": round(float(values.new[at]), 9),
            "change": round(float(change[at]), 9),
        }
        for at in positions
    ]
    return {"measure": measure, "queries": rows}

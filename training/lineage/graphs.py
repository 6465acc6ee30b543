"""The two graphs: from a pair's judgments to the reports, and from a model to its labels and its runs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from benchmark.models import Qrels, QrelsRow, Report, Run
from charts import Chart, LayerNode, draw_layers
from corpus.labels import grade_label, name_grade
from corpus.models import Collection, ExportRecord, Label, Pair
from judges.models import Attempt, Campaign, Work
from training.lineage import model_sources
from training.lineage.held_labels import HeldLabel, count_campaigns, list_holders
from training.lineage.model_sources import ModelSource
from training.models import Job, Model

MOST = 8  # Names of a column in the picture and its table; the pages' lists and the JSON file have all.
PEOPLE = ("people", "adjudicator")  # Origins of labels that people gave.
Version = tuple[int, str]  # Of a label: grade and origin.


@dataclass(frozen=True, slots=True)
class Lineage:
    """A lineage graph: nodes in columns, each with the keys of what it was made of."""

    columns: tuple[str, ...]
    nodes: tuple[LayerNode, ...]

    def draw(self, title: str, source: str) -> Chart:
        """Draw the graph, with the first names of long columns."""
        shown = [one for place in range(len(self.columns)) for one in self._shorten(place)]
        # Counted over all nodes, not the shown ones: a reader who cannot see the picture still learns the true totals.
        counts = [
            f"{name}: {sum(one.column == place for one in self.nodes)}" for place, name in enumerate(self.columns)
        ]
        summary = "; ".join(counts) + "."
        return draw_layers("lineage", title, self.columns, shown, summary=summary, source=source)

    def _shorten(self, place: int) -> list[LayerNode]:
        column = [one for one in self.nodes if one.column == place]
        if len(column) <= MOST:
            return column
        # One place of the column is spent on the line that says how many more there are.
        rest = len(column) - MOST + 1
        more = ngettext("%(count)s more", "%(count)s more", rest) % {"count": f"{rest:,}"}
        return [*column[: MOST - 1], LayerNode(f"more-{place}", more, place, tone="quiet")]

    def document(self) -> list[dict[str, object]]:
        """Return the graph as a document: every node, and the names of what it was made of."""
        labels = {one.key: one.label for one in self.nodes}
        return [
            {
                "step": self.columns[one.column],
                "name": one.label,
                "details": one.note,
                "address": one.address,
                "changed": one.tone == "warn",
                # The tone is how the picture says that a label is not what it was; a program reads it as a field.
                "made_of": [labels[key] for key in one.sources if key in labels],
            }
            for one in self.nodes
        ]


def trace_label(pair: Pair, administered: frozenset[int]) -> dict[str, Any]:
    """Follow a pair from its judgments to reports; `administered`: collections whose models the reader may see.

    `changed`: by model, labels that it was trained on and that changed since; `elsewhere`: models in other collections.
    """
    label = Label.objects.filter(pair=pair, aspect=None).first()
    held = list_holders(pair)
    # Only the training split teaches: a dev label that changed does not change what the model learned.
    taught = [one.record.sha256 for one in held if one.split == "train"]
    every = model_sources.list_trained(taught)
    models = [one for one in every if one.collection_id in administered]
    qrels = _list_qrels(pair)
    jobs, runs = model_sources.list_jobs(models), model_sources.list_runs(models)
    # A run of a shared model may stand in a collection whose figures the reader may not see.
    runs = [one for one in runs if one.collection_id in administered]
    reports = model_sources.list_reports(runs, [one.pk for one, _version in qrels])
    columns = (_("Judgments"), _("Label"), _("Exports and qrels"), _("Models"), _("Runs and jobs"), _("Reports"))
    now = (label.grade, label.origin) if label else None
    # An export of judgments holds no grade of its own, so no version of the label stands for it.
    held_versions = [(one.grade, one.origin) for one in held if one.grade is not None]
    # A dict keeps the order and drops repeats: today's version first, whatever held it.
    versions = dict.fromkeys([*([now] if now else []), *held_versions, *(version for _qrels, version in qrels)])
    nodes = [*_judgment_nodes(pair), *_campaign_nodes(pair)]
    nodes += _version_nodes(versions, now, nodes, pair.collection.grades)
    nodes += [*_holder_nodes(held), *_qrels_nodes(pair.collection, qrels)]
    by_hash: dict[str, list[str]] = {}
    for one in held:
        by_hash.setdefault(one.record.sha256, []).append(f"export-{one.record.export}")
    nodes += [_model_node(one, by_hash.get(model_sources.set_hash(one), []), models) for one in models]
    nodes += [*_job_nodes(jobs), *_run_nodes(runs, models), *_report_nodes(reports)]
    changed = model_sources.count_changed(models)
    return {
        "label": label,
        "held": held,
        "models": models,
        "changed": changed,
        "graph": Lineage(columns, tuple(nodes)),
        "elsewhere": len(every) - len(models),
    }


def trace_model(model: Model, sources: Sequence[ModelSource]) -> Lineage:
    """Show what a model was made of, and what was made with it. `sources`: as trace_sources returns them."""
    columns = (_("Campaigns"), _("Labels"), _("Exports"), _("Models"), _("Runs and jobs"), _("Reports"))
    models = [one.model for one in sources]
    nodes: list[LayerNode] = []
    for one in sources:
        nodes += _source_nodes(one, {node.key for node in nodes})
        export = [f"export-{one.export.export}"] if one.export else []
        nodes.append(_model_node(one.model, export, models))
    runs = model_sources.list_runs([model])
    nodes += [*_job_nodes(model_sources.list_jobs([model])), *_run_nodes(runs, [model])]
    nodes += _report_nodes(model_sources.list_reports(runs, []))
    return Lineage(columns, tuple(sorted(nodes, key=lambda node: node.column)))


def _judgment_nodes(pair: Pair) -> list[LayerNode]:
    """Return what people and imports said, replaced answers too: earlier labels were made of them."""
    # The reference and the policies' own rows are left out: the policies are shown as campaigns, with their answers.
    rows = pair.judgments.filter(aspect=None, grade__isnull=False).exclude(assessor__kind__in=("reference", "policy"))
    highest = pair.collection.grades
    return [
        LayerNode(
            f"judgment-{one.pk}",
            one.assessor.name,
            0,
            f"{_say_grade(one.grade or 0, highest)}, {one.get_step_display()}",
        )
        for one in rows.select_related("assessor").order_by("pk")
    ]


def _say_grade(grade: int, highest: int) -> str:
    """Name a grade in few letters: "2 relevant", or "grade 4" where the scale has no words for it."""
    return name_grade(grade, highest) if grade_label(grade, highest) else _("grade %(grade)s") % {"grade": grade}


def _version_nodes(
    versions: Iterable[Version], now: Version | None, before: Sequence[LayerNode], highest: int
) -> list[LayerNode]:
    """Return each version of the label, made of what people said or of the campaigns: those `before` it.

    `highest`: the collection's highest grade.
    """
    nodes = []
    for version in versions:
        grade, origin = version
        # Which judgments made an earlier version is not stored: its origin says only whether people or judges did.
        start = "judgment-" if origin in PEOPLE else "campaign-"
        made_of = tuple(one.key for one in before if one.key.startswith(start))
        name = _say_grade(grade, highest)
        note = (_("%(origin)s, today") if version == now else _("%(origin)s, earlier")) % {"origin": origin}
        tone = "data" if version == now else "warn"
        nodes.append(LayerNode(_version_key(version), name, 1, note, tone, sources=made_of))
    return nodes


def _version_key(version: tuple[int | None, str]) -> str:
    return f"label-{version[0]}-{version[1]}"


def _campaign_nodes(pair: Pair) -> list[LayerNode]:
    nodes = []
    for work in Work.objects.filter(pair=pair).select_related("campaign__collection").order_by("campaign"):
        answers = Attempt.objects.filter(pair=pair, campaign=work.campaign, counts=True).count()
        told = ngettext("%(policy)s, %(count)s answer", "%(policy)s, %(count)s answers", answers)
        note = told % {"policy": work.campaign.policy, "count": answers}
        nodes.append(_campaign_node(work.campaign, pair.collection, note))
    return nodes


def _campaign_node(campaign: Campaign, home: Collection, note: str) -> LayerNode:
    """Return the node of a campaign; one of another collection than `home` is called by that, too."""
    address = f"{reverse('campaigns', args=[campaign.collection.name])}#campaign-{campaign.number}"
    name = _("Campaign %(campaign_id)s") % {"campaign_id": campaign.number}
    # A training set may be drawn from several collections, each with a campaign of this number.
    name += "" if campaign.collection_id == home.pk else f" · {campaign.collection.name}"
    return LayerNode(f"campaign-{campaign.pk}", name, 0, note, address=address)


def _holder_nodes(held: Sequence[HeldLabel]) -> list[LayerNode]:
    nodes = []
    for one in held:
        # An export of judgments has no split and no grade to show.
        note = _("split %(split)s") % {"split": one.split} if one.split else _("labels")
        note = _("judgments") if one.grade is None else note
        tone = "warn" if one.has_changed else "plain"
        node = _export_node(one.record, [_version_key((one.grade, one.origin))])
        nodes.append(replace(node, note=note, tone=tone))
    return nodes


def _qrels_nodes(collection: Collection, qrels: Sequence[tuple[Qrels, Version]]) -> list[LayerNode]:
    address = reverse("qrels", args=[collection.name])
    return [
        LayerNode(
            f"qrels-{one.pk}",
            _("Qrels %(number)s") % {"number": one.number},
            2,
            _say_grade(version[0], collection.grades),
            address=address,
            sources=(_version_key(version),),
        )
        for one, version in qrels
    ]


def _export_node(record: ExportRecord, sources: Iterable[str]) -> LayerNode:
    name = _("Export %(export)s, %(format)s") % {"export": record.number, "format": record.format or "?"}
    # The record may not know whose page shows the export.
    address = reverse("exports", args=[record.home]) if record.home else ""
    return LayerNode(f"export-{record.export}", name, 2, record.sha256[:12], address=address, sources=tuple(sources))


def _list_qrels(pair: Pair) -> list[tuple[Qrels, Version]]:
    """Return the versions of the qrels that hold this pair by its label, and which version of the label that is."""
    rows = QrelsRow.objects.filter(query=pair.query_id, documents__contains=[pair.document_id])
    found = []
    for row in rows.select_related("qrels").order_by("qrels"):
        at = row.documents.index(pair.document_id)
        # Grades that came with the collection have no label behind them: no version of it to point to.
        if row.origins[at] not in ("original", "imported"):
            found.append((row.qrels, (row.grades[at], row.origins[at])))
    return found


def _source_nodes(one: ModelSource, known: set[str]) -> list[LayerNode]:
    """Return the campaigns, the labels by origin and the export of one training, without those that are there."""
    # Two trainings on one export share its nodes.
    if one.export is None or f"export-{one.export.export}" in known:
        return []
    record, nodes = one.export, []
    totals: dict[str, list[int]] = {}
    for _split, origin, labels, changed in one.counts:
        total = totals.setdefault(origin, [0, 0])
        total[0], total[1] = total[0] + labels, total[1] + changed
    campaigns = count_campaigns(record.export)
    for campaign, pairs in campaigns:
        told = ngettext("%(pairs)s pair", "%(pairs)s pairs", pairs) % {"pairs": f"{pairs:,}"}
        nodes.append(_campaign_node(campaign, record.collection, told))
    keys = tuple(f"campaign-{campaign.pk}" for campaign, _pairs in campaigns)
    for origin, (labels, changed) in totals.items():
        name = ngettext("%(count)s label", "%(count)s labels", labels) % {"count": f"{labels:,}"}
        told = ngettext("%(origin)s, %(count)s changed", "%(origin)s, %(count)s changed", changed)
        note = told % {"origin": origin, "count": f"{changed:,}"} if changed else origin
        # People's labels came from no campaign.
        tone, made_of = "warn" if changed else "plain", () if origin in PEOPLE else keys
        nodes.append(LayerNode(f"labels-{record.export}-{origin}", name, 1, note, tone, sources=made_of))
    sources = [node.key for node in nodes if node.column == 1]
    return [node for node in [*nodes, _export_node(record, sources)] if node.key not in known]


def _model_node(model: Model, exports: Sequence[str], models: Sequence[Model]) -> LayerNode:
    bases = [f"model-{one.pk}" for one in models if one.folder == model.base]
    address = reverse("training_model", args=[model.collection.name, model.pk]) if model.collection else ""
    sources = (*exports, *bases)
    return LayerNode(f"model-{model.pk}", model.name, 3, model.words, "good", address, sources)


def _job_nodes(jobs: Sequence[Job]) -> list[LayerNode]:
    return [
        LayerNode(
            f"job-{one.pk}",
            _("Job %(job)s") % {"job": one.number},
            4,
            str(one.get_kind_display()),
            address=reverse("training_job", args=[one.collection.name, one.number]) if one.collection else "",
            sources=(f"model-{one.options['model']}",),
        )
        for one in jobs
    ]


def _run_nodes(runs: Sequence[Run], models: Sequence[Model]) -> list[LayerNode]:
    by_folder = {one.folder: f"model-{one.pk}" for one in models}
    nodes = []
    for one in runs:
        # A run that reranks names the run it reordered.
        model, first = by_folder.get(str(one.recipe.get("model"))), one.recipe.get("run_id")
        made_of = tuple(filter(None, (model, f"run-{first}" if first else None)))
        address = reverse("system", args=[one.collection.name, one.pk])
        nodes.append(LayerNode(f"run-{one.pk}", one.name, 4, str(one.get_kind_display()), "plain", address, made_of))
    return nodes


def _report_nodes(reports: Sequence[Report]) -> list[LayerNode]:
    nodes = []
    for one in reports:
        note = _("qrels %(before)s and %(after)s") % {"before": one.before.number, "after": one.after.number}
        sources = [f"run-{run}" for run in one.options.get("runs", [])]
        sources += [f"qrels-{one.before_id}", f"qrels-{one.after_id}"]
        address = reverse("report", args=[one.collection.name, one.number])
        name = _("Report %(report)s") % {"report": one.number}
        # A run may stand in the options twice, and a node would then draw its line twice.
        nodes.append(LayerNode(f"report-{one.pk}", name, 5, note, "plain", address, tuple(dict.fromkeys(sources))))
    return nodes

"""Objects of the acts in the audit log: in words, and with their page where it still exists."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.apps import apps
from django.urls import NoReverseMatch, reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from annotation.models import AuditEntry, Membership


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """What details name by a key: how a page calls it, where its row is, which page shows it."""

    title: Promise
    model: str  # By name: what benchmark and training keep is not imported here.
    url: str
    argument: str = ""  # Of the address beside the collection's name; empty: the page shows all of them.
    by: str = "number"
    anchor: str = ""


# The title of an act's object, and its address: "" without a page, or when it is gone.
ActObject = tuple[str, str]

# By the detail that names it; after a room and a dot: a detail that only acts of this room use so.
OBJECTS = {
    "campaign": ObjectKind(_("Campaign %(key)s"), "judges.Campaign", "campaigns", anchor="campaign-"),
    "invitation": ObjectKind(
        _("Invitation %(key)s"), "annotation.Invitation", "members", by="pk", anchor="invitation-"
    ),
    "bulk": ObjectKind(_("Bulk action %(key)s"), "annotation.BulkAct", "bulk_act", "bulk"),
    "gold": ObjectKind(_("Gold sample %(key)s"), "annotation.GoldSet", "gold_answers", "gold_set"),
    "study.study": ObjectKind(_("Study %(key)s"), "annotation.Study", "debate_effect"),
    "snapshot": ObjectKind(_("Export %(key)s"), "annotation.Snapshot", "exports"),
    "training.job": ObjectKind(_("Training job %(key)s"), "training.Job", "training_job", "job"),
    "agents.job": ObjectKind(_("Agent job %(key)s"), "benchmark.AgentJob", "agents"),
    "references.job": ObjectKind(_("Agent job %(key)s"), "benchmark.AgentJob", "reference_answers"),
    "evaluation": ObjectKind(_("Evaluation %(key)s"), "benchmark.AnswerEvaluation", "answer_evaluation", "evaluation"),
    "synthesis": ObjectKind(_("Synthesis %(key)s"), "benchmark.Synthesis", "synthesis", "synthesis"),
    "curve": ObjectKind(_("Learning curve %(key)s"), "training.LearningCurve", "learning_curve", "curve"),
    "run": ObjectKind(_("Run %(key)s"), "benchmark.Run", "system", "run", by="name"),
    "filling": ObjectKind(_("Hole filling %(key)s"), "benchmark.Filling", "hole_filling", "filling"),
    "webhook": ObjectKind(_("Webhook %(key)s"), "api.Webhook", "webhook", "webhook"),
    "report": ObjectKind(_("Report %(key)s"), "benchmark.Report", "report", "report"),
}
PAGES = {
    "settings": (_("Settings"), "settings"),
    "import": (_("Import"), "import"),
    "consent": (_("Consent text"), "quality_control"),
    "checks": (_("Attention checks"), "quality_control"),
    "qualification": (_("Qualification test"), "quality_control"),
    "price": (_("Prices"), "prices"),
    "panel": (_("Panel"), "panel"),
    "canaries": (_("Canaries"), "canaries"),
    "qrels": (_("Qrels"), "qrels"),
    "runs": (_("Runs"), "runs"),
    "aspects": (_("Aspects"), "aspects"),
}
"""Of acts without their own row, by the first part of their names: the page of the act."""


def find_objects(entries: Sequence[AuditEntry]) -> dict[int, ActObject]:
    """Find what each entry was done to, by the entry's number. One statement for each kind of thing on the page."""
    found: dict[int, ActObject] = {}
    people = [entry for entry in entries if entry.concerns_id]
    members = Membership.objects.filter(user__in={entry.concerns_id for entry in people}) if people else ()
    pages = {(member.user_id, member.collection_id): member.pk for member in members}
    for entry in people:
        page = pages.get((entry.concerns_id or 0, entry.collection_id or 0))
        url = _find_address("person", entry.collection_name, member=page) if page else ""
        found[entry.pk] = (entry.concerns.username if entry.concerns else "", url)
    named: dict[str, list[AuditEntry]] = defaultdict(list)
    for entry in entries:
        details = {*entry.details, *(f"{entry.act.partition('.')[0]}.{key}" for key in entry.details)}
        key = next((key for key in OBJECTS if key in details), None) if entry.pk not in found else None
        if key:
            named[key].append(entry)
        elif entry.pk not in found:
            title, address = PAGES.get(entry.act.partition(".")[0], ("", ""))
            is_page = title and entry.collection_id is not None
            url = _find_address(address, entry.collection_name) if is_page else ""
            found[entry.pk] = (str(title) if is_page else entry.collection_name, url)
    for key, rows in named.items():
        found |= _find_rows(key, rows)
    return found


def _find_rows(key: str, entries: Sequence[AuditEntry]) -> dict[int, ActObject]:
    kind, detail = OBJECTS[key], key.rpartition(".")[2]
    # Details are JSON of any age: a value of another type names no row, and is not asked for.
    kept: type = str if kind.by == "name" else int
    key_of_page = "number" if kind.by == "number" else "pk"
    wanted = {entry.details[detail] for entry in entries if isinstance(entry.details[detail], kept)}
    rows = apps.get_model(kind.model)._default_manager.filter(**{f"{kind.by}__in": wanted})
    known = {(one, collection): pk for pk, one, collection in rows.values_list(key_of_page, kind.by, "collection")}
    found = {}
    for entry in entries:
        value = entry.details[detail]
        pk = known.get((value, entry.collection_id)) if isinstance(value, kept) else None
        url = ""
        if pk is not None:
            more = {kind.argument: pk} if kind.argument else {}
            url = _find_address(kind.url, entry.collection_name, **more)
            url += f"#{kind.anchor}{pk}" if kind.anchor else ""
        found[entry.pk] = (str(kind.title) % {"key": value}, url)
    return found


def _find_address(url: str, collection: str, **more: object) -> str:
    """Return the address of a page; "" where the name that the log kept is none that a collection can have today."""
    try:
        return reverse(url, kwargs={"name": collection} | more)
    except NoReverseMatch:
        return ""

"""The objects of actions in the audit log: their titles, and their pages where they still exist."""

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
    """A kind of object that an entry's details name by a key: its title, its model and its page."""

    title: Promise
    model: str  # By name, because models of benchmark and training must not be imported here.
    url: str
    argument: str = ""  # The object's argument of the address; empty where the page shows all objects.
    by: str = "number"  # The field by which details name the object.
    anchor: str = ""


# The title of an action's object, and its address: "" without a page or where the object was deleted.
ActObject = tuple[str, str]

# By the name of the detail; with a prefix such as `study.` only in actions whose names begin with it.
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
    "gate": ObjectKind(_("Gate %(key)s"), "benchmark.Gate", "gate", "gate"),
    "webhook": ObjectKind(_("Webhook %(key)s"), "api.Webhook", "webhook", "webhook"),
    "share.link": ObjectKind(_("Shared link %(key)s"), "annotation.ShareLink", "share_links", by="pk", anchor="link-"),
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
"""The pages of actions without an object of their own, by the first part of the action's name."""


def find_objects(entries: Sequence[AuditEntry]) -> dict[int, ActObject]:
    """Return the object of each entry by the entry's id. One statement for each kind of object."""
    objects: dict[int, ActObject] = {}
    people = [entry for entry in entries if entry.concerns_id]
    members = Membership.objects.filter(user__in={entry.concerns_id for entry in people}) if people else ()
    pages = {(member.user_id, member.collection_id): member.pk for member in members}
    for entry in people:
        page = pages.get((entry.concerns_id or 0, entry.collection_id or 0))
        url = _find_address("member", entry.collection_name, member=page) if page else ""
        objects[entry.pk] = (entry.concerns.username if entry.concerns else "", url)
    entries_by_kind: dict[str, list[AuditEntry]] = defaultdict(list)
    for entry in entries:
        details = {*entry.details, *(f"{entry.act.partition('.')[0]}.{key}" for key in entry.details)}
        key = next((key for key in OBJECTS if key in details), None) if entry.pk not in objects else None
        if key:
            entries_by_kind[key].append(entry)
        elif entry.pk not in objects:
            title, address = PAGES.get(entry.act.partition(".")[0], ("", ""))
            is_page = title and entry.collection_id is not None
            url = _find_address(address, entry.collection_name) if is_page else ""
            objects[entry.pk] = (str(title) if is_page else entry.collection_name, url)
    for key, rows in entries_by_kind.items():
        objects |= _find_rows(key, rows)
    return objects


def _find_rows(key: str, entries: Sequence[AuditEntry]) -> dict[int, ActObject]:
    kind, detail = OBJECTS[key], key.rpartition(".")[2]
    # Old details may have values of another type, which name no row.
    value_type: type = str if kind.by == "name" else int
    key_of_page = "number" if kind.by == "number" else "pk"
    values = {entry.details[detail] for entry in entries if isinstance(entry.details[detail], value_type)}
    rows = apps.get_model(kind.model)._default_manager.filter(**{f"{kind.by}__in": values})
    pk_by_value = {
        (value, collection): pk for pk, value, collection in rows.values_list(key_of_page, kind.by, "collection")
    }
    objects = {}
    for entry in entries:
        value = entry.details[detail]
        pk = pk_by_value.get((value, entry.collection_id)) if isinstance(value, value_type) else None
        url = ""
        if pk is not None:
            arguments = {kind.argument: pk} if kind.argument else {}
            url = _find_address(kind.url, entry.collection_name, **arguments)
            url += f"#{kind.anchor}{pk}" if kind.anchor else ""
        objects[entry.pk] = (str(kind.title) % {"key": value}, url)
    return objects


def _find_address(url: str, collection: str, **arguments: object) -> str:
    """Return the address of a page; "" for a stored name that collections cannot have any more."""
    try:
        return reverse(url, kwargs={"name": collection} | arguments)
    except NoReverseMatch:
        return ""

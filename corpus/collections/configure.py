"""Changes of a collection's settings: all or none of the given ones."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from corpus.collections.task_order import change_overlap, reprioritise_tasks
from corpus.errors import BadOption
from corpus.holding import hold
from corpus.models import Assessor, Collection, Judgment


@transaction.atomic
def configure_collection(collection: Collection, settings: dict[str, Any]) -> list[str]:
    """Set these values; return the names of those that changed.

    A new rubric or instruction also makes a new version of the guidelines, so callers change it
    within `guidelines.record_redefinition`. Raises BadOption for a scale that contradicts the
    judgments.
    """
    collection = hold(Collection.objects, collection.pk, no_key=True)
    if settings.get("grades", collection.grades) != collection.grades:
        # The names of the old scale name no grades of the new one.
        settings = {"grade_names": [], **settings}
    changed = [key for key, value in settings.items() if getattr(collection, key) != value]
    # New values may not contradict the scale or the existing judgments.
    new_values = {key: settings[key] for key in changed}
    grades = new_values.get("grades", collection.grades)
    lowest = new_values.get("relevant_from", collection.relevant_from)
    if not 1 <= lowest <= grades:
        reason = _(
            "The lowest relevant grade would be %(lowest)s, and the scale goes from 0 to %(grades)s: "
            "choose 1 to %(grades)s."
        )
        option = "relevant_from" if "relevant_from" in new_values else "grades"
        raise BadOption(option, reason % {"lowest": lowest, "grades": grades})
    names = new_values.get("grade_names", collection.grade_names)
    if names and len(names) != grades + 1:
        reason = _("Name all grades from 0 to %(grades)s, one in each line, or none: there are %(lines)s names.")
        raise BadOption("grade_names", reason % {"grades": grades, "lines": len(names)})
    if not all(name.partition(":")[0].strip() for name in names):
        raise BadOption("grade_names", _("Write the name before the colon and its help after it."))
    judged = Judgment.objects.filter(assessor__collection=collection)
    if grades != collection.grades and judged.filter(grade__gt=grades).exists():
        raise BadOption("grades", _("Judgments above %(grades)s exist.") % {"grades": grades})
    # Verdicts of policies are stored as 0 or as the lowest relevant grade at that time.
    if lowest != collection.relevant_from and judged.filter(assessor__kind=Assessor.Kind.POLICY).exists():
        reason = _("Judges have labelled pairs by the present value, %(value)s, so it stays.")
        raise BadOption("relevant_from", reason % {"value": collection.relevant_from})
    for key in changed:
        setattr(collection, key, settings[key])
    if changed:
        collection.save(update_fields=changed)
    if {"order", "seed"} & set(changed):
        reprioritise_tasks(collection)
    if "overlap" in changed:
        change_overlap(collection, collection.overlap)
    return changed

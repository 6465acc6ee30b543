"""Batches of an annotator's judgments: accepted if all attention checks were passed, else returned (DREAM F.2)."""

from contextlib import suppress

from django.db import transaction
from django.db.models import F

from annotation.models import Assignment, Membership
from annotation.models.quality_control import Batch
from annotation.work.quality_control import exclusion
from annotation.work.queue.check_scheduling import CHECK
from corpus.errors import BadInput
from corpus.holding import hold
from corpus.labels import reference_grades

State = Assignment.State


@transaction.atomic
def close(membership: int) -> list[Batch]:
    """Close a member's complete batches and return them; the judgments of a batch with a missed check are excluded."""
    # Locks the membership, because two submits at the same moment would close a batch twice.
    row = hold(Membership.objects.select_related("collection", "user"), membership)
    number = Batch.objects.filter(membership=row).count()
    begin, size = row.closed_to, row.collection.batch
    batches = []
    while begin + size <= row.lent:
        in_batch = Assignment.objects.filter(membership=row, number__gte=begin, number__lt=begin + size)
        assignments = list(in_batch.select_related("item", "judgment"))
        if any(assignment.state == State.OPEN for assignment in assignments):
            break
        checks = [
            assignment
            for assignment in assignments
            if assignment.item.reason == CHECK and assignment.state == State.DONE and assignment.judgment
        ]
        gold_grades = reference_grades(row.collection, [check.item.pair_id for check in checks])
        mark = row.collection.relevant_from
        passed = [
            (check.judgment.grade >= mark) == (gold_grades[check.item.pair_id] >= mark)
            for check in checks
            if check.judgment and check.judgment.grade is not None and check.item.pair_id in gold_grades
        ]
        batch = Batch.objects.create(
            membership=row, number=number, size=size, checks=len(passed), missed=passed.count(False)
        )
        if batch.missed:
            # The judgments of the checks stay: they measure the person and label nothing.
            ordinary = [assignment.item_id for assignment in assignments if assignment.item.reason != CHECK]
            # BadInput: nothing to exclude, because all its items were skipped, flagged or undone.
            with suppress(BadInput):
                exclusion.exclude_judgments(membership=row, by=None, batch=number, items=ordinary)
                Membership.objects.filter(pk=row.pk).update(returned=F("returned") + 1)
        batches.append(batch)
        begin, number = begin + size, number + 1
    Membership.objects.filter(pk=row.pk).update(closed_to=begin)
    return batches

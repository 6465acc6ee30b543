"""Batches of an annotator's work: accepted where all checks were passed, else returned (DREAM F.2)."""

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
    """Close a member's complete batches and return them; of a returned one all but its checks is set aside."""
    # The membership's lock: two submits at once would close a batch twice.
    row = hold(Membership.objects.select_related("collection", "user"), membership)
    number = Batch.objects.filter(membership=row).count()
    begin, size = row.closed_to, row.collection.batch
    found = []
    # Only whole batches are looked at; the rest waits until it is one.
    while begin + size <= row.lent:
        held = Assignment.objects.filter(membership=row, number__gte=begin, number__lt=begin + size)
        mine = list(held.select_related("item", "judgment"))
        if any(one.state == State.OPEN for one in mine):
            break  # An item of the batch is still open.
        checks = [one for one in mine if one.item.reason == CHECK and one.state == State.DONE and one.judgment]
        known, mark = (
            reference_grades(row.collection, [one.item.pair_id for one in checks]),
            row.collection.relevant_from,
        )
        # Of each answered check whether it was passed.
        answers = [
            (one.judgment.grade >= mark) == (known[one.item.pair_id] >= mark)
            for one in checks
            if one.judgment and one.judgment.grade is not None and one.item.pair_id in known
        ]
        made = Batch.objects.create(
            membership=row, number=number, size=size, checks=len(answers), missed=answers.count(False)
        )
        if made.missed:
            # Checks themselves stay as they are: they measure the person and label nothing.
            ordinary = [one.item_id for one in mine if one.item.reason != CHECK]
            with suppress(BadInput):  # Where nothing of it stands: all was skipped, flagged or taken back.
                exclusion.exclude_judgments(membership=row, by=None, batch=number, items=ordinary)
                Membership.objects.filter(pk=row.pk).update(returned=F("returned") + 1)
        found.append(made)
        begin, number = begin + size, number + 1
    Membership.objects.filter(pk=row.pk).update(closed_to=begin)
    return found

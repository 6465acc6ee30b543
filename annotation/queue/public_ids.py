"""Public ids: what stands for an item on the pages of one annotator.

Items have ids in the order in which they were made, so the id of an attention check, or of a repeat, would stand out.
Pages show a random number of the assignment in its place, above every id of an item. An item's own id is understood
too: programs know it from exports.
"""

from annotation.models import LOWEST_PUBLIC_ID, Assignment, Membership


def item_of(membership: Membership, number: int) -> int:
    """Return the item that a number names to this annotator; 0, which is no item, for a public id of somebody else."""
    if number < LOWEST_PUBLIC_ID:
        return number
    mine = Assignment.objects.filter(membership=membership, public_id=number)
    return mine.values_list("item_id", flat=True).first() or 0

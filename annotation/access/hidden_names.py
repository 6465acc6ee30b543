"""Names of people as readers see them who may not know who judged: Person 1, Person 2 and so on."""

from django.utils.translation import gettext as _

from corpus.models import Assessor, Collection

PEOPLE = (Assessor.Kind.PERSON, Assessor.Kind.HUMAN_IMPORT)


def number_people(collection: Collection) -> dict[int, str]:
    """Return what replaces the name of each person who judges or judged, by their assessor; the same on all pages."""
    people = Assessor.objects.filter(collection=collection, kind__in=PEOPLE).order_by("pk")
    keys = people.values_list("pk", flat=True)
    return {key: _("Person %(number)s") % {"number": number} for number, key in enumerate(keys, start=1)}

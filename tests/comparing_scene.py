"""Comparisons of two documents of a query: queries with relevant documents, a drawn set, and answers."""

from actions.services import Actor
from annotation.models import Membership
from annotation.models.comparisons import Comparison, ComparisonSet, Preference
from annotation.work.comparing import services
from annotation.work.comparing.options import ComparisonAnswer, ComparisonAnswerOptions, ComparisonOptions
from corpus.models import Assessor, Collection, Label, Pair
from tests.factories import make_document, make_pair, make_query

SHELL = Actor("test")


def make_relevant(
    collection: Collection, queries: int = 1, documents: int = 3, *, text: str = "Dictionaries preserve order."
) -> list[Pair]:
    """Queries, each with documents of its own that are labelled relevant."""
    pairs = []
    for query in range(queries):
        row = make_query(collection, f"Which order does dictionary {query} have?", external_id=f"q{query}")
        for document in range(documents):
            name = f"d{query}-{document}"
            pair = make_pair(collection, row, make_document(collection, f"{text} {name}", external_id=name))
            Label.objects.create(pair=pair, grade=1, origin="people")
            pairs.append(pair)
    return pairs


def draw(collection: Collection, **options: object) -> ComparisonSet:
    return services.draw_comparisons(SHELL, collection, ComparisonOptions.read(options))


def answer(member: Membership, comparison: Comparison, side: ComparisonAnswer | str, **values: object) -> None:
    address = {"set": comparison.set.number, "comparison": comparison.seq}
    services.answer(member, ComparisonAnswerOptions.read({**address, "answer": side, **values}))


def prefer(comparison: Comparison, assessor: Assessor, outcome: str, *, swapped: bool = False) -> Preference:
    """An answer as it is stored, of a person or a judge."""
    return Preference.objects.create(comparison=comparison, assessor=assessor, outcome=outcome, swapped=swapped)

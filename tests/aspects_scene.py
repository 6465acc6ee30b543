"""A collection in the workshop of aspects: positives to review, chunks of one source, texts in three scripts."""

from annotation.models import Membership, Role
from corpus.models import Collection, Query
from tests.evidence import make_assessor, make_judgment
from tests.factories import make_collection, make_document, make_member, make_pair, make_query

ICE = [
    "Ice creeps under stress, so a sheet spreads under its own weight. The thicker it is, the faster it flows.",
    "The faster it flows, the sooner the ice reaches the coast. Friction at the bed slows it down.",
    "Geothermal heat melts the base of the sheet. Melt water lets it slide over its bed.",
    "Subscribe to our newsletter. Ten facts about penguins.",
]


def ice_scene() -> tuple[Collection, Query, dict[str, Membership]]:
    """The collection, its first query with four positives by reference, and Bob, Dana (adjudicators), Charlie."""
    collection = make_collection("ice", title="Questions about ice")
    query = make_query(collection, "Why is the ice sheet only a few kilometres thick?", external_id="q1")
    reference = make_assessor(collection, "reference", "reference")
    for number, text in enumerate(ICE):
        document = make_document(collection, text, external_id=f"Ice_sheet_{number}", title=f"Ice sheet, part {number}")
        make_judgment(make_pair(collection, query, document), reference, 1)
    make_query(collection, "لماذا لا يزيد سمك الغطاء الجليدي عن بضعة كيلومترات؟", external_id="q2")
    make_query(collection, "冰盖为什么只有几公里厚？" + "这是一个很长的问题。" * 80, external_id="q3")
    roles = {"alice": Role.ANNOTATOR, "bob": Role.ADJUDICATOR, "dana": Role.ADJUDICATOR, "charlie": Role.ADMIN}
    return collection, query, {name: make_member(collection, name, role) for name, role in roles.items()}

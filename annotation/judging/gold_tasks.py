"""Gold pairs as the judging page shows a pair."""

from annotation.judging import page
from annotation.judging.debates import debate_of, text_of
from annotation.models.quality_control import GoldPair
from corpus.models import Collection


def build_gold_task(collection: Collection, row: GoldPair) -> page.TaskView:
    """Return the pair as the fragments of the judging page show it."""
    pair = row.pair
    return page.TaskView(
        item=row.pk,
        # Gold has no lease: there is neither a token nor a time that runs out.
        token="",
        seconds=0,
        why="",
        query=text_of(pair.query.text),
        answers=tuple(text_of(answer) for answer in pair.query.answers),
        need=text_of(pair.query.instruction or collection.instruction),
        title=text_of(pair.document.title),
        document=text_of(pair.document.text),
        source=pair.document.external_id,
        debate=debate_of(row.turns),
    )

"""Votes of people as the database has them: those whose arm was drawn by lot, and those of paired studies."""

from datetime import date

from annotation.experiments.paired import JudgedPair, judged_pairs
from annotation.experiments.votes import Vote
from annotation.models import Study
from corpus.models import Collection
from store.sql import fetch_rows, read_sql

# Newest votes that are looked at: the intervals are narrow by then, and a page does not wait.
MOST = 20_000

DRAWN = read_sql(__file__, "read_drawn_votes")
STUDIED = read_sql(__file__, "read_studied_votes")


def drawn_votes(collection: Collection, since: date | None = None) -> list[Vote]:
    """Standing votes on items whose arm was drawn, newest first, `MOST` at most; one statement."""
    rows = fetch_rows(DRAWN, collection=collection.pk, relevant=collection.relevant_from, since=since, most=MOST)
    return [Vote(*row) for row in rows]


def studied_pairs(study: Study) -> list[JudgedPair]:
    """The pairs of a study with the votes that both groups have cast so far; one statement."""
    return judged_pairs(fetch_rows(STUDIED, study=study.pk, relevant=study.collection.relevant_from))

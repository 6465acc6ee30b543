"""The pairs of a cell of the cross table, as a condition of a queryset of pairs."""

from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

from annotation.quality.policies.crossing import LOST, NONE, OPEN
from judges.models import Campaign

CELL = """
EXISTS (
    SELECT FROM judges_work w CROSS JOIN LATERAL answer_counts(w.campaign_id, w.pair_id, %s, %s) a
    WHERE w.campaign_id = %s AND w.pair_id = corpus_pair.id AND w.state IN ('labelled', 'escalated')
      AND w.reason <> 'error' AND CASE %s
        WHEN 'open' THEN a.turns > 0 AND a.agreed_in IS NULL AND a.last_turns = %s
        WHEN 'lost' THEN a.turns > 0 AND a.agreed_in IS NULL AND a.last_turns < %s
        WHEN 'none' THEN a.turns = 0 AND a.votes > 0 ELSE a.agreed_in = %s AND a.agreed_verdict = %s END
      AND CASE WHEN %s THEN a.votes > 0 AND a.yes = %s AND a.no = %s ELSE a.votes = 0 END)
"""
ROWS = (OPEN, LOST, NONE)


def of_cell(campaign: Campaign | None, key: str) -> Q:
    """Return the condition for the pairs of a cell (annotation.quality.policies.crossing.CrossingCell.key).

    No key: all pairs; an invalid key: no pairs.
    """
    if not key:
        return Q()
    row, _, column = key.partition(".")
    yes, _, no = column.partition("-")
    is_row = row in ROWS or (row[:-1].isdecimal() and row[-1:] in ("y", "n") and len(row) < 4)
    counts = yes.isdecimal() and no.isdecimal() and len(column) < 8
    if campaign is None or not is_row or not (counts or column == NONE):
        return Q(pk__in=[])
    agents = max(2, len(campaign.debaters))
    agreed = (0, 0) if row in ROWS else (int(row[:-1]), int(row.endswith("y")))
    votes = (int(yes), int(no)) if counts else (0, 0)
    values = (campaign.rounds, agents, campaign.pk, row, agents, agents, *agreed, counts, *votes)
    return Q(RawSQL(CELL, values, output_field=BooleanField()))

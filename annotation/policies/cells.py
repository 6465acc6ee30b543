"""The pairs behind a cell of the cross table, as a condition on pairs: each is looked up, none is listed beforehand."""

import re

from django.db.models import BooleanField, Q
from django.db.models.expressions import RawSQL

from annotation.policies.crossing import LOST, NONE, OPEN
from annotation.policies.reading import ENDED
from judges.models import Campaign

CELL = f"""EXISTS (
    SELECT FROM judges_work w
    CROSS JOIN LATERAL (
        SELECT count(*) AS turns, count(a.verdict) FILTER (WHERE a.round = %(rounds)s) AS last
        FROM counted_attempt a
        WHERE a.campaign_id = w.campaign_id AND a.pair_id = w.pair_id AND a.role IN ('for', 'against')
    ) d
    LEFT JOIN LATERAL (
        SELECT a.round, min(a.verdict) AS verdict FROM counted_attempt a
        WHERE a.campaign_id = w.campaign_id AND a.pair_id = w.pair_id AND a.role IN ('for', 'against')
        GROUP BY a.round HAVING count(a.verdict) = %(agents)s AND min(a.verdict) = max(a.verdict)
        ORDER BY a.round LIMIT 1
    ) agreed ON true
    CROSS JOIN LATERAL (
        SELECT count(*) AS votes, count(*) FILTER (WHERE a.verdict = 1) AS yes,
            count(*) FILTER (WHERE a.verdict = 0) AS no
        FROM counted_attempt a
        WHERE a.campaign_id = w.campaign_id AND a.pair_id = w.pair_id AND a.role = 'vote'
    ) v
    WHERE w.campaign_id = %(campaign)s AND w.pair_id = corpus_pair.id AND {ENDED} AND {{row}} AND {{column}}
)"""
NAMED = re.compile(r"%\((\w+)\)s")
ROWS = {
    OPEN: "d.turns > 0 AND agreed.round IS NULL AND d.last = %(agents)s",
    LOST: "d.turns > 0 AND agreed.round IS NULL AND d.last < %(agents)s",
    NONE: "d.turns = 0 AND v.votes > 0",
}


def of_cell(campaign: Campaign | None, key: str) -> Q:
    """Return a condition for the pairs of a cell (annotation.policies.crossing); none for a key that means nothing."""
    if not key:
        return Q()
    row, _, column = key.partition(".")
    yes, _, no = column.partition("-")
    known = row in ROWS or (row[:-1].isdecimal() and row[-1:] in ("y", "n") and len(row) < 4)
    counts = yes.isdecimal() and no.isdecimal() and len(column) < 8
    if campaign is None or not known or not (counts or column == NONE):
        return Q(pk__in=[])
    values: dict[str, object] = {
        "campaign": campaign.pk,
        "rounds": campaign.rounds,
        "agents": max(2, len(campaign.debaters)),
        "round": 0 if row in ROWS else int(row[:-1]),
        "verdict": int(row.endswith("y")),
        "yes": int(yes) if counts else 0,
        "no": int(no) if counts else 0,
    }
    condition = CELL.format(
        row=ROWS.get(row, "agreed.round = %(round)s AND agreed.verdict = %(verdict)s"),
        column="v.votes > 0 AND v.yes = %(yes)s AND v.no = %(no)s" if counts else "v.votes = 0",
    )
    # Django's RawSQL takes its parameters by place.
    places = [values[name] for name in NAMED.findall(condition)]
    return Q(RawSQL(NAMED.sub("%s", condition), places, output_field=BooleanField()))

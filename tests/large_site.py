"""A generated collection of any size, in the middle of its campaign: for what pages cost when there is much.

Of 100 pairs 80 are labelled (two of them drawn for the audit), 18 escalated (half of them settled),
1 failed and 1 waits. A pair has ten attempts: four turns, five votes and one that failed. Rows are
made by INSERT .. SELECT.
"""

from typing import Any

from django.db import connection

from annotation.models import Membership, Role
from corpus.models import Collection
from judges.models import Campaign, PromptVersion
from tests.evidence import make_judge
from tests.factories import make_collection, make_member

ANNOTATORS = 6
ATTEMPTS = 10
DOCUMENTS_A_QUERY = 100

TEXTS = """
INSERT INTO corpus_query (collection_id, external_id, version, is_current, text, metadata, content_hash, answers,
    instruction)
SELECT %(c)s, 'q' || n, 1, true, 'Which objects can be keys of dict number ' || n || '?', '{}', md5('q' || n),
    ARRAY['Any hashable object.'], '' FROM generate_series(1, %(queries)s) n;
INSERT INTO corpus_document (collection_id, external_id, version, is_current, text, metadata, content_hash, title)
SELECT %(c)s, 'd' || n, 1, true, 'A mapping object maps hashable values to arbitrary objects. Passage ' || n, '{}',
    md5('d' || n), 'Mapping types' FROM generate_series(1, %(documents)s) n;
-- Statistics of an earlier test's rows would make the join below one of 10,000 x 1,000,000 rows.
ANALYZE corpus_query, corpus_document;
INSERT INTO corpus_pair (collection_id, query_id, document_id, is_candidate, uncertainty)
SELECT %(c)s, q.id, d.id, true, 0 FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM corpus_query
        WHERE collection_id = %(c)s) q
    JOIN (SELECT id, (row_number() OVER (ORDER BY id) - 1) %% %(queries)s + 1 AS place FROM corpus_document
        WHERE collection_id = %(c)s) d USING (place);
"""

NUMBERED = "(SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM corpus_pair WHERE collection_id = %(c)s) p"
WORK = f"""
INSERT INTO judges_work (campaign_id, pair_id, state, fence, claims, label, reason, error, agreed_in_round,
    attempt_base, ended_at)
SELECT %(k)s, id, state, 1, 1, CASE WHEN state = 'labelled' THEN (n / 100) %% 2 END,
    CASE state WHEN 'escalated' THEN (ARRAY['disagreement', 'conflict', 'split'])[n %% 3 + 1]
        WHEN 'failed' THEN 'error' ELSE '' END,
    CASE WHEN state = 'failed' THEN 'HTTP 503' ELSE '' END,
    CASE WHEN state = 'labelled' THEN 1 + n %% 2 END, 0,
    CASE WHEN state <> 'pending' THEN now() - (n %% 60) * interval '1 day' END
FROM (SELECT id, n, CASE WHEN n %% 100 < 80 THEN 'labelled' WHEN n %% 100 < 98 THEN 'escalated'
    WHEN n %% 100 < 99 THEN 'failed' ELSE 'pending' END AS state FROM {NUMBERED}) p;
"""

ATTEMPT = f"""
INSERT INTO judges_attempt (campaign_id, pair_id, judge_id, prompt_id, role, round, place, number, outcome, counts,
    cached, verdict, reason, quotes, error, finish_reason, tokens_in, tokens_cached, tokens_out, tokens_reasoning, cost,
    milliseconds, cache_key, started_at)
SELECT %(k)s, p.id, (%(judges)s::bigint[])[s.judge], %(prompt)s, s.role, s.round, s.place_on_panel, 1,
    CASE WHEN s.failed THEN 'error' ELSE 'labelled' END, NOT s.failed, false,
    CASE WHEN NOT s.failed THEN CASE WHEN (p.n * 7 + s.judge * 13) %% 10 < 8 THEN (p.n / 100) %% 2
        ELSE 1 - (p.n / 100) %% 2 END END,
    '', '[]', CASE WHEN s.failed THEN 'HTTP 503' ELSE '' END, 'stop', 300, 0, 20, 0, 0.0001, 120,
    md5(p.id || ':' || s.place), now() - (p.n %% 60) * interval '1 day'
FROM {NUMBERED} CROSS JOIN (VALUES
    (1, 1, 'for', 1, 0, false), (2, 2, 'against', 1, 0, false), (3, 1, 'for', 2, 0, false),
    (4, 2, 'against', 2, 0, false), (5, 1, 'vote', 0, 0, false), (6, 2, 'vote', 0, 1, false),
    (7, 3, 'vote', 0, 2, false), (8, 4, 'vote', 0, 3, false), (9, 5, 'vote', 0, 4, false),
    (10, 1, 'for', 1, 0, true)) AS s(place, judge, role, round, place_on_panel, failed);
"""

PEOPLE = """
INSERT INTO corpus_item (collection_id, pair_id, campaign, reason, seq, state, priority, place, overlap, taken, done)
SELECT %(c)s, pair_id, %(k)s, reason, 0, state, 0, id, 2, CASE state WHEN 'open' THEN 0 ELSE 2 END,
    CASE state WHEN 'open' THEN 0 ELSE 2 END
FROM (SELECT id, pair_id, CASE WHEN state = 'escalated' THEN reason ELSE 'audit' END AS reason,
        CASE WHEN id %% 100 < 2 THEN 'conflict' WHEN id %% 2 = 0 THEN 'settled' ELSE 'open' END AS state
    FROM judges_work WHERE campaign_id = %(k)s AND (state = 'escalated' OR (state = 'labelled' AND id %% 41 = 0))) w;
INSERT INTO judges_audit (campaign_id, pair_id, item_id, stratum, probability, label)
SELECT %(k)s, i.pair_id, i.id, 'r' || w.agreed_in_round || '.m' || (ARRAY[3, 5])[w.id %% 2 + 1] || '.' ||
    CASE WHEN w.label = 1 THEN 'y' ELSE 'n' END, 0.025, w.label
FROM corpus_item i JOIN judges_work w ON w.pair_id = i.pair_id AND w.campaign_id = %(k)s
WHERE i.collection_id = %(c)s AND i.reason = 'audit';
INSERT INTO corpus_judgment (pair_id, assessor_id, item_id, step, grade, arm, guideline, milliseconds, comment)
SELECT i.pair_id, (%(assessors)s::bigint[])[(i.id + seat) %% %(people)s + 1], i.id, 'final',
    CASE WHEN i.state = 'conflict' THEN seat WHEN i.id %% 20 = 0 AND w.label = 1 THEN 0
        ELSE COALESCE(w.label, i.id %% 2) END,
    'shown', 0, 15000 + i.id %% 9000, ''
FROM corpus_item i JOIN judges_work w ON w.pair_id = i.pair_id AND w.campaign_id = %(k)s
    CROSS JOIN generate_series(0, 1) seat WHERE i.collection_id = %(c)s AND i.done = 2;
INSERT INTO annotation_assignment (item_id, membership_id, state, token, lease_until, ended_at, skip_reason, flagged,
    flag_note, judgment_id)
SELECT j.item_id, m.id, 'done', 't' || j.id, now(), now(), '', false, '', j.id
FROM corpus_judgment j JOIN annotation_membership m ON m.assessor_id = j.assessor_id WHERE m.collection_id = %(c)s;
INSERT INTO annotation_assignment (item_id, membership_id, state, token, lease_until, ended_at, skip_reason, flagged,
    flag_note)
SELECT i.id, %(first)s, 'skipped', 's' || i.id, now(), now(), 'other', false, ''
FROM corpus_item i WHERE i.collection_id = %(c)s AND i.state = 'open' AND i.id %% 10 = 1;
INSERT INTO corpus_label (pair_id, grade, origin)
SELECT pair_id, label, 'debate+ensemble' FROM judges_work WHERE campaign_id = %(k)s AND label IS NOT NULL;
"""

TALLIES = """
INSERT INTO judges_tally (campaign_id, shard, key, value)
SELECT %(k)s, shard, key, value / 16.0 FROM generate_series(0, 15) shard CROSS JOIN (
    SELECT 'pairs' AS key, count(*)::float8 AS value FROM judges_work WHERE campaign_id = %(k)s
    UNION ALL SELECT 'labelled:' || label, count(*) FROM judges_work WHERE campaign_id = %(k)s AND state = 'labelled'
        GROUP BY label
    UNION ALL SELECT 'escalated:' || reason, count(*) FROM corpus_item WHERE collection_id = %(c)s GROUP BY reason
    UNION ALL SELECT 'failed', count(*) FROM judges_work WHERE campaign_id = %(k)s AND state = 'failed'
    UNION ALL SELECT 'agreed:' || agreed_in_round, count(*) FROM judges_work
        WHERE campaign_id = %(k)s AND agreed_in_round IS NOT NULL GROUP BY agreed_in_round
    UNION ALL SELECT CASE WHEN reason = 'audit' THEN 'audited' ELSE 'settled' END, count(*) FROM corpus_item
        WHERE collection_id = %(c)s AND state = 'settled' GROUP BY 1
    UNION ALL SELECT 'route:r' || agreed_in_round || '.m' || (ARRAY[3, 5])[id %% 2 + 1] || '.' ||
        CASE WHEN label = 1 THEN 'y' ELSE 'n' END, count(*) FROM judges_work
        WHERE campaign_id = %(k)s AND state = 'labelled' GROUP BY 1
    UNION ALL SELECT name, value FROM (VALUES ('calls', 10.0), ('calls_failed', 1.0), ('cost', 0.001),
        ('tokens_in', 3000.0), ('tokens_out', 200.0)) per(name, each), LATERAL (SELECT each * %(documents)s AS value) v
) sums;
"""


def large_site(pairs: int, name: str = "large", *, attempts: bool = True) -> tuple[Collection, Campaign, Membership]:
    """A collection of `pairs` pairs, its running campaign, and an admin. A million pairs: minutes, and 5 GB.

    `attempts` False: without the calls to judges, which are most of it.
    """
    collection = make_collection(name, title="A large collection", audit=0.02, overlap=2, hourly_rate=30.0)
    judges = [make_judge(f"{name}-judge-{place}") for place in range(1, 6)]
    prompt = PromptVersion.objects.create(name="vote-plain", sha256="0" * 64, text="")
    members = [make_member(collection, f"annotator-{place}") for place in range(ANNOTATORS)]
    charlie = make_member(collection, "charlie", Role.ADMIN)
    ids = [judge.pk for judge in judges]
    campaign = Campaign.objects.create(
        collection=collection, policy="debate+ensemble", panel="main", debaters=ids[:2], voters=ids
    )
    values: dict[str, Any] = {
        "c": collection.pk,
        "k": campaign.pk,
        "queries": max(1, pairs // DOCUMENTS_A_QUERY),
        "documents": pairs,
        "judges": ids,
        "prompt": prompt.pk,
        "people": ANNOTATORS,
        "assessors": [member.assessor_id for member in members],
        "first": members[0].pk,
    }
    with connection.cursor() as cursor:
        for script in (TEXTS, WORK, *([ATTEMPT] if attempts else []), PEOPLE, TALLIES):
            for statement in filter(str.strip, script.split(";\n")):
                # Without figures of the rows before it, a join over a million of them is a loop of hours.
                cursor.execute("ANALYZE corpus_query, corpus_document, corpus_pair, corpus_item, judges_work")
                cursor.execute(statement, values)
    return collection, campaign, charlie


def analyse() -> None:
    """What autovacuum does sooner or later."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")

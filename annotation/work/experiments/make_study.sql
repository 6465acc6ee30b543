-- Create the items of a study, two for each pair, reserved for the two groups. Locks only the new rows.
WITH made AS (
    INSERT INTO corpus_item
        (collection_id, pair_id, campaign, reason, priority, overlap, seq, state, taken, done, shown_as, arm, reserved)
    SELECT collection, pair, campaign, reason, priority, overlap,
        side - 1 + next_seq(pair, reason), 'open', 0, 0, shown_as, arm, reserved
    FROM (
        SELECT :collection::bigint AS collection, pair, NULL::bigint AS campaign, 'study' AS reason,
            :first::float8 AS priority, :overlap::int AS overlap, arm, true AS reserved, COALESCE((
                SELECT i.reason FROM corpus_item i WHERE i.pair_id = pair AND i.reason NOT IN ('audit', 'evidence')
                  AND NOT is_measuring(i.reason) ORDER BY i.id DESC LIMIT 1), '') AS shown_as,
            row_number() OVER (PARTITION BY pair ORDER BY arm) AS side
        FROM unnest(:pairs::bigint[]) pair, unnest(ARRAY['hidden', 'shown']) arm
    ) wanted ORDER BY sha256(convert_to(:seed::text || ':' || pair, 'UTF8')), arm
    RETURNING id, arm
), listed AS (
    INSERT INTO annotation_studyitem (study_id, item_id) SELECT :study, id FROM made
)
INSERT INTO annotation_reservedfor (item_id, membership_id)
SELECT made.id, one FROM made
JOIN LATERAL unnest(CASE made.arm WHEN 'shown' THEN :shown::bigint[] ELSE :hidden::bigint[] END) one ON true;

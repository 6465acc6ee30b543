-- Store the blind judgment of the reveal arm. The lease continues with a new token, also after a late judgment on a
-- returned lease. Lock order: the judgment, the item; the assignment is locked (lock_own.sql).
WITH judged AS (
    INSERT INTO corpus_judgment (pair_id, assessor_id, item_id, step, grade, supersedes_id, arm, guideline,
                                 milliseconds, idle_milliseconds, spans, comment)
    VALUES (:pair, :assessor, :item, 'first', :grade, :supersedes, :arm,
            coalesce((SELECT max(version) FROM annotation_guideline WHERE collection_id = :collection), 0),
            :milliseconds, :idle, :spans::jsonb, :comment)
    RETURNING id
), counted AS (
    UPDATE corpus_item SET taken = taken + :retaken::int WHERE id = :item AND :retaken::int > 0
)
UPDATE annotation_assignment
SET state = 'open', ended_at = NULL, first_id = (SELECT id FROM judged), token = :token,
    lease_until = now() + make_interval(mins => :minutes), served_at = clock_timestamp()
WHERE id = :assignment;

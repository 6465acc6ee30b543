-- End an assignment without a grade: skipped, flagged or returned. A skip or a return puts the item back in the queue
-- at a new place. Lock order: the assignment, its item.
WITH ended AS (
    UPDATE annotation_assignment
    SET state = :ended, ended_at = now(), skip_reason = :reason, flagged = :flagged, flag_note = :note
    WHERE id = :assignment
)
UPDATE corpus_item
SET taken = taken - :given_back::int, state = :state, reserved = reserved AND reason IN ('study', 'repeat'),
    place = CASE WHEN :given_back::int > 0 THEN nextval('corpus_item_place') ELSE place END
WHERE id = :item;

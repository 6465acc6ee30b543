-- Return the ordinary items of a study's pairs to the queue, except those that another study or test reserved.
UPDATE corpus_item i SET reserved = false
WHERE i.reserved AND i.state = 'open' AND i.pair_id IN (
    SELECT i2.pair_id FROM annotation_studyitem s JOIN corpus_item i2 ON i2.id = s.item_id WHERE s.study_id = :study)
  AND NOT EXISTS (SELECT FROM annotation_reservedfor r WHERE r.item_id = i.id);

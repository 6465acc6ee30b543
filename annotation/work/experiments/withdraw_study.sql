-- Withdraw the open items of a study.
UPDATE corpus_item SET state = 'withdrawn'
WHERE state = 'open' AND id IN (SELECT item_id FROM annotation_studyitem WHERE study_id = :study);

-- Checks that a member was lent from a number on: a whole query passes over the places drawn for checks. Reads only.
SELECT count(*) AS n FROM annotation_assignment a JOIN corpus_item i ON i.id = a.item_id
WHERE a.membership_id = :membership AND a.number >= :begin AND i.reason = 'check';

-- Save what is typed on the page of a lease, running or lost.
UPDATE annotation_assignment SET draft = :draft::jsonb
WHERE membership_id = :membership AND item_id = :item AND token = :token AND state IN ('open', 'returned')
RETURNING id;

-- Renew all open leases of a member, because the leases of a group are on the same page.
UPDATE annotation_assignment SET lease_until = now() + make_interval(mins => :minutes)
WHERE membership_id = :membership AND state = 'open';

-- Renew all open leases of a member: whoever works on one of a group has the others on the same page.
UPDATE annotation_assignment SET lease_until = now() + make_interval(mins => :minutes)
WHERE membership_id = :membership AND state = 'open';

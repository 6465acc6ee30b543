"""The people of a collection: their accounts, invitations, memberships, and how good their work is."""

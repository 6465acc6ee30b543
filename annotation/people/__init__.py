"""The people of a collection: who they are and how good their work is, on one table and one page each; inviting."""

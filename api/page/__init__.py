"""The page where people make and revoke their access tokens."""

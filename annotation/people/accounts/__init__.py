"""User accounts: signing in, two-factor authentication, invitations, permissions, and each user's own settings."""

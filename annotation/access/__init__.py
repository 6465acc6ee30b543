"""Permissions, languages, the audit log and the glossary: what every other room of the site asks for."""

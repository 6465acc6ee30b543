"""The glossary: a page that explains the terms of this field, and links to it."""

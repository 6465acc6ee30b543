"""The glossary: one page that says what the words of this field mean, and links to it."""

"""Read-only links to a page of a collection, for people without an account; config.sharing shows the pages."""

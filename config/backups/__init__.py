"""Backups in the browser: a worker writes them below VAR, and owners of the site download and delete them."""

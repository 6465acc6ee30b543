"""Importing files in the browser: resumable uploads, what the files hold, the check, and the import as a job."""

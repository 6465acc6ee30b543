"""Quality control of annotators: attention checks, gold labels, qualification, consent, pauses and exclusion."""

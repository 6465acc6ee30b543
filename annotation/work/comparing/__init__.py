"""A or B: people and judges compare two documents of a query, and Bradley-Terry orders the documents."""

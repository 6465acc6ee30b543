"""How far labels can be trusted and what they cost: audits, label errors, policies, panels, scales."""

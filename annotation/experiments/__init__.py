"""What reading the debate does to people: arms side by side, changed minds, the paired study (DREAM 3.2.4, SPEC S7)."""

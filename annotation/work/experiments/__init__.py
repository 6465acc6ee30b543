"""Experiment arms: does showing the debate change annotators' judgments (DREAM 3.2.4)? Blind first, shown, revealed."""

"""Experiment arms (hidden, shown, reveal): does showing the debate change annotators' judgments (DREAM 3.2.4)?"""

"""Operations of the benchmark: runs and qrels, reports, hole filling, answers, agents, synthetic queries."""

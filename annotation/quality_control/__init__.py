"""Care for what people judge: checks, gold, qualification, consent, pauses, judgments set aside."""

"""Operations about people and what they do: members, judging, adjudication, quality control, aspects."""

"""The rules of judging, without Django: debate, ensemble, routing, strict parsing of verdicts, sampling of audits."""

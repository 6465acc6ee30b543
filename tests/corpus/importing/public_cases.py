"""Files as public reports of errors have them, by the kind of the fault; test_public_cases.py says what each holds."""

import io
import json
from typing import Any

import openpyxl
import pyarrow
from pyarrow import parquet

Files = dict[str, str | bytes]


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def parquet_of(*rows: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pyarrow.Table.from_pylist(list(rows)), file)
    return file.getvalue()


def workbook_of(*rows: list[Any], formats: dict[str, str] | None = None) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cell, number_format in (formats or {}).items():
        book.active[cell].number_format = number_format
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


POSITIVE = [{"docid": "10", "title": "Tea", "text": "Tea is a drink"}]
NEGATIVE = [{"docid": "11", "title": "", "text": "Water boils"}]
CONTEXTS = [{"title": "Tea", "text": "Tea is a drink", "passage_id": "10"}]
OTHERS = [{"title": "", "text": "Water boils", "passage_id": "11"}]
SELECTED = [
    {"is_selected": 1, "passage_text": "Tea is a drink", "url": "a"},
    {"is_selected": 0, "passage_text": "Water boils", "url": "b"},
]
WEB_TOPICS = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE webtrack2009 [
<!ELEMENT webtrack2009 (topic+)>
<!ELEMENT topic (query, description, subtopic+)>
<!ATTLIST topic number CDATA #REQUIRED type (ambiguous | faceted) #REQUIRED>
]>
<!-- of the year
2009 -->
<webtrack2009>
<topic number="1" type="faceted">
  <query>obama family tree</query>
  <description>Find information.</description>
  <subtopic number="1" type="nav">Find the photo essay.</subtopic>
</topic>
</webtrack2009>
"""
TIPSTER = """<top>
<head> Tipster Topic Description
<num> Number:  101
<dom> Domain:  Science and Technology
<title> Topic:  Design of the "Star Wars" System
<desc> Description:
Document will provide information.
<smry> Summary:
It provides.
<narr> Narrative:
A relevant document will.
<con> Concept(s):
1. SDI
<fac> Factor(s):
<nat> Nationality: U.S.
</fac>
<def> Definition(s):
</top>
"""
QUESTION = "what is tea"

# F1: a header is believed, whatever stands between the columns, and in whatever order they are.
NAMED: dict[str, Files] = {
    "qrels, document first, tabs": {"r.tsv": "doc_id\tquery_id\tgrade\n10\t1\t1\n11\t1\t0\n12\t2\t2\n"},
    "qrels, document first, commas": {"r.csv": "doc_id,query_id,grade\n10,1,1\n11,1,0\n12,2,2\n"},
    "qrels, grade in the middle": {"m.tsv": "query_id\tgrade\tdoc_id\n1\t3\t10\n1\t0\t11\n2\t2\t12\n"},
    "qrels, grade first, other names": {"m.tsv": "label\tdocno\ttopic\n3\t10\t1\n0\t11\t1\n"},
    "qrels, BEIR's names turned round": {"test.tsv": "corpus-id\tscore\tquery-id\n10\t1\t1\n11\t0\t1\n"},
    "qrels, a score of whole numbers": {"test.tsv": "doc_id\tscore\tquery_id\n10\t1\t1\n11\t0\t1\n"},
    "qrels, four columns between blanks": {"m.txt": "docno qid rel iter\n10 1 1 0\n11 1 0 0\n"},
    "qrels, four columns with tabs": {"m.tsv": "topic\titeration\tdocument\trelevancy\n1\t0\t10\t1\n1\t0\t11\t0\n"},
    "qrels, texts' names over ids": {"m.tsv": "label\tdocument\tquery\n1\tD10\tQ1\n0\tD11\tQ1\n"},
    "qrels, JSON lines": {"m.jsonl": lines({"grade": 1, "docid": 10, "qid": 1}, {"grade": 0, "docid": 11, "qid": 1})},
    "qrels, workbook": {"m.xlsx": workbook_of(["doc_id", "grade", "query_id"], [10, 1, 1], [11, 0, 1])},
    "qrels, Parquet": {"m.parquet": parquet_of({"doc_id": "10", "grade": 1, "query_id": "1"})},
    "qrels, no name is known": {"q.tsv": "a\tb\tc\n1\t10\t1\n1\t11\t0\n"},
    "qrels, one name is known": {"q.tsv": "a\tb\tlabel\n1\t10\t1\n1\t11\t0\n"},
    "run with a header, blanks": {"r.txt": "docid score qid rank\nd1 2.5 q1 2\nd2 3.5 q1 1\n"},
    "run with a header, tabs": {"r.run": "query_id\tQ0\tdoc_id\trank\tscore\ttag\nq1\tQ0\td1\t1\t2.5\tx\n"},
    "run with ranks, commas": {"r.csv": "doc_id,rank,query_id\nd2,2,q1\nd1,1,q1\n"},
    "judgments, assessor first": {"j.tsv": "annotator\trelevance\tdocid\tqid\nalice\t1\t10\t1\nbob\t0\t10\t1\n"},
}
# F2: objects and lists of objects.
NESTED: dict[str, Files] = {
    "query as object, candidates": {"m.jsonl": lines({"query": {"qid": "1", "text": QUESTION}, "candidates": [
        {"docid": "10", "score": 3.5, "doc": {"title": "Tea", "segment": "Tea is a drink"}},
        {"docid": "11", "score": 1.0, "doc": {"contents": "Water boils"}}]})},
    "positives and negatives": {"m.jsonl": lines({"query": QUESTION, "positives": [
        {"doc_id": "10", "text": "Tea is a drink"}, {"doc_id": "12", "text": "Tea is hot"}],
        "negatives": [{"doc_id": "11", "text": "Water boils"}]})},
    "document as object": {"m.jsonl": lines({"query_id": "1", "query": QUESTION, "doc_id": "10", "label": 1,
        "document": {"title": "Tea", "text": "Tea is a drink"}})},
    "contents as object": {"m.jsonl": lines({"docid": "10", "contents": {"title": "Tea", "body": "Tea is a drink"}})},
    "an object without a text": {"m.jsonl": lines({"query": QUESTION, "document": {"a": 1, "b": 2}, "label": 1})},
    "a list with an object without a text": {"m.jsonl": lines({"query": QUESTION, "positives": ["x y"]},
        {"query": QUESTION, "positives": [{"a": 1}]})},
    "DPR": {"m.json": json.dumps([{"question": QUESTION, "answers": ["a drink"], "positive_ctxs": CONTEXTS,
        "negative_ctxs": [], "hard_negative_ctxs": OTHERS}])},
    "DPR's retrieval": {"m.json": json.dumps([{"question": QUESTION, "answers": ["a drink"], "ctxs": [
        {"id": "10", "title": "Tea", "text": "Tea is a drink", "score": "3.5", "has_answer": True}]}])},
    "MS MARCO": {"m.jsonl": lines({"query_id": 1, "query": QUESTION, "query_type": "x", "passages": SELECTED})},
    "MS MARCO, Parquet": {"m.parquet": parquet_of({"query_id": 1, "query": QUESTION, "passages": {
        "is_selected": [1, 0], "passage_text": ["Tea is a drink", "Water boils"], "url": ["a", "b"]}})},
    "Cohere": {"m.jsonl": lines({"query": QUESTION, "relevant_passages": ["Tea is a drink"],
        "hard_negatives": ["Water boils"]})},
    "Tevatron": {"m.jsonl": lines({"query_id": "1", "query": QUESTION, "positive_passages": POSITIVE,
        "negative_passages": NEGATIVE})},
    "ids in objects": {"m.jsonl": lines({"qid": "1", "positives": [{"docid": "10"}], "negatives": [{"docid": "11"}]})},
    "MTEB's top_ranked": {"m.jsonl": lines({"query-id": "1", "corpus-ids": ["10", "11"]})},
    "docs and labels": {"m.jsonl": lines({"query": QUESTION, "docs": ["Tea is a drink", "Water boils"],
        "labels": [1, 0]})},
    "docs and labels, Parquet": {"m.parquet": parquet_of({"query": QUESTION, "labels": [1, 0],
        "docs": ["Tea is a drink", "Water boils"]})},
    "docs with one label too few": {"m.jsonl": lines({"query": QUESTION, "docs": ["Tea is", "No tea"], "labels": [1]})},
    "docs and scores": {"m.jsonl": lines({"query": QUESTION, "docs": ["Tea is a drink", "Water boils"],
        "scores": [0.8, 0.2]})},
    "FlagEmbedding": {"m.jsonl": lines({"query": QUESTION, "pos": ["Tea is a drink"], "neg": ["Water boils"],
        "pos_scores": [0.8], "neg_scores": [0.2], "prompt": "Holds the answer."})},
    "ms-swift": {"m.jsonl": lines({"messages": [{"role": "user", "content": QUESTION}],
        "positive_messages": [[{"role": "assistant", "content": "Tea is a drink"}]],
        "negative_messages": [[{"role": "assistant", "content": "Water boils"}]]})},
    "ERank": {"m.jsonl": lines({"query_id": "1", "doc_id": "10", "query": QUESTION, "document": "Tea is a drink",
        "chain": "It is.", "prompt": "x", "completion": "y", "score": 8, "positive": True, "k": 3, "mean": 7.5})},
    "SQuAD": {"m.jsonl": lines({"id": "5", "title": "Tea", "context": "Tea is a drink", "question": QUESTION,
        "answers": {"text": ["a drink"], "answer_start": [7]}})},
    "BRIGHT": {"queries.jsonl": lines({"id": "1", "query": QUESTION, "excluded_ids": ["10"], "gold_ids": ["11"]})},
    "hard negatives by system": {"m.jsonl": lines({"qid": 1, "pos": [5], "neg": {"bm25": [1, 2]}})},
    "HotpotQA": {"m.jsonl": lines({"id": "5", "question": QUESTION, "answer": "a drink", "context": {
        "title": ["Tea", "Water"], "sentences": [["Tea is", "a drink."], ["Water boils."]]}})},
    "docs, ids and labels": {"m.jsonl": lines({"query": QUESTION, "docs": ["Tea is a drink", "Water boils"],
        "doc_ids": ["d1", "d2"], "labels": [1, 0]})},
    "queries, corpus and relevant_docs": {"m.json": json.dumps({"queries": {"q1": QUESTION}, "corpus": {"d1": "Tea"},
        "relevant_docs": {"q1": ["d1"]}, "mode": "text"})},
    "texts that look like JSON": {"m.jsonl": lines({"doc_id": "1", "text": '[1] "Tea" is {a} drink'},
        {"doc_id": "2", "text": '["Tea"]'}, {"doc_id": "3", "text": '{"a": 1}'})},
}  # fmt: skip
# F3: no column vanishes.
COLUMNS: dict[str, Files] = {
    "anchor and positive": {"m.csv": f"anchor,positive\n{QUESTION},Tea is a drink\nwhy so,Because it is\n"},
    "query and pos": {"m.jsonl": lines({"query": QUESTION, "pos": ["Tea is a drink"]})},
    "n-tuple": {"m.jsonl": lines({"anchor": QUESTION, "positive": "Tea is a drink", "negative_1": "Water boils",
                                  "negative_2": "Bread is baked"})},
    "chunk": {"m.csv": f"query,chunk,label\n{QUESTION},Tea is a drink,1\n{QUESTION},Water boils,0\n"},
    "prompt instead of query": {"m.csv": f"prompt,passage,label\n{QUESTION},Tea is a drink,1\n"},
    "positive without a query": {"m.jsonl": lines({"claim": QUESTION, "positive_passages": POSITIVE})},
    "a grade without a document": {"m.csv": "query_id,grade,remark\n1,1,good\n"},
    "an answer with a label": {
        "m.csv": f"question,answer,label\n{QUESTION},Tea is a drink,1\n{QUESTION},Water boils,0\n"},
    "an answer without a label": {"m.csv": f"question,answer\n{QUESTION},a drink\n"},
    "documents with a label": {"m.csv": "text,label\nTea is a drink,1\nWater boils,0\n"},
    "documents of a query": {"m.csv": "query_id,doc_id,text\n1,10,Tea is a drink\n1,11,Water boils\n"},
    "documents of a topic": {"m.csv": "doc_id,topic,text\n10,drinks,Tea is a drink\n"},
    "one column an annotator": {"m.csv": "query,document,annotator_1,annotator_2,annotator_3\n"
                                f"{QUESTION},Tea is a drink,1,0,1\n{QUESTION},Water boils,0,0,\n"},
    "one label an annotator": {"m.csv": "query_id,doc_id,label_a,label_b\n1,10,2,3\n"},
    "relevance_score, whole": {"m.csv": f"query,passage,relevance_score\n{QUESTION},Tea is a drink,2\n"},
    "relevance_score, shares": {"m.csv": f"query,passage,relevance_score\n{QUESTION},Tea is a drink,0.7\n"},
    "other columns of pairs": {"m.csv": f"query,document,label,source,\n{QUESTION},Tea is a drink,1,web,7\n"},
    "the row's id": {"m.csv": f"id,query,document,label\n1,{QUESTION},Tea is a drink,1\n2,{QUESTION},Water boils,0\n"
                              "3,why so,Tea is a drink,0\n"},
    "doc is an id beside text": {
        "m.csv": f"query,doc,text\n{QUESTION},d10,Tea is a drink\n{QUESTION},d11,Water boils\n"},
    "questions under another name": {"m.csv": "Frage;Überschrift;Passage\nWas ist Tee?;Tee;Tee, ein Getränk\n"
                                     "Und Wasser?;Wasser;Wasser, auch eins\n"},
}  # fmt: skip
COLUMNS |= {
    "only a title": {"m.csv": f"query,title,label\n{QUESTION},Tea is a drink,1\n"},
    "a title beside ids": {"m.csv": f"query,product_id,product_title,esci_label\n{QUESTION},p1,Tea,E\n"},
    "gold_label": {"m.csv": f"query,passage,gold_label\n{QUESTION},Tea is a drink,1\n"},
    "a positive with its score": {"m.csv": f"anchor,positive,score\n{QUESTION},Tea is a drink,0.9\n"},
    "a positive with a label": {"m.csv": f"query,positive,label\n{QUESTION},Tea is a drink,1\n{QUESTION},Water,0\n"},
    "a triple with a margin": {"m.csv": f"query,positive,negative,score\n{QUESTION},Tea is a drink,Water,3.5\n"},
    "a number of documents": {"queries.csv": f"query_id,query,documents\n1,{QUESTION},3\n"},
    "a rank of documents": {"m.csv": "doc_id,text,rank\nd1,Tea is a drink,3\n"},
}  # fmt: skip
# F4, F8, F15: delimiters and ends of lines, comments, cells.
TEXTS: dict[str, Files] = {
    "collection.tsv with commas": {"collection.tsv": "1\tTea, coffee, and juice are drinks\n2\tWater boils\n"},
    "docs.tsv with commas": {"docs.tsv": "D1\thttp://x/a,b\tTea, coffee, juice\tBody, a, b\nD2\thttp://y\tB\tC\n"},
    "top1000 with commas": {"top1000.tsv": "1\t10\tone, two, three\tTea, a drink\n1\t11\tone, two, three\tWater\n"},
    "triples with commas": {"triples.tsv": "what, tea, is\tTea is, a, nice drink\tNo, it is, not, so\n"},
    "queries.tsv with commas": {"queries.tsv": "1\twhat is tea, coffee, juice\n2\twhy\n"},
    "semicolons with commas in the header": {"m.csv": "doc_id;text;one, two, three\nd1;Tea, a drink;x\nd2;Water;y\n"},
    "bars": {"m.csv": "doc_id|text\nd1|Tea, a drink\n"},
    "sep=": {"m.csv": "sep=;\r\ndoc_id;text\r\nd1;Tea, a drink\r\n"},
    "CR alone": {"cr.csv": "doc_id,text\rd1,alpha\rd2,beta\r"},
    "CR alone, JSON lines": {"cr.jsonl": '{"doc_id": "d1", "text": "alpha"}\r{"doc_id": "d2", "text": "beta"}\r'},
    "CR alone, qrels": {"cr.txt": "q1 0 d1 1\rq1 0 d2 0\r"},
    "mixed ends of lines": {"mixed.csv": "doc_id,text\nd1,alpha\rd2,beta\r\nd3,gamma\n"},
    "a quoted line break": {"m.csv": 'doc_id,text\rd1,"two\rlines"\r'},
    "rows of commas alone": {"m.csv": "doc_id,text\nd1,alpha\n,\n,\n"},
    "rows of commas before the header": {"m.csv": ",,\ndoc_id,text,\nd1,alpha,\n"},
    "comments in qrels": {"q.txt": "# made by hand\nq1 0 d1 1\n#q2 left out\nq1 0 d2 0\n"},
    "comments in a run": {"r.txt": "# bm25\nq1 Q0 d1 1 2.5 x\n# more\nq1 Q0 d2 2 1.5 x\n"},
    "comments in a table of grades": {"q.csv": "# exported\nquery_id,doc_id,grade\nq1,d1,1\n# more\nq1,d2,0\n"},
    "a run of three columns, falling": {"x.txt": "q1 d1 3.0\nq1 d2 2.0\nq1 d3 1.0\n"},
    "a run of three columns, shares": {"x.txt": "q1 d1 0.9\nq1 d2 0.95\n"},
    "qrels of three columns as 1.0": {"x.txt": "q1 d1 1.0\nq1 d2 0.0\nq2 d2 1.0\n"},
    "an empty grade": {"q.tsv": "q1\td1\t1\nq1\td2\t\n"},
    "an empty grade first": {"q.tsv": "q1\td1\t\nq1\td2\t1\n"},
    "an open quote": {"m.csv": 'doc_id,text\nd1,"open\nd2,x\n'},
    "a JSON list in one line": {"m.json": '[{"doc_id": "d1", "text": "a"}, {"doc_id": "d 2", "text": "b"}]'},
    "ids with zeros in a workbook": {"m.xlsx": workbook_of(
        ["doc_id", "text", "made", "share"], [7, "Tea", 45000, 0.25],
        formats={"A2": "00000", "C2": "yyyy-mm-dd", "D2": "0%"})},
    "web topics": {"t.xml": WEB_TOPICS},
    "topics 51 to 200": {"t.txt": TIPSTER},
    "topics in fields of their own": {"t.xml": '<topics><topic number="1"><disease>Liposarcoma</disease>'
        "<gene>CDK4</gene></topic></topics>"},
    "topics of CLEF": {"t.xml": '<topics><topic lang="en"><identifier>401-AH</identifier><title>Inflation</title>'
        "</topic></topics>"},
    "topics of TREC RAG": {"topics.rag25.jsonl": lines({"id": "1", "title": "why tea"})},
}  # fmt: skip
CASES = {**NAMED, **NESTED, **COLUMNS, **TEXTS}

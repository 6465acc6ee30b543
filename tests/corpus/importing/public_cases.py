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
QUESTION, TEA, WATER = "what is tea", "Tea is a drink", "Water boils"

# F1: a header is believed, whatever stands between the columns, and in whatever order they are.
NAMED: dict[str, Files] = {
    "qrels, BEIR's names turned round": {"test.tsv": "corpus-id\tscore\tquery-id\n10\t1\t1\n11\t0\t1\n"},
    "qrels, a score of whole numbers": {"test.tsv": "doc_id\tscore\tquery_id\n10\t1\t1\n11\t0\t1\n"},
    "qrels, four columns between blanks": {"m.txt": "docno qid rel iter\n10 1 1 0\n11 1 0 0\n"},
    "qrels, four columns with tabs": {"m.tsv": "topic\titeration\tdocument\trelevancy\n1\t0\t10\t1\n1\t0\t11\t0\n"},
    "qrels, texts' names over ids": {"m.tsv": "label\tdocument\tquery\n1\tD10\tQ1\n0\tD11\tQ1\n"},
    "qrels, one name is known": {"q.tsv": "a\tb\tlabel\n1\t10\t1\n1\t11\t0\n"},
    "run with a header, blanks": {"r.txt": "docid score qid rank\nd1 2.5 q1 2\nd2 3.5 q1 1\n"},
    "run with ranks, commas": {"r.csv": "doc_id,rank,query_id\nd2,2,q1\nd1,1,q1\n"},
    "judgments, assessor first": {"j.tsv": "annotator\trelevance\tdocid\tqid\nalice\t1\t10\t1\nbob\t0\t10\t1\n"},
}
# F2: objects and lists of objects.
NESTED: dict[str, Files] = {
    "query as object, candidates": {"m.jsonl": lines({"query": {"qid": "1", "text": QUESTION}, "candidates": [
        {"docid": "10", "score": 3.5, "doc": {"title": "Tea", "segment": "Tea is a drink"}},
        {"docid": "11", "score": 1.0, "doc": {"contents": "Water boils"}}]})},
    "document as object": {"m.jsonl": lines({"query_id": "1", "query": QUESTION, "doc_id": "10", "label": 1,
        "document": {"title": "Tea", "text": "Tea is a drink"}})},
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
    "ids in objects": {"m.jsonl": lines({"qid": "1", "positives": [{"docid": "10"}], "negatives": [{"docid": "11"}]})},
    "MTEB's top_ranked": {"m.jsonl": lines({"query-id": "1", "corpus-ids": ["10", "11"]})},
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
    "BRIGHT": {"queries.jsonl": lines({"id": "1", "query": QUESTION, "excluded_ids": ["10"], "gold_ids": ["11"]})},
    "hard negatives by system": {"m.jsonl": lines({"qid": 1, "pos": [5], "neg": {"bm25": [1, 2]}})},
    "HotpotQA": {"m.jsonl": lines({"id": "5", "question": QUESTION, "answer": "a drink", "context": {
        "title": ["Tea", "Water"], "sentences": [["Tea is", "a drink."], ["Water boils."]]}})},
    "docs, ids and labels": {"m.jsonl": lines({"query": QUESTION, "docs": ["Tea is a drink", "Water boils"],
        "doc_ids": ["d1", "d2"], "labels": [1, 0]})},
    "texts that look like JSON": {"m.jsonl": lines({"doc_id": "1", "text": '[1] "Tea" is {a} drink'},
        {"doc_id": "2", "text": '["Tea"]'}, {"doc_id": "3", "text": '{"a": 1}'})},
}  # fmt: skip
# F3: no column vanishes.
COLUMNS: dict[str, Files] = {
    "anchor and positive": {"m.csv": f"anchor,positive\n{QUESTION},Tea is a drink\nwhy so,Because it is\n"},
    "n-tuple": {"m.jsonl": lines({"anchor": QUESTION, "positive": "Tea is a drink", "negative_1": "Water boils",
                                  "negative_2": "Bread is baked"})},
    "chunk": {"m.csv": f"query,chunk,label\n{QUESTION},Tea is a drink,1\n{QUESTION},Water boils,0\n"},
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
    "a title beside ids": {"m.csv": f"query,product_id,product_title,esci_label\n{QUESTION},p1,Tea,E\n"},
    "a positive with its score": {"m.csv": f"anchor,positive,score\n{QUESTION},Tea is a drink,0.9\n"},
    "a positive with a label": {"m.csv": f"query,positive,label\n{QUESTION},Tea is a drink,1\n{QUESTION},Water,0\n"},
    "a triple with a margin": {"m.csv": f"query,positive,negative,score\n{QUESTION},Tea is a drink,Water,3.5\n"},
    "a number of documents": {"queries.csv": f"query_id,query,documents\n1,{QUESTION},3\n"},
    "a rank of documents": {"m.csv": "doc_id,text,rank\nd1,Tea is a drink,3\n"},
}  # fmt: skip
# F4, F8, F15: delimiters and ends of lines, comments, cells.
TEXTS: dict[str, Files] = {
    "collection.tsv with commas": {"collection.tsv": "1\tTea, coffee, and juice are drinks\n2\tWater boils\n"},
    "triples with commas": {"triples.tsv": "what, tea, is\tTea is, a, nice drink\tNo, it is, not, so\n"},
    "semicolons with commas in the header": {"m.csv": "doc_id;text;one, two, three\nd1;Tea, a drink;x\nd2;Water;y\n"},
    "sep=": {"m.csv": "sep=;\r\ndoc_id;text\r\nd1;Tea, a drink\r\n"},
    "CR alone": {"cr.csv": "doc_id,text\rd1,alpha\rd2,beta\r"},
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
# What popular tools and published sets write.
TOOLS: dict[str, Files] = {
    "annotations in a list": {"m.jsonl": lines({"query": QUESTION, "document": TEA, "annotations": [{"annotator": "a",
        "label": 1}, {"annotator": "b", "label": 0}]})},
    "annotations without people": {"m.jsonl": lines({"query": QUESTION, "document": TEA,
        "annotations": [{"label": 1}, {"label": 0}]})},
    "ids without digits": {"m.csv": f"query,doc,text\n{QUESTION},alpha,{TEA}\n{QUESTION},beta,{WATER}\n"},
    "two ids, one of the passage": {"m.jsonl": lines({"docid": "a", "passage_id": "a1", "text": TEA},
        {"docid": "a", "passage_id": "a2", "text": WATER})},
    "labels by annotator": {"m.jsonl": lines({"query": QUESTION, "document": TEA, "labels": {"alice": 1, "bob": 0}})},
    "labels without people": {"m.jsonl": lines({"query": QUESTION, "document": TEA, "labels": [1, 0, 1]})},
    "SQuAD as it is published": {"m.json": json.dumps({"version": "1.1", "data": [{"title": "Tea", "paragraphs":
        [{"context": TEA, "qas": [{"id": "5", "question": QUESTION, "answers": [{"text": "a drink", "answer_start":
        7}]}]}]}]})},
    "SQuAD, CSV of pandas": {"m.csv":
        "id,title,context,question,answers\n5,Tea,Tea is a drink,what is tea,"
        "\"{'text': ['a drink'], 'answer_start': [7]}\"\n"},
    "SQuAD, flat": {"m.jsonl": lines({"id": "5", "title": "Tea", "context": TEA, "question": QUESTION, "answers.text":
        ["a drink"], "answers.answer_start": [7]})},
    "SQuAD, no answer": {"m.jsonl": lines({"id": "5", "title": "Tea", "context": TEA, "question": QUESTION, "answers":
        {"text": [], "answer_start": []}})},
    "answers in a list": {"m.jsonl": lines({"question": QUESTION, "answer": ["a drink", "drink"]})},
    "Label Studio, two controls": {"m.json": json.dumps([{"id": 1, "data": {"query": QUESTION, "document": TEA},
        "annotations": [{"id": 5, "completed_by": 1, "result": [{"from_name": "relevance", "value": {"choices":
        ["2"]}}, {"from_name": "comment", "value": {"text": ["ok"]}}]}], "project": 1}])},
    "Label Studio, nobody yet": {"m.json": json.dumps([{"id": 1, "data": {"query": QUESTION, "document": TEA},
        "annotations": [], "predictions": [], "project": 1}])},
    "Label Studio, tasks": {"m.json": json.dumps([{"data": {"query": QUESTION, "document": TEA}}])},
    "Label Studio, a ranker": {"m.json": json.dumps([{"id": 1, "data": {"query": QUESTION, "items": [{"id": "d1",
        "title": "x", "body": TEA}, {"id": "d2", "body": WATER}]}, "annotations": [{"completed_by": 1, "result":
        [{"from_name": "rank", "type": "ranker", "value": {"ranker": {"rank": ["d2", "d1"]}}}]}], "project": 1}])},
    "Label Studio, JSON-MIN": {"m.json": json.dumps([{"id": 1, "query": QUESTION, "document": TEA, "relevance":
        "Relevant", "annotator": 1, "annotation_id": 5, "created_at": "2024", "updated_at": "2024", "lead_time":
        3.2}])},
    "Quepid, a book": {"m.csv": "query,docid,Alice Smith,Bob Jones\nwhat is tea,d1,3,2\nwhat is tea,d2,0,\n"},
    "Quepid, LTR": {"m.txt": "3 qid:1 # d1 what is tea\n0 qid:1 # d2 what is tea\n"},
    "OpenSearch, judgments": {"m.json": json.dumps({"name": "x", "type": "IMPORT_JUDGMENT", "judgmentRatings":
        [{"query": QUESTION, "ratings": [{"docId": "d1", "rating": "3"}, {"docId": "d2", "rating": "0"}]}]})},
    "Elasticsearch, rank evaluation": {"m.json": json.dumps({"requests": [{"id": "q1", "request": {"query": {"match":
        {"text": QUESTION}}}, "ratings": [{"_index": "i", "_id": "d1", "rating": 3}]}]})},
    "user behavior insights": {"m.jsonl": lines({"application": "a", "query_id": "u1", "client_id": "c", "user_query":
        QUESTION, "query_response_hit_ids": ["d1", "d2"], "timestamp": "t"})},
    "MIRACL": {"m.jsonl": lines({"query_id": "1", "query": QUESTION, "positive_passages": [{"docid": "10#0", "title":
        "Tea", "text": TEA}], "negative_passages": [{"docid": "11#1", "title": "W", "text": WATER}]})},
    "Ragas": {"r.jsonl": lines({"user_input": QUESTION, "retrieved_contexts": [TEA, WATER], "response": "a drink",
        "reference": "a drink"})},
    "LlamaIndex": {"r.json": json.dumps({"queries": {"q1": QUESTION}, "corpus": {"d1": TEA}, "relevant_docs": {"q1":
        ["d1"]}, "mode": "text"})},
    "WANDS": {"label.csv": "id\tquery_id\tproduct_id\tlabel\n0\t0\t25434\tExact\n1\t0\t12088\tIrrelevant\n"},
    "CrowdFlower": {"train.csv":
        '"id","query","product_title","product_description","median_relevance","relevance_variance"\n'
        '1,"bridal shower decorations","Accent Pillow","Red satin",1,0\n'},
    "Mechanical Turk": {"b.csv":
        '"HITId","WorkerId","Input.query","Input.document","Answer.relevance"\n'
        '"h","w1","what is tea","Tea is a drink","2"\n'},
    "a decimal comma": {"m.csv": "query;document;score\nwhat is tea;Tea is a drink;0,75\n"},
    "workbook with TRUE and FALSE": {"m.xlsx": workbook_of(["query", "document", "relevant"], [QUESTION, TEA, True],
        [QUESTION, WATER, False])},
    "Parquet, a label is missing": {"m.parquet": parquet_of({"query": QUESTION, "text": TEA, "label": 1.0}, {"query":
        QUESTION, "text": WATER, "label": None})},
    "lists of pandas": {"m.csv":
        "query,positive,negative\nwhat is tea,\"['Tea is a drink', 'Tea is hot']\",\"['Water boils']\"\n"},
    "lists of JSON in CSV": {"m.csv":
        "query,pos,neg\nwhat is tea,\"[\"\"Tea is a drink\"\"]\",\"[\"\"Water boils\"\"]\"\n"},
    "arrays of NumPy": {"m.csv":
        "query,answers,context\n"
        "what is tea,\"{'text': array(['a drink'], dtype=object), 'answer_start': array([7])}\","
        "Tea is a drink\n"},
    "lists of ids in CSV": {"m.csv": "query_id,doc_ids\n1,\"['10', '11']\"\n"},
    "single quotes": {"m.jsonl": "{'query':'a b','document':'c d','label':1}\n"},
    "TRL, preferences": {"m.jsonl": lines({"prompt": QUESTION, "chosen": TEA, "rejected": WATER})},
    "PyTerrier, results": {"r.csv": "qid,docid,docno,rank,score,query\n1,0,d1,0,2.5,what is tea\n"},
    "Solr": {"m.json": json.dumps({"response": {"numFound": 1, "docs": [{"id": "d1", "title": "Tea", "body": TEA}]}})},
    "HotpotQA as it is published": {"h.json": json.dumps([{"_id": "5", "question": QUESTION, "answer": "a", "type":
        "bridge", "level": "hard", "supporting_facts": [["Tea", 0]], "context": [["Tea", ["Tea is.", " A drink."]],
        ["Water", ["Water boils."]]]}])},
    "TriviaQA": {"m.jsonl": lines({"question": QUESTION, "question_id": "t1", "answer": {"value": "a", "aliases":
        ["b"]}, "search_results": {"title": ["Tea"], "search_context": [TEA]}})},
}  # fmt: skip
CASES = {**NAMED, **NESTED, **COLUMNS, **TEXTS, **TOOLS}

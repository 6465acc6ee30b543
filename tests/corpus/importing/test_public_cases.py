"""Inputs of public reports of errors, and files of popular tools: what is read of each, or the line that refuses it."""

import json
from pathlib import Path

import pytest

from corpus.errors import BadInput
from corpus.importing import records, tables
from corpus.importing.detection import HOLDS, detect, list_sources
from corpus.importing.grades import read_grades
from corpus.importing.run_lines import top_of_run
from tests.corpus.importing.file_contents import lines, parquet_of, workbook_of

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

# The name of a file, its content, and what is read: the kind of the file, - the columns that are not read, d: documents
# (the last as id, title and text), q: queries, and pairs, grades and runs as query>document=grade@score by assessor,
# texts in place of ids made of them. The commonest texts are written Q, T and W.
CASES: dict[str, tuple[str, str | bytes, str]] = {
    # F1: a header is believed, whatever stands between the columns, and in whatever order they are.
    "qrels, BEIR's names turned round": ("test.tsv", "corpus-id\tscore\tquery-id\n10\t1\t1\n11\t0\t1\n",
        "qrels 1>10=1 1>11=0"),
    "qrels, a score of whole numbers": ("test.tsv", "doc_id\tscore\tquery_id\n10\t1\t1\n11\t0\t1\n",
        "qrels 1>10=1 1>11=0"),
    "qrels, four columns between blanks": ("m.txt", "docno qid rel iter\n10 1 1 0\n11 1 0 0\n",
        "qrels -iter 1>10=1 1>11=0"),
    "qrels, four columns with tabs": ("m.tsv", "topic\titeration\tdocument\trelevancy\n1\t0\t10\t1\n1\t0\t11\t0\n",
        "qrels -iteration 1>10=1 1>11=0"),
    "qrels, texts' names over ids": ("m.tsv", "label\tdocument\tquery\n1\tD10\tQ1\n0\tD11\tQ1\n",
        "qrels Q1>D10=1 Q1>D11=0"),
    "qrels, one name is known": ("q.tsv", "a\tb\tlabel\n1\t10\t1\n1\t11\t0\n",
        'No column is the query that "label" is about: map "b" to "query_id"'),
    "run with a header, blanks": ("r.txt", "docid score qid rank\nd1 2.5 q1 2\nd2 3.5 q1 1\n",
        "runs -rank q1>d2 q1>d1"),
    "run with ranks, commas": ("r.csv", "doc_id,rank,query_id\nd2,2,q1\nd1,1,q1\n", "runs q1>d1 q1>d2"),
    "judgments, assessor first": ("j.tsv", "annotator\trelevance\tdocid\tqid\nalice\t1\t10\t1\nbob\t0\t10\t1\n",
        "judgments 1>10=1 by alice 1>10=0 by bob"),
    # F2: objects and lists of objects.
    "query as object, candidates": ("m.jsonl", lines({"query": {"qid": "1", "text": QUESTION}, "candidates": [{"docid":
        "10", "score": 3.5, "doc": {"title": "Tea", "segment": "Tea is a drink"}}, {"docid": "11", "score": 1.0, "doc":
        {"contents": "Water boils"}}]}), "all d2[11||W|{}] q1[1|Q] 1>10=@3.5 1>11=@1.0"),
    "document as object": ("m.jsonl", lines({"query_id": "1", "query": QUESTION, "doc_id": "10", "label": 1, "document":
        {"title": "Tea", "text": "Tea is a drink"}}), "all d1[10|Tea|T|{}] q1[1|Q] 1>10=1"),
    "an object without a text": ("m.jsonl", lines({"query": QUESTION, "document": {"a": 1, "b": 2}, "label": 1}),
        'm.jsonl, line 1: "document" contains no readable text: a, b; write it as {"id", "title", "text"}'),
    "a list with an object without a text": ("m.jsonl", lines({"query": QUESTION, "positives": ["x y"]}, {"query":
        QUESTION, "positives": [{"a": 1}]}),
        'm.jsonl, line 2: "positives" contains no readable text: a; write it as {"id", "title", "text"}'),
    "DPR": ("m.json", json.dumps([{"question": QUESTION, "answers": ["a drink"], "positive_ctxs": CONTEXTS,
        "negative_ctxs": [], "hard_negative_ctxs": OTHERS}]), 'all d2[11||W|{}] q1[|Q|["a drink"]] Q>10=1 Q>11=0'),
    "DPR's retrieval": ("m.json", json.dumps([{"question": QUESTION, "answers": ["a drink"], "ctxs": [{"id": "10",
        "title": "Tea", "text": "Tea is a drink", "score": "3.5", "has_answer": True}]}]),
        'all -ctxs.has_answer d1[10|Tea|T|{}] q1[|Q|["a drink"]] Q>10=@3.5'),
    "MS MARCO": ("m.jsonl", lines({"query_id": 1, "query": QUESTION, "query_type": "x", "passages": SELECTED}),
        "all -query_type -passages.url d2[||W|{}] q1[1|Q] 1>T=1 1>W=0"),
    "MS MARCO, Parquet": ("m.parquet", parquet_of({"query_id": 1, "query": QUESTION, "passages": {"is_selected": [1, 0],
        "passage_text": ["Tea is a drink", "Water boils"], "url": ["a", "b"]}}),
        "all -passages.url d2[||W|{}] q1[1|Q] 1>T=1 1>W=0"),
    "ids in objects": ("m.jsonl", lines({"qid": "1", "positives": [{"docid": "10"}], "negatives": [{"docid": "11"}]}),
        "pairs 1>10=1 1>11=0"),
    "MTEB's top_ranked": ("m.jsonl", lines({"query-id": "1", "corpus-ids": ["10", "11"]}), "pairs 1>10= 1>11="),
    "docs with one label too few": ("m.jsonl", lines({"query": QUESTION, "docs": ["Tea is", "No tea"], "labels": [1]}),
        'm.jsonl, line 1: 2 documents, and 1 values of "grade"; each document has one'),
    "docs and scores": ("m.jsonl", lines({"query": QUESTION, "docs": ["Tea is a drink", "Water boils"], "scores": [0.8,
        0.2]}), "all d2[||W|{}] q1[|Q] Q>T=@0.8 Q>W=@0.2"),
    "FlagEmbedding": ("m.jsonl", lines({"query": QUESTION, "pos": ["Tea is a drink"], "neg": ["Water boils"],
        "pos_scores": [0.8], "neg_scores": [0.2], "prompt": "Holds the answer."}),
        "all d2[||W|{}] q1[|Q|Holds the answer.] Q>T=1@0.8 Q>W=0@0.2"),
    "ms-swift": ("m.jsonl", lines({"messages": [{"role": "user", "content": QUESTION}], "positive_messages": [[{"role":
        "assistant", "content": "Tea is a drink"}]], "negative_messages": [[{"role": "assistant", "content":
        "Water boils"}]]}), "all d2[||W|{}] q1[|Q] Q>T=1 Q>W=0"),
    "ERank": ("m.jsonl", lines({"query_id": "1", "doc_id": "10", "query": QUESTION, "document": "Tea is a drink",
        "chain": "It is.", "prompt": "x", "completion": "y", "score": 8, "positive": True, "k": 3, "mean": 7.5}),
        "all -chain -prompt -completion -k -mean d1[10||T|{}] q1[1|Q] 1>10=1@0.8"),
    "BRIGHT": ("queries.jsonl", lines({"id": "1", "query": QUESTION, "excluded_ids": ["10"], "gold_ids": ["11"]}),
        "queries-pairs -excluded_ids q1[1|Q] 1>11=1"),
    "hard negatives by system": ("m.jsonl", lines({"qid": 1, "pos": [5], "neg": {"bm25": [1, 2]}}),
        'm.jsonl, line 1: "neg" contains no readable text: bm25; write it as {"id", "title", "text"}'),
    "HotpotQA": ("m.jsonl", lines({"id": "5", "question": QUESTION, "answer": "a drink", "context": {"title": ["Tea",
        "Water"], "sentences": [["Tea is", "a drink."], ["Water boils."]]}}),
        'all d2[|Water|W.|{}] q1[5|Q|["a drink"]] 5>Tea is\na drink.= 5>W.='),
    "docs, ids and labels": ("m.jsonl", lines({"query": QUESTION, "docs": ["Tea is a drink", "Water boils"], "doc_ids":
        ["d1", "d2"], "labels": [1, 0]}), "all d2[d2||W|{}] q1[|Q] Q>d1=1 Q>d2=0"),
    "texts that look like JSON": ("m.jsonl", lines({"doc_id": "1", "text": '[1] "Tea" is {a} drink'}, {"doc_id": "2",
        "text": '["Tea"]'}, {"doc_id": "3", "text": '{"a": 1}'}), 'documents d3[3||{"a": 1}|{}]'),
    # F3: no column vanishes.
    "anchor and positive": ("m.csv", f"anchor,positive\n{QUESTION},Tea is a drink\nwhy so,Because it is\n",
        "all d2[||Because it is|{}] q2[|why so] Q>T=1 why so>Because it is=1"),
    "n-tuple": ("m.jsonl", lines({"anchor": QUESTION, "positive": "Tea is a drink", "negative_1": "Water boils",
        "negative_2": "Bread is baked"}), "all d3[||Bread is baked|{}] q1[|Q] Q>T=1 Q>W=0 Q>Bread is baked=0"),
    "chunk": ("m.csv", f"query,chunk,label\n{QUESTION},Tea is a drink,1\n{QUESTION},Water boils,0\n",
        'No column is the document that "label" is about: map "chunk" to "text", or map "label" to "metadata" to '
        "keep it as it is"),
    "positive without a query": ("m.jsonl", lines({"claim": QUESTION, "positive_passages": POSITIVE}),
        'No column is the query that "positive_passages" is about: map "claim" to "query"'),
    "a grade without a document": ("m.csv", "query_id,grade,remark\n1,1,good\n",
        'No column is the document that "grade" is about: map "remark" to "text"'),
    "an answer with a label": ("m.csv",
        f"question,answer,label\n{QUESTION},Tea is a drink,1\n{QUESTION},Water boils,0\n",
        "all d2[||W|{}] q1[|Q] Q>T=1 Q>W=0"),
    "an answer without a label": ("m.csv", f"question,answer\n{QUESTION},a drink\n", 'queries q1[|Q|["a drink"]]'),
    "documents with a label": ("m.csv", "text,label\nTea is a drink,1\nWater boils,0\n",
        'No column is the query that "label" is about: map its column to "query", or map "label" to "metadata" to '
        "keep it as it is"),
    "documents of a query": ("m.csv", "query_id,doc_id,text\n1,10,Tea is a drink\n1,11,Water boils\n",
        "documents-pairs d2[11||W|{}] 1>10= 1>11="),
    "documents of a topic": ("m.csv", "doc_id,topic,text\n10,drinks,Tea is a drink\n",
        'documents d1[10||T|{"topic": "drinks"}]'),
    "one column an annotator": ("m.csv", "query,document,annotator_1,annotator_2,annotator_3\n"
        f"{QUESTION},Tea is a drink,1,0,1\n{QUESTION},Water boils,0,0,\n",
        "all d2[||W|{}] q1[|Q] Q>T= Q>W= Q>T=1 by annotator_1 Q>T=0 by annotator_2 Q>T=1 by annotator_3 Q>W=0 by "
        "annotator_1 Q>W=0 by annotator_2"),
    "relevance_score, whole": ("m.csv", f"query,passage,relevance_score\n{QUESTION},Tea is a drink,2\n",
        "all d1[||T|{}] q1[|Q] Q>T=2"),
    "relevance_score, shares": ("m.csv", f"query,passage,relevance_score\n{QUESTION},Tea is a drink,0.7\n",
        "all d1[||T|{}] q1[|Q] Q>T=@0.7"),
    "other columns of pairs": ("m.csv", f"query,document,label,source,\n{QUESTION},Tea is a drink,1,web,7\n",
        "all -source -column 5 d1[||T|{}] q1[|Q] Q>T=1"),
    "the row's id": ("m.csv", f"id,query,document,label\n1,{QUESTION},Tea is a drink,1\n2,{QUESTION},Water boils,0\n"
        "3,why so,Tea is a drink,0\n", "all -id d2[||W|{}] q2[|why so] Q>T=1 Q>W=0 why so>T=0"),
    "doc is an id beside text": ("m.csv",
        f"query,doc,text\n{QUESTION},d10,Tea is a drink\n{QUESTION},d11,Water boils\n",
        "all d2[d11||W|{}] q1[|Q] Q>d10= Q>d11="),
    "questions under another name": ("m.csv", "Frage;Überschrift;Passage\nWas ist Tee?;Tee;Tee, ein Getränk\n"
        "Und Wasser?;Wasser;Wasser, auch eins\n",
        "all -Überschrift d2[||Wasser, auch eins|{}] q2[|Und Wasser?] Was ist Tee?>Tee, ein Getränk= Und "
        "Wasser?>Wasser, auch eins="),
    "a title beside ids": ("m.csv", f"query,product_id,product_title,esci_label\n{QUESTION},p1,Tea,E\n",
        "queries-pairs -product_title -esci_label q1[|Q] Q>p1="),
    "a positive with its score": ("m.csv", f"anchor,positive,score\n{QUESTION},Tea is a drink,0.9\n",
        "all d1[||T|{}] q1[|Q] Q>T=1@0.9"),
    "a positive with a label": ("m.csv", f"query,positive,label\n{QUESTION},Tea is a drink,1\n{QUESTION},Water,0\n",
        "all d2[||Water|{}] q1[|Q] Q>T=1 Q>Water=0"),
    "a triple with a margin": ("m.csv", f"query,positive,negative,score\n{QUESTION},Tea is a drink,Water,3.5\n",
        "all -score d2[||Water|{}] q1[|Q] Q>T=1 Q>Water=0"),
    "a number of documents": ("queries.csv", f"query_id,query,documents\n1,{QUESTION},3\n",
        'queries q1[1|Q|{"documents": "3"}]'),
    "a rank of documents": ("m.csv", "doc_id,text,rank\nd1,Tea is a drink,3\n", 'documents d1[d1||T|{"rank": "3"}]'),
    # F4, F8, F15: delimiters and ends of lines, comments, cells.
    "collection.tsv with commas": ("collection.tsv", "1\tTea, coffee, and juice are drinks\n2\tWater boils\n",
        "documents d2[2||W|{}]"),
    "triples with commas": ("triples.tsv", "what, tea, is\tTea is, a, nice drink\tNo, it is, not, so\n",
        "all d2[||No, it is, not, so|{}] q1[|what, tea, is] what, tea, is>Tea is, a, nice drink=1 what, tea, "
        "is>No, it is, not, so=0"),
    "semicolons with commas in the header": ("m.csv", "doc_id;text;one, two, three\nd1;Tea, a drink;x\nd2;Water;y\n",
        'documents d2[d2||Water|{"one, two, three": "y"}]'),
    "sep=": ("m.csv", "sep=;\r\ndoc_id;text\r\nd1;Tea, a drink\r\n", "documents d1[d1||Tea, a drink|{}]"),
    "CR alone": ("cr.csv", "doc_id,text\rd1,alpha\rd2,beta\r", "documents d2[d2||beta|{}]"),
    "mixed ends of lines": ("mixed.csv", "doc_id,text\nd1,alpha\rd2,beta\r\nd3,gamma\n", "documents d3[d3||gamma|{}]"),
    "a quoted line break": ("m.csv", 'doc_id,text\rd1,"two\rlines"\r', "documents d1[d1||two\nlines|{}]"),
    "rows of commas alone": ("m.csv", "doc_id,text\nd1,alpha\n,\n,\n", "documents d1[d1||alpha|{}]"),
    "rows of commas before the header": ("m.csv", ",,\ndoc_id,text,\nd1,alpha,\n",
        "documents -column 3 d1[d1||alpha|{}]"),
    "comments in qrels": ("q.txt", "# made by hand\nq1 0 d1 1\n#q2 left out\nq1 0 d2 0\n", "qrels q1>d1=1 q1>d2=0"),
    "comments in a run": ("r.txt", "# bm25\nq1 Q0 d1 1 2.5 x\n# more\nq1 Q0 d2 2 1.5 x\n", "runs q1>d1 q1>d2"),
    "comments in a table of grades": ("q.csv", "# exported\nquery_id,doc_id,grade\nq1,d1,1\n# more\nq1,d2,0\n",
        "qrels q1>d1=1 q1>d2=0"),
    "a run of three columns, falling": ("x.txt", "q1 d1 3.0\nq1 d2 2.0\nq1 d3 1.0\n", "runs q1>d1 q1>d2 q1>d3"),
    "a run of three columns, shares": ("x.txt", "q1 d1 0.9\nq1 d2 0.95\n", "runs q1>d2 q1>d1"),
    "qrels of three columns as 1.0": ("x.txt", "q1 d1 1.0\nq1 d2 0.0\nq2 d2 1.0\n", "qrels q1>d1=1 q1>d2=0 q2>d2=1"),
    "an empty grade": ("q.tsv", "q1\td1\t1\nq1\td2\t\n", "q.tsv, line 2: the grade is empty"),
    "an empty grade first": ("q.tsv", "q1\td1\t\nq1\td2\t1\n", "q.tsv, line 1: the grade is empty"),
    "an open quote": ("m.csv", 'doc_id,text\nd1,"open\nd2,x\n',
        'm.csv, line 2: a quoted text that does not end; write a quote inside a quoted text twice: ""'),
    "a JSON list in one line": ("m.json", '[{"doc_id": "d1", "text": "a"}, {"doc_id": "d 2", "text": "b"}]',
        "m.json, line 1: \"doc_id\" contains white space: 'd 2' (object 2)"),
    "ids with zeros in a workbook": ("m.xlsx", workbook_of(["doc_id", "text", "made", "share"], [7, "Tea", 45000, 0.25],
        formats={"A2": "00000", "C2": "yyyy-mm-dd", "D2": "0%"}),
        'documents d1[00007||Tea|{"made": "2023-03-15", "share": "25%"}]'),
    "web topics": ("t.xml", WEB_TOPICS,
        'queries q1[1|obama family tree|{"description": "Find information.", "subtopic": "Find the photo essay."}]'),
    "topics 51 to 200": ("t.txt", TIPSTER,
        'queries q1[101|Design of the "Star Wars" System|{"head": "Tipster Topic Description", "dom": "Science and '
        'Technology", "desc": "Document will provide information.", "smry": "It provides.", "narr": "A relevant '
        'document will.", "con": "1. SDI", "nat": "U.S."}]'),
    "topics in fields of their own": ("t.xml", '<topics><topic number="1"><disease>Liposarcoma</disease>'
        "<gene>CDK4</gene></topic></topics>",
        'queries q1[1|Liposarcoma CDK4|{"disease": "Liposarcoma", "gene": "CDK4"}]'),
    "topics of CLEF": ("t.xml", '<topics><topic lang="en"><identifier>401-AH</identifier><title>Inflation</title>'
        "</topic></topics>", "queries q1[401-AH|Inflation]"),
    "topics of TREC RAG": ("topics.rag25.jsonl", lines({"id": "1", "title": "why tea"}), "queries q1[1|why tea]"),
    # What popular tools and published sets write.
    "annotations in a list": ("m.jsonl", lines({"query": QUESTION, "document": TEA, "annotations": [{"annotator": "a",
        "label": 1}, {"annotator": "b", "label": 0}]}), "all d1[||T|{}] q1[|Q] Q>T= Q>T= Q>T=1 by a Q>T=0 by b"),
    "annotations without people": ("m.jsonl", lines({"query": QUESTION, "document": TEA, "annotations": [{"label": 1},
        {"label": 0}]}),
        '"annotations" contains judgments that cannot be read: [{"label": 1}, {"label": 0}]. Write each as '
        '{"annotator", "label"}, or map the column to "ignore"'),
    "ids without digits": ("m.csv", f"query,doc,text\n{QUESTION},alpha,{TEA}\n{QUESTION},beta,{WATER}\n",
        "all d2[beta||W|{}] q1[|Q] Q>alpha= Q>beta="),
    "two ids, one of the passage": ("m.jsonl", lines({"docid": "a", "passage_id": "a1", "text": TEA}, {"docid": "a",
        "passage_id": "a2", "text": WATER}), 'documents d2[a2||W|{"docid": "a"}]'),
    "labels by annotator": ("m.jsonl", lines({"query": QUESTION, "document": TEA, "labels": {"alice": 1, "bob": 0}}),
        "all d1[||T|{}] q1[|Q] Q>T= Q>T= Q>T=1 by alice Q>T=0 by bob"),
    "labels without people": ("m.jsonl", lines({"query": QUESTION, "document": TEA, "labels": [1, 0, 1]}),
        "m.jsonl, line 1: the grade is not an integer, nor yes or no: '[1, 0, 1]'"),
    "SQuAD as it is published": ("m.json", json.dumps({"version": "1.1", "data": [{"title": "Tea", "paragraphs":
        [{"context": TEA, "qas": [{"id": "5", "question": QUESTION, "answers": [{"text": "a drink", "answer_start":
        7}]}]}]}]}), 'all d1[|Tea|T|{}] q1[5|Q|["a drink"]] 5>T='),
    "SQuAD, CSV of pandas": ("m.csv", "id,title,context,question,answers\n5,Tea,Tea is a drink,what is tea,"
        "\"{'text': ['a drink'], 'answer_start': [7]}\"\n", 'all -id d1[|Tea|T|{}] q1[|Q|["a drink"]] Q>T='),
    "SQuAD, flat": ("m.jsonl", lines({"id": "5", "title": "Tea", "context": TEA, "question": QUESTION, "answers.text":
        ["a drink"], "answers.answer_start": [7]}),
        'all -id -answers.answer_start d1[|Tea|T|{}] q1[|Q|["a drink"]] Q>T='),
    "SQuAD, no answer": ("m.jsonl", lines({"id": "5", "title": "Tea", "context": TEA, "question": QUESTION, "answers":
        {"text": [], "answer_start": []}}), "all -id d1[|Tea|T|{}] q1[|Q] Q>T="),
    "answers in a list": ("m.jsonl", lines({"question": QUESTION, "answer": ["a drink", "drink"]}),
        'queries q1[|Q|["a drink", "drink"]]'),
    "Label Studio, two controls": ("m.json", json.dumps([{"id": 1, "data": {"query": QUESTION, "document": TEA},
        "annotations": [{"id": 5, "completed_by": 1, "result": [{"from_name": "relevance", "value": {"choices": ["2"]}},
        {"from_name": "comment", "value": {"text": ["ok"]}}]}], "project": 1}]),
        "all d1[||T|{}] q1[|Q] Q>T= Q>T=2 by 1"),
    "Label Studio, nobody yet": ("m.json", json.dumps([{"id": 1, "data": {"query": QUESTION, "document": TEA},
        "annotations": [], "predictions": [], "project": 1}]), "all d1[||T|{}] q1[|Q] Q>T="),
    "Label Studio, tasks": ("m.json", json.dumps([{"data": {"query": QUESTION, "document": TEA}}]),
        "all d1[||T|{}] q1[|Q] Q>T="),
    "Label Studio, a ranker": ("m.json", json.dumps([{"id": 1, "data": {"query": QUESTION, "items": [{"id": "d1",
        "title": "x", "body": TEA}, {"id": "d2", "body": WATER}]}, "annotations": [{"completed_by": 1, "result":
        [{"from_name": "rank", "type": "ranker", "value": {"ranker": {"rank": ["d2", "d1"]}}}]}], "project": 1}]),
        "m.json, line 1: this is a Label Studio export, which cannot be read here: write its rows as JSON lines or "
        "columns, as docs/import.md shows them (object 1)"),
    "Label Studio, JSON-MIN": ("m.json", json.dumps([{"id": 1, "query": QUESTION, "document": TEA, "relevance":
        "Relevant", "annotator": 1, "annotation_id": 5, "created_at": "2024", "updated_at": "2024", "lead_time": 3.2}]),
        "all -id -annotation_id -created_at -updated_at -lead_time d1[||T|{}] q1[|Q] Q>T= Q>T=1 by 1"),
    "Quepid, a book": ("m.csv", "query,docid,Alice Smith,Bob Jones\nwhat is tea,d1,3,2\nwhat is tea,d2,0,\n",
        "queries-pairs q1[|Q] Q>d1= Q>d2= Q>d1=3 by Alice Smith Q>d1=2 by Bob Jones Q>d2=0 by Alice Smith"),
    "Quepid, LTR": ("m.txt", "3 qid:1 # d1 what is tea\n0 qid:1 # d2 what is tea\n",
        "m.txt, line 1: not JSON, XML, a table, qrels or a run; see docs/import.md"),
    "OpenSearch, judgments": ("m.json", json.dumps({"name": "x", "type": "IMPORT_JUDGMENT", "judgmentRatings":
        [{"query": QUESTION, "ratings": [{"docId": "d1", "rating": "3"}, {"docId": "d2", "rating": "0"}]}]}),
        "queries-pairs q1[|Q] Q>d1=3 Q>d2=0"),
    "Elasticsearch, rank evaluation": ("m.json", json.dumps({"requests": [{"id": "q1", "request": {"query": {"match":
        {"text": QUESTION}}}, "ratings": [{"_index": "i", "_id": "d1", "rating": 3}]}]}), "pairs q1>d1=3"),
    "user behavior insights": ("m.jsonl", lines({"application": "a", "query_id": "u1", "client_id": "c", "user_query":
        QUESTION, "query_response_hit_ids": ["d1", "d2"], "timestamp": "t"}),
        'queries q1[u1|Q|{"application": "a", "client_id": "c", "query_response_hit_ids": ["d1", "d2"], '
        '"timestamp": "t"}]'),
    "MIRACL": ("m.jsonl", lines({"query_id": "1", "query": QUESTION, "positive_passages": [{"docid": "10#0", "title":
        "Tea", "text": TEA}], "negative_passages": [{"docid": "11#1", "title": "W", "text": WATER}]}),
        "all d2[11#1|W|W|{}] q1[1|Q] 1>10#0=1 1>11#1=0"),
    "Ragas": ("r.jsonl", lines({"user_input": QUESTION, "retrieved_contexts": [TEA, WATER], "response": "a drink",
        "reference": "a drink"}), "all -response -reference d2[||W|{}] q1[|Q] Q>T= Q>W="),
    "LlamaIndex": ("r.json", json.dumps({"queries": {"q1": QUESTION}, "corpus": {"d1": TEA}, "relevant_docs": {"q1":
        ["d1"]}, "mode": "text"}),
        "r.json, line 1: this is a data set of LlamaIndex, which cannot be read here: write its rows as JSON lines "
        "or columns, as docs/import.md shows them"),
    "WANDS": ("label.csv", "id\tquery_id\tproduct_id\tlabel\n0\t0\t25434\tExact\n1\t0\t12088\tIrrelevant\n",
        "label.csv, line 2: the grade is not an integer, nor yes or no: 'Exact'"),
    "CrowdFlower": ("train.csv",
        '"id","query","product_title","product_description","median_relevance","relevance_variance"\n'
        '1,"bridal shower decorations","Accent Pillow","Red satin",1,0\n',
        "all -id -relevance_variance d1[|Accent Pillow|Red satin|{}] q1[|bridal shower decorations] bridal shower "
        "decorations>Red satin=1"),
    "Mechanical Turk": ("b.csv", '"HITId","WorkerId","Input.query","Input.document","Answer.relevance"\n'
        '"h","w1","what is tea","Tea is a drink","2"\n', "all -HITId d1[||T|{}] q1[|Q] Q>T= Q>T=2 by w1"),
    "a decimal comma": ("m.csv", "query;document;score\nwhat is tea;Tea is a drink;0,75\n",
        "m.csv, line 2: the score is not a finite number: '0,75'"),
    "workbook with TRUE and FALSE": ("m.xlsx", workbook_of(["query", "document", "relevant"], [QUESTION, TEA, True],
        [QUESTION, WATER, False]), "all d2[||W|{}] q1[|Q] Q>T=1 Q>W=0"),
    "Parquet, a label is missing": ("m.parquet", parquet_of({"query": QUESTION, "text": TEA, "label": 1.0}, {"query":
        QUESTION, "text": WATER, "label": None}), "all d2[||W|{}] q1[|Q] Q>T=1 Q>W="),
    "lists of pandas": ("m.csv",
        "query,positive,negative\nwhat is tea,\"['Tea is a drink', 'Tea is hot']\",\"['Water boils']\"\n",
        "all d3[||W|{}] q1[|Q] Q>T=1 Q>Tea is hot=1 Q>W=0"),
    "lists of JSON in CSV": ("m.csv",
        "query,pos,neg\nwhat is tea,\"[\"\"Tea is a drink\"\"]\",\"[\"\"Water boils\"\"]\"\n",
        "all d2[||W|{}] q1[|Q] Q>T=1 Q>W=0"),
    "arrays of NumPy": ("m.csv", "query,answers,context\n"
        "what is tea,\"{'text': array(['a drink'], dtype=object), 'answer_start': array([7])}\"," "Tea is a drink\n",
        'all d1[||T|{}] q1[|Q|["a drink"]] Q>T='),
    "lists of ids in CSV": ("m.csv", "query_id,doc_ids\n1,\"['10', '11']\"\n", "pairs 1>10= 1>11="),
    "single quotes": ("m.jsonl", "{'query':'a b','document':'c d','label':1}\n",
        "m.jsonl, line 1: not JSON, from character 2 on"),
    "TRL, preferences": ("m.jsonl", lines({"prompt": QUESTION, "chosen": TEA, "rejected": WATER}),
        "all d2[||W|{}] q1[|Q] Q>T=1 Q>W=0"),
    "PyTerrier, results": ("r.csv", "qid,docid,docno,rank,score,query\n1,0,d1,0,2.5,what is tea\n",
        "queries-pairs -docid -rank q1[1|Q] 1>d1=@2.5"),
    "Solr": ("m.json", json.dumps({"response": {"numFound": 1, "docs": [{"id": "d1", "title": "Tea", "body": TEA}]}}),
        "m.json, line 1: this is an answer of Solr, which cannot be read here: write its rows as JSON lines or "
        "columns, as docs/import.md shows them"),
    "HotpotQA as it is published": ("h.json", json.dumps([{"_id": "5", "question": QUESTION, "answer": "a", "type":
        "bridge", "level": "hard", "supporting_facts": [["Tea", 0]], "context": [["Tea", ["Tea is.", " A drink."]],
        ["Water", ["Water boils."]]]}]),
        'h.json, line 1: "context" contains no readable text: [["Tea", ["Tea is.", " A drink."]], ["Water", ["W.; '
        'write it as {"id", "title", "text"} (object 1)'),
    "TriviaQA": ("m.jsonl", lines({"question": QUESTION, "question_id": "t1", "answer": {"value": "a", "aliases":
        ["b"]}, "search_results": {"title": ["Tea"], "search_context": [TEA]}}),
        'queries q1[t1|Q|["a", "b"]|{"search_results": {"title": ["Tea"], "search_context": ["T"]}}]'),
}  # fmt: skip
SHORT = {QUESTION: "Q", TEA: "T", WATER: "W"}


def describe(folder: Path, name: str) -> str:
    (source,) = list_sources(folder / name, name)
    found = detect(source)
    if found.problem:
        return found.problem
    told = [found.kind, *(f"-{column}" for column in found.unused)]
    texts: dict[str, str] = {}
    parts = HOLDS[found.kind]
    try:
        if "documents" in parts:
            documents = list(records.read_documents(source))
            last = documents[-1]
            is_hash = len(last.id) == 16
            texts |= {row.id: row.text for row in documents if len(row.id) == 16}
            told.append(f"d{len(documents)}[{'' if is_hash else last.id}|{last.title}|{last.text}|{last.metadata}]")
        if "queries" in parts:
            queries = list(records.read_queries(source, by_position=False))
            last = queries[-1]
            texts |= {row.id: row.text for row in queries if len(row.id) == 16}
            own = [one for one in (last.answers, last.metadata, last.instruction) if one not in ("[]", "{}", "")]
            told.append(f"q{len(queries)}[{'|'.join(['' if len(last.id) == 16 else last.id, last.text, *own])}]")
        if "pairs" in parts:
            for pair in records.read_pairs(source, 3):
                grade, score = ("" if one is None else str(one) for one in (pair.gold, pair.teacher_score))
                told.append(f"{texts.get(pair.query, pair.query)}>{texts.get(pair.document, pair.document)}"
                            f"={grade}{'@' + score if score else ''}")  # fmt: skip
        table = tables.read_table(source)
        if {"qrels", "judgments"} & set(parts) or (table and table.has_assessors):
            for row in read_grades(source, 3):
                if row.problem:
                    raise source.bad(row.line, row.problem)
                pair_name = f"{texts.get(row.query, row.query)}>{texts.get(row.document, row.document)}"
                told.append(f"{pair_name}={row.grade}{' by ' + row.assessor if row.assessor else ''}")
        if "runs" in parts:
            told += [f"{query}>{document}" for _line, query, document in top_of_run(source, 10)]
    except BadInput as error:
        return str(error)
    return " ".join(told)


@pytest.mark.parametrize("case", CASES)
def test_a_file_of_a_public_report_is_read_or_refused_by_name(case, tmp_path):
    name, content, expected = CASES[case]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    said = describe(tmp_path, name)
    for text, letter in SHORT.items():
        said = said.replace(text, letter)
    assert said == expected

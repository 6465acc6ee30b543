"""Inputs of public reports of errors, and files of popular tools: what is read of each, or the line that refuses it."""

from pathlib import Path

import pytest

from corpus.errors import BadInput
from corpus.importing import records, tables
from corpus.importing.detection import HOLDS, detect, list_sources
from corpus.importing.grades import read_grades
from corpus.importing.run_lines import top_of_run
from tests.corpus.importing.public_cases import CASES, QUESTION, TEA, WATER

# What is read: the kind of the file, - the columns that are not read, d: documents (the last as id,
# title and text), q: queries, and pairs, grades and runs as query>document=grade@score by assessor,
# texts in place of ids made of them. The commonest texts are written Q, T and W.
READ = {
    "qrels, BEIR's names turned round": "qrels 1>10=1 1>11=0",
    "qrels, a score of whole numbers": "qrels 1>10=1 1>11=0",
    "qrels, four columns between blanks": "qrels -iter 1>10=1 1>11=0",
    "qrels, four columns with tabs": "qrels -iteration 1>10=1 1>11=0",
    "qrels, texts' names over ids": "qrels Q1>D10=1 Q1>D11=0",
    "qrels, one name is known": 'No column is the query that "label" is about: map "b" to "query_id"',
    "run with a header, blanks": "runs -rank q1>d2 q1>d1",
    "run with ranks, commas": "runs q1>d1 q1>d2",
    "judgments, assessor first": "judgments 1>10=1 by alice 1>10=0 by bob",
    "query as object, candidates": "all d2[11||W|{}] q1[1|Q] 1>10=@3.5 1>11=@1.0",
    "document as object": "all d1[10|Tea|T|{}] q1[1|Q] 1>10=1",
    "an object without a text": (
        'm.jsonl, line 1: "document" contains no readable text: a, b; write it as {"id", "title", "text"}'
    ),
    "a list with an object without a text": (
        'm.jsonl, line 2: "positives" contains no readable text: a; write it as {"id", "title", "text"}'
    ),
    "DPR": 'all d2[11||W|{}] q1[|Q|["a drink"]] Q>10=1 Q>11=0',
    "DPR's retrieval": 'all -ctxs.has_answer d1[10|Tea|T|{}] q1[|Q|["a drink"]] Q>10=@3.5',
    "MS MARCO": "all -query_type -passages.url d2[||W|{}] q1[1|Q] 1>T=1 1>W=0",
    "MS MARCO, Parquet": "all -passages.url d2[||W|{}] q1[1|Q] 1>T=1 1>W=0",
    "ids in objects": "pairs 1>10=1 1>11=0",
    "MTEB's top_ranked": "pairs 1>10= 1>11=",
    "docs with one label too few": ('m.jsonl, line 1: 2 documents, and 1 values of "grade"; each document has one'),
    "docs and scores": "all d2[||W|{}] q1[|Q] Q>T=@0.8 Q>W=@0.2",
    "FlagEmbedding": "all d2[||W|{}] q1[|Q|Holds the answer.] Q>T=1@0.8 Q>W=0@0.2",
    "ms-swift": "all d2[||W|{}] q1[|Q] Q>T=1 Q>W=0",
    "ERank": "all -chain -prompt -completion -k -mean d1[10||T|{}] q1[1|Q] 1>10=1@0.8",
    "BRIGHT": "queries-pairs -excluded_ids q1[1|Q] 1>11=1",
    "hard negatives by system": (
        'm.jsonl, line 1: "neg" contains no readable text: bm25; write it as {"id", "title", "text"}'
    ),
    "HotpotQA": 'all d2[|Water|W.|{}] q1[5|Q|["a drink"]] 5>Tea is\na drink.= 5>W.=',
    "docs, ids and labels": "all d2[d2||W|{}] q1[|Q] Q>d1=1 Q>d2=0",
    "texts that look like JSON": 'documents d3[3||{"a": 1}|{}]',
    "anchor and positive": "all d2[||Because it is|{}] q2[|why so] Q>T=1 why so>Because it is=1",
    "n-tuple": "all d3[||Bread is baked|{}] q1[|Q] Q>T=1 Q>W=0 Q>Bread is baked=0",
    "chunk": (
        'No column is the document that "label" is about: map "chunk" to "text", or map "label" to '
        '"metadata" to keep it as it is'
    ),
    "positive without a query": ('No column is the query that "positive_passages" is about: map "claim" to "query"'),
    "a grade without a document": 'No column is the document that "grade" is about: map "remark" to "text"',
    "an answer with a label": "all d2[||W|{}] q1[|Q] Q>T=1 Q>W=0",
    "an answer without a label": 'queries q1[|Q|["a drink"]]',
    "documents with a label": (
        'No column is the query that "label" is about: map its column to "query", or map "label" to '
        '"metadata" to keep it as it is'
    ),
    "documents of a query": "documents-pairs d2[11||W|{}] 1>10= 1>11=",
    "documents of a topic": 'documents d1[10||T|{"topic": "drinks"}]',
    "one column an annotator": (
        "all d2[||W|{}] q1[|Q] Q>T= Q>W= Q>T=1 by annotator_1 Q>T=0 by annotator_2 Q>T=1 by annotator_3 "
        "Q>W=0 by annotator_1 Q>W=0 by annotator_2"
    ),
    "relevance_score, whole": "all d1[||T|{}] q1[|Q] Q>T=2",
    "relevance_score, shares": "all d1[||T|{}] q1[|Q] Q>T=@0.7",
    "other columns of pairs": "all -source -column 5 d1[||T|{}] q1[|Q] Q>T=1",
    "the row's id": "all -id d2[||W|{}] q2[|why so] Q>T=1 Q>W=0 why so>T=0",
    "doc is an id beside text": "all d2[d11||W|{}] q1[|Q] Q>d10= Q>d11=",
    "questions under another name": (
        "all -Überschrift d2[||Wasser, auch eins|{}] q2[|Und Wasser?] Was ist Tee?>Tee, ein Getränk= Und "
        "Wasser?>Wasser, auch eins="
    ),
    "a title beside ids": "queries-pairs -product_title -esci_label q1[|Q] Q>p1=",
    "a positive with its score": "all d1[||T|{}] q1[|Q] Q>T=1@0.9",
    "a positive with a label": "all d2[||Water|{}] q1[|Q] Q>T=1 Q>Water=0",
    "a triple with a margin": "all -score d2[||Water|{}] q1[|Q] Q>T=1 Q>Water=0",
    "a number of documents": 'queries q1[1|Q|{"documents": "3"}]',
    "a rank of documents": 'documents d1[d1||T|{"rank": "3"}]',
    "collection.tsv with commas": "documents d2[2||W|{}]",
    "triples with commas": (
        "all d2[||No, it is, not, so|{}] q1[|what, tea, is] what, tea, is>Tea is, a, nice drink=1 what, "
        "tea, is>No, it is, not, so=0"
    ),
    "semicolons with commas in the header": 'documents d2[d2||Water|{"one, two, three": "y"}]',
    "sep=": "documents d1[d1||Tea, a drink|{}]",
    "CR alone": "documents d2[d2||beta|{}]",
    "mixed ends of lines": "documents d3[d3||gamma|{}]",
    "a quoted line break": "documents d1[d1||two\nlines|{}]",
    "rows of commas alone": "documents d1[d1||alpha|{}]",
    "rows of commas before the header": "documents -column 3 d1[d1||alpha|{}]",
    "comments in qrels": "qrels q1>d1=1 q1>d2=0",
    "comments in a run": "runs q1>d1 q1>d2",
    "comments in a table of grades": "qrels q1>d1=1 q1>d2=0",
    "a run of three columns, falling": "runs q1>d1 q1>d2 q1>d3",
    "a run of three columns, shares": "runs q1>d2 q1>d1",
    "qrels of three columns as 1.0": "qrels q1>d1=1 q1>d2=0 q2>d2=1",
    "an empty grade": "q.tsv, line 2: the grade is empty",
    "an empty grade first": "q.tsv, line 1: the grade is empty",
    "an open quote": ('m.csv, line 2: a quoted text that does not end; write a quote inside a quoted text twice: ""'),
    "a JSON list in one line": "m.json, line 1: \"doc_id\" contains white space: 'd 2' (object 2)",
    "ids with zeros in a workbook": 'documents d1[00007||Tea|{"made": "2023-03-15", "share": "25%"}]',
    "web topics": (
        'queries q1[1|obama family tree|{"description": "Find information.", "subtopic": "Find the photo essay."}]'
    ),
    "topics 51 to 200": (
        'queries q1[101|Design of the "Star Wars" System|{"head": "Tipster Topic Description", "dom": '
        '"Science and Technology", "desc": "Document will provide information.", "smry": "It provides.", '
        '"narr": "A relevant document will.", "con": "1. SDI", "nat": "U.S."}]'
    ),
    "topics in fields of their own": ('queries q1[1|Liposarcoma CDK4|{"disease": "Liposarcoma", "gene": "CDK4"}]'),
    "topics of CLEF": "queries q1[401-AH|Inflation]",
    "topics of TREC RAG": "queries q1[1|why tea]",
    "annotations in a list": "all d1[||T|{}] q1[|Q] Q>T= Q>T= Q>T=1 by a Q>T=0 by b",
    "annotations without people": (
        '"annotations" contains judgments that cannot be read: [{"label": 1}, {"label": 0}]. Write each as '
        '{"annotator", "label"}, or map the column to "ignore"'
    ),
    "ids without digits": "all d2[beta||W|{}] q1[|Q] Q>alpha= Q>beta=",
    "two ids, one of the passage": 'documents d2[a2||W|{"docid": "a"}]',
    "labels by annotator": "all d1[||T|{}] q1[|Q] Q>T= Q>T= Q>T=1 by alice Q>T=0 by bob",
    "labels without people": "m.jsonl, line 1: the grade is not an integer, nor yes or no: '[1, 0, 1]'",
    "SQuAD as it is published": 'all d1[|Tea|T|{}] q1[5|Q|["a drink"]] 5>T=',
    "SQuAD, CSV of pandas": 'all -id d1[|Tea|T|{}] q1[|Q|["a drink"]] Q>T=',
    "SQuAD, flat": 'all -id -answers.answer_start d1[|Tea|T|{}] q1[|Q|["a drink"]] Q>T=',
    "SQuAD, no answer": "all -id d1[|Tea|T|{}] q1[|Q] Q>T=",
    "answers in a list": 'queries q1[|Q|["a drink", "drink"]]',
    "Label Studio, two controls": "all d1[||T|{}] q1[|Q] Q>T= Q>T=2 by 1",
    "Label Studio, nobody yet": "all d1[||T|{}] q1[|Q] Q>T=",
    "Label Studio, tasks": "all d1[||T|{}] q1[|Q] Q>T=",
    "Label Studio, a ranker": (
        "m.json, line 1: this is a Label Studio export, which cannot be read here: write its rows as JSON "
        "lines or columns, as docs/import.md shows them (object 1)"
    ),
    "Label Studio, JSON-MIN": (
        "all -id -annotation_id -created_at -updated_at -lead_time d1[||T|{}] q1[|Q] Q>T= Q>T=1 by 1"
    ),
    "Quepid, a book": (
        "queries-pairs q1[|Q] Q>d1= Q>d2= Q>d1=3 by Alice Smith Q>d1=2 by Bob Jones Q>d2=0 by Alice Smith"
    ),
    "Quepid, LTR": "m.txt, line 1: not JSON, XML, a table, qrels or a run; see docs/import.md",
    "OpenSearch, judgments": "queries-pairs q1[|Q] Q>d1=3 Q>d2=0",
    "Elasticsearch, rank evaluation": "pairs q1>d1=3",
    "user behavior insights": (
        'queries q1[u1|Q|{"application": "a", "client_id": "c", "query_response_hit_ids": ["d1", "d2"], '
        '"timestamp": "t"}]'
    ),
    "MIRACL": "all d2[11#1|W|W|{}] q1[1|Q] 1>10#0=1 1>11#1=0",
    "Ragas": "all -response -reference d2[||W|{}] q1[|Q] Q>T= Q>W=",
    "LlamaIndex": (
        "r.json, line 1: this is a data set of LlamaIndex, which cannot be read here: write its rows as "
        "JSON lines or columns, as docs/import.md shows them"
    ),
    "WANDS": "label.csv, line 2: the grade is not an integer, nor yes or no: 'Exact'",
    "CrowdFlower": (
        "all -id -relevance_variance d1[|Accent Pillow|Red satin|{}] q1[|bridal shower decorations] bridal "
        "shower decorations>Red satin=1"
    ),
    "Mechanical Turk": "all -HITId d1[||T|{}] q1[|Q] Q>T= Q>T=2 by w1",
    "a decimal comma": "m.csv, line 2: the score is not a finite number: '0,75'",
    "workbook with TRUE and FALSE": "all d2[||W|{}] q1[|Q] Q>T=1 Q>W=0",
    "Parquet, a label is missing": "all d2[||W|{}] q1[|Q] Q>T=1 Q>W=",
    "lists of pandas": "all d3[||W|{}] q1[|Q] Q>T=1 Q>Tea is hot=1 Q>W=0",
    "lists of JSON in CSV": "all d2[||W|{}] q1[|Q] Q>T=1 Q>W=0",
    "arrays of NumPy": 'all d1[||T|{}] q1[|Q|["a drink"]] Q>T=',
    "lists of ids in CSV": "pairs 1>10= 1>11=",
    "single quotes": "m.jsonl, line 1: not JSON, from character 2 on",
    "TRL, preferences": "all d2[||W|{}] q1[|Q] Q>T=1 Q>W=0",
    "PyTerrier, results": "queries-pairs -docid -rank q1[1|Q] 1>d1=@2.5",
    "Solr": (
        "m.json, line 1: this is an answer of Solr, which cannot be read here: write its rows as JSON "
        "lines or columns, as docs/import.md shows them"
    ),
    "HotpotQA as it is published": (
        'h.json, line 1: "context" contains no readable text: [["Tea", ["Tea is.", " A drink."]], '
        '["Water", ["W.; write it as {"id", "title", "text"} (object 1)'
    ),
    "TriviaQA": 'queries q1[t1|Q|["a", "b"]|{"search_results": {"title": ["Tea"], "search_context": ["T"]}}]',
}


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
def test_a_file_of_a_public_report_is_read_or_refused_by_name(case: str, tmp_path: Path) -> None:
    ((name, content),) = CASES[case].items()
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    said = describe(tmp_path, name)
    for text, letter in SHORT.items():
        said = said.replace(text, letter)
    assert said == READ[case]

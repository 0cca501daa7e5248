"""Runs the queries of `lukasa-evals cypher --peers` in Kuzu and FalkorDB."""

from __future__ import annotations

import csv
import json
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Ask = Callable[[str, Record], list[Any]]
BATCH = 10_000
ENGINES = ("kuzu", "falkordb")


def total(value: Any) -> float:
    """The sum of every number in an answer."""
    if isinstance(value, (list, tuple)):
        return sum(map(total, value))
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def percentile(ascending: list[float], share: float) -> float:
    return round(ascending[max(1, math.ceil(share * len(ascending))) - 1], 2)


def measure(engine: str, meta: Record, ask: Ask, add: Callable[..., None]) -> None:
    """One line per question: a first round warms up and is summed, a second one is measured."""
    for question in meta["questions"]:
        text = question[engine]
        given = [{"a": a, "b": b} if "$b" in text else {"a": a} if "$a" in text else {} for a, b in meta["parameters"]]
        answers, rows, times = 0.0, 0, []
        try:
            for place, parameters in enumerate(given if "$a" in text else given[:1]):
                found = ask(text, parameters)
                rows = len(found) if place == 0 else rows
                answers += total(found)
            begun = time.perf_counter()
            for parameters in given:
                before = time.perf_counter_ns()
                ask(text, parameters)
                times.append((time.perf_counter_ns() - before) / 1e3)
                if time.perf_counter() - begun > meta["longest_s"] and len(times) >= 10:
                    break
        except Exception as error:
            add(query=question["query"], error=f"{type(error).__name__}: {error}", text=text)
            continue
        times.sort()
        figures = {"p50_us": percentile(times, 0.5), "p95_us": percentile(times, 0.95), "samples": len(times)}
        add(query=question["query"], **figures, rows=rows, answers=round(answers, 2), text=text)


def kuzu(folder: Path, meta: Record, add: Callable[..., None]) -> None:
    import kuzu as kz

    warnings.simplefilter("ignore", DeprecationWarning)
    connection = kz.Connection(kz.Database(":memory:"))
    connection.execute("CREATE NODE TABLE N(id INT64 PRIMARY KEY, score INT64, team STRING)")
    connection.execute("CREATE REL TABLE E(FROM N TO N)")
    connection.execute(f"COPY N FROM '{folder / 'nodes.csv'}' (header=false)")
    connection.execute(f"COPY E FROM '{folder / 'edges.csv'}' (header=false)")
    prepared: dict[str, Any] = {}

    def ask(text: str, parameters: Record) -> list[Any]:
        if text not in prepared:
            prepared[text] = connection.prepare(text)
        result: Any = connection.execute(prepared[text], parameters)
        rows = result.get_all()
        result.close()
        return rows

    measure("kuzu", meta, ask, add)


def falkordb(folder: Path, meta: Record, add: Callable[..., None], socket: str) -> None:
    from falkordb import FalkorDB

    graph = FalkorDB(unix_socket_path=socket).select_graph("questions")
    graph.query("CREATE INDEX FOR (n:N) ON (n.id)")
    with (folder / "nodes.csv").open() as file:
        nodes = [[int(row[0]), int(row[1]), row[2]] for row in csv.reader(file)]
    for first in range(0, len(nodes), BATCH):
        text = "UNWIND $rows AS r CREATE (:N {id: r[0], score: r[1], team: r[2]})"
        graph.query(text, {"rows": nodes[first : first + BATCH]})
    with (folder / "edges.csv").open() as file:
        edges = [[int(row[0]), int(row[1])] for row in csv.reader(file)]
    for first in range(0, len(edges), BATCH):
        # Nodes have their numbers as internal ids too.
        text = "UNWIND $rows AS r MATCH (a), (b) WHERE id(a) = r[0] AND id(b) = r[1] CREATE (a)-[:E]->(b)"
        graph.query(text, {"rows": edges[first : first + BATCH]})
    measure("falkordb", meta, lambda text, given: graph.ro_query(text, given).result_set, add)


def compare(folder: Path, add: Callable[..., None]) -> None:
    """Compares the rows of generated queries with those of Lukasa, as bags; prints what differs."""
    import kuzu as kz

    warnings.simplefilter("ignore", DeprecationWarning)
    labels, kinds = "ABC", "RS"
    asked = same = refused = 0
    different, reasons = [], {}
    for line in (folder / "cases.jsonl").read_text().splitlines():
        case = json.loads(line)
        connection = kz.Connection(kz.Database(":memory:", buffer_pool_size=1 << 26, max_db_size=1 << 30), num_threads=1)
        for label in labels:
            connection.execute(f"CREATE NODE TABLE {label}(id INT64 PRIMARY KEY, n INT64, s STRING)")
        pairs = ", ".join(f"FROM {a} TO {b}" for a in labels for b in labels)
        for kind in kinds:
            connection.execute(f"CREATE REL TABLE {kind}({pairs}, w INT64)")
        for i, (label, n, s) in enumerate(case["nodes"]):
            connection.execute(f"CREATE (:{labels[label]} {{id: {i}, n: $n, s: $s}})", {"n": n, "s": s})
        for src, dst, kind, w in case["edges"]:
            a, b = (labels[case["nodes"][end][0]] for end in (src, dst))
            text = f"MATCH (a:{a} {{id: {src}}}), (b:{b} {{id: {dst}}}) CREATE (a)-[:{kinds[kind]} {{w: $w}}]->(b)"
            connection.execute(text, {"w": w})
        for question in case["questions"]:
            asked += 1
            try:
                result: Any = connection.execute(question["text"])
                shown = lambda v: "null" if v is None else f"'{v}'" if isinstance(v, str) else str(v)
                found = sorted([shown(v) for v in row] for row in result.get_all())
            except RuntimeError as error:
                refused += 1
                reason = str(error)[:80]
                reasons[reason] = reasons.get(reason, 0) + 1
                continue
            if found == sorted(question["rows"]):
                same += 1
            else:
                different.append({"text": question["text"], "kuzu": found[:5], "lukasa": question["rows"][:5]} | case)
        connection.close()
    figures = {"asked": asked, "same": same, "different": len(different), "refused": refused}
    add(query="generated", **figures, reasons=reasons, examples=different[:5])


def read_meta(folder: Path) -> Record:
    return json.loads((folder / "meta.json").read_text())

#!/usr/bin/env python3
"""Measures other graph engines on a graph exported by `lukasa-evals graph --peers` or `cypher --peers`.

Prints one JSON object per engine on stdout; progress goes to stderr. Each engine runs in a separate process, in a
virtual environment that this script makes; an engine that fails gives a line with `error`, and the others continue.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True  # keeps the repository clean
import falkordb_server  # noqa: E402
import questions  # noqa: E402
from environment import prepared_python, say, venv_folder  # noqa: E402

Record = dict[str, Any]
Rows = list[tuple[Any, ...]]
ENGINES = ("networkx", "rustworkx", "igraph", "leidenalg", "kuzu", "falkordb")
COMMUNITY_ENGINES = ("leidenalg", "igraph")
SEED = 42
PPR_RUNS = 5
SAMPLE = 20  # starts on which several ways to ask are compared
BATCH = 10_000  # edges per UNWIND


class Graph:
    """The exported graph, in the forms that the engines read."""

    def __init__(self, folder: Path) -> None:
        import numpy

        self.np = numpy
        self.file = folder / "graph.txt"
        self.meta: Record = json.loads((folder / "meta.json").read_text())
        self.nodes: int = self.meta["nodes"]
        self.edges = numpy.fromstring(self.file.read_text(), dtype=numpy.int64, sep=" ").reshape(-1, 3)
        self.seeds = {int(node): weight for node, weight in self.meta["ppr_seeds"].items()}
        self.iteration = {"alpha": self.meta["damping"], "max_iter": self.meta["iterations"], "tol": 0.0}

    def rows(self) -> Rows:
        """(source, target, type) of every edge."""
        return list(map(tuple, self.edges.tolist()))

    def both_ways(self) -> Rows:
        """(source, target, weight): every edge and, weaker, its reverse; parallel weights summed."""
        np, (source, target, kind) = self.np, self.edges.T
        kinds, place = np.unique(kind, return_inverse=True)
        weight = np.array([self.meta["type_weights"][str(kind)] for kind in kinds.tolist()])[place]
        keys = np.concatenate([source * self.nodes + target, target * self.nodes + source])
        pairs, place = np.unique(keys, return_inverse=True)
        sums = np.bincount(place, np.concatenate([weight, weight * self.meta["reverse_factor"]]))
        return list(zip((pairs // self.nodes).tolist(), (pairs % self.nodes).tolist(), sums.tolist(), strict=True))

    def undirected(self) -> Callable[[], Any]:
        """Builds the igraph graph without direction and self loops, weighted by the number of parallel edges."""
        import igraph as ig

        np, (source, target) = self.np, self.edges[self.edges[:, 0] != self.edges[:, 1], :2].T
        keys = np.minimum(source, target) * self.nodes + np.maximum(source, target)
        pairs, counts = np.unique(keys, return_counts=True)
        ends = np.stack([pairs // self.nodes, pairs % self.nodes], axis=1).tolist()
        return partial(ig.Graph, n=self.nodes, edges=ends, edge_attrs={"weight": counts.tolist()})


class Report:
    """One line of the result. A worker prints it again after each figure, and `run_engine` keeps the last. After
    `_done`, running out of time is no error."""

    def __init__(self, **fields: Any) -> None:
        self.fields: Record = fields

    def add(self, **fields: Any) -> None:
        self.fields |= fields
        print(json.dumps(self.fields), flush=True)


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds and the result."""
    start = time.perf_counter_ns()
    result = work()
    return round((time.perf_counter_ns() - start) / 1e6, 3), result


def percentile(ascending: list[float], share: float) -> float:
    return round(ascending[max(0, math.ceil(share * len(ascending)) - 1)], 1)


def latencies(ask: Callable[[int], int], starts: Iterable[int]) -> tuple[list[float], int]:
    """Microseconds of the questions in ascending order, and the sum of the answers."""
    total, times = 0, []
    for start in starts:
        before = time.perf_counter_ns()
        total += ask(start)
        times.append((time.perf_counter_ns() - before) / 1e3)
    return sorted(times), total


def hops(graph: Graph, report: Report, *asks: Callable[..., int]) -> None:
    """Measures `ask(start, k=k)`, the number of nodes within k hops; of several `asks` the one that is fastest on a sample."""
    for name, starts, k in (("hop2", "starts", 2), ("hop3", "starts", 3), ("hub_hop3", "hubs", 3)):
        nodes: list[int] = graph.meta[starts]
        ways = [partial(ask, k=k) for ask in asks]
        if len(ways) > 1:
            ways.sort(key=lambda way: min(sum(latencies(way, nodes[:SAMPLE])[0]) for _ in range(2)))
        latencies(ways[0], nodes)
        times, total = latencies(ways[0], nodes)
        median = {} if starts == "hubs" else {f"{name}_p50_us": percentile(times, 0.5)}
        report.add(**median, **{f"{name}_p95_us": percentile(times, 0.95), f"{name}_sum": total})


def layers(successors: Callable[[int], Iterable[int]], start: int, k: int) -> int:
    """Breadth first, a layer at a time, by the engine's own list of successors."""
    seen = frontier = {start}
    for _ in range(k):
        frontier = set().union(*map(successors, frontier)) - seen
        seen |= frontier
    return len(seen)


def pagerank(report: Report, note: str, run: Callable[[], Any], *failure: type[Exception]) -> None:
    """Median time of `run`; `failure` is how the engine says that it stopped after the wanted iterations."""

    def attempt() -> None:
        with contextlib.suppress(*failure):
            run()

    report.add(ppr_ms=statistics.median(timed(attempt)[0] for _ in range(PPR_RUNS)), ppr_note=note)


def leiden(engine: str, graph: Any, prefix: str = "", iterations: int = 2) -> Record:
    """Communities of an undirected igraph graph whose edges have a `weight`."""
    if engine == "leidenalg":
        import leidenalg as la

        options = {"weights": "weight", "seed": SEED, "n_iterations": iterations}
        work = partial(la.find_partition, graph, la.ModularityVertexPartition, **options)
    else:
        random.seed(SEED)  # igraph draws from Python's generator
        options = {"objective_function": "modularity", "weights": "weight", "n_iterations": iterations}
        work = partial(graph.community_leiden, **options)
    ms, found = timed(work)
    modularity = round(graph.modularity(found.membership, weights="weight", resolution=1), 6)
    return {f"{prefix}ms": ms, f"{prefix}modularity": modularity, f"{prefix}communities": len(found)}


def networkx(graph: Graph, report: Report) -> None:
    import networkx as nx

    def build(kind: type[nx.DiGraph], add: str, rows: Rows) -> nx.DiGraph:
        result = kind()
        result.add_nodes_from(range(graph.nodes))
        getattr(result, add)(rows)
        return result

    build_ms, loaded = timed(partial(build, nx.MultiDiGraph, "add_edges_from", graph.rows()))  # the type is the key
    report.add(version=version("networkx"), build_ms=build_ms)
    hops(graph, report, partial(layers, loaded.successors))  # its shortest paths with a cutoff are slower
    weighted = build(nx.DiGraph, "add_weighted_edges_from", graph.both_ways())
    run = partial(nx.pagerank, weighted, personalization=graph.seeds, **graph.iteration)
    pagerank(report, "each call makes the sparse matrix again", run, nx.PowerIterationFailedConvergence)


def rustworkx(graph: Graph, report: Report) -> None:
    import rustworkx as rx

    def build(rows: Rows) -> rx.PyDiGraph:
        result = rx.PyDiGraph(multigraph=True)
        result.add_nodes_from(range(graph.nodes))
        result.add_edges_from(rows)
        return result

    build_ms, loaded = timed(partial(build, graph.rows()))
    report.add(version=version("rustworkx"), build_ms=build_ms)
    hops(graph, report, partial(layers, loaded.successors))  # its bfs_search with a pruning visitor is slower
    weighted = build(graph.both_ways())
    run = partial(rx.pagerank, weighted, weight_fn=float, personalization=graph.seeds, **graph.iteration)
    pagerank(report, "each call reads the weights again", run, rx.FailedToConverge)


def igraph(graph: Graph, report: Report) -> None:
    import igraph as ig

    ends, kinds = graph.edges[:, :2].tolist(), graph.edges[:, 2].tolist()
    build = partial(ig.Graph, n=graph.nodes, edges=ends, directed=True, edge_attrs={"type": kinds})
    build_ms, loaded = timed(build)
    report.add(version=version("igraph"), build_ms=build_ms)
    hops(graph, report, lambda start, k: len(loaded.neighborhood(start, order=k, mode="out")))
    rows = graph.both_ways()
    weighted = ig.Graph(n=graph.nodes, edges=[row[:2] for row in rows], directed=True)
    reset = [graph.seeds.get(node, 0.0) for node in range(graph.nodes)]
    options = {"damping": graph.meta["damping"], "reset": reset, "weights": [row[2] for row in rows]}
    pagerank(report, "to convergence", partial(weighted.personalized_pagerank, **options))
    report.add(**leiden("igraph", graph.undirected()(), "leiden_"))


def leidenalg(graph: Graph, report: Report) -> None:
    build_ms, loaded = timed(graph.undirected())
    report.add(version=version("leidenalg"), build_ms=build_ms)
    report.add(**leiden("leidenalg", loaded, "leiden_"), _done=True)
    report.add(**leiden("leidenalg", loaded, "leiden_conv_", iterations=-1))


def kuzu(graph: Graph, report: Report) -> None:
    import kuzu as kz

    def load() -> None:
        connection.execute("CREATE NODE TABLE N(id INT64 PRIMARY KEY)")
        connection.execute("CREATE REL TABLE E(FROM N TO N, type INT64)")
        connection.execute(f"COPY N FROM (UNWIND range(0, {graph.nodes - 1}) AS id RETURN id)")
        connection.execute(f"COPY E FROM '{graph.file}' (file_format='csv', header=false, delim=' ')")

    def ask(start: int, k: int) -> int:
        result: Any = connection.execute(prepared[k], {"id": start})
        with contextlib.closing(result):
            return result.get_next()[0]

    connection = kz.Connection(kz.Database(":memory:"))
    report.add(version=version("kuzu"), build_ms=timed(load)[0])
    # SHORTEST visits a node once, where the plain pattern walks every path; it leaves the start out.
    text = "MATCH (a:N {{id: $id}})-[:E* SHORTEST 1..{}]->(b:N) RETURN count(*) + 1"
    warnings.simplefilter("ignore", DeprecationWarning)  # of prepared statements
    prepared = {k: connection.prepare(text.format(k)) for k in (2, 3)}
    hops(graph, report, ask)


def falkordb(graph: Graph, report: Report) -> None:
    from falkordb import FalkorDB

    def load(rows: list[list[int]]) -> None:
        loaded.query("CREATE INDEX FOR (n:N) ON (n.id)")
        loaded.query("UNWIND range(0, $last) AS i CREATE (:N {id: i})", {"last": graph.nodes - 1})
        # Nodes have their numbers as internal ids too, by which edges load ten times as fast as by the index.
        text = "UNWIND $rows AS r MATCH (a), (b) WHERE id(a) = r[0] AND id(b) = r[1] CREATE (a)-[:E {type: r[2]}]->(b)"
        for first in range(0, len(rows), BATCH):
            loaded.query(text, {"rows": rows[first : first + BATCH]})

    def ask(text: str, start: int, k: int) -> int:
        answer = loaded.ro_query(text.format(k), {"id": start}).result_set
        return answer[0][0] if answer else 1  # algo.BFS gives no row when nothing is reached

    paths = "MATCH (a:N {{id: $id}})-[:E*0..{}]->(b) RETURN count(DISTINCT id(b))"
    search = "MATCH (a:N {{id: $id}}) CALL algo.BFS(a, {}, 'E') YIELD nodes RETURN size(nodes) + 1"
    with falkordb_server.started(venv_folder()) as socket:
        database = FalkorDB(unix_socket_path=socket)
        modules = {module[1]: module[3] for module in database.connection.execute_command("MODULE", "LIST")}
        major, rest = divmod(modules["graph"], 10_000)
        report.add(version=f"{major}.{rest // 100}.{rest % 100}")
        loaded = database.select_graph("peers")
        report.add(build_ms=timed(partial(load, graph.edges.tolist()))[0])
        trips, _ = latencies(lambda _: len(loaded.ro_query("RETURN 1").result_set), range(200))
        report.add(roundtrip_p50_us=percentile(trips, 0.5))
        hops(graph, report, partial(ask, paths), partial(ask, search))


def read_community(file: Path) -> Any:
    """An undirected igraph graph with weights, parallel edges merged and self loops removed."""
    import igraph as ig

    if file.suffix == ".gml":
        graph = ig.Graph.Read_GML(str(file))
        weight = next((name for name in ("weight", "value") if name in graph.es.attributes()), None)
        graph.es["weight"] = graph.es[weight] if weight else [1.0] * graph.ecount()
    else:
        lines = (line.split() for line in file.read_text().splitlines() if not line.startswith(("#", "%")))
        rows = [(line[0], line[1], float(line[2]) if len(line) > 2 else 1.0) for line in lines if line]
        graph = ig.Graph.TupleList(rows, edge_attrs=["weight"])
    return graph.as_undirected(mode="each").simplify(combine_edges={"weight": "sum"})


def work(engine: str, data: Path | None, communities: Path | None, cypher: Path | None, compare: Path | None) -> None:
    """Measures one engine, in its process."""
    gc.disable()  # so that no collection falls into a measured time
    if data:
        report = Report(suite="graph", engine=engine)
        with error_reported(report):
            graph = Graph(data)
            report.add(nodes=graph.nodes, edges=len(graph.edges))
            globals()[engine](graph, report)
    elif communities:
        for file in sorted(itertools.chain(communities.glob("*.gml"), communities.glob("*.edges"))):
            report = Report(suite="community", engine=engine, graph=file.stem)
            with error_reported(report):
                report.add(version=version(engine))
                graph = read_community(file)
                report.add(nodes=graph.vcount(), edges=graph.ecount(), **leiden(engine, graph), _done=True)
    elif compare:
        common = {"suite": "cypher", "engine": engine, "version": version(engine)}
        questions.compare(compare, lambda **fields: print(json.dumps(common | fields), flush=True))
    elif cypher:
        meta = questions.read_meta(cypher)
        common = {"suite": "cypher", "engine": engine, "version": version(engine)}
        common |= {"nodes": meta["nodes"], "edges": meta["edges"]}

        def add(**fields: Any) -> None:
            print(json.dumps(common | fields), flush=True)

        if engine == "kuzu":
            questions.kuzu(cypher, meta, add)
        else:
            with falkordb_server.started(venv_folder()) as socket:
                questions.falkordb(cypher, meta, add, socket)


@contextlib.contextmanager
def error_reported(report: Report) -> Any:
    """Turns an exception into the line's error."""
    try:
        yield
    except Exception as error:
        report.add(error=f"{type(error).__name__}: {error}")


def run_engine(python: Path, engine: str, suite: str, folder: Path, timeout: float) -> list[Record]:
    """Runs one engine in a new process group, which is ended in any case."""
    say(f"{suite}: {engine}")
    try:
        if engine not in ENGINES:
            raise ValueError(f"unknown engine, not one of {', '.join(ENGINES)}")
        if engine == "falkordb":
            falkordb_server.prepare(venv_folder(), python)
    except Exception as failure:  # after any error the other engines continue
        return [{"suite": suite, "engine": engine, "error": f"{type(failure).__name__}: {failure}"}]
    error = None
    with tempfile.TemporaryDirectory(prefix="peers-") as scratch, tempfile.TemporaryFile("w+") as output:
        source = {"graph": "--data", "community": "--community", "cypher": "--cypher", "compare": "--compare"}[suite]
        command: list[str | Path] = [python, __file__, "--worker", engine, source, folder]
        settings = os.environ | {"LUKASA_PEERS_VENV": str(venv_folder()), "TMPDIR": scratch}
        worker = subprocess.Popen(command, stdout=output, env=settings, start_new_session=True)
        try:
            if status := worker.wait(timeout):
                error = f"ended with status {status}"
        except subprocess.TimeoutExpired:
            error = f"timed out after {timeout:g} s"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
        output.seek(0)
        shown = [json.loads(line) for line in output if line.startswith("{") and line.endswith("}\n")]
    lines = list({(record.get("graph"), record.get("query")): record for record in shown}.values())
    if error and not (lines and "_done" in lines[-1]):
        lines = lines or [{"suite": suite, "engine": engine}]
        lines[-1].setdefault("error", error)
    return [{name: value for name, value in line.items() if name != "_done"} for line in lines]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with meta.json and graph.txt")
    parser.add_argument("--community", type=Path, help="folder with *.gml and *.edges")
    parser.add_argument("--cypher", type=Path, help="folder with meta.json, nodes.csv and edges.csv")
    parser.add_argument("--compare", type=Path, help="folder with cases.jsonl")
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--timeout", type=float, default=1800.0, help="seconds for each engine")
    parser.add_argument("--worker", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options.worker, options.data, options.community, options.cypher, options.compare)
    if not (options.data or options.community or options.cypher or options.compare):
        parser.error("one of --data, --community, --cypher and --compare is needed")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    python, engines = prepared_python(), options.engines.split(",")
    suites = (
        ("graph", options.data, ENGINES),
        ("community", options.community, COMMUNITY_ENGINES),
        ("cypher", options.cypher, questions.ENGINES),
        ("compare", options.compare, ("kuzu",)),
    )
    for suite, folder, known in suites:
        for engine in engines if folder else ():
            if engine in known or engine not in ENGINES:
                for line in run_engine(python, engine, suite, folder.resolve(), options.timeout):
                    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

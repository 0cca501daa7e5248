"""Replays one list of requests over MCP stdio, MCP HTTP, REST and the command line: the same data everywhere."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

LUKASA, REPOSITORY = sys.argv[1], sys.argv[2]
with open(os.path.join(os.path.dirname(__file__), "scenario.json")) as file:
    STEPS = json.load(file)
# Values that differ from run to run.
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
FRESH_ID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b")
DIGEST = re.compile(r"\b(sha256:)?[0-9a-f]{64}\b")
TIMES = {"elapsed_ms", "took_ms", "duration_ms", "latency_ms", "execution_ms", "next_cursor", "ts"}
# Fields that depend on the caller and the surface.
CALLER = {"agent", "ends_with_connection"}


def plain(value):
    """An answer without values and fields that differ from run to run or between surfaces."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items() if name not in TIMES | CALLER}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, str):
        return DIGEST.sub("digest", FRESH_ID.sub("id", MOMENT.sub("moment", value)))
    return value


def error(code, message):
    return {"error": plain({"code": code, "message": message})}


async def of_session(session):
    answers = []
    for step in STEPS:
        request = {"profile": "debug", **step["request"]}
        answer = (await session.call_tool(step["operation"], request)).structuredContent
        if answer["ok"]:
            answers.append(plain({"summary": answer["summary"], **answer["data"]}))
        else:
            answers.append(error(answer["errorCode"], answer["summary"]))
    return answers


async def by_stdio(folder):
    server = StdioServerParameters(command=LUKASA, args=["mcp", "--no-watch", "--no-embed", "--toolsets", "all"], cwd=folder)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return await of_session(session)


def serving(folder):
    server = subprocess.Popen(
        [LUKASA, "serve", "--listen", "127.0.0.1:0", "--no-watch", "--no-embed", "--toolsets", "all"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    return server, server.stdout.readline().split(" at ")[1].split()[0]


async def by_http(folder):
    server, address = serving(folder)
    try:
        async with streamable_http_client(f"{address}/mcp") as streams, ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            return await of_session(session)
    finally:
        server.kill()


def by_rest(folder):
    server, address = serving(folder)
    answers = []
    try:
        for step in STEPS:
            body = json.dumps(step["request"]).encode()
            asked = urllib.request.Request(f"{address}/v1/{step['operation']}", body, {"content-type": "application/json"})
            try:
                with urllib.request.urlopen(asked) as response:
                    answers.append(plain(json.load(response)))
            except urllib.error.HTTPError as refused:
                failure = json.load(refused)["error"]
                answers.append(error(failure["code"], failure["message"]))
    finally:
        server.kill()
    return answers


def by_command(folder):
    answers = []
    for step in STEPS:
        out = subprocess.run([LUKASA, *step["command"], "--json"], cwd=folder, capture_output=True, text=True)
        # 3: answered, but the caller did not get what was requested, as with a claim that another agent holds.
        if out.returncode in (0, 3):
            answers.append(plain(json.loads(out.stdout)))
        elif out.returncode == 1:
            failure = json.loads(out.stderr)["error"]
            answers.append(error(failure["code"], failure["message"]))
        else:
            # The command line refuses unknown arguments itself; steps that test this have `"cli": "refuses"`.
            assert step.get("cli") == "refuses", f"{step}: {out.stderr}"
            answers.append(None)
    return answers


def run(folder, *words):
    return subprocess.run([LUKASA, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def copies():
    """Copies of one store, in folders of the same name."""
    run(REPOSITORY, "index", "--json")
    folders = []
    for name in ["stdio", "http", "rest", "command"]:
        folder = os.path.join(f"{REPOSITORY}-{name}", "shop")
        shutil.copytree(REPOSITORY, folder)
        folders.append(folder)
    return folders


def differences(one, other, path=""):
    """The paths at which two answers differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(one.keys() | other.keys())
        return [found for name in names for found in differences(one.get(name), other.get(name), f"{path}/{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [found for at, pair in enumerate(zip(one, other)) for found in differences(*pair, f"{path}/{at}")]
    if isinstance(one, float) and isinstance(other, float) and abs(one - other) < 1e-3:
        # Scores that depend on age differ, because the answers are seconds apart.
        return []
    return [] if one == other else [f"{path}: {json.dumps(one)} is not {json.dumps(other)}"]


async def main():
    os.environ["LUKASA_PROJECT"] = "shop"
    stdio, http, rest, command = copies()
    ways = {
        "MCP stdio": await by_stdio(stdio),
        "MCP HTTP": await by_http(http),
        "REST": by_rest(rest),
        "command": by_command(command),
    }
    first, found = ways["REST"], []
    for name, answers in ways.items():
        for step, expected, answer in zip(STEPS, first, answers, strict=True):
            expected = {k: v for k, v in expected.items()}
            if name.startswith("MCP"):
                expected.pop("next_cursor", None)
            refused = name == "command" and step.get("cli") == "refuses"
            assert (answer is None) == refused, f"{name}: {step}"
            differ = [] if refused else differences(answer, expected)
            found += [f"{name}: {step['operation']} {json.dumps(step['request'])} {one}" for one in differ]
    assert not found, "\n".join(found)
    failed = [step["operation"] for step, answer in zip(STEPS, first, strict=True) if "error" in answer]
    assert failed == ["get", "put"], f"other steps than the expected ones failed: {failed}"
    print(f"scenario: {len(STEPS)} requests, the same data over {', '.join(ways)}")


asyncio.run(main())

"""Calls every tool with the MCP Python SDK, over stdio and over HTTP, and measures how long a new user waits."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import time
from urllib.parse import quote

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

LUKASA, REPOSITORY = sys.argv[1], sys.argv[2]
# Values of fields that cannot be derived from a schema.
KNOWN = {
    "ref": "Function:shop.py::price", "symbol": "price", "query": "price", "task": "the price is wrong", "key": "k",
    "type": "Note", "from": "Function:shop.py::price", "to": "Function:shop.py::total", "path": ".",
    "src": "Function:shop.py::price", "dst": "Function:shop.py::total", "pattern": "untested", "since": "tx:1",
    "module": "shop.py",
}
# Further arguments that a tool needs for a useful answer.
PRICE = "Function:shop.py::price"
GIVEN = {
    "agent_claim": {"target_id": "shop.py", "intent": "try", "agent_id": "ann"},
    "agent_release": {"claim_id": "shop.py", "agent_id": "ann"},
    "agent_status": {"agent_id": "ann"},
    "batch": {"writes": [{"object": {"type": "Service", "key": "till"}}]},
    "branch_create": {"name": "trial", "pinned": True},
    "branch_move": {"name": "trial"}, "branch_close": {"name": "trial"}, "branch_open": {"name": "trial"},
    "build_context_graph": {"anchors": [PRICE]},
    "cypher": {"query": "MATCH (n) RETURN count(n)"},
    "decision_add": {"title": "Prices are cents", "rationale": "sums are exact", "id": "d1", "agent_id": "ann"},
    "diff": {"from": "tx:1"},
    "episode_add": {"content": "the price was wrong", "agent_id": "ann"},
    "expand": {"roots": [PRICE]},
    "export": {"file": "out.jsonl"}, "audit_export": {"file": "record.jsonl"}, "import": {"file": "facts.jsonl"},
    "feature_status": {"feature_id": "f1"},
    "get_entity_neighbors": {"node_id": PRICE},
    "graph_traverse": {"entry_entity_ids": [PRICE]},
    "merge": {"source": "trial"},
    "put": {"type": "Service", "key": "web", "title": "Web"},
    "release_create": {"name": "v1"}, "release_show": {"name": "v1"}, "release_diff": {"from": "v1", "to": "v1"},
    "rename": {"ref": "Service:web", "to": "web2"},
    "semantic_slice": {"symbol": "price"},
    "subgraph": {"roots": [PRICE]},
    "tag_create": {"name": "stable", "release": "v1"},
    "tag_show": {"name": "stable"}, "tag_describe": {"name": "stable"}, "tag_delete": {"name": "stable"},
    "task_update": {"task_id": "1", "title": "Round prices", "feature_id": "f1"},
    "trace_decision_lineage": {"decision_id": "decision:d1"},
    "traverse": {"roots": [PRICE]},
    "type_object": {"name": "Lake"}, "type_show": {"name": "Lake"}, "type_relationship": {"name": "FLOWS_TO"},
    "type_strict": {"mode": "off"},
}
# They would change the data of the other calls, or take minutes.
LEFT_OUT = {"restore_backup", "demo"}


def arguments(schema):
    """The smallest value that fits a schema."""
    given = {}
    for name in schema.get("required", []):
        field = schema["properties"][name]
        kind = field.get("type")
        if name in KNOWN:
            given[name] = KNOWN[name]
        elif kind == "integer" or kind == "number":
            given[name] = field.get("minimum", 1)
        elif kind == "array":
            given[name] = []
        elif kind == "object":
            given[name] = {}
        elif "enum" in field:
            given[name] = field["enum"][0]
        else:
            given[name] = "x"
    return given


async def try_all(session, how):
    tools = []
    cursor = None
    while True:
        page = await session.list_tools(cursor=cursor) if cursor else await session.list_tools()
        tools += page.tools
        cursor = page.nextCursor
        if not cursor:
            break
    assert len(tools) > 60, len(tools)
    worked, refused = 0, []
    for tool in tools:
        assert tool.description and tool.outputSchema and tool.annotations is not None, tool.name
        if tool.name in LEFT_OUT:
            continue
        # The SDK itself checks answers against the tool's output schema.
        answer = await session.call_tool(tool.name, arguments(tool.inputSchema) | GIVEN.get(tool.name, {}))
        answered = answer.structuredContent
        assert answered is not None, f"{tool.name}: {answer}"
        assert json.loads(answer.content[0].text) == answered, tool.name
        assert answered["ok"] is (not answer.isError), tool.name
        assert answered["summary"] and answered["_tokenEstimate"] <= 300, f"{tool.name}: {answered}"
        if answered["ok"]:
            worked += 1
        else:
            refused.append(f"{tool.name} ({answered['errorCode']})")
            assert answered["errorCode"] and answered["hint"], answered
            assert answered["errorCode"] != "internal", answered
    assert worked >= 85, f"only {worked} tools worked: {refused}"
    resources = (await session.list_resources()).resources
    for resource in resources:
        assert (await session.read_resource(resource.uri)).contents, resource.uri
    templates = (await session.list_resource_templates()).resourceTemplates
    for template in templates:
        uri = re.sub(r"\{\w+\}", quote(PRICE, safe=""), template.uriTemplate)
        answered = json.loads((await session.read_resource(uri)).contents[0].text)
        assert answered["ok"] and "price" in json.dumps(answered["data"]), answered
    prompts = (await session.list_prompts()).prompts
    for prompt in prompts:
        given = {a.name: KNOWN.get(a.name, "price") for a in prompt.arguments}
        answered = (await session.get_prompt(prompt.name, given)).messages[0].content.text
        assert '"ok":true' in answered, f"{prompt.name}: {answered}"
    parts = f"{len(resources)} resources, {len(templates)} kinds of resources by name, {len(prompts)} prompts"
    print(f"{how}: {worked} tools answered, {len(refused)} refused with a hint ({', '.join(refused)}), {parts}")


async def over_stdio():
    began = time.monotonic()
    server = StdioServerParameters(command=LUKASA, args=["mcp", "--toolsets", "all"], cwd=REPOSITORY)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        answer = await session.call_tool("context_pack", {"task": "the total price of a basket is wrong"})
        pack = answer.structuredContent
        took = time.monotonic() - began
        assert pack["ok"] and "shop.py" in json.dumps(pack["data"]["core_symbols"]), pack
        print(f"stdio: a useful pack in one call, {took:.1f} s after the start")
        await try_all(session, "stdio")


async def over_http(folder):
    subprocess.run([LUKASA, "index"], cwd=folder, check=True, capture_output=True)
    server = subprocess.Popen(
        [LUKASA, "serve", "--listen", "127.0.0.1:0", "--toolsets", "all"], cwd=folder, stdout=subprocess.PIPE, text=True
    )
    try:
        address = server.stdout.readline().split(" at ")[1].split()[0]
        async with streamable_http_client(f"{address}/mcp") as streams, ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            await try_all(session, "HTTP")
    finally:
        server.kill()


async def main():
    with open(os.path.join(REPOSITORY, "facts.jsonl"), "w") as facts:
        facts.write('{"object": {"type": "Service", "key": "stock"}}\n')
    other = f"{REPOSITORY}-http"
    shutil.copytree(REPOSITORY, other)
    await over_stdio()
    await over_http(other)


asyncio.run(main())

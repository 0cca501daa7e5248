"""Calls every tool with the MCP Python SDK, over stdio and over HTTP, and times what a newcomer waits for."""

import asyncio
import json
import subprocess
import sys
import time

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

LUKASA, REPOSITORY = sys.argv[1], sys.argv[2]
# Fields whose meaning a schema does not tell.
KNOWN = {
    "ref": "FUNCTION:shop.py::price", "symbol": "price", "query": "price", "task": "the price is wrong", "key": "k",
    "type": "Note", "from": "FUNCTION:shop.py::price", "to": "FUNCTION:shop.py::total", "path": ".",
    "src": "FUNCTION:shop.py::price", "dst": "FUNCTION:shop.py::total", "pattern": "untested", "since": "tx:0",
}
# They would change what the other calls are about, or take minutes.
LEFT_OUT = {"restore_backup", "demo"}


def arguments(schema):
    """The least that fits a schema."""
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
    worked = failed = 0
    for tool in tools:
        assert tool.description and tool.outputSchema and tool.annotations is not None, tool.name
        if tool.name in LEFT_OUT:
            continue
        # The SDK itself checks answers against the tool's output schema.
        answer = await session.call_tool(tool.name, arguments(tool.inputSchema))
        told = answer.structuredContent
        assert told is not None, f"{tool.name}: {answer}"
        assert json.loads(answer.content[0].text) == told, tool.name
        assert told["ok"] is (not answer.isError), tool.name
        assert told["summary"] and told["_tokenEstimate"] <= 300, f"{tool.name}: {told}"
        if told["ok"]:
            worked += 1
        else:
            failed += 1
            assert told["errorCode"] and told["hint"], told
            assert told["errorCode"] != "internal", told
    assert worked >= 45, f"only {worked} tools worked"
    resources = (await session.list_resources()).resources
    for resource in resources:
        assert (await session.read_resource(resource.uri)).contents, resource.uri
    prompts = (await session.list_prompts()).prompts
    for prompt in prompts:
        given = {a.name: KNOWN.get(a.name, "price") for a in prompt.arguments}
        assert (await session.get_prompt(prompt.name, given)).messages, prompt.name
    print(f"{how}: {worked} tools answered, {failed} refused with a hint, {len(resources)} resources, {len(prompts)} prompts")


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


async def over_http():
    server = subprocess.Popen(
        [LUKASA, "serve", "--listen", "127.0.0.1:0", "--toolsets", "all"], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True
    )
    try:
        address = server.stdout.readline().split(" at ")[1].split()[0]
        async with streamable_http_client(f"{address}/mcp") as streams, ClientSession(streams[0], streams[1]) as session:
            await session.initialize()
            await try_all(session, "HTTP")
    finally:
        server.kill()


async def main():
    await over_stdio()
    await over_http()


asyncio.run(main())

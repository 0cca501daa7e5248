"""Ten agents at once on one repository: one process owns the engine, and when it is killed, another takes over."""

import json
import os
import signal
import subprocess
import sys
import time

LUKASA, REPOSITORY = sys.argv[1], sys.argv[2]


class Agent:
    def __init__(self):
        self.process = subprocess.Popen(
            [LUKASA, "mcp"], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.last = 0
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        while True:
            line = self.process.stdout.readline()
            assert line, "the agent's server ended"
            answer = json.loads(line)
            if answer.get("id") == self.last:
                return answer["result"]

    def call(self, tool, **arguments):
        answer = self.ask("tools/call", {"name": tool, "arguments": arguments})["structuredContent"]
        assert answer["ok"], answer
        return answer


def owner():
    with open(os.path.join(REPOSITORY, ".lukasa", "lukasa.db.owner")) as note:
        return json.load(note)["pid"]


agents = [Agent() for _ in range(10)]
try:
    for agent in agents:
        assert agent.call("search", query="price")["data"]["items"]
    first = owner()
    assert [agent.process.pid for agent in agents].count(first) == 1
    os.kill(first, signal.SIGKILL)
    began = time.monotonic()
    left = [agent for agent in agents if agent.process.pid != first]
    for agent in left:
        assert agent.call("search", query="price")["data"]["items"]
    took = time.monotonic() - began
    for number, agent in enumerate(left):
        agent.call("put", type="Note", key=f"note-{number}", title=f"Note {number}")
    assert left[0].call("list", type="Note")["summary"].startswith("9 ")
    assert owner() != first
    print(f"agents: ten on one engine; its process killed, the other nine were answered {took:.2f} s later")
finally:
    for agent in agents:
        agent.process.kill()

#!/usr/bin/env python3
"""A Model Context Protocol server over `nyquist query`: one JSON message a line on standard input and output."""

import json
import subprocess
import sys

FILE = {"type": "string", "description": "path of a profile, such as profile.json.gz"}
FUNCTION = {"type": "string", "description": "a function's handle (f-12) from another answer, or its name"}
WAITING = {"type": "boolean", "description": "about waiting in place of CPU time; needs a profile recorded with --off-cpu"}
THREAD = {"type": "string", "description": "only this thread: a handle (t-3), a name or a regex"}
QUESTIONS = {
    "summary": "Why is it slow? Duration, CPU time, the hottest functions and threads. Ask this first.",
    "waits": "Why does it wait? What threads wait for, how long, who held it, and where.",
    "function": "One function: its time, its callers and the functions that it calls.",
    "source": "The hottest source lines of a function, with their text.",
    "tree": "The call tree, or what a function calls; heaviest nodes only.",
    "callers": "The tree of a function's callers.",
    "functions": "Functions by self time.",
    "threads": "Threads by time.",
    "timeline": "CPU use over time.",
}
OF_FUNCTION = {"function", "source", "callers"}


def tool(name, about):
    properties = {"profile": FILE, "waiting": WAITING, "thread": THREAD}
    if name in OF_FUNCTION or name == "tree":
        properties["function"] = FUNCTION
    required = ["profile", "function"] if name in OF_FUNCTION else ["profile"]
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "description": about, "inputSchema": schema}


def call(name, given):
    if name not in QUESTIONS:
        return f"there is no tool {name}", True
    # The words follow `--` or `=`, so that none is taken for an option.
    options = [f"--thread={given['thread']}"] if given.get("thread") else []
    options += ["--off-cpu"] if given.get("waiting") and name != "waits" else []
    target = [str(given["function"])] if given.get("function") else []
    words = ["nyquist", "query", *options, "--", str(given.get("profile", "")), name, *target]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return (done.stdout, False) if done.returncode == 0 else (done.stderr, True)


def answer(method, given):
    if method == "initialize":
        about = {"name": "nyquist", "version": "1"}
        return {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [tool(name, about) for name, about in QUESTIONS.items()]}
    if method == "tools/call":
        text, is_error = call(given["name"], given.get("arguments") or {})
        return {"content": [{"type": "text", "text": text}], "isError": is_error}
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        unknown = {"error": {"code": -32601, "message": "unknown method"}}
        outcome = unknown if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}), flush=True)

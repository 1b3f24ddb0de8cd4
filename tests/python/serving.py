"""Helpers of the tests: find the program, create projects, serve them, and receive notices."""

from __future__ import annotations

import asyncio
import fcntl
import functools
import json
import os
import pty
import re
import signal
import subprocess
import tempfile
import termios
import threading
import unittest
import uuid
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged

ROOT = Path(__file__).resolve().parents[2]
MODERN = "2026-07-28"
LAST_WITH_HANDSHAKE = "2025-11-25"
# Timeout in seconds, for a loaded machine; only a broken server exceeds it.
PATIENCE = 30
# Whether generated tests run at full size.
FULL = os.environ.get("WAYLEAVE_FULL") == "1"
# The tools of a client that may only read.
READING = {"schema", "query_records", "aggregate", "search", "fetch"}
INVALID_PARAMS = -32602

KINDS = {
    types.ToolListChangedNotification: "tools",
    types.ResourceListChangedNotification: "resources",
    types.PromptListChangedNotification: "prompts",
    ToolsListChanged: "tools",
    ResourcesListChanged: "resources",
    PromptsListChanged: "prompts",
}


@functools.cache
def built(variable: str, name: str, *what: str) -> str:
    """The path of a binary: from the environment variable, or built now."""
    if given := os.environ.get(variable):
        return given
    profile = os.environ.get("WAYLEAVE_PROFILE", "dev")
    build = ["cargo", "build", "--quiet", "--profile", profile, "--message-format", "json", *what]
    output = subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for message in map(json.loads, output.splitlines()):
        if message.get("executable") and message["target"]["name"] == name:
            return message["executable"]
    raise RuntimeError(f"cargo built no `{name}`")


def program() -> str:
    return built("WAYLEAVE_BIN", "wayleave", "--package", "wayleave")


def plugin_host() -> str:
    """The path of the example `plugin_host` of `wayleave-mcp`."""
    return built(
        "WAYLEAVE_PLUGIN_HOST", "plugin_host", "--package", "wayleave-mcp", "--example", "plugin_host"
    )


class Terminal:
    """A terminal for one command, and a person at it who types what the command asks for."""

    def __init__(self) -> None:
        self.ours, self._theirs = pty.openpty()

    def popen(self, command: list[str] | tuple[str, ...], **options) -> subprocess.Popen:
        """Starts a command with this terminal as its controlling terminal. Its output goes where `options` send it."""
        # A terminal reports a hang-up only once the last copy of its other side is closed.
        try:
            return subprocess.Popen(
                command, stdin=self._theirs, start_new_session=True,
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **options,
            )
        finally:
            os.close(self._theirs)

    def type(self, *lines: str) -> None:
        os.write(self.ours, "".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        os.close(self.ours)


def on_terminal(command: list[str], lines: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    """Runs a command on its own terminal, where a person types these lines."""
    terminal = Terminal()
    try:
        running = terminal.popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        terminal.type(*lines)
        stdout, stderr = running.communicate(timeout=PATIENCE * 4)
        return subprocess.CompletedProcess(command, running.returncode, stdout, stderr)
    finally:
        terminal.close()


def keep(kind: str, text: str) -> None:
    """Stores a log or an export for the last step of the test suite, which searches it for secrets."""
    if folder := os.environ.get("WAYLEAVE_KEEP"):
        Path(folder, f"{os.getpid()}-{kind}-{uuid.uuid4().hex}").write_text(text)


class HttpServer:
    """A command that serves over HTTP and prints its address, started by a person at a terminal."""

    def __init__(self, *command: str, env: dict[str, str] | None = None) -> None:
        self._terminal = Terminal()
        self.process = self._terminal.popen(
            command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.log: list[str] = []
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"listening on (http://\S+)", line):
                self.url = found.group(1)
                # Read the rest of its log, so that a full pipe never blocks it.
                self._reading = threading.Thread(target=self._read, daemon=True)
                self._reading.start()
                return
        raise RuntimeError(f"the server ended with {self.process.wait()}: {self.log}")

    def _read(self) -> None:
        self.log.extend(self.process.stderr)
        keep("log", "".join(self.log))

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        """Stops the server, as a person or a service manager would; returns its exit code."""
        if self.process.stderr.closed:
            return self.process.returncode  # it was stopped before
        self.process.send_signal(how)
        try:
            code = self.process.wait(timeout=15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self._reading.join()
        self.process.stderr.close()
        self._terminal.close()
        return code


class Project:
    """A project folder, changed with the command line as by a person."""

    def __init__(self, settings: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="wayleave-python-")
        self.path = Path(self._folder.name)
        self.env = {key: value for key, value in os.environ.items() if key != "WAYLEAVE_TOKEN"}
        self.run("init")
        (self.path / "wayleave.toml").write_text(settings)

    def run(self, *words: str, fails: bool = False) -> str:
        # There is no `--yes`: the person at the terminal answers questions.
        words = tuple(word for word in words if word != "--yes")
        command = [program(), *words, "--project", str(self.path)]
        if (name := self._asked(words)) and "--key" not in words:
            done = on_terminal(command, [name], self.env)
        else:
            done = subprocess.run(command, env=self.env, capture_output=True, text=True)
        if (done.returncode != 0) != fails:
            raise RuntimeError(f"{words} ended with {done.returncode}: {done.stderr}")
        # Unseal the arguments: the operator may see them.
        if words[0] == "audit" and "--arguments" not in words:
            keep("export", done.stdout + done.stderr)
        return done.stdout

    def _asked(self, words: tuple[str, ...]) -> str | None:
        """The name that a person must type to confirm a command; `None` if it asks nothing."""
        match words:
            case ("ratify" | "retire", name, *_):
                return name
            case ("inbox", "ratify", number, *_):
                return json.loads(self.run("inbox", "show", number, "--json"))["proposal"]["dataset"]
        return None

    def add_source(self, name: str, file: Path) -> None:
        """Declares a SQLite file as a source."""
        variable = f"TEST_{name.upper()}"
        self.env[variable] = str(file)
        self.run("source", "add", name, "--kind", "sqlite", "--env", variable)

    def draft(self, name: str) -> Path:
        return self.path / f"mappings/{name}.toml"

    def over_http(self) -> HttpServer:
        """Starts a server of the project on a free local port."""
        command = [program(), "serve", "--http", "127.0.0.1:0", "--project", str(self.path)]
        return HttpServer(*command, env=self.env)

    def over_stdio(self, token: str = "") -> StdioServerParameters:
        """The parameters with which a client starts a server of the project."""
        return StdioServerParameters(
            command=program(),
            args=["serve", "--stdio", "--project", str(self.path)],
            env={**self.env, **({"WAYLEAVE_TOKEN": token} if token else {})},
        )

    def close(self) -> None:
        self._folder.cleanup()


class Notices:
    """The list_changed notices that a client received, in either era."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()
        self._news = asyncio.Condition()

    async def add(self, kind: str) -> None:
        async with self._news:
            self.heard[kind] += 1
            self._news.notify_all()

    async def on_message(self, message: object) -> None:
        """Handler for the older era, where notices are unsolicited."""
        if kind := KINDS.get(type(message)):
            await self.add(kind)

    async def listen_on(self, subscription) -> None:
        """Handler for the newer era, where notices arrive on a stream that the client opened."""
        async for event in subscription:
            await self.add(KINDS[type(event)])

    async def until(self, **wanted: int) -> None:
        """Waits until at least this many notices of each kind were received."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: all(self.heard[k] >= n for k, n in wanted.items()))


def text_of(result: types.CallToolResult) -> str:
    return "".join(part.text for part in result.content if part.type == "text")


def handle(text: str, name: str) -> str | None:
    """The value of a handle in the text, such as `next_cursor`."""
    found = re.search(rf"^{name}=(\S+)", text, re.MULTILINE)
    return found and found.group(1)


def rows_of(text: str) -> list[list[str]]:
    """The rows of a text table, without its header. Cells must not contain escapes."""
    lines = [line[1:].split("|") for line in text.splitlines() if line.startswith("|")]
    return lines[1:]


@asynccontextmanager
async def unwrapped():
    """Passes exceptions of the tests by a client's task groups, which would wrap them beyond recognition.

    Everything is opened on the stack, and closed before the exception is raised again."""
    failure = None
    async with AsyncExitStack() as stack:
        try:
            yield stack
        except Exception as error:
            failure = error
    if failure:
        raise failure


async def listening(server, mode: str, stack: AsyncExitStack) -> tuple[Client, Notices]:
    """Connects a client that listens to all list changes from the start; returns it with its notices."""
    notices = Notices()
    handler = notices.on_message if mode == "legacy" else None
    client = await stack.enter_async_context(
        Client(server, mode=mode, message_handler=handler, read_timeout_seconds=PATIENCE)
    )
    if mode != "legacy":
        subscription = await stack.enter_async_context(
            client.listen(
                tools_list_changed=True, resources_list_changed=True, prompts_list_changed=True
            )
        )
        task = asyncio.create_task(notices.listen_on(subscription))
        stack.callback(task.cancel)
    return client, notices


class Calls:
    """Calls of tools by rules."""

    async def good(self, client: Client, tool: str, **arguments) -> types.CallToolResult:
        result = await client.call_tool(tool, arguments)
        self.assertFalse(result.is_error, text_of(result))
        return result

    async def refused(self, client: Client, tool: str, **arguments) -> dict:
        """Makes a call that must be refused. Returns the error, which must be the same in text and structure,
        within its size."""
        result = await client.call_tool(tool, arguments)
        self.assertTrue(result.is_error, text_of(result))
        error = result.structured_content["error"]
        self.assertEqual(json.loads(text_of(result)), error)
        whole = len(text_of(result).encode()) + len(json.dumps(error).encode())
        most = 4_096 if error["code"] == "ambiguous_connection" else 2_048
        self.assertLessEqual(whole, most + 256)
        return error


async def with_token(url: str, token: str, stack: AsyncExitStack):
    """The transport to a server over HTTP with a token; closed with the stack."""
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
    await stack.enter_async_context(http)
    return streamable_http_client(url, http_client=http)


def define_every_way(module: dict, stdio: type, http: type) -> None:
    """Defines the test classes of a module: each transport, in the session era and in the newest revision."""
    for transport, rules in (("Stdio", stdio), ("Http", http)):
        for era, mode in (("Legacy", "legacy"), ("Modern", MODERN)):
            members = {"mode": mode, "__module__": module["__name__"]}
            name = transport + era
            module[name] = type(name, (rules, unittest.IsolatedAsyncioTestCase), members)

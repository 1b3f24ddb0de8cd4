"""How the tests find the program, make projects with it, serve them, and hear what changes."""

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
# Long enough for a loaded machine; only a broken server ever waits this long.
PATIENCE = 30
# What a client that may only read is offered.
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
    """A binary: the one that the environment names, or built now."""
    if given := os.environ.get(variable):
        return given
    build = ["cargo", "build", "--quiet", "--message-format", "json", *what]
    output = subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    for message in map(json.loads, output.splitlines()):
        if message.get("executable") and message["target"]["name"] == name:
            return message["executable"]
    raise RuntimeError(f"cargo built no `{name}`")


def program() -> str:
    return built("WAYLEAVE_BIN", "wayleave", "--package", "wayleave")


def plugin_host() -> str:
    """The example of `wayleave-mcp`."""
    return built(
        "WAYLEAVE_PLUGIN_HOST", "plugin_host", "--package", "wayleave-mcp", "--example", "plugin_host"
    )


class Terminal:
    """A terminal for one command, with a person at it who types what they are told to."""

    def __init__(self) -> None:
        self.ours, self._theirs = pty.openpty()

    def popen(self, command: list[str] | tuple[str, ...], **options) -> subprocess.Popen:
        """Starts a command that this terminal belongs to. Its output goes wherever it is sent."""
        # Until the last copy of its side is closed, nobody is told that a terminal has gone.
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
    """Runs a command on a terminal of its own, where a person types these lines."""
    terminal = Terminal()
    try:
        running = terminal.popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        terminal.type(*lines)
        stdout, stderr = running.communicate(timeout=PATIENCE * 4)
        return subprocess.CompletedProcess(command, running.returncode, stdout, stderr)
    finally:
        terminal.close()


def keep(kind: str, text: str) -> None:
    """Keeps a log or an export for the last step of the test suite, which searches them for secrets."""
    if folder := os.environ.get("WAYLEAVE_KEEP"):
        Path(folder, f"{os.getpid()}-{kind}-{uuid.uuid4().hex}").write_text(text)


class HttpServer:
    """A command that serves over HTTP and says where. A person at a terminal started it."""

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
                # Whatever else it logs is read, so that a full pipe never stops it.
                self._reading = threading.Thread(target=self._read, daemon=True)
                self._reading.start()
                return
        raise RuntimeError(f"the server ended with {self.process.wait()}: {self.log}")

    def _read(self) -> None:
        self.log.extend(self.process.stderr)
        keep("log", "".join(self.log))

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        """Asks the server to end, as a person or a service manager would, for its exit code."""
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
    """A project folder, worked on with the command line as a person would."""

    def __init__(self, settings: str) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="wayleave-python-")
        self.path = Path(self._folder.name)
        self.env = {key: value for key, value in os.environ.items() if key != "WAYLEAVE_TOKEN"}
        self.run("init")
        (self.path / "wayleave.toml").write_text(settings)

    def run(self, *words: str, fails: bool = False) -> str:
        # There is no `--yes`: where a person is asked, one answers.
        words = tuple(word for word in words if word != "--yes")
        command = [program(), *words, "--project", str(self.path)]
        if (name := self._asked(words)) and "--key" not in words:
            done = on_terminal(command, [name], self.env)
        else:
            done = subprocess.run(command, env=self.env, capture_output=True, text=True)
        if (done.returncode != 0) != fails:
            raise RuntimeError(f"{words} ended with {done.returncode}: {done.stderr}")
        # Arguments are opened for the operator, who may see them.
        if words[0] == "audit" and "--arguments" not in words:
            keep("export", done.stdout + done.stderr)
        return done.stdout

    def _asked(self, words: tuple[str, ...]) -> str | None:
        """The name that a person must type for a command to be carried out."""
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
        """A server of it, on a free port of this machine."""
        command = [program(), "serve", "--http", "127.0.0.1:0", "--project", str(self.path)]
        return HttpServer(*command, env=self.env)

    def over_stdio(self, token: str = "") -> StdioServerParameters:
        """How a client starts a server of it."""
        return StdioServerParameters(
            command=program(),
            args=["serve", "--stdio", "--project", str(self.path)],
            env={**self.env, **({"WAYLEAVE_TOKEN": token} if token else {})},
        )

    def close(self) -> None:
        self._folder.cleanup()


class Notices:
    """The list_changed notices one client has heard, in either era's way."""

    def __init__(self) -> None:
        self.heard: Counter[str] = Counter()
        self._news = asyncio.Condition()

    async def add(self, kind: str) -> None:
        async with self._news:
            self.heard[kind] += 1
            self._news.notify_all()

    async def on_message(self, message: object) -> None:
        """For the older era, where notices come unasked."""
        if kind := KINDS.get(type(message)):
            await self.add(kind)

    async def listen_on(self, subscription) -> None:
        """For the newer era, where they come on a stream the client opened."""
        async for event in subscription:
            await self.add(KINDS[type(event)])

    async def until(self, **wanted: int) -> None:
        """Returns once at least so many notices of each kind were heard."""
        async with asyncio.timeout(PATIENCE), self._news:
            await self._news.wait_for(lambda: all(self.heard[k] >= n for k, n in wanted.items()))


def text_of(result: types.CallToolResult) -> str:
    return "".join(part.text for part in result.content if part.type == "text")


def handle(text: str, name: str) -> str | None:
    """A handle that the text gives, such as `next_cursor`."""
    found = re.search(rf"^{name}=(\S+)", text, re.MULTILINE)
    return found and found.group(1)


def rows_of(text: str) -> list[list[str]]:
    """The rows of a text table without its header; no cell of theirs holds an escape."""
    lines = [line[1:].split("|") for line in text.splitlines() if line.startswith("|")]
    return lines[1:]


@asynccontextmanager
async def unwrapped():
    """Raises what the tests raise past a client's task groups, which would wrap it beyond recognition.

    Whatever is opened is opened on the stack, and closed before the failure goes on."""
    failure = None
    async with AsyncExitStack() as stack:
        try:
            yield stack
        except Exception as error:
            failure = error
    if failure:
        raise failure


async def listening(server, mode: str, stack: AsyncExitStack) -> tuple[Client, Notices]:
    """A client, and the notices it hears; it listens to everything from the start."""
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
    """How rules call tools."""

    async def good(self, client: Client, tool: str, **arguments) -> types.CallToolResult:
        result = await client.call_tool(tool, arguments)
        self.assertFalse(result.is_error, text_of(result))
        return result

    async def refused(self, client: Client, tool: str, **arguments) -> dict:
        """The error, which is the same in text and in structure, and bounded."""
        result = await client.call_tool(tool, arguments)
        self.assertTrue(result.is_error, text_of(result))
        error = result.structured_content["error"]
        self.assertEqual(json.loads(text_of(result)), error)
        whole = len(text_of(result).encode()) + len(json.dumps(error).encode())
        most = 4_096 if error["code"] == "ambiguous_connection" else 2_048
        self.assertLessEqual(whole, most + 256)
        return error


async def with_token(url: str, token: str, stack: AsyncExitStack):
    """A server over HTTP, for whoever has the token; closed with the stack."""
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
    await stack.enter_async_context(http)
    return streamable_http_client(url, http_client=http)


def define_every_way(module: dict, stdio: type, http: type) -> None:
    """Defines the test classes of a module: each transport, in sessions and in the newest revision."""
    for transport, rules in (("Stdio", stdio), ("Http", http)):
        for era, mode in (("Legacy", "legacy"), ("Modern", MODERN)):
            members = {"mode": mode, "__module__": module["__name__"]}
            name = transport + era
            module[name] = type(name, (rules, unittest.IsolatedAsyncioTestCase), members)

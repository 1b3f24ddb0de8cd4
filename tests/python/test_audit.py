"""Every call leaves a record, as the official Python client and the command line see it.

Every rule holds over stdio and over HTTP, with the handshake of the older revisions (`legacy`) and
with the newest one. `prov` and PyLD, independent implementations, read the provenance.

Run it with a Python that has `mcp` 2.x, PyLD and prov:  python tests/python/test_audit.py [-v] [NAME ...]
"""

from __future__ import annotations

import asyncio
import http.client
import http.server
import json
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import unittest
import uuid
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import mcp_types as types
import rdflib
import serving
from mcp import Client, MCPError
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from prov.model import ProvDocument
from pyld import jsonld
from serving import MODERN, PATIENCE, Calls, unwrapped

PROV = "http://www.w3.org/ns/prov#"
ACTIVITY = "io.wayleave/activity"
# Value that no file of the record may contain unsealed, wherever a call uses it.
CANARY = "canary-5f1e"
MAPPING = """
[dataset]
name = "crm"
kind = "sqlite"

[[connections]]
id = "crm"
source = "crm"

[streams.people]
type = "Person"
key = ["id"]
title = "name"
search = ["name"]
[streams.people.fields]
id = { datatype = "integer", required = true }
name = { datatype = "string" }

[streams.slow]
type = "Slow"
key = ["id"]
[streams.slow.fields]
id = { datatype = "integer", required = true }
"""
# Takes longer than any call may run.
SLOW = """
CREATE VIEW slow AS SELECT id FROM people WHERE (
    WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 10000000000)
    SELECT max(n) FROM count
) > 0
"""


class Project(serving.Project):
    def __init__(self, settings: str = "") -> None:
        super().__init__(
            '[serve]\nhttp = "127.0.0.1:0"\nscopes = ["runtime", "builder"]\n'
            "[limits]\ncalls_per_minute = 100000\nburst = 10000\nconcurrent = 200\n" + settings
        )
        file = self.path / "crm.db"
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)")
            connection.execute(SLOW)
            rows = [(n, f"{CANARY} {n}") for n in range(1, 301)]
            connection.executemany("INSERT INTO people VALUES (?, ?)", rows)
        connection.close()
        self.add_source("crm", file)
        self.draft("crm").write_text(MAPPING)
        self.run("ratify", "crm")
        self.run("connect", "crm")
        self.token_id, self.token = self.issue()
        _, self.other = self.issue()
        _, self.builder = self.issue("--scope", "builder")

    def issue(self, *words: str) -> tuple[str, str]:
        made = json.loads(self.run("token", "create", "--all-of", "crm", *words, "--json"))
        return made["token"]["id"], made["secret"]

    def audit(self, *words: str, fails: bool = False):
        return json.loads(self.run("audit", *words, "--json", fails=fails))

    def list(self, *words: str) -> list[dict]:
        return self.audit("list", "--limit", "100000", *words)["activities"]

    def export(self, form: str, *words: str) -> str:
        return self.run("audit", "export", "--format", form, *words)


def activity(result) -> str:
    return (result.meta or {})[ACTIVITY]


def bare(urn: str) -> str:
    return str(uuid.UUID(urn))


class Rules(Calls):
    mode: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.project = Project()
        cls.addClassCleanup(cls.project.close)
        cls.begin()

    @asynccontextmanager
    async def client(self, token: str | None = None):
        async with unwrapped() as stack:
            server = await self.server(token or self.project.token, stack)
            yield await stack.enter_async_context(
                Client(server, mode=self.mode, read_timeout_seconds=PATIENCE)
            )

    async def test_every_result_names_an_activity_that_can_be_read(self) -> None:
        async with self.client() as client:
            person = await self.good(client, "fetch", id="crm/people:7")
            page = await self.good(client, "query_records", stream="people", limit=100)
            listed = await client.list_tools()
            template = await client.list_resource_templates()
            record = await client.read_resource("wayleave://kg/Person/crm%2Fpeople%3A7")
            ids = [bare(activity(it)) for it in (person, page, listed, template, record)]
            self.assertEqual(len(set(ids)), 5)
            for given in (person, page):
                read = await client.read_resource(f"wayleave://prov/{activity(given)}")
                [content] = read.contents
                self.assertEqual(content.mime_type, "application/ld+json")
                [found] = [
                    node
                    for node in jsonld.expand(json.loads(content.text))
                    if f"{PROV}Activity" in node.get("@type", [])
                ]
                self.assertEqual(found["@id"], activity(given))
                self.assertNotIn(CANARY, content.text)
            latest = await client.read_resource("wayleave://prov/latest")
            self.assertIn(activity(record), latest.contents[0].text)
        for given in ids:
            shown = self.project.audit("show", given)
            self.assertEqual(shown["outcome"]["kind"], "completed")
            self.assertEqual(shown["agent"]["token"], self.project.token_id)
            self.assertTrue(shown["agent"]["client"])
        shown = self.project.audit("show", ids[0])
        self.assertEqual(shown["used"]["ids"], ["crm/people:7"])
        self.assertEqual(shown["target"], "fetch")
        self.assertEqual(shown["rows"], 1)
        [grant] = shown["grants"]
        self.assertEqual(grant["dataset"], "crm")
        self.assertEqual(self.project.audit("show", ids[1])["used"]["total"], 100)

    async def test_a_caller_is_told_of_its_later_calls(self) -> None:
        uri = "wayleave://prov/latest"
        told = asyncio.Event()

        async def heard(message) -> None:
            if isinstance(message, types.ResourceUpdatedNotification):
                told.set()

        async def follow(subscription) -> None:
            async for event in subscription:
                told.set()

        async with unwrapped() as stack:
            server = await self.server(self.project.token, stack)
            handler = heard if self.mode == "legacy" else None
            client = await stack.enter_async_context(
                Client(server, mode=self.mode, message_handler=handler, read_timeout_seconds=PATIENCE)
            )
            if self.mode == "legacy":
                await client.session.subscribe_resource(uri)
            else:
                opened = client.listen(resource_subscriptions=[uri])
                subscription = await stack.enter_async_context(opened)
                task = asyncio.create_task(follow(subscription))
                stack.callback(task.cancel)
            await self.good(client, "fetch", id="crm/people:2")
            async with asyncio.timeout(PATIENCE):
                await told.wait()

    async def test_a_caller_reads_its_own_activities_alone(self) -> None:
        async with self.client() as client:
            own = await self.good(client, "fetch", id="crm/people:8")
        async with self.client(self.project.other) as client:
            for id in (activity(own), str(uuid.uuid4()), "nothing"):
                with self.assertRaises(MCPError):
                    await client.read_resource(f"wayleave://prov/{id}")

    async def test_whatever_becomes_of_a_call_is_its_outcome(self) -> None:
        async with self.client() as client:
            wrong = await client.call_tool("query_records", {"stream": "nothing"})
            self.assertTrue(wrong.is_error)
            shown = self.project.audit("show", bare(activity(wrong)))
            self.assertEqual(shown["outcome"], {"kind": "tool_error", "code": "unknown_stream"})
            before = len(self.project.list("--outcome", "failed"))
            denied = len(self.project.list("--target", "list_datasets"))
            with self.assertRaises(MCPError):
                await client.call_tool("no_such_tool", {})
            with self.assertRaises(MCPError):
                await client.call_tool("list_datasets", {})
        self.assertGreaterEqual(len(self.project.list("--outcome", "failed")), before + 1)
        [latest, *_] = self.project.list("--target", "list_datasets")
        self.assertEqual(len(self.project.list("--target", "list_datasets")), denied + 1)
        self.assertIn(latest["outcome"]["kind"], ("failed", "refused"))

    async def test_n_calls_are_n_activities(self) -> None:
        async with self.client() as client:
            calls = [
                client.call_tool("fetch", {"id": f"crm/people:{n}"}) for n in range(1, 101)
            ]
            results = await asyncio.gather(*calls)
        ids = [bare(activity(result)) for result in results]
        self.assertEqual(len(set(ids)), 100)
        recorded = [it["id"] for it in self.project.list("--target", "fetch")]
        self.assertEqual(len(recorded), len(set(recorded)))
        self.assertLessEqual(set(ids), set(recorded))
        self.assertTrue(self.project.audit("verify")["ok"])

    async def test_arguments_are_for_the_operator_and_can_be_destroyed(self) -> None:
        secret = f"needle-{uuid.uuid4().hex}"
        async with self.client() as client:
            found = await self.good(client, "query_records", stream="people", filter={"name": secret})
            other = await self.good(client, "fetch", id="crm/people:1")
        id = bare(activity(found))
        shown = self.project.audit("show", id)
        self.assertEqual(shown["arguments"]["shape"], "{stream:s,filter:{name:s}}")
        self.assertNotIn(secret, json.dumps(shown))
        opened = self.project.audit("show", id, "--arguments")
        self.assertEqual(opened["arguments"]["given"]["filter"], {"name": secret})
        self.assertTrue(self.project.audit("replay", id)["same"])
        self.assertTrue(self.project.audit("replay", bare(activity(other)))["same"])
        self.assertEqual(leaks(self.project.path, secret), [])

    async def test_a_call_with_unrecorded_arguments_is_still_shown(self) -> None:
        names = [f"{n}{'x' * 400}" for n in range(100)]
        async with self.client() as client:
            call = await self.good(
                client, "query_records", stream="people", filter={"name": {"in": names}}
            )
        id = bare(activity(call))
        shown = self.project.audit("show", id, "--arguments")
        self.assertEqual(shown["id"], self.project.audit("show", id)["id"])
        self.assertIn("filter:", shown["arguments"]["shape"])
        self.assertNotIn("given", shown["arguments"])

    async def test_the_export_is_provenance_that_others_read(self) -> None:
        async with self.client() as client:
            call = await self.good(client, "query_records", stream="people", limit=3)
        document = json.loads(self.project.export("prov", "--target", "query_records"))
        quads = jsonld.to_rdf(document, {"format": "application/n-quads"})
        self.assertIn(f"<{activity(call)}> <{PROV}used> <urn:wayleave:record:crm/people:1>", quads)
        graph = rdflib.Dataset(default_union=True)
        graph.parse(data=json.dumps(document), format="json-ld")
        # The library accepts only prefixed names.
        for prefix, namespace in document["@context"].items():
            graph.bind(prefix, namespace)
        trig = graph.serialize(format="trig")
        read = ProvDocument.deserialize(content=trig, format="rdf", rdf_format="trig")
        bundles = [read, *read.bundles]
        records = [record for bundle in bundles for record in bundle.get_records()]
        kinds = {type(record).__name__ for record in records}
        self.assertLessEqual({"ProvActivity", "ProvAgent", "ProvEntity", "ProvUsage"}, kinds)
        for line in self.project.export("jsonl").splitlines():
            self.assertNotIn(CANARY, line)
            json.loads(line)

    async def test_a_workup_cites_its_activity(self) -> None:
        async with self.client(self.project.builder) as client:
            made = await self.good(client, "workup_crm", entity="crm/people:5")
        cited = {one["activity"] for one in made.structured_content["evidence"]}
        self.assertEqual(cited, {activity(made)})
        used = self.project.audit("show", bare(activity(made)))["used"]["ids"]
        self.assertIn("crm/people:5", used)

    async def test_no_call_is_served_while_none_can_be_recorded(self) -> None:
        project = Project()
        self.addCleanup(project.close)
        log = project.path / ".wayleave/activity"
        async with AsyncExitStack() as stack:
            server = await self.serve(project, stack)
            client = await stack.enter_async_context(
                Client(server, mode=self.mode, read_timeout_seconds=PATIENCE)
            )
            await self.good(client, "fetch", id="crm/people:1")
            [writer] = [it for it in log.iterdir() if (it / "head").stat().st_size]
            [segment] = writer.glob("*.log")
            # Only the file system itself stops root.
            lock_file(segment)
            try:
                with self.assertRaises(MCPError) as refused:
                    await client.call_tool("fetch", {"id": "crm/people:2"})
                error = refused.exception.error
                self.assertEqual((error.code, error.data["reason"]), (-32603, "audit_unavailable"))
            finally:
                unlock_file(segment)
            again = await self.good(client, "fetch", id="crm/people:3")
            self.assertEqual(project.audit("show", bare(activity(again)))["rows"], 1)
        self.assertTrue(project.audit("verify")["ok"])


def lock_file(file: Path) -> None:
    """Makes a file immutable; skips the test, and says so, if this user or the file system cannot."""
    done = subprocess.run(["chattr", "+i", str(file)], capture_output=True, text=True)
    if done.returncode:
        why = f"no immutable files in {file.parent}: {done.stderr.strip()}"
        print(f"skipped: {why}", file=sys.stderr)
        raise unittest.SkipTest(why)


def unlock_file(file: Path) -> None:
    subprocess.run(["chattr", "-i", str(file)], check=True)


def leaks(folder: Path, secret: str) -> list[Path]:
    """The files of a project that contain a text, except for its source."""
    files = [it for it in folder.rglob("*") if it.is_file() and not it.name.startswith("crm.db")]
    return [it for it in files if secret.encode() in it.read_bytes()]


class Stdio(Rules):
    @classmethod
    def begin(cls) -> None:
        pass

    async def server(self, token: str, stack: AsyncExitStack):
        return self.project.over_stdio(token)

    async def serve(self, project: Project, stack: AsyncExitStack):
        return project.over_stdio(project.token)


def connected(url: str, token: str):
    carrier = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
    return carrier, streamable_http_client(url, http_client=carrier)


class Http(Rules):
    @classmethod
    def begin(cls) -> None:
        cls.http = cls.project.over_http()
        cls.addClassCleanup(cls.http.stop)

    async def server(self, token: str, stack: AsyncExitStack):
        carrier, server = connected(self.http.url, token)
        await stack.enter_async_context(carrier)
        return server

    async def serve(self, project: Project, stack: AsyncExitStack):
        http_server = project.over_http()
        stack.callback(http_server.stop)
        carrier, server = connected(http_server.url, project.token)
        await stack.enter_async_context(carrier)
        return server


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def stateless(method: str, name: str, arguments: dict, **meta: str) -> tuple[bytes, dict[str, str]]:
    """The body and headers of a request of the newest revision."""
    about = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        **meta,
    }
    named = {"uri": name} if method == "resources/read" else {"name": name, "arguments": arguments}
    params = {**named, "_meta": about}
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": MODERN,
        "Mcp-Method": method,
        "Mcp-Name": name,
    }
    return json.dumps(message).encode(), headers


class Collector:
    """An OTLP receiver that stores everything it receives."""

    def __init__(self) -> None:
        received = self.received = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.append((self.path, self.headers["Content-Type"], json.loads(body)))
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def spans(self) -> list[dict]:
        return [
            span
            for path, _, body in self.received
            if path == "/v1/traces"
            for resource in body["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Raw(unittest.TestCase):
    """Behaviour that no client library offers: disconnecting, flooding, forging."""

    def setUp(self) -> None:
        self.port = free_port()
        self.project = Project(f'[telemetry]\nlisten = "127.0.0.1:{self.port}"\n')
        self.addCleanup(self.project.close)

    def serve(self):
        server = self.project.over_http()
        self.addCleanup(lambda: server.process.poll() is None and server.stop())
        return server

    def post(self, server, body: bytes, headers: dict[str, str], token: str | None = None):
        url = urlsplit(server.url)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=PATIENCE)
        self.addCleanup(connection.close)
        bearer = {"Authorization": f"Bearer {token}"} if token else {}
        connection.request("POST", url.path, body, {**headers, **bearer})
        return connection

    def status(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, body

    def until(self, *words: str) -> dict:
        for _ in range(PATIENCE * 10):
            if found := self.project.list(*words):
                return found[0]
            time.sleep(0.1)
        raise AssertionError(f"no activity with {words}")

    def test_a_client_that_leaves_and_one_that_cancels_leave_a_record(self) -> None:
        server = self.serve()
        body, headers = stateless("tools/call", "query_records", {"stream": "slow"})
        connection = self.post(server, body, headers, self.project.token)
        for _ in range(PATIENCE * 10):
            if "query_records" in self.status("/calls")[1]:
                break
            time.sleep(0.1)
        else:
            self.fail("the call never ran")
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
        left = self.until("--target", "query_records")
        self.assertIn(left["outcome"]["kind"], ("abandoned", "cancelled"))
        self.assertEqual(left["agent"]["client"], "raw")

        command = [serving.program(), "serve", "--stdio", "--project", str(self.project.path)]
        env = {**self.project.env, "WAYLEAVE_TOKEN": self.project.other}
        pipe = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)

        def say(**message) -> None:
            pipe.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            pipe.stdin.flush()

        about = {"protocolVersion": "2025-11-25", "capabilities": {},
                 "clientInfo": {"name": "raw", "version": "1"}}
        def answered() -> int:
            while "id" not in (message := json.loads(pipe.stdout.readline())):
                pass
            return message["id"]

        say(id=1, method="initialize", params=about)
        self.assertEqual(answered(), 1)
        say(method="notifications/initialized")
        slow = {"name": "aggregate", "arguments": {"stream": "slow", "metrics": ["count"]}}
        say(id=2, method="tools/call", params=slow)
        # Lines are taken in order: after the answer to this one, the call has begun.
        say(id=3, method="ping")
        self.assertEqual(answered(), 3)
        say(method="notifications/cancelled", params={"requestId": 2})
        cancelled = self.until("--target", "aggregate")
        self.assertEqual(cancelled["outcome"]["kind"], "cancelled")
        pipe.stdin.close()
        pipe.wait(timeout=PATIENCE)
        pipe.stdout.close()

    def test_a_trace_joins_its_parent_and_metrics_are_counted(self) -> None:
        collector = Collector()
        self.addCleanup(collector.close)
        self.project.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
        server = self.serve()
        trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        body, headers = stateless(
            "tools/call", "fetch", {"id": "crm/people:1"}, traceparent=f"00-{trace}-{parent}-01"
        )
        answer = self.post(server, body, headers, self.project.token).getresponse()
        result = json.loads(answer.read())["result"]
        server.stop()
        [call] = [span for span in collector.spans() if span.get("parentSpanId") == parent]
        self.assertEqual((call["traceId"], call["name"]), (trace, "tools/call fetch"))
        attributes = {it["key"]: it["value"] for it in call["attributes"]}
        id = bare(result["_meta"][ACTIVITY])
        self.assertEqual(attributes["wayleave.activity"], {"stringValue": id})
        self.assertEqual(attributes["gen_ai.tool.name"], {"stringValue": "fetch"})
        below = [span for span in collector.spans() if span.get("parentSpanId") == call["spanId"]]
        self.assertEqual([it["name"] for it in below], ["gate", "plan", "store", "write-out"])
        for span in below:
            self.assertEqual(span["traceId"], trace)
            self.assertLessEqual(int(call["startTimeUnixNano"]), int(span["endTimeUnixNano"]))
        self.assertIn("/v1/metrics", {path for path, _, _ in collector.received})
        self.assertNotIn(CANARY, json.dumps(collector.received))

    def test_operators_have_a_listener_of_their_own(self) -> None:
        server = self.serve()
        self.assertEqual(self.status("/healthz"), (200, "ok\n"))
        self.assertEqual(self.status("/readyz"), (200, "ready\n"))
        body, headers = stateless("tools/call", "fetch", {"id": "crm/people:1"})
        self.post(server, body, headers, self.project.token).getresponse().read()
        _, page = self.status("/metrics")
        self.assertIn('gen_ai_tool_name="fetch",outcome="completed"', page)
        self.assertEqual(self.status("/mcp")[0], 404)
        shown = self.project.run("top", "--once")
        self.assertIn("fetch", shown)
        self.assertIn("0 running", shown)

    def test_no_secret_and_no_value_is_written_in_the_open(self) -> None:
        server = self.serve()
        planted = f"planted-{uuid.uuid4().hex}"
        stranger = "wlc_" + "x" * 40
        calls = [
            ("query_records", {"stream": "people", "filter": {"name": planted}}),
            ("query_records", {"stream": planted}),
            ("fetch", {"id": "crm/people:1", planted + " ": planted}),
            ("search", {"q": planted}),
            (self.project.token, {}),
            (f"postgres://ana:{planted}@db/crm", {}),
        ]
        for name, arguments in calls:
            body, headers = stateless("tools/call", name, arguments)
            self.post(server, body, headers, self.project.token).getresponse().read()
        for uri in (
            f"wayleave://crm/people?where=name={planted}",
            f"wayleave://x/postgres://ana:{planted}@db/crm",
            f"wayleave://x/postgres%3A%2F%2Fana%3A{planted}%40db%2Fcrm",
        ):
            body, headers = stateless("resources/read", uri, {})
            self.post(server, body, headers, self.project.token).getresponse().read()
        body, headers = stateless("tools/call", "fetch", {"id": "crm/people:1"})
        refused = self.post(server, body, headers, stranger).getresponse()
        self.assertEqual(refused.status, 401)
        refused.read()
        before = self.project.list("--outcome", "refused")
        self.assertEqual(before[0]["outcome"]["reason"], "authorization")
        server.stop()
        exports = [self.project.export("prov"), self.project.export("jsonl"), *server.log]
        secrets = [planted, stranger, self.project.token, self.project.other, CANARY]
        for secret in secrets:
            self.assertEqual(leaks(self.project.path, secret), [], secret)
            self.assertFalse([text for text in exports if secret in text], secret)

    def test_a_destroyed_key_leaves_a_whole_record_without_arguments(self) -> None:
        server = self.serve()
        body, headers = stateless("tools/call", "fetch", {"id": "crm/people:9"})
        answer = self.post(server, body, headers, self.project.token).getresponse()
        id = bare(json.loads(answer.read())["result"]["_meta"][ACTIVITY])
        given = self.project.audit("show", id, "--arguments")["arguments"]["given"]
        self.assertEqual(given, {"id": "crm/people:9"})
        self.project.run("audit", "destroy-key")
        self.project.run("audit", "show", id, "--arguments", fails=True)
        self.project.run("audit", "replay", id, fails=True)
        self.assertTrue(self.project.audit("verify")["ok"])
        server.stop()


serving.define_every_way(globals(), Stdio, Http)


if __name__ == "__main__":
    unittest.main()

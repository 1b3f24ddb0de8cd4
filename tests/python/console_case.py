"""A project with a console, for the suites in which agents and a person take part.

Actions of a person in a page run in headless Chromium; requests that no browser sends are sent by hand.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import sqlite3
import subprocess
import time
from contextlib import asynccontextmanager
from urllib.parse import urlencode, urlsplit

import serving
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from playwright.async_api import async_playwright
from serving import PATIENCE, Calls, listening, text_of

UNAUTHENTICATED, SCOPE_DENIED = -32001, -32004
CANARY = "canary-7f3a"
ATTACK = '<img src=x onerror="document.title=1"><script>document.title=1</script>'
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]
OPERATIONS = {
    "wayleave_meta_ping", "wayleave_meta_source_list", "wayleave_meta_source_introspect",
    "wayleave_meta_gen_mapping", "wayleave_meta_gen_shape", "wayleave_meta_mapping_read",
    "wayleave_meta_mapping_check", "wayleave_meta_mapping_diff", "wayleave_meta_mapping_propose",
    "wayleave_meta_mapping_status", "wayleave_meta_drift_report",
}


def chromium() -> str | None:
    return os.environ.get("WAYLEAVE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


class Shop(serving.Project):
    """A project with one declared source and no ratified mapping."""

    def __init__(self) -> None:
        super().__init__('[project]\nname = "record-shop"\n\n[serve]\nhttp = "127.0.0.1:0"\ntokens = true\n')
        with sqlite3.connect(self.path / "shop.db") as connection:
            connection.executescript(
                f"""
                CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT NOT NULL, email TEXT, city TEXT);
                CREATE TABLE invoice (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL
                    REFERENCES customer (id), total DECIMAL(10,2) NOT NULL, at DATETIME);
                INSERT INTO customer VALUES (1, '{CANARY} Ann', 'ann@example.org', 'Oslo'),
                    (2, 'Bo {ATTACK.replace("'", "''")}', NULL, 'Porto');
                INSERT INTO invoice VALUES (1, 1, 12.50, '2026-01-02T03:04:05Z');
                """
            )
        connection.close()
        self.add_source("shop", self.path / "shop.db")
        self.builder = self.token("--scope", "builder", "--label", "analyst's agent")
        self.runtime = self.token("--label", "reader")

    def token(self, *words: str) -> str:
        return json.loads(self.run("token", "create", *words, "--json"))["secret"]

    def with_console(self) -> Served:
        command = [
            serving.program(), "serve", "--http", "127.0.0.1:0", "--console", "127.0.0.1:0",
            "--project", str(self.path),
        ]
        return Served(*command, env=self.env)


class Served(serving.HttpServer):
    """A server with a console."""

    def link(self) -> str:
        """The sign-in link that the server prints."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE:
            for line in list(self.log):
                if found := re.search(r"sign in as .*: (http://\S+)", line):
                    return found.group(1)
            time.sleep(0.02)
        raise RuntimeError(f"no link was shown: {self.log}")


@asynccontextmanager
async def browser():
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            yield opened
        finally:
            await opened.close()


class ConsoleCase(Calls):
    """Common steps of the suites with a project, its server and its console."""

    maxDiff = None

    def setUp(self) -> None:
        if not chromium():
            self.skipTest("no Chromium here; install the package `chromium`")
        self.project = Shop()
        self.addCleanup(self.project.close)
        self.server = self.project.with_console()
        self.addCleanup(lambda: self.server.process.poll() is None and self.server.stop())

    async def client(self, token: str, mode: str, stack):
        web = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
        await stack.enter_async_context(web)
        transport = streamable_http_client(self.server.url, http_client=web)
        return await listening(transport, mode, stack)

    async def propose(self, client) -> dict:
        """Makes a waiting proposal from a declared source, correcting its mistakes only by structured errors."""
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        self.assertLessEqual(OPERATIONS, set(tools))
        sources = (await self.good(client, "wayleave_meta_source_list")).structured_content["sources"]
        self.assertEqual([source["name"] for source in sources], ["shop"])
        wrong = await self.meta_refused(client, "wayleave_meta_source_introspect", source="shp")
        self.assertEqual((wrong["code"], wrong["allowed"]), ("unknown_source", ["shop"]))
        seen = await self.good(client, "wayleave_meta_source_introspect", source=wrong["allowed"][0])
        self.assertEqual({it["name"] for it in seen.structured_content["tables"]}, {"customer", "invoice"})
        made = (await self.good(client, "wayleave_meta_gen_mapping", source="shop")).structured_content
        # A missing field, which the errors report with line, column and fix.
        shaped = await self.good(
            client, "wayleave_meta_gen_shape", dataset="shop", unified=made["diff"]["unified"],
            stream="customer", set={"title": "nam", "description": "Everyone who buys."},
        )
        problem = shaped.structured_content["problems"][0]
        self.assertTrue(problem["line"] > 1 and "did you mean `name`" in problem["hint"], problem)
        refused = await self.meta_refused(
            client, "wayleave_meta_mapping_propose", dataset="shop",
            unified=shaped.structured_content["diff"]["unified"], reason="x",
        )
        self.assertEqual(refused["code"], "mapping_problems")
        shaped = await self.good(
            client, "wayleave_meta_gen_shape", dataset="shop", unified=made["diff"]["unified"],
            stream="customer", set={"title": "name", "description": "Everyone who buys."},
        )
        diff = shaped.structured_content["diff"]
        proposed = await self.good(
            client, "wayleave_meta_mapping_propose", dataset="shop", unified=diff["unified"],
            reason=f"To write to customers about late invoices. {ATTACK}",
        )
        answer = proposed.structured_content
        self.assertEqual(answer["diff"], diff)
        self.assertEqual(answer["proposal"]["status"], "waiting")
        return answer["proposal"]

    async def meta_refused(self, client, tool: str, **arguments) -> dict:
        result = await client.call_tool(tool, arguments)
        self.assertTrue(result.is_error, text_of(result))
        self.assertEqual(json.loads(text_of(result)), result.structured_content["error"])
        return result.structured_content["error"]

    async def sign_in(self, context):
        page = await context.new_page()
        await page.goto(self.server.link())
        await page.get_by_role("button", name="Sign in as").click()
        await page.wait_for_url("**/inbox")
        return page

    def command(self, *words: str) -> dict:
        ran = subprocess.run(
            [serving.program(), *words, "--project", str(self.project.path)],
            env=self.project.env, capture_output=True, text=True,
        )
        return json.loads(ran.stdout)

    def ask(self, method: str, path: str, headers: dict | None = None, form: dict | None = None):
        """Sends a request that no browser sends; returns status, headers and body."""
        where = urlsplit(self.server.link())
        connection = http.client.HTTPConnection("127.0.0.1", where.port, timeout=PATIENCE)
        body = urlencode(form) if form is not None else None
        given = {"Host": where.netloc, **(headers or {})}
        if body is not None:
            given["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, body=body, headers=given)
        answer = connection.getresponse()
        read = answer.read().decode()
        connection.close()
        return answer.status, dict(answer.getheaders()), read

    def log_in(self) -> tuple[str, str, str]:
        """Signs in. Returns the session's cookie, its CSRF token, and the origin."""
        where = urlsplit(self.server.link())
        origin = f"http://{where.netloc}"
        code = where.query.removeprefix("code=")
        status, headers, _ = self.ask("POST", "/login", {"Origin": origin}, {"code": code})
        self.assertEqual(status, 303)
        cookie = headers["set-cookie"].split(";")[0]
        _, _, page = self.ask("GET", "/inbox", {"Cookie": cookie})
        csrf = re.search(r'name="csrf" value="([^"]+)"', page).group(1)
        return cookie, csrf, origin

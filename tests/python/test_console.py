"""Agents propose, a human ratifies in a browser: the whole way, through the binary.

The official Python client with a builder token goes from a declared source to a waiting proposal.
Headless Chromium signs in with the link that the terminal shows, reads the difference and ratifies.
A second client hears that tools and resources changed, and reads the new records. In both eras.

Every page is looked at in light, dark and on a phone: `WAYLEAVE_SHOTS` names a folder for the
pictures. axe-core finds no serious violation on any of them.

Run it with a Python that has `mcp` 2.x, `playwright` and `axe-playwright-python`, and a Chromium:
python tests/python/test_console.py [-v] [NAME ...]
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import shutil
import sqlite3
import time
import unittest
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import serving
from axe_playwright_python.async_playwright import Axe
from mcp import MCPError
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from playwright.async_api import async_playwright
from serving import MODERN, PATIENCE, Calls, listening, text_of, unwrapped

UNAUTHENTICATED, SCOPE_DENIED = -32001, -32004
CANARY = "canary-7f3a"
ATTACK = '<img src=x onerror="document.title=1"><script>document.title=1</script>'
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]
MODES = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
OPERATIONS = {
    "wayleave_meta_ping", "wayleave_meta_source_list", "wayleave_meta_source_introspect",
    "wayleave_meta_gen_mapping", "wayleave_meta_gen_shape", "wayleave_meta_mapping_read",
    "wayleave_meta_mapping_check", "wayleave_meta_mapping_diff", "wayleave_meta_mapping_propose",
    "wayleave_meta_mapping_status", "wayleave_meta_drift_report",
}


def chromium() -> str | None:
    return os.environ.get("WAYLEAVE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


class Shop(serving.Project):
    """A project with one declared source, of which nothing is ratified."""

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
    """A server with a console beside it."""

    def link(self) -> str:
        """The link that the terminal shows."""
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


class Console(Calls, unittest.IsolatedAsyncioTestCase):
    """What agents and a person do together."""

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
        """From a declared source to a waiting proposal, by structured errors alone where it errs."""
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        self.assertLessEqual(OPERATIONS, set(tools))
        sources = (await self.good(client, "wayleave_meta_source_list")).structured_content["sources"]
        self.assertEqual([source["name"] for source in sources], ["shop"])
        wrong = await self.meta_refused(client, "wayleave_meta_source_introspect", source="shp")
        self.assertEqual((wrong["code"], wrong["allowed"]), ("unknown_source", ["shop"]))
        seen = await self.good(client, "wayleave_meta_source_introspect", source=wrong["allowed"][0])
        self.assertEqual({it["name"] for it in seen.structured_content["tables"]}, {"customer", "invoice"})
        made = (await self.good(client, "wayleave_meta_gen_mapping", source="shop")).structured_content
        # A field that is not there, which the errors name with line, column and fix.
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

    async def whole_way(self, mode: str) -> None:
        async with unwrapped() as stack, browser() as chrome:
            builder, _ = await self.client(self.project.builder, mode, stack)
            proposal = await self.propose(builder)
            page = await self.sign_in(await chrome.new_context())
            await page.get_by_role("link", name=f"{proposal['id']} · shop").click()
            body = await page.inner_text("main")
            self.assertIn("To write to customers about late invoices.", body)
            self.assertIn("adds field email (string) to customer", body)
            self.assertIn("Personal data", body)
            # What a person has not asked for is not read.
            self.assertNotIn(CANARY, await page.content())
            await page.get_by_role("button", name="Show 5 rows of customer").click()
            self.assertIn(CANARY, await page.inner_text("#rows"))
            # A name that does not fit is told at the field, and what was written stays.
            for tick in await page.locator("#weighed input").all():
                await tick.check()
            await page.fill("#note", "letters go by e-mail")
            await page.fill("#name", "shpo")
            await page.get_by_role("button", name="Ratify shop").click()
            self.assertIn("Not ratified", await page.inner_text("[role=alert]"))
            self.assertEqual(await page.input_value("#note"), "letters go by e-mail")
            await page.fill("#name", "shop")
            await page.get_by_label("Connect it at once").uncheck()
            await page.get_by_role("button", name="Ratify shop").click()
            await page.get_by_role("heading", name="shop is ratified").wait_for()
            self.assertEqual(await page.title(), "shop is ratified · Wayleave")
            # Ratifying grants nothing: a token reads it once a grant says so, and it is connected.
            granted = self.project.token("--all-of", "shop", "--scope", "builder")
            other, notices = await self.client(granted, mode, stack)
            before = {it.name for it in (await other.list_tools()).tools}
            self.assertNotIn("workup_shop", before)
            await page.goto(urlsplit(page.url)._replace(path="/datasets/shop", fragment="").geturl())
            await page.get_by_role("button", name="Connect shop").click()
            await page.get_by_role("button", name="Disconnect shop").wait_for()
            await notices.until(tools=1, resources=1)
            self.assertIn("workup_shop", {it.name for it in (await other.list_tools()).tools})
            uris = {str(it.uri) for it in (await other.list_resources()).resources}
            self.assertLessEqual({"wayleave://kg/Customer", "wayleave://kg/Invoice"}, uris)
            read = await self.good(other, "query_records", stream="customer", fields=["name"])
            self.assertIn(CANARY, text_of(read))
            told = await self.good(builder, "wayleave_meta_mapping_status", proposal=proposal["id"])
            self.assertEqual(told.structured_content["proposals"][0]["status"], "ratified")

    async def test_the_whole_way_in_the_newest_era(self) -> None:
        await self.whole_way(MODERN)

    async def test_the_whole_way_in_the_older_era(self) -> None:
        await self.whole_way("legacy")

    async def test_what_is_sent_back_reaches_the_agent_with_its_comment(self) -> None:
        async with unwrapped() as stack, browser() as chrome:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            proposal = await self.propose(builder)
            page = await self.sign_in(await chrome.new_context())
            await page.goto(page.url.replace("/inbox", f"/inbox/{proposal['id']}"))
            await page.fill("#c", f"Leave out email. {ATTACK}")
            await page.get_by_role("button", name="Send back").click()
            await page.wait_for_url("**/inbox")
            told = await self.good(builder, "wayleave_meta_mapping_status")
            decided = told.structured_content["proposals"][0]
            self.assertEqual(decided["status"], "returned")
            self.assertEqual(decided["decided"]["comment"], f"Leave out email. {ATTACK}")
            again = await self.propose(builder)
            self.assertEqual(again["follows"], proposal["id"])

    async def test_only_builders_author_and_every_tool_says_its_kind(self) -> None:
        async with unwrapped() as stack:
            reader, _ = await self.client(self.project.runtime, MODERN, stack)
            tools = {tool.name for tool in (await reader.list_tools()).tools}
            self.assertFalse(tools & OPERATIONS)
            for tool in OPERATIONS:
                with self.assertRaises(MCPError) as caught:
                    await reader.call_tool(tool, {})
                error = caught.exception.error
                self.assertEqual(error.code, SCOPE_DENIED)
                self.assertEqual(
                    error.data,
                    {"tool": tool, "required_scope": "builder", "caller_scopes": ["runtime"]},
                )
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            for tool in (await builder.list_tools()).tools:
                mark = tool.meta["io.wayleave/tool"]
                if tool.name not in OPERATIONS:
                    self.assertEqual(mark, {"kind": "runtime"})
                    continue
                self.assertEqual((mark["kind"], mark["scope"], mark["idempotent"]), ("meta", "builder", True))
                parts = [part for part in (mark["namespace"], mark["op"]) if part]
                self.assertEqual("wayleave_meta_" + "_".join(parts), tool.name)

    async def test_the_same_bytes_over_mcp_and_on_the_command_line(self) -> None:
        async with unwrapped() as stack:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            made = (await self.good(builder, "wayleave_meta_gen_mapping", source="shop")).structured_content
            full = bool(os.environ.get("WAYLEAVE_FULL"))
            kinds = ["string", "integer", "decimal", "boolean", "date"]
            for n in range(200 if full else 20):
                change = {
                    "dataset": "shop", "unified": made["diff"]["unified"], "stream": f"customer{n % 3 or ''}",
                    "set": {
                        "table": "customer", "type": f"T{n}", "key": ["id"],
                        "fields": {f"f{n % 7}": {"column": "name", "datatype": kinds[n % 5], "description": f"ä {n}"},
                                   "sum": {"compute": f"id + {n}", "datatype": "integer"}},
                        "relations": {f"r{n % 4}": {"to": "invoice", "on": {"id": "customer_id"}}},
                        "measures": {f"m{n}": "count()"},
                    },
                    "remove": ["fields.sum"] if n % 2 else [],
                }
                over_mcp = (await self.good(builder, "wayleave_meta_gen_shape", **change)).structured_content
                command = self.command("meta", "gen", "shape", "--json", "--input", json.dumps(change))
                self.assertEqual(command["diff"], over_mcp["diff"])

    def command(self, *words: str) -> dict:
        import subprocess
        ran = subprocess.run(
            [serving.program(), *words, "--project", str(self.project.path)],
            env=self.project.env, capture_output=True, text=True,
        )
        return json.loads(ran.stdout)

    async def test_every_page_is_whole_in_light_dark_and_on_a_phone(self) -> None:
        shots = os.environ.get("WAYLEAVE_SHOTS")
        async with unwrapped() as stack, browser() as chrome:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            await self.propose(builder)
            self.project.run("inbox", "ratify", "1", "--note", "a first look")
            self.project.run("connect", "shop")
            read = (await self.good(builder, "wayleave_meta_mapping_read", dataset="shop")).structured_content
            shaped = await self.good(
                builder, "wayleave_meta_gen_shape", dataset="shop", before_sha256=read["sha256"],
                stream="customer", remove=["fields.city"],
                set={"title": "email", "search": ["name", "email"], "description": "Everyone who buys, and how to reach them.",
                     "fields": {"shout": {"compute": "name || '!'", "datatype": "string"}}},
            )
            await self.good(
                builder, "wayleave_meta_mapping_propose", dataset="shop", before_sha256=read["sha256"],
                unified=shaped.structured_content["diff"]["unified"], reason=f"To write to customers. {ATTACK}",
            )
            self.project.token("--all-of", "shop", "--label", "support <b>desk</b>")
            listed = json.loads(self.project.run("grant", "list", "--json"))["grants"]
            tokens = json.loads(self.project.run("token", "list", "--json"))["tokens"]
            first = await chrome.new_context()
            signed = await self.sign_in(first)
            state = await first.storage_state()
            root = signed.url.removesuffix("/inbox")
            pages = {
                "login": "/login", "inbox": "/inbox", "proposal": "/inbox/2", "decided": "/inbox/1",
                "datasets": "/datasets", "dataset": "/datasets/shop", "grants": "/grants",
                "grant": f"/grants/{listed[0]['id']}", "grant-new": "/grants/new", "token": f"/tokens/{tokens[0]['id']}",
                "token-new": "/tokens/new", "decisions": "/decisions", "connect": "/connect", "missing": "/nowhere",
                "try": "/try?" + urlencode({"as": "", "tool": "query_records", "stream": "customer", "args": '{"limit": 5}'}),
            }
            axe = Axe()
            for mode, options in MODES.items():
                context = await chrome.new_context(storage_state=state, **options)
                page = await context.new_page()
                # A policy that is broken is reported on the console of the browser.
                reports: list[str] = []
                page.on("console", lambda message: reports.append(message.text))
                page.on("pageerror", lambda error: reports.append(str(error)))
                requests: list[str] = []
                page.on("request", lambda request: requests.append(request.url))
                for name, path in pages.items():
                    requests.clear()
                    answer = await page.goto(root + path)
                    self.assertLessEqual(len(await answer.body()), 60 * 1024, name)
                    await page.wait_for_load_state("load")
                    files = [url for url in requests if "/assets/" in url]
                    self.assertLessEqual(len(files), 2, files)
                    wide = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
                    self.assertLessEqual(wide, 0, f"{name} in {mode} is too wide")
                    found = (await axe.run(page)).response["violations"]
                    serious = [it for it in found if it["impact"] in ("serious", "critical")]
                    told = [(it["id"], [node["html"][:200] for node in it["nodes"]][:3]) for it in serious]
                    self.assertEqual(told, [], f"{name} in {mode}")
                    # Markup in data is text: nothing of it ran, and nothing became an element.
                    self.assertNotEqual(await page.title(), "1")
                    self.assertEqual(await page.locator("img").count(), 0)
                    if shots:
                        Path(shots).mkdir(parents=True, exist_ok=True)
                        await page.screenshot(path=f"{shots}/{name}.{mode}.png", full_page=True)
                refused = [it for it in reports if "Content Security Policy" in it or "Refused" in it]
                self.assertEqual(refused, [])

    async def test_a_person_ratifies_by_keyboard_alone_and_without_a_script(self) -> None:
        async with unwrapped() as stack, browser() as chrome:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            await self.propose(builder)
            page = await self.sign_in(await chrome.new_context(java_script_enabled=False))
            await page.goto(page.url + "/1")

            async def reach(selector: str) -> None:
                for _ in range(80):
                    await page.keyboard.press("Tab")
                    focused = page.locator(f"{selector}:focus")
                    if await focused.count():
                        return
                self.fail(f"{selector} cannot be reached")

            ticks = await page.locator("#weighed input").count()
            for n in range(ticks):
                await reach(f"#weighed input[name=w{n}]")
                await page.keyboard.press("Space")
            await reach("#note")
            await page.keyboard.type("by keyboard")
            await reach("#name")
            await page.keyboard.type("shop")
            await reach("form[action*=ratify] button.primary")
            await page.keyboard.press("Enter")
            await page.get_by_role("heading", name="shop is ratified and live").wait_for()

    # --- attacks -----------------------------------------------------------------------------------

    def ask(self, method: str, path: str, headers: dict | None = None, form: dict | None = None):
        """A request that no browser would make; returns status, headers and body."""
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
        """The session's cookie, the text of its forms, and the origin."""
        where = urlsplit(self.server.link())
        origin = f"http://{where.netloc}"
        code = where.query.removeprefix("code=")
        status, headers, _ = self.ask("POST", "/login", {"Origin": origin}, {"code": code})
        self.assertEqual(status, 303)
        cookie = headers["set-cookie"].split(";")[0]
        _, _, page = self.ask("GET", "/inbox", {"Cookie": cookie})
        csrf = re.search(r'name="csrf" value="([^"]+)"', page).group(1)
        return cookie, csrf, origin

    def test_a_link_signs_in_once_and_its_page_does_not_use_it_up(self) -> None:
        where = urlsplit(self.server.link())
        origin, code = f"http://{where.netloc}", where.query.removeprefix("code=")
        for _ in range(3):
            status, headers, page = self.ask("GET", f"/login?code={code}")
            self.assertEqual(status, 200)
            self.assertNotIn("set-cookie", headers)
            self.assertIn("Sign in as", page)
        status, headers, _ = self.ask("POST", "/login", {"Origin": origin, "Cookie": f"wayleave_console_{where.port}=chosen"}, {"code": code})
        self.assertEqual(status, 303)
        cookie = headers["set-cookie"]
        # A cookie that somebody put there is never taken over.
        self.assertNotIn("chosen", cookie)
        for part in ("HttpOnly", "SameSite=Strict", "Path=/", f"wayleave_console_{where.port}="):
            self.assertIn(part, cookie)
        self.assertEqual(self.ask("POST", "/login", {"Origin": origin}, {"code": code})[0], 410)
        self.assertEqual(self.ask("GET", f"/login?code={code}")[0], 410)

    def test_nobody_guesses_a_link_or_a_session(self) -> None:
        where = urlsplit(self.server.link())
        origin = f"http://{where.netloc}"
        answers = [self.ask("POST", "/login", {"Origin": origin}, {"code": f"guess-{n}"})[0] for n in range(25)]
        self.assertEqual(answers[:20], [410] * 20)
        self.assertEqual(answers[-1], 429)
        for path in ["/", "/inbox", "/inbox/1", "/datasets", "/grants", "/tokens/new", "/try", "/events", "/decisions"]:
            status, _, page = self.ask("GET", path, {"Cookie": f"wayleave_console_{where.port}=guess"})
            self.assertEqual(status, 403, path)
            self.assertNotIn("record-shop", page)

    def test_foreign_hosts_origins_and_forms_are_refused(self) -> None:
        cookie, csrf, origin = self.log_in()
        for host in ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80"]:
            self.assertEqual(self.ask("GET", "/inbox", {"Host": host, "Cookie": cookie})[0], 421, host)
        issue = {"label": "stolen", "ends": "never", "builder": "on"}
        before = len(json.loads(self.project.run("token", "list", "--json"))["tokens"])
        for headers, form in [
            ({"Cookie": cookie, "Origin": origin}, issue),
            ({"Cookie": cookie, "Origin": origin}, {**issue, "csrf": "guess"}),
            ({"Cookie": cookie, "Origin": "http://127.0.0.1:1"}, {**issue, "csrf": csrf}),
            ({"Cookie": cookie, "Origin": "null"}, {**issue, "csrf": csrf}),
            ({"Cookie": cookie}, {**issue, "csrf": csrf}),
            ({"Cookie": cookie, "Origin": origin, "Sec-Fetch-Site": "same-site"}, {**issue, "csrf": csrf}),
            ({"Cookie": cookie, "Origin": origin, "Sec-Fetch-Site": "cross-site"}, {**issue, "csrf": csrf}),
            ({"Origin": origin}, {**issue, "csrf": csrf}),
            ({"Cookie": f"{cookie}; {cookie}x", "Origin": origin}, {**issue, "csrf": csrf}),
        ]:
            status, _, page = self.ask("POST", "/tokens/new", headers, form)
            self.assertEqual(status, 403, (headers, form))
            self.assertIn("Nothing you sent was done", page)
        self.assertEqual(len(json.loads(self.project.run("token", "list", "--json"))["tokens"]), before)
        status, _, page = self.ask("POST", "/tokens/new", {"Cookie": cookie, "Origin": origin}, {**issue, "csrf": csrf})
        self.assertEqual(status, 200)
        secret = re.search(r"wlc_[0-9A-Za-z]+", page).group(0)
        token = re.search(r"/tokens/(t_\w+)/revoke", page).group(1)
        _, headers, again = self.ask("GET", f"/tokens/{token}", {"Cookie": cookie})
        self.assertNotIn(secret, again)
        self.assertEqual(headers["cache-control"], "no-store")

    def test_every_answer_forbids_frames_scripts_and_keeping(self) -> None:
        cookie, _, _ = self.log_in()
        for path in ["/login", "/inbox", "/datasets", "/nowhere", "/try"]:
            _, headers, page = self.ask("GET", path, {"Cookie": cookie})
            policy = headers["content-security-policy"]
            for rule in ["default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"]:
                self.assertIn(rule, policy)
            self.assertNotIn("unsafe", policy)
            self.assertEqual(headers["x-frame-options"], "DENY")
            self.assertEqual(headers["referrer-policy"], "same-origin")
            self.assertEqual(headers["cache-control"], "no-store")
            self.assertEqual(len(re.findall(r"<script(?! src=)", page)), 0)
            self.assertEqual(len(re.findall(r"\son\w+=|\sstyle=", page)), 0)

    def test_a_signed_out_session_is_over(self) -> None:
        cookie, csrf, origin = self.log_in()
        self.assertEqual(self.ask("POST", "/logout", {"Cookie": cookie, "Origin": origin}, {"csrf": csrf})[0], 200)
        self.assertEqual(self.ask("GET", "/inbox", {"Cookie": cookie})[0], 403)

    async def test_a_huge_proposal_and_a_huge_form_are_refused(self) -> None:
        async with unwrapped() as stack:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            huge = "# " + "x" * (1024 * 1024) + "\n"
            error = await self.meta_refused(
                builder, "wayleave_meta_mapping_propose", dataset="shop", text=huge, reason=""
            )
            self.assertEqual(error["code"], "too_large")
        cookie, csrf, origin = self.log_in()
        form = {"csrf": csrf, "label": "x" * (10 * 1024 * 1024)}
        try:
            status = self.ask("POST", "/tokens/new", {"Cookie": cookie, "Origin": origin}, form)[0]
        except (BrokenPipeError, ConnectionResetError):
            status = 413  # it hung up while the rest was sent
        self.assertEqual(status, 413)

    async def test_a_text_that_hides_or_misleads_is_refused_or_shown_for_what_it_is(self) -> None:
        async with unwrapped() as stack:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            made = (await self.good(builder, "wayleave_meta_gen_mapping", source="shop")).structured_content
            unified = made["diff"]["unified"]
            shape = {"dataset": "shop", "unified": unified, "stream": "customer"}
            turned = await self.good(
                builder, "wayleave_meta_gen_shape", **shape, set={"description": "safe\u202etxet"}
            )
            self.assertTrue(turned.structured_content["problems"])
            for name in ["n\u0430me", "na\u200bme"]:
                odd = await self.good(
                    builder, "wayleave_meta_gen_shape", **shape, set={"fields": {name: {"column": "name", "datatype": "string"}}}
                )
                self.assertTrue(odd.structured_content["problems"], name)
            refused = await self.meta_refused(
                builder, "wayleave_meta_mapping_propose", dataset="shop", unified=unified, reason="safe\u202etxet"
            )
            self.assertEqual(refused["code"], "invalid_argument")
            lookalike = await self.good(
                builder, "wayleave_meta_gen_shape", **shape, set={"description": "Every cust\u043emer."}
            )
            await self.good(
                builder, "wayleave_meta_mapping_propose", dataset="shop",
                unified=lookalike.structured_content["diff"]["unified"], reason="to look",
            )
        cookie, _, _ = self.log_in()
        _, _, page = self.ask("GET", "/inbox/1", {"Cookie": cookie})
        self.assertIn("cust<u>U+043E</u>mer", page)
        self.assertIn("A name made to look like another", page)
        self.assertNotIn("cust\u043emer", page)

    async def test_what_was_read_is_what_is_ratified(self) -> None:
        async with unwrapped() as stack:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            await self.propose(builder)
            cookie, csrf, origin = self.log_in()
            _, _, page = self.ask("GET", "/inbox/1", {"Cookie": cookie})
            read = re.search(r'name="digest" value="([^"]+)"', page).group(1)
            made = (await self.good(builder, "wayleave_meta_gen_mapping", source="shop")).structured_content
            await self.good(
                builder, "wayleave_meta_mapping_propose", dataset="shop", unified=made["diff"]["unified"], reason="other"
            )
            form = {"csrf": csrf, "digest": read, "against": "", "name": "shop", "note": "yes"}
            form |= {f"w{n}": "on" for n in range(9)}
            headers = {"Cookie": cookie, "Origin": origin}
            status, _, page = self.ask("POST", "/inbox/1/ratify", headers, form)
            self.assertEqual(status, 409)
            self.assertIn("it is not what you read", page)
            self.assertEqual(json.loads(self.project.run("datasets", "--json"))["datasets"], [])


if __name__ == "__main__":
    unittest.main()

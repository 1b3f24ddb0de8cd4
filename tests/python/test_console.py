"""Agents propose, and a human ratifies in a browser: end to end, with the binary.

The official Python client with a builder token goes from a declared source to a waiting proposal.
Headless Chromium signs in with the printed link, reads the difference and ratifies. A second client is
notified that tools and resources changed, and reads the new records. In both eras.

Every page is viewed in light, in dark and on a phone: `WAYLEAVE_SHOTS` names a folder for the
screenshots. axe-core finds no serious violation on any of them.

Run it with a Python that has `mcp` 2.x, `playwright` and `axe-playwright-python`, and a Chromium:
python tests/python/test_console.py [-v] [NAME ...]
"""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import re
import threading
import unittest
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from axe_playwright_python.async_playwright import Axe
from console_case import ATTACK, CANARY, ConsoleCase, browser
from mcp import MCPError
from serving import MODERN, text_of, unwrapped

MODES = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
class Look:
    """A person who views every page in one colour scheme on one screen."""

    def __init__(self, case: unittest.TestCase, context, mode: str) -> None:
        self.case, self.context, self.mode = case, context, mode
        self.axe, self.shots = Axe(), os.environ.get("WAYLEAVE_SHOTS")
        self.refused: list[str] = []
        self.requests: list[str] = []

    async def begin(self) -> None:
        self.page = await self.context.new_page()
        # The browser's console reports violations of the content security policy.
        self.page.on("console", lambda message: self.report(message.text))
        self.page.on("pageerror", lambda error: self.refused.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def report(self, text: str) -> None:
        if "Content Security Policy" in text or "Refused" in text:
            self.refused.append(text)

    async def at(self, name: str, url: str) -> None:
        self.requests.clear()
        answer = await self.page.goto(url)
        self.case.assertLessEqual(len(await answer.body()), 60 * 1024, name)
        await self.here(name)
        # The page, the stylesheet, and one more.
        files = [url for url in self.requests if "/assets/" in url]
        self.case.assertLessEqual(len(files), 2, files)
        others = [url for url in self.requests if "/assets/" not in url and "/events" not in url]
        self.case.assertLessEqual(len(others), 2, others)

    async def here(self, name: str) -> None:
        """Checks the current page, and takes a screenshot."""
        page, where = self.page, f"{name} in {self.mode}"
        await page.wait_for_load_state("load")
        self.case.assertLessEqual(len((await page.content()).encode()), 60 * 1024, where)
        wide = await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        self.case.assertLessEqual(wide, 0, f"{where} is too wide")
        found = (await self.axe.run(page)).response["violations"]
        serious = [it for it in found if it["impact"] in ("serious", "critical")]
        told = [(it["id"], [node["html"][:200] for node in it["nodes"]][:3]) for it in serious]
        self.case.assertEqual(told, [], where)
        # Markup in data is text: no script ran, and no element was created.
        self.case.assertNotEqual(await page.title(), "1")
        self.case.assertEqual(await page.locator("img, main b b, main script").count(), 0, where)
        if self.shots:
            Path(self.shots).mkdir(parents=True, exist_ok=True)
            await page.screenshot(path=f"{self.shots}/{name}.{self.mode}.png", full_page=True)
        if self.mode == "light":
            await self.by_keyboard(where)


    async def by_keyboard(self, where: str) -> None:
        """Checks that every control of the page is reached with Tab and has a focus ring."""
        many = await self.page.evaluate(
            """() => {
                const all = document.querySelectorAll(
                    "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']");
                const seen = [...all].filter((it) => it.checkVisibility() && !it.disabled);
                seen.forEach((it, n) => { it.dataset.reach = n; });
                document.activeElement?.blur();
                window.getSelection()?.removeAllRanges();
                return seen.length;
            }"""
        )
        reached = set()
        for _ in range(many + 10):
            await self.page.keyboard.press("Tab")
            at = await self.page.evaluate(
                """() => {
                    const it = document.activeElement, style = getComputedStyle(it);
                    const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
                    return [it.dataset.reach ?? null, ring, it.outerHTML.slice(0, 120)];
                }"""
            )
            if at[0] is not None:
                self.case.assertTrue(at[1], f"{where}: no ring on {at[2]}")
                reached.add(int(at[0]))
        self.case.assertEqual(reached, set(range(many)), f"{where}: not reached by keyboard")


@contextmanager
def other_port():
    """Serves a foreign page on another port of this machine."""
    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"<!doctype html><title>other</title><body>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Console(ConsoleCase, unittest.IsolatedAsyncioTestCase):
    """Agents and a person on one project."""

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
            # Rows are not read before the person requests them.
            self.assertNotIn(CANARY, await page.content())
            await page.get_by_role("button", name="Show 5 rows of customer").click()
            self.assertIn(CANARY, await page.inner_text("#rows"))
            # A wrong name is reported at the field, and the input is preserved.
            for tick in await page.locator("#risks input").all():
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
            # Ratifying grants nothing: a token reads the dataset once it is granted and connected.
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

    async def test_every_page_is_whole_in_light_dark_and_on_a_phone(self) -> None:
        async with unwrapped() as stack, browser() as chrome:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            first = await chrome.new_context()
            signed = await self.sign_in(first)
            state = await first.storage_state()
            looks = [Look(self, await chrome.new_context(storage_state=state, **options), mode)
                     for mode, options in MODES.items()]
            root = signed.url.removesuffix("/inbox")
            for look in looks:
                await look.begin()
                for name in ["inbox", "datasets", "grants", "activity"]:
                    await look.at(f"empty-{name}", f"{root}/{name}")
            await self.propose(builder)
            self.project.run("inbox", "ratify", "1", "--yes", "--note", "a first look")
            self.project.run("connect", "shop")
            desk = self.project.token("--all-of", "shop", "--label", "support <b>desk</b>")
            call = await self.some_calls(desk, stack)
            listed = json.loads(self.project.run("grant", "list", "--json"))["grants"]
            tokens = json.loads(self.project.run("token", "list", "--json"))["tokens"]
            granted = next(it["id"] for it in tokens if it["grants"])
            for look in looks:
                waiting = await self.propose_another(builder, look.mode)
                blocked = self.spoil(waiting)
                link = self.project.run("console", "link").split()[-1]
                pages = {
                    "login": link.removeprefix(root), "signed-out": "/login", "inbox": "/inbox",
                    "proposal": f"/inbox/{waiting}", "blocked": f"/inbox/{blocked}", "decided": "/inbox/1",
                    "datasets": "/datasets", "dataset": "/datasets/shop", "grants": "/grants",
                    "grant": f"/grants/{listed[0]['id']}", "grant-new": "/grants/new", "token": f"/tokens/{tokens[0]['id']}",
                    "token-new": "/tokens/new", "decisions": "/decisions", "connect": "/connect", "missing": "/nowhere",
                    "activity": "/activity", "call": f"/activity/{call}", "nothing": "/activity?outcome=failed",
                    "try": "/try?" + urlencode(
                        {"as": granted, "tool": "query_records", "stream": "customer", "args": '{"limit": 5}'}
                    ),
                    "try-refused": "/try?" + urlencode(
                        {"as": "", "tool": "query_records", "stream": "customer", "args": '{"fields": ["salary"]}'}
                    ),
                }
                for name, path in pages.items():
                    await look.at(name, root + path)
                await self.answers(look, root, waiting, listed[0]["id"])
                self.assertEqual(look.refused, [])

    async def answers(self, look: Look, root: str, waiting: int, grant: str) -> None:
        """Views the pages that forms respond with."""
        page = look.page
        await page.goto(f"{root}/grants/{grant}")
        await page.locator("input[value='customer.email']").uncheck()
        await page.get_by_role("button", name="Show what is lost").click()
        await look.here("grant-lost")
        await page.goto(f"{root}/tokens/new")
        await page.fill("#label", "month-end")
        await page.get_by_role("button", name="Issue the token").click()
        await look.here("token-issued")
        await page.goto(f"{root}/inbox/{waiting}")
        await page.get_by_role("button", name="Show 5 rows of customer").click()
        await look.here("proposal-rows")
        for tick in await page.locator("#risks input").all():
            await tick.check()
        await page.fill("#note", f"agreed {ATTACK}")
        await page.fill("#name", "shpo")
        await page.get_by_role("button", name="Ratify shop").click()
        await look.here("proposal-refused")
        await page.fill("#name", "shop")
        await page.get_by_role("button", name="Ratify shop").click()
        await look.here("ratified")

    async def propose_another(self, builder, mode: str) -> int:
        read = (await self.good(builder, "wayleave_meta_mapping_read", dataset="shop")).structured_content
        shaped = await self.good(
            builder, "wayleave_meta_gen_shape", dataset="shop", before_sha256=read["sha256"],
            stream="customer", remove=["fields.city"] if mode == "light" else [],
            set={"title": "email" if mode == "light" else "name", "search": ["name", "email"],
                 "description": f"Everyone who buys, and how to reach them ({mode}).",
                 "fields": {f"shout_{mode}": {"compute": "name || '!'", "datatype": "string"}}},
        )
        proposed = await self.good(
            builder, "wayleave_meta_mapping_propose", dataset="shop", before_sha256=read["sha256"],
            unified=shaped.structured_content["diff"]["unified"], reason=f"To write to customers. {ATTACK}",
        )
        return proposed.structured_content["proposal"]["id"]

    def spoil(self, waiting: int) -> int:
        """Adds a proposal that does not check, like one made before a rule was added; returns its id."""
        folder = self.project.path / ".wayleave/inbox"
        kept = json.loads((folder / f"{waiting}.json").read_text())
        kept["text"] += "\n[streams.odd]\ntable = \"<b>odd</b>\"\nkey = [\"n\\u200bo\"]\n"
        kept["digest"] = "sha256:" + hashlib.sha256(kept["text"].encode()).hexdigest()
        kept["id"] = 900 + waiting
        kept["proposer"] = {"token": "t_another123", "name": "another <b>agent</b>"}
        (folder / f"{kept['id']}.json").write_text(json.dumps(kept))
        return kept["id"]

    async def some_calls(self, token: str, stack) -> str:
        """Makes calls with a client whose name is markup; returns the id of one that read rows."""
        client, _ = await self.client(token, MODERN, stack)
        for _ in range(4):
            await self.good(client, "query_records", stream="customer", fields=["name"])
        read = await self.good(client, "fetch", id="shop/customer:1")
        for wrong in ["salary", ATTACK]:
            await self.refused(client, "query_records", stream="customer", fields=[wrong])
        with self.assertRaises(MCPError):
            await client.call_tool(ATTACK, {})
        await self.good(client, "schema")
        return read.meta["io.wayleave/activity"].removeprefix("urn:uuid:")

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

            ticks = await page.locator("#risks input").count()
            for n in range(ticks):
                await reach(f"#risks input[name=w{n}]")
                await page.keyboard.press("Space")
            await reach("#note")
            await page.keyboard.type("by keyboard")
            await reach("#name")
            await page.keyboard.type("shop")
            await reach("form[action*=ratify] button.primary")
            await page.keyboard.press("Enter")
            await page.get_by_role("heading", name="shop is ratified and live").wait_for()

    # --- attacks -----------------------------------------------------------------------------------

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
        # A planted cookie is never adopted.
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

    async def test_a_page_on_another_port_of_this_machine_gets_nothing_and_does_nothing(self) -> None:
        """Browsers send cookies to every port; a page there must neither read, use nor plant one."""
        async with browser() as chrome:
            context = await chrome.new_context()
            signed = await self.sign_in(context)
            root = signed.url.removesuffix("/inbox")
            cookie = next(it for it in await context.cookies() if it["name"].startswith("wayleave_console_"))
            self.assertTrue(cookie["httpOnly"] and cookie["sameSite"] == "Strict")
            before = len(json.loads(self.project.run("token", "list", "--json"))["tokens"])
            with other_port() as other:
                page = await context.new_page()
                await page.goto(other)
                self.assertNotIn(cookie["value"], await page.evaluate("document.cookie"))
                for how in ["cors", "no-cors"]:
                    read = await page.evaluate(
                        """async ([url, mode]) => {
                            try { return await (await fetch(url, {credentials: "include", mode})).text(); }
                            catch (error) { return "refused: " + error; }
                        }""",
                        [f"{root}/inbox", how],
                    )
                    self.assertTrue(read == "" or read.startswith("refused"), read)
                await page.evaluate(
                    """(url) => {
                        const frame = document.createElement("iframe");
                        frame.src = url + "/inbox"; frame.name = "framed"; document.body.append(frame);
                    }""",
                    root,
                )
                await page.wait_for_function("window.frames.length === 1")
                framed = page.frame("framed")
                await framed.wait_for_load_state()
                self.assertNotIn("Waiting for a person", await framed.content())
                async with page.expect_navigation():
                    await page.evaluate(
                        """(url) => {
                            const form = document.createElement("form");
                            form.method = "post"; form.action = url + "/tokens/new";
                            form.innerHTML = '<input name=label value=stolen><input name=ends value=never>';
                            document.body.append(form); form.submit();
                        }""",
                        root,
                    )
                self.assertIn("Nothing you sent was done", await page.inner_text("main"))
                self.assertEqual(len(json.loads(self.project.run("token", "list", "--json"))["tokens"]), before)
                # A cookie planted by that page never becomes a session, and does not replace the person's own.
                await page.goto(other)
                await page.evaluate("(name) => { document.cookie = `${name}=planted; path=/inbox`; }", cookie["name"])
                answer = await signed.goto(f"{root}/inbox")
                self.assertEqual(answer.status, 403)
                answer = await signed.goto(f"{root}/datasets")
                self.assertEqual(answer.status, 200)

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
            # Ten megabytes are more than any request may have, and none of it is stored.
            with self.assertRaises(Exception):
                await builder.call_tool(
                    "wayleave_meta_mapping_propose", {"dataset": "shop", "text": huge * 10, "reason": ""}
                )
        self.assertEqual(json.loads(self.project.run("inbox", "list", "--json"))["proposals"], [])
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

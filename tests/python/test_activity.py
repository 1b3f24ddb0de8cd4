"""The activity pages, and the narrowing of a grant.

The official Python client makes the calls. The pages are read in headless Chromium, with and without
JavaScript, and by hand where no browser sends such a request.

Run it with a Python that has `mcp` 2.x and `playwright`, and a Chromium:
python tests/python/test_activity.py [-v] [NAME ...]
"""

from __future__ import annotations

import json
import re
import unittest
from urllib.parse import urlencode

from console_case import ATTACK, CANARY, ConsoleCase, browser
from serving import MODERN, PATIENCE, text_of, unwrapped

VALUE = "asked-for-91c2"


class Activity(ConsoleCase, unittest.IsolatedAsyncioTestCase):
    """A live shop, a token that reads it, and a person who views its activity."""

    async def asyncSetUp(self) -> None:
        async with unwrapped() as stack:
            builder, _ = await self.client(self.project.builder, MODERN, stack)
            await self.propose(builder)
        self.project.run("inbox", "ratify", "1", "--yes", "--note", "to read")
        self.project.run("connect", "shop")
        self.reader = self.project.token("--all-of", "shop", "--label", "support <b>desk</b>")
        self.tokens = {it["label"]: it["id"] for it in json.loads(self.project.run("token", "list", "--json"))["tokens"]}

    async def calls(self, client) -> None:
        """Makes a call that is answered, one that is refused, and one for a record."""
        await self.good(client, "query_records", stream="customer", filter={"name": {"contains": VALUE}})
        await self.refused(client, "query_records", stream="customer", fields=["salary"])
        await self.good(client, "fetch", id="shop/customer:1")

    def page(self, path: str, cookie: str) -> str:
        status, _, page = self.ask("GET", path, {"Cookie": cookie})
        self.assertEqual(status, 200, page)
        return page

    @staticmethod
    def rows(page: str) -> list[str]:
        """The rows of the list of calls, as text."""
        table = re.search(r'<caption class="vh">Calls</caption>.*?</table>', page, re.DOTALL)
        rows = re.findall(r'<tr role="row"><th role="rowheader".*?</tr>', table.group(0), re.DOTALL) if table else []
        return [re.sub(r"<[^>]+>", " ", row) for row in rows]

    async def test_calls_are_listed_filtered_and_shown_one_by_one(self) -> None:
        async with unwrapped() as stack:
            client, _ = await self.client(self.reader, MODERN, stack)
            await self.calls(client)
        cookie, _, _ = self.log_in()
        whole = self.page("/activity", cookie)
        self.assertIn("support &lt;b&gt;desk&lt;/b&gt;", whole)
        token = self.tokens["support <b>desk</b>"]
        desk = self.page(f"/activity?who={token}", cookie)
        told = self.rows(desk)
        self.assertEqual(len([row for row in told if "query_records" in row]), 2)
        self.assertEqual(len([row for row in told if "unknown_field" in row]), 1)
        for filter_, wanted in [
            ({"tool": "fetch"}, ["fetch"]),
            ({"outcome": "refused"}, ["unknown_field"]),
            ({"outcome": "answered", "tool": "query_records"}, ["query_records"]),
            ({"dataset": "shop", "tool": "fetch"}, ["shop/customer"]),
            ({"of": "shop/customer:1", "tool": "fetch"}, ["fetch"]),
            ({"since": "1h", "tool": "fetch"}, ["fetch"]),
            ({"since": "30d", "tool": "fetch"}, ["fetch"]),
        ]:
            page = self.page("/activity?" + urlencode({"who": token, **filter_}), cookie)
            found = self.rows(page)
            self.assertEqual(len(found), 1, (filter_, found))
            for word in wanted:
                self.assertIn(word, found[0])
        for nothing in [{"dataset": "nowhere"}, {"of": "shop/customer:999"}, {"outcome": "failed"}, {"who": "t_nobody1234"}]:
            page = self.page("/activity?" + urlencode({**nothing}), cookie)
            self.assertIn("No call fits", page)
            self.assertIn("Look further back", page)
        # Invalid filters are ignored, and the page says so.
        for wrong in ["since=ever", "outcome=fine", "before=1"]:
            status, _, page = self.ask("GET", f"/activity?{wrong}", {"Cookie": cookie})
            self.assertEqual(status, 422)
            self.assertIn("is not a filter", page)
        # The chart shows the same as the list, in shapes and as a table.
        self.assertIn('role="img"', desk)
        self.assertRegex(desk, r"Calls an hour: most at \d\d:00 UTC, \d+; 1 not answered in all")
        self.assertIn("The same as a table", desk)
        one = re.search(r'href="/activity/([0-9a-f-]{36})"', self.page(f"/activity?who={token}&tool=fetch", cookie)).group(1)
        call = self.page(f"/activity/{one}", cookie)
        for word in ["shop/customer:1", "Ratified mapping", "support &lt;b&gt;desk&lt;/b&gt;", "answered", "wayleave audit show"]:
            self.assertIn(word, call)
        prov = self.page(f"/activity/{one}/prov", cookie)
        # The same node as the command line exports.
        node = lambda graph: next(it for it in json.loads(graph)["@graph"] if it["@id"] == f"urn:uuid:{one}")
        self.assertEqual(node(prov), node(self.project.run("audit", "export", "--format", "prov")))
        listed = json.loads(self.page(f"/activity/prov?who={token}&tool=fetch", cookie))
        self.assertIn(one, json.dumps(listed))
        for wrong in ["/activity/nonsense", "/activity/01a1e5a0-e6d7-70f5-94c4-b651abe0f3b5", "/activity/nonsense/prov"]:
            self.assertEqual(self.ask("GET", wrong, {"Cookie": cookie})[0], 404, wrong)

    async def test_no_value_of_an_argument_a_row_or_a_credential_is_on_these_pages(self) -> None:
        async with unwrapped() as stack:
            client, _ = await self.client(self.reader, MODERN, stack)
            await self.calls(client)
            read = await self.good(client, "query_records", stream="customer", fields=["name", "email"])
            self.assertIn(CANARY, text_of(read))
        cookie, _, _ = self.log_in()
        whole = self.page("/activity", cookie)
        pages = [whole, self.page("/activity/prov", cookie)]
        for one in set(re.findall(r'href="/activity/([0-9a-f-]{36})"', whole)):
            pages += [self.page(f"/activity/{one}", cookie), self.page(f"/activity/{one}/prov", cookie)]
        self.assertGreater(len(pages), 8)
        for page in pages:
            for secret in [VALUE, CANARY, "ann@example.org", self.reader, "wlc_", str(self.project.path)]:
                self.assertNotIn(secret, page)

    async def test_older_calls_are_reached_by_a_cursor_without_gap_or_repeat(self) -> None:
        async with unwrapped() as stack:
            client, _ = await self.client(self.reader, MODERN, stack)
            for _ in range(75):
                await self.good(client, "fetch", id="shop/customer:1")
        cookie, _, _ = self.log_in()
        token = self.tokens["support <b>desk</b>"]
        path, seen = f"/activity?who={token}&tool=fetch", []
        while path:
            page = self.page(path, cookie)
            self.assertLessEqual(len(page.encode()), 60 * 1024)
            self.assertIn("<strong>75</strong>", page)
            seen += re.findall(r'<th role="rowheader" scope="row"><a href="/activity/([0-9a-f-]{36})"', page)
            older = re.search(r'<a class="button" href="([^"]+)">Older', page)
            path = older and older.group(1).replace("&amp;", "&")
        self.assertEqual((len(seen), len(set(seen))), (75, 75))
        self.assertEqual(seen, sorted(seen, reverse=True))

    async def test_new_calls_are_told_in_a_line_and_nothing_moves(self) -> None:
        async with unwrapped() as stack, browser() as chrome:
            client, _ = await self.client(self.reader, MODERN, stack)
            await self.good(client, "fetch", id="shop/customer:1")
            page = await self.sign_in(await chrome.new_context())
            await page.get_by_role("link", name="Activity").first.click()
            await page.get_by_text("live", exact=True).wait_for()
            before = await page.locator("table.cards").first.inner_text()
            await self.good(client, "fetch", id="shop/customer:2")
            await self.good(client, "fetch", id="shop/customer:2")
            news = page.locator("#news")
            await news.get_by_text("2 new calls.").wait_for(timeout=PATIENCE * 1000)
            self.assertEqual(await page.locator("table.cards").first.inner_text(), before)
            async with page.expect_navigation():
                await news.get_by_role("link", name="Show").click()
            self.assertNotEqual(await page.locator("table.cards").first.inner_text(), before)

    async def test_a_record_that_is_not_whole_is_said_to_be(self) -> None:
        async with unwrapped() as stack:
            client, _ = await self.client(self.reader, MODERN, stack)
            await self.calls(client)
        cookie, csrf, origin = self.log_in()
        verify = lambda: self.ask("POST", "/activity/verify", {"Cookie": cookie, "Origin": origin}, {"csrf": csrf})
        status, _, page = verify()
        self.assertEqual(status, 200)
        self.assertIn("The record of calls is intact.", page)
        segment = next((self.project.path / ".wayleave/activity").rglob("*.log"))
        bytes_ = bytearray(segment.read_bytes())
        bytes_[len(bytes_) // 2] ^= 1
        segment.write_bytes(bytes_)
        _, _, page = verify()
        self.assertIn("The record of calls is damaged.", page)

    async def test_a_grant_is_narrowed_in_one_act_and_its_tokens_read_less_at_once(self) -> None:
        async with unwrapped() as stack, browser() as chrome:
            client, _ = await self.client(self.reader, MODERN, stack)
            read = await self.good(client, "query_records", stream="customer", fields=["name", "email"])
            self.assertIn("ann@example.org", text_of(read))
            grant = json.loads(self.project.run("grant", "list", "--json"))["grants"][0]["id"]
            entries = json.loads(self.project.run("audit", "--json"))["total"]
            page = await self.sign_in(await chrome.new_context(java_script_enabled=False))
            await page.goto(page.url.replace("/inbox", f"/grants/{grant}"))
            # Neither a preview nor an unchanged form narrows the grant.
            await page.get_by_role("button", name=f"Narrow {grant}").click()
            self.assertIn("Nothing would be taken from grant", await page.inner_text("[role=alert]"))
            await page.locator("input[value='customer.email']").uncheck()
            await page.locator("input[name=s][value=invoice]").uncheck()
            await page.fill("[name='rows.customer']", '{"city": "Oslo"}')
            await page.get_by_role("button", name="Show what is lost").click()
            lost = await page.inner_text("#narrow [role=status]")
            for word in ["customer.email", "stream invoice", 'rows of customer other than {"city": "Oslo"}']:
                self.assertIn(word, lost)
            self.assertEqual(json.loads(self.project.run("audit", "--json"))["total"], entries)
            # The selection is preserved.
            self.assertFalse(await page.locator("input[value='customer.email']").is_checked())
            await page.get_by_role("button", name=f"Narrow {grant}").click()
            narrower = page.url.rsplit("/", 1)[1].split("#")[0]
            self.assertNotEqual(narrower, grant)
            self.assertEqual(json.loads(self.project.run("audit", "--json"))["total"], entries + 1)
            await page.goto(page.url.replace(narrower, grant))
            self.assertIn("It was narrowed.", await page.inner_text("main"))
            # The next call with the same token.
            refused = await self.refused(client, "query_records", stream="customer", fields=["email"])
            self.assertEqual(refused["code"], "unknown_field")
            refused = await self.refused(client, "query_records", stream="invoice")
            self.assertEqual(refused["code"], "unknown_stream")
            read = await self.good(client, "query_records", stream="customer", fields=["name"])
            self.assertIn(CANARY, text_of(read))
            self.assertNotIn("Bo ", text_of(read))
        shown = json.loads(self.project.run("grant", "show", narrower, "--json"))
        self.assertEqual(list(shown["terms"]["streams"]), ["customer"])
        self.assertEqual(shown["tokens"], [self.tokens["support <b>desk</b>"]])

    async def test_a_grant_masks_what_a_person_chooses(self) -> None:
        async with unwrapped() as stack, browser() as chrome:
            page = await self.sign_in(await chrome.new_context(java_script_enabled=False))
            await page.goto(page.url.replace("/inbox", "/grants/new"))
            for field in ["customer.name", "customer.email"]:
                await page.locator(f"input[value='{field}']").check()
            # Only masks that fit the datatype are selectable.
            offered = await page.locator("[name='mask.customer.email'] option").all_inner_texts()
            self.assertIn("as it is", offered)
            self.assertNotIn("its year", offered)
            await page.select_option("[name='mask.customer.email']", "token")
            await page.get_by_role("button", name="Grant", exact=True).click()
            await page.wait_for_url("**/tokens/new?grant=*")
            grant = page.url.rsplit("=", 1)[1]
            await page.goto(page.url.split("/tokens")[0] + f"/grants/{grant}")
            self.assertIn("shows a pseudonym of the grant", await page.inner_text("main"))
            masked = self.project.token("--grant", grant, "--label", "masked")
            listed = json.loads(self.project.run("token", "list", "--json"))["tokens"]
            tried = {"as": next(it["id"] for it in listed if it["label"] == "masked"), "tool": "query_records",
                     "stream": "customer", "args": "{}"}
            await page.goto(page.url.split("/grants")[0] + "/try?" + urlencode(tried))
            seen = await page.inner_text("main")
            self.assertIn("shows a pseudonym of the grant", seen)
            self.assertNotIn("ann@example.org", seen)
            client, _ = await self.client(masked, MODERN, stack)
            read = await self.good(client, "query_records", stream="customer", fields=["name", "email"])
            self.assertIn(CANARY, text_of(read))
            self.assertNotIn("ann@example.org", text_of(read))

    async def test_no_form_widens_a_grant(self) -> None:
        grant = json.loads(self.project.run("grant", "list", "--json"))["grants"][0]["id"]
        narrow = json.loads(self.project.run("grant", "narrow", grant, "--stream", "customer=name", "--json"))["grant"]["id"]
        entries = json.loads(self.project.run("audit", "--json"))["total"]
        cookie, csrf, origin = self.log_in()
        for form in [
            [("s", "customer"), ("f", "customer.email")],
            [("s", "customer"), ("s", "invoice"), ("f", "customer.name")],
            [("s", "customer"), ("f", "customer.name"), ("c", "delete_customer")],
            [("s", "customer"), ("f", "customer.name"), ("ends", "never")],
            [("s", "customer"), ("rows.customer", "not json")],
            [("s", "customer"), ("rows.customer", '{"salary": 1}')],
            [("f", "customer.name")],
            [("s", ATTACK)],
        ]:
            sent = [("csrf", csrf), *form]
            headers = {"Cookie": cookie, "Origin": origin}
            status, _, page = self.ask("POST", f"/grants/{narrow}/narrow", headers, sent)
            self.assertEqual(status, 422, form)
            self.assertIn("Nothing was narrowed.", page)
            self.assertNotIn("<img", page)
        for missing in [grant, "g_nowhere123"]:
            status, _, _ = self.ask("POST", f"/grants/{missing}/narrow", headers, [("csrf", csrf), ("s", "customer")])
            self.assertIn(status, (404, 422))
        self.assertEqual(json.loads(self.project.run("audit", "--json"))["total"], entries)
        # The command line has the same rule.
        self.project.run("grant", "narrow", narrow, "--stream", "customer=email", fails=True)
        self.project.run("grant", "narrow", narrow, "--stream", "invoice", fails=True)
        self.project.run("grant", "narrow", narrow, fails=True)
        self.project.run("grant", "narrow", grant, "--stream", "customer=id", fails=True)
        self.assertEqual(json.loads(self.project.run("audit", "--json"))["total"], entries)
        self.assertTrue(json.loads(self.project.run("audit", "--verify", "--json"))["ok"])


if __name__ == "__main__":
    unittest.main()

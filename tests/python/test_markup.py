"""Markup in every name and text that people, agents and databases write is text on every page.

Each place has its own attack, which identifies the pages that show the place. Every link of the console
is followed.

Run it with a Python that has `mcp` 2.x, `playwright` and a Chromium:
python tests/python/test_markup.py [-v] [NAME ...]
"""

from __future__ import annotations

import html
import json
import sqlite3
import unittest
from contextlib import AsyncExitStack
from html.parser import HTMLParser
from urllib.parse import quote, urlencode, urljoin, urlsplit

import mcp_types as types
from console_case import ConsoleCase, Shop
from mcp import Client, MCPError
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client
from serving import MODERN, PATIENCE

# Elements that no page of the console contains.
FOREIGN = {"img", "iframe", "object", "embed", "base"}


def attack(place: str) -> str:
    return f'<img src=x onerror="document.title=1" alt={place}>'


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


class Page(HTMLParser):
    """The links of a page, and its forbidden contents."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if tag == "a" and "href" in given:
            self.links.append(given["href"] or "")
        handlers = [name for name in given if name.startswith("on") or name == "style"]
        if tag in FOREIGN or handlers or (tag == "script" and "src" not in given):
            self.wrong.append(self.get_starttag_text() or tag)
        for name in ("href", "src", "action"):
            if (given.get(name) or "").lower().lstrip().startswith(("javascript:", "data:")):
                self.wrong.append(f"{name} {given[name]}")


class Markup(ConsoleCase, unittest.IsolatedAsyncioTestCase):
    """A project in which every text that can be markup is markup."""

    def setUp(self) -> None:
        super().setUp()
        self.server.stop()
        self.plant()
        self.server = self.project.with_console()

    def plant(self) -> None:
        project: Shop = self.project
        table, column = quoted(attack("table")), quoted(attack("column"))
        with sqlite3.connect(project.path / "odd.db") as connection:
            connection.executescript(
                f"""
                CREATE TABLE {table} (id INTEGER PRIMARY KEY, {column} TEXT NOT NULL,
                    state TEXT CHECK (state IN ('{attack("choice")}', 'b')));
                INSERT INTO {table} VALUES (1, '{attack("value")}', 'b');
                """
            )
        connection.close()
        project.add_source("odd", project.path / "odd.db")
        project.run("propose", "odd")
        draft = project.draft("odd")
        told = json.dumps(attack("dataset"))
        text = draft.read_text().replace('kind = "sqlite"', f'kind = "sqlite"\ndescription = {told}')
        draft.write_text(text)
        project.run("ratify", "odd", "--yes", "--note", attack("note"))
        project.run("connect", "odd")
        self.table = "img_src_x_onerror_document_title_1_alt_table"
        self.column = "img_src_x_onerror_document_title_1_alt_column"
        rows = {"state": {"in": [attack("choice"), "b"]}}
        self.grant = json.loads(
            project.run(
                "grant", "create", "--dataset", "odd", "--stream", f"{self.table}=id,{self.column},state",
                "--rows", f"{self.table}={json.dumps(rows)}", "--purpose", attack("purpose"), "--json",
            )
        )["grant"]["id"]
        self.reader = project.token("--grant", self.grant, "--label", attack("label"))

    async def connect(self, token: str, stack: AsyncExitStack) -> Client:
        """Connects a client whose name and version are markup."""
        web = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
        await stack.enter_async_context(web)
        transport = streamable_http_client(self.server.url, http_client=web)
        info = types.Implementation(name=attack("client"), version=attack("version"))
        made = Client(transport, mode=MODERN, client_info=info, read_timeout_seconds=PATIENCE)
        return await stack.enter_async_context(made)

    async def calls(self) -> None:
        """Makes proposals, sends one of them back, and makes calls that are served and refused."""
        async with AsyncExitStack() as stack:
            builder = await self.connect(self.project.builder, stack)
            for reason in ["reason", "later"]:
                read = (await self.good(builder, "wayleave_meta_mapping_read", dataset="odd")).structured_content
                shaped = await self.good(
                    builder, "wayleave_meta_gen_shape", dataset="odd", before_sha256=read["sha256"],
                    stream=self.table,
                    set={
                        "description": attack("stream"),
                        "fields": {"state": {"description": attack(f"field-{reason}")}},
                    },
                )
                await self.good(
                    builder, "wayleave_meta_mapping_propose", dataset="odd", before_sha256=read["sha256"],
                    unified=shaped.structured_content["diff"]["unified"], reason=attack(reason),
                )
                if reason == "reason":
                    self.project.run("inbox", "return", "1", "--comment", attack("comment"))
            reader = await self.connect(self.reader, stack)
            await self.good(reader, "query_records", stream=self.table)
            await self.refused(reader, "query_records", stream=self.table, fields=[attack("asked")])
            with self.assertRaises(MCPError):
                await reader.call_tool(attack("tool"), {})
            with self.assertRaises(MCPError):
                await reader.read_resource("wayleave://kg/" + quote(attack("resource")))

    def crawl(self, cookie: str) -> dict[str, str]:
        """Follows every link; returns the pages by path."""
        as_token = json.loads(self.project.run("token", "list", "--json"))["tokens"][-1]["id"]
        trial = {"as": as_token, "tool": "query_records", "stream": self.table, "args": '{"limit": 5}'}
        waiting = ["/inbox", "/datasets", "/grants", "/decisions", "/activity", "/try", "/connect"]
        waiting.append("/try?" + urlencode(trial))
        waiting.append("/try?" + urlencode({**trial, "args": json.dumps({"fields": [attack("asked")]})}))
        waiting.append("/activity?" + urlencode({"tool": attack("filter")}))
        waiting.append("/" + quote(attack("path")))
        pages: dict[str, str] = {}
        while waiting and len(pages) < 300:
            path = waiting.pop()
            if path in pages:
                continue
            status, headers, text = self.ask("GET", path, {"Cookie": cookie})
            self.assertIn(status, (200, 400, 404), path)
            self.assertEqual(headers["x-content-type-options"], "nosniff", path)
            if not headers["content-type"].startswith("text/html"):
                self.assertRegex(headers["content-type"], "^(text/plain|application/[a-z+]*json)", path)
                continue
            page = Page(text)
            self.assertEqual(page.wrong, [], path)
            pages[path] = text
            for link in page.links:
                there = urlsplit(urljoin(path, link))
                if not there.netloc and not there.path.startswith("/logout"):
                    waiting.append(there._replace(fragment="").geturl())
        return pages

    async def test_markup_is_text_on_every_page_wherever_it_was_written(self) -> None:
        await self.calls()
        cookie, csrf, origin = self.log_in()
        pages = self.crawl(cookie)
        # The response to a form: sample rows of the waiting proposal.
        form = {"csrf": csrf, "stream": self.table}
        _, _, rows = self.ask("POST", "/inbox/2/rows", {"Cookie": cookie, "Origin": origin}, form)
        self.assertEqual(Page(rows).wrong, [])
        shown = html.unescape("\n".join([*pages.values(), rows]))
        places = [
            "table", "column", "choice", "value", "dataset", "stream", "note", "purpose", "label", "client",
            "version", "field-later", "reason", "later", "comment",
        ]
        unseen = [place for place in places if attack(place) not in shown and f"alt={place}" not in shown]
        self.assertEqual(unseen, [], sorted(pages))


if __name__ == "__main__":
    unittest.main()

"""The projects that the portable rules read, created with the command line."""

from __future__ import annotations

import functools
import sqlite3
import unittest
from pathlib import Path

import serving

SECRET = "kept-out-of-sight"
FAT = "wide words " * 400

MAIL = """
[dataset]
name = "mail"
title = "Mail"
kind = "sqlite"
{connections}
[streams.notes]
type = "Note"
key = ["id"]
title = "heading"
event_time = "sent_at"
updated = "updated_at"
deleted = "gone"
search = ["heading", "body"]
[streams.notes.fields]
id = {{ datatype = "integer", required = true }}
heading = {{ datatype = "string" }}
body = {{ datatype = "string" }}
secret = {{ datatype = "string" }}
sent_at = {{ datatype = "datetime" }}
updated_at = {{ datatype = "datetime" }}
gone = {{ datatype = "boolean" }}
[streams.notes.relations.pages]
to = "letters"
on = {{ id = "note_id" }}
[streams.letters]
type = "Letter"
key = ["id"]
[streams.letters.fields]
id = {{ datatype = "integer", required = true }}
note_id = {{ datatype = "integer" }}
fat = {{ datatype = "string" }}
"""

DESK = """
[dataset]
name = "desk"
title = "Desk"
kind = "sqlite"
[[connections]]
id = "desk"
label = "The desk"
source = "desk"
[streams.notes]
type = "Memo"
key = ["id"]
[streams.notes.fields]
id = { datatype = "integer", required = true }
memo = { datatype = "string" }
[streams.alone]
type = "Hermit"
key = ["id"]
[streams.alone.fields]
id = { datatype = "integer", required = true }
"""

MAIL_TABLES = """
CREATE TABLE notes (id INTEGER PRIMARY KEY, heading TEXT, body TEXT, secret TEXT, sent_at TEXT,
    updated_at TEXT, gone BOOLEAN DEFAULT 0);
CREATE TABLE letters (id INTEGER PRIMARY KEY, note_id INTEGER, fat TEXT);
"""


def connections(*ids: str) -> str:
    return "".join(
        f'[[connections]]\nid = "{id}"\nlabel = "Box {id}"\nsource = "{id}"\n' for id in ids
    )


def streams(count: int) -> str:
    """A mapping of this many streams, all over one table."""
    head = '[dataset]\nname = "many"\nkind = "sqlite"\n' + connections("main")
    return head + "".join(
        f'[streams.kind_{n:04}]\ntype = "Kind{n:04}"\ntable = "things"\nkey = ["id"]\n'
        f"[streams.kind_{n:04}.fields]\n"
        'id = { datatype = "integer", required = true }\nfield_detail = { datatype = "string" }\n'
        for n in range(count)
    )


def mailbox(file: Path, name: str, weak: int) -> None:
    """Fills a store with two notes about pebbles, one without a heading, and notes about quartz: `weak` long
    ones, or one short one."""
    with sqlite3.connect(file) as db:
        db.executescript(MAIL_TABLES)
        note = "INSERT INTO notes VALUES (?, ?, ?, ?, '2026-01-02T08:00:00Z', '2026-02-01T00:00:00Z', 0)"
        db.execute(note, (1, f"Granite {name}", "pebble", SECRET))
        db.execute(note, (2, f"Marble {name}", "pebble", SECRET))
        db.execute(note, (3, None, "untitled obsidian", SECRET))
        for n in range(weak):
            db.execute(note, (10 + n, f"Filler {n}", "quartz " + "among many other words " * 9, SECRET))
        if not weak:
            db.execute(note, (10, "Quartz", "quartz quartz", SECRET))
        for n in range(1, 31):
            db.execute("INSERT INTO letters VALUES (?, ?, ?)", (n, n, FAT))
    db.close()


class Project(serving.Project):
    """A project with live datasets, created with the command line."""

    def __init__(self, mappings: dict[str, str], sources: list[str]) -> None:
        super().__init__('[serve]\nanonymous = true\nhttp = "127.0.0.1:0"\n')
        unittest.addModuleCleanup(self.close)
        for source in sources:
            self.add_source(source, self.store(source))
        for name, mapping in mappings.items():
            self.draft(name).write_text(mapping)
            self.run("ratify", name, "--offline", "--note", "for the tests", "--who", "tester")
            self.run("connect", name, "--offline")

    def store(self, source: str) -> Path:
        return self.path / f"{source}.hidden-store"


@functools.cache
def project(name: str) -> Project:
    return {"pair": pair, "wide": wide, "many": many, "vast": vast}[name]()


def pair() -> Project:
    mail = MAIL.format(connections=connections("left", "right"))
    made = Project({"mail": mail, "desk": DESK}, ["left", "right", "desk"])
    mailbox(made.store("left"), "left", weak=40)
    mailbox(made.store("right"), "right", weak=0)
    with sqlite3.connect(made.store("desk")) as db:
        db.executescript(
            "CREATE TABLE notes (id INTEGER PRIMARY KEY, memo TEXT); INSERT INTO notes VALUES (1, 'm');"
            "CREATE TABLE alone (id INTEGER PRIMARY KEY); INSERT INTO alone VALUES (1), (2);"
        )
    db.close()
    return made


def wide() -> Project:
    boxes = [f"box{n:02}" for n in range(25)]
    made = Project({"mail": MAIL.format(connections=connections(*boxes))}, boxes)
    mailbox(made.store("box00"), "zero", weak=0)
    return made


def thousands(count: int) -> Project:
    made = Project({"many": streams(count)}, ["main"])
    with sqlite3.connect(made.store("main")) as db:
        db.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, field_detail TEXT)")
    db.close()
    return made


many = functools.partial(thousands, 80)
vast = functools.partial(thousands, 1_000)

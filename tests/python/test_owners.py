"""Nobody without an owner's key gets a mapping served that no owner ratified.

An agent with a shell and the project folder, and without a key, makes one attempt after another. It
knows the format of the ledger and computes every hash. After each attempt the two parties that serve
the project check: the person who works with it, whose own folder has a record of it, and a service
that was given the first owner's key and a head. Neither may serve what the agent wants, and
`audit --verify` reports every attempt that changed files.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
import unittest
import urllib.parse
from contextlib import closing
from pathlib import Path

import serving

CANARY = "CANARY-7731"
PASSPHRASE = "seven small boats in a row"
NARROW, WIDE = "shop-narrow.toml", "shop-wide.toml"
WAYS: dict[str, tuple] = {}
FEWEST_WAYS = 30


def way(name: str, audit: str | None = None, owner_pin: bool = True):
    """Registers an attempt. `audit` matches the report of `audit --verify` afterwards, if files were changed;
    `owner_pin` is whether the owner's key alone, without a head, is enough to detect it."""

    def register(attempt):
        assert name not in WAYS, name
        WAYS[name] = (attempt, audit, owner_pin)
        return attempt

    return register


def wayleave(*words: str, env: dict[str, str], typed: list[str] | None = None, pipe: str | None = None):
    command = [serving.program(), *words]
    if typed is not None:
        return serving.on_terminal(command, typed, env)
    return subprocess.run(command, env=env, capture_output=True, text=True, input=pipe or "")


def good(done: subprocess.CompletedProcess) -> subprocess.CompletedProcess:
    if done.returncode != 0:
        raise RuntimeError(f"{done.args} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done


# --- the ledger's format, as the agent knows it --------------------------------------------------


def fields(domain: bytes, row: dict) -> bytes:
    """The hashed and signed fields, each prefixed by its length."""
    parts = [
        domain, row["prev"], row["seq"].to_bytes(8, "big"), row["at"].to_bytes(8, "big", signed=True),
        row["kind"].encode(), row["body"].encode(),
    ]
    if row["signature"] is not None and domain != b"wayleave ledger signature 1":
        parts.append(row["signature"].encode())
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def canonical(value: dict) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class Chain:
    """The entries of a ledger, to be changed and written back with every hash and the head recomputed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / ".wayleave"
        with closing(sqlite3.connect(self.folder / "ledger.db")) as db:
            names = ("seq", "at", "kind", "body", "prev", "signature")
            query = "SELECT seq, at, kind, body, prev_hash, signature FROM entries ORDER BY seq"
            self.rows = [dict(zip(names, row)) for row in db.execute(query)]

    def places(self, kind: str) -> list[int]:
        return [place for place, row in enumerate(self.rows) if row["kind"] == kind]

    def append(self, kind: str, body: dict, signature: str | None = None) -> dict:
        at = max(row["at"] for row in self.rows) + 1
        self.rows.append({"at": at, "kind": kind, "body": canonical(body), "signature": signature})
        self.link()
        return self.rows[-1]

    def link(self) -> str:
        """Numbers and links the entries. Returns the last hash."""
        prev = bytes(32)
        for place, row in enumerate(self.rows):
            row.update(seq=place + 1, prev=prev)
            domain = b"wayleave ledger entry 1" if row["signature"] is None else b"wayleave ledger entry 2"
            prev = row["hash"] = hashlib.sha256(fields(domain, row)).digest()
        return prev.hex()

    def write(self) -> None:
        """Replaces the entries and the head file, without a trace in the schema."""
        last = self.link()
        with closing(sqlite3.connect(self.folder / "ledger.db", isolation_level=None)) as db:
            query = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"
            triggers = list(db.execute(query))
            db.execute("BEGIN IMMEDIATE")
            for name, _ in triggers:
                db.execute(f"DROP TRIGGER {name}")
            db.execute("DELETE FROM entries")
            for row in self.rows:
                values = [row[name] for name in ("seq", "at", "kind", "body", "prev", "hash", "signature")]
                db.execute(
                    "INSERT INTO entries (seq, at, kind, body, prev_hash, hash, signature)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)", values,
                )
            for _, sql in triggers:
                db.execute(sql)
            db.execute("COMMIT")
        head = self.folder / "ledger.head"
        head.write_text(f"wayleave-ledger-head 1 {len(self.rows)}:{last}\n")


def sign(key: Path, row: dict) -> str:
    """Signs an entry with an OpenSSH key, exactly as an owner's signature is made."""
    with tempfile.NamedTemporaryFile() as message:
        message.write(fields(b"wayleave ledger signature 1", row))
        message.flush()
        command = ["ssh-keygen", "-q", "-Y", "sign", "-n", "ledger@wayleave", "-f", str(key)]
        with open(message.name, "rb") as text:
            armored = subprocess.run(command, stdin=text, check=True, capture_output=True).stdout.decode()
    blob = base64.b64decode("".join(armored.strip().splitlines()[1:-1]))
    parts, rest = [], blob[10:]
    while rest:
        length = int.from_bytes(rest[:4], "big")
        parts.append(rest[4:4 + length])
        rest = rest[4 + length:]
    public, signature = parts[0], parts[-1]
    digest = base64.b64encode(hashlib.sha256(public).digest()).decode().rstrip("=")
    return f"SHA256:{digest} {base64.b64encode(signature).decode()}"


# --- the people ----------------------------------------------------------------------------------


class Human:
    """The owner, with a project that once served the payroll and no longer does."""

    def __init__(self, root: Path) -> None:
        self.home, self.folder = root / "human", root / "project"
        self.home.mkdir()
        self.key, self.passphrase = self.home / "owner.key", self.home / "passphrase"
        self.passphrase.write_text(PASSPHRASE + "\n")
        self.database = root / "shop.db"
        with closing(sqlite3.connect(self.database)) as db, db:
            db.executescript(
                "CREATE TABLE customer (id integer PRIMARY KEY, name text NOT NULL);"
                "CREATE TABLE payroll (id integer PRIMARY KEY, salary text NOT NULL);"
                "INSERT INTO customer VALUES (1, 'Ana');"
                f"INSERT INTO payroll VALUES (1, '{CANARY}');"
            )
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "SHOP_DSN": str(self.database)}
        self.make(self.folder)
        # An old state, of which the agent has a copy, and a narrower one since.
        self.old = root / "old"
        shutil.copytree(self.folder / ".wayleave", self.old)
        draft = self.folder / "mappings/shop.toml"
        self.wide = draft.read_text()
        self.narrow = re.sub(r"\n\[streams\.payroll.*", "\n", self.wide, flags=re.S)
        assert "payroll" not in self.narrow and "customer" in self.narrow, self.narrow
        draft.write_text(self.narrow)
        self.ratify(self.folder)
        listed = json.loads(self.run("owner", "list", "--json").stdout)
        self.fingerprint = listed["first"]
        verified = json.loads(self.run("audit", "--verify", "--json").stdout)
        self.head = verified["ledger"]["head"]

    def run(self, *words: str, typed: list[str] | None = None, folder: Path | None = None):
        return good(wayleave(*words, "--project", str(folder or self.folder), env=self.env, typed=typed))

    def make(self, folder: Path) -> None:
        """Creates a project with one owner and a dataset of the whole shop."""
        good(wayleave("init", str(folder), env=self.env))
        if self.key.exists():
            words = ["--public-key", f"{self.key}.pub", *self.signing]
            self.run("owner", "add", "ana", *words, typed=["ana"], folder=folder)
        else:
            self.run("owner", "add", "ana", "--new-key", str(self.key), typed=["ana", PASSPHRASE, PASSPHRASE])
        source = ["shop", "--kind", "sqlite", "--env", "SHOP_DSN"]
        self.run("source", "add", *source, *self.signing, folder=folder)
        self.run("propose", "shop", folder=folder)
        self.ratify(folder)

    @property
    def signing(self) -> list[str]:
        return ["--key", str(self.key), "--passphrase-file", str(self.passphrase)]

    def ratify(self, folder: Path) -> None:
        self.run("ratify", "shop", *self.signing, folder=folder)
        self.run("connect", "shop", folder=folder)

    def trusts(self, owner_pin: bool) -> dict[str, dict[str, str]]:
        """The environments of the parties that serve the project."""
        nobody = {name: value for name, value in self.env.items() if name != "HOME"}
        named = nobody | {"WAYLEAVE_TRUST_OWNER": self.fingerprint}
        trusts = {
            "the person": self.env,
            "a service that knows owner and head": named | {"WAYLEAVE_TRUST_HEAD": self.head},
        }
        if owner_pin:
            trusts["a service that knows the owner"] = named
        return trusts


class Agent:
    """An agent with a shell, the project folder and tools, and without an owner's key."""

    def __init__(self, root: Path, human: Human) -> None:
        self.home, self.folder, self.human = root / "agent", human.folder, human
        self.home.mkdir()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "SHOP_DSN": str(human.database)}
        self.draft = self.folder / "mappings/shop.toml"
        self.ssh_key = self.home / "id_ed25519"
        keygen = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.ssh_key)]
        subprocess.run(keygen, check=True)
        self.public = " ".join(Path(f"{self.ssh_key}.pub").read_text().split()[:2])
        # Its own projects, in which it owns everything.
        self.owned, self.unowned = self.home / "owned", self.home / "unowned"
        for folder in (self.owned, self.unowned):
            good(wayleave("init", str(folder), env=self.env))
        self.key = self.home / "agent.key"
        lines = ["agent", PASSPHRASE, PASSPHRASE]
        self.ok("owner", "add", "agent", "--new-key", str(self.key), typed=lines, folder=self.owned)
        (self.home / "passphrase").write_text(PASSPHRASE)
        signing = ["--key", str(self.key), "--passphrase-file", str(self.home / "passphrase")]
        for folder, words, typed in ((self.owned, signing, None), (self.unowned, [], ["shop"])):
            self.ok("source", "add", "shop", "--kind", "sqlite", "--env", "SHOP_DSN", *words, folder=folder)
            self.ok("propose", "shop", folder=folder)
            self.ok("ratify", "shop", *words, typed=typed, folder=folder)
            self.ok("connect", "shop", folder=folder)

    def run(self, *words: str, folder: Path | None = None, env: dict[str, str] | None = None, **more):
        command = [*words, "--project", str(folder or self.folder)]
        return wayleave(*command, env=self.env | (env or {}), **more)

    def ok(self, *words: str, **more):
        return good(self.run(*words, **more))

    def want(self) -> None:
        """Writes the mapping it wants as a draft."""
        self.draft.write_text(self.human.wide + "\n# and more\n")

    def frozen(self) -> bytes:
        """Writes the mapping it wants as a frozen copy under its digest."""
        text = (self.human.wide + "\n# and more\n").encode()
        path = self.folder / f".wayleave/mappings/{hashlib.sha256(text).hexdigest()}.toml"
        path.write_bytes(text)
        path.chmod(0o400)
        return text

    def ratification(self, chain: Chain) -> dict:
        """The body of an entry that ratifies what it wants, after the last that did."""
        last = json.loads(chain.rows[chain.places("dataset_ratified")[-1]]["body"])
        digest = f"sha256:{hashlib.sha256(self.frozen()).hexdigest()}"
        return last | {"digest": digest, "replaces": last["digest"], "note": "trust me"}

    def activation(self, chain: Chain, body: dict) -> dict:
        last = json.loads(chain.rows[chain.places("dataset_activated")[-1]]["body"])
        return last | {"digest": body["digest"], "revision": last["revision"] + 1}

    def replace(self, other: Path) -> None:
        # Moved, not removed: a running server may be adding files.
        (self.folder / ".wayleave").rename(Path(tempfile.mkdtemp(dir=self.folder.parent)) / "replaced")
        shutil.copytree(other, self.folder / ".wayleave")


# --- attempts through the program ----------------------------------------------------------------

ASKS = "only a person at a terminal|must be signed by one|unexpected argument"


def refused(done: subprocess.CompletedProcess, reason: str = ASKS) -> None:
    said = done.stdout + done.stderr
    assert done.returncode != 0, said
    assert re.search(reason, said), said
    # No message reveals a way around.
    assert "--yes" in done.args or "--yes" not in said, said


@way("ratify without a terminal")
def _(agent: Agent) -> None:
    agent.want()
    refused(agent.run("ratify", "shop"))


@way("a flag that agrees")
def _(agent: Agent) -> None:
    agent.want()
    for flag in ("--yes", "-y", "--force", "--assume-yes", "--no-confirm"):
        refused(agent.run("ratify", "shop", flag))


@way("the name through a pipe")
def _(agent: Agent) -> None:
    agent.want()
    refused(agent.run("ratify", "shop", pipe="shop\nshop\n"))


@way("variables that agree")
def _(agent: Agent) -> None:
    agent.want()
    names = ("WAYLEAVE_YES", "WAYLEAVE_RATIFY", "WAYLEAVE_KEY", "CI", "DEBIAN_FRONTEND", "WAYLEAVE_TRUST")
    refused(agent.run("ratify", "shop", env=dict.fromkeys(names, "1")))


@way("the name typed on a terminal it made")
def _(agent: Agent) -> None:
    agent.want()
    refused(agent.run("ratify", "shop", typed=["shop", "shop"]), "must be signed by one")


@way("a key file of its own")
def _(agent: Agent) -> None:
    agent.want()
    words = ["--key", str(agent.key), "--passphrase-file", str(agent.home / "passphrase")]
    refused(agent.run("ratify", "shop", *words), "does not belong to an owner")


@way("the owner's key file without its passphrase")
def _(agent: Agent) -> None:
    agent.want()
    guess = agent.home / "guess"
    guess.write_text("seven small boats in a pond\n")
    words = ["--key", str(agent.human.key), "--passphrase-file", str(guess)]
    refused(agent.run("ratify", "shop", *words), "does not open the key file")


@way("a key file that only says it is the owner's")
def _(agent: Agent) -> None:
    agent.want()
    forged = agent.home / "forged.key"
    public = Path(f"{agent.human.key}.pub").read_text().strip()
    forged.write_text(re.sub(r"(?m)^public .*$", f"public {public}", agent.key.read_text()))
    forged.chmod(0o600)
    words = ["--key", str(forged), "--passphrase-file", str(agent.home / "passphrase")]
    refused(agent.run("ratify", "shop", *words), "does not open the key file")


@way("a key of its own in an ssh-agent of its own")
def _(agent: Agent) -> None:
    agent.want()
    socket = agent.home / "ssh.sock"
    running = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.PIPE)
    try:
        running.stdout.readline()
        env = {"SSH_AUTH_SOCK": str(socket)}
        subprocess.run(["ssh-add", "-q", str(agent.ssh_key)], env=agent.env | env, check=True)
        refused(agent.run("ratify", "shop", env=env, typed=["shop"]), "none of the available keys")
    finally:
        running.kill()
        running.wait()
        running.stdout.close()


@way("become an owner")
def _(agent: Agent) -> None:
    words = ["owner", "add", "agent", "--public-key", f"{agent.ssh_key}.pub"]
    refused(agent.run(*words, typed=["agent"]), "must be signed by one")


@way("remove the owner")
def _(agent: Agent) -> None:
    refused(agent.run("owner", "remove", "ana", typed=["ana"]), "must be signed by one")


@way("propose, and ratify from the inbox")
def _(agent: Agent) -> None:
    text = (agent.human.wide + "\n# and more\n")
    given = json.dumps({"dataset": "shop", "text": text, "reason": "please"})
    agent.run("meta", "mapping", "propose", "--input", given)
    refused(agent.run("inbox", "ratify", "1", typed=["shop"]), "must be signed by one|no proposal")


@way("a console of its own, signed in to with its link")
def _(agent: Agent) -> None:
    agent.want()
    agent.ok("propose", "shop")
    command = [serving.program(), "console", "--http", "127.0.0.1:0", "--project", str(agent.folder)]
    running = subprocess.Popen(
        command, env=agent.env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        for line in running.stderr:
            if found := re.search(r"http://([^/]+)/login\?code=(\S+)", line):
                break
        retire_in_console(*found.groups())
    finally:
        running.kill()
        running.wait()
        running.stderr.close()


def retire_in_console(host: str, code: str) -> None:
    """Signs in and tries a decision: with owners, all need a signature."""
    def ask(method: str, path: str, form: dict | None = None, cookie: str = ""):
        connection = http.client.HTTPConnection(host)
        headers = {"Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin", "Cookie": cookie}
        body = urllib.parse.urlencode(form) if form else None
        if form:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer, text

    answer, _ = ask("POST", "/login", {"code": code})
    cookie = answer.getheader("Set-Cookie").split(";")[0]
    _, page = ask("GET", "/datasets/shop", cookie=cookie)
    csrf = re.search(r'name="csrf" value="([^"]+)"', page).group(1)
    form = {"csrf": csrf, "name": "shop", "note": "mine"}
    answer, page = ask("POST", "/datasets/shop/retire", form, cookie)
    assert answer.status == 422 and "must be signed by one" in page, (answer.status, page)


@way("the demo, which ratifies its own mapping")
def _(agent: Agent) -> None:
    refused(agent.run("demo", "--http", "127.0.0.1:0"), "not the demo's")


@way("connect what nobody ratified")
def _(agent: Agent) -> None:
    loot = agent.human.wide.replace('name = "shop"', 'name = "loot"', 1)
    (agent.folder / "mappings/loot.toml").write_text(loot)
    refused(agent.run("connect", "loot"), "loot")


@way("point the source at another database")
def _(agent: Agent) -> None:
    refused(agent.run("source", "remove", "shop", typed=["shop"]), "must be signed by one")
    words = ["source", "add", "other", "--kind", "sqlite", "--env", "OTHER_DSN"]
    refused(agent.run(*words, typed=["other"]), "must be signed by one")


@way("grant itself more")
def _(agent: Agent) -> None:
    refused(agent.run("grant", "create", "--dataset", "shop", typed=["shop"]), "must be signed by one")


@way("issue itself a token")
def _(agent: Agent) -> None:
    refused(agent.run("token", "create", "--all-of", "shop", typed=["shop"]), "must be signed by one")


@way("retire, to ratify anew")
def _(agent: Agent) -> None:
    refused(agent.run("retire", "shop", typed=["shop"]), "must be signed by one")


@way("make the project again in its place")
def _(agent: Agent) -> None:
    refused(wayleave("init", str(agent.folder), env=agent.env), "is a Wayleave project already")


@way("the mapping among the frozen ones, with no entry")
def _(agent: Agent) -> None:
    agent.want()
    agent.frozen()
    refused(agent.run("query", "payroll"), "payroll")


# --- attempts that change files ------------------------------------------------------------------

# The first of these to be detected depends on the pins.
REBUILT = "first owner has the key|has no owner|was rewritten|it was truncated"


@way("edit the frozen mapping", audit="the frozen mapping .* is refused")
def _(agent: Agent) -> None:
    for path in (agent.folder / ".wayleave/mappings").iterdir():
        path.chmod(0o600)
        path.write_text(agent.human.wide + "\n# and more\n")


@way("a link in place of the frozen mapping", audit="the frozen mapping .* is refused")
def _(agent: Agent) -> None:
    agent.want()
    for path in (agent.folder / ".wayleave/mappings").iterdir():
        path.unlink()
        path.symlink_to(agent.draft)


@way("edit the ledger by SQL", audit="was altered|schema was altered")
def _(agent: Agent) -> None:
    digest = f"sha256:{hashlib.sha256(agent.frozen()).hexdigest()}"
    chain = Chain(agent.folder)
    row = chain.rows[chain.places("dataset_ratified")[-1]]
    body = canonical(json.loads(row["body"]) | {"digest": digest})
    with closing(sqlite3.connect(chain.folder / "ledger.db")) as db, db:
        db.execute("DROP TRIGGER entries_never_change")
        db.execute("UPDATE entries SET body = ? WHERE seq = ?", (body, row["seq"]))


@way("edit it, and make every hash and the head anew", audit="entry .* is not signed as it must be")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    digest = f"sha256:{hashlib.sha256(agent.frozen()).hexdigest()}"
    for place in (chain.places("dataset_ratified")[-1], chain.places("dataset_activated")[-1]):
        body = json.loads(chain.rows[place]["body"]) | {"digest": digest}
        chain.rows[place]["body"] = canonical(body)
    chain.write()


@way("another entry, unsigned", audit="entry .* is not signed as it must be: .* none of them signed it")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    body = agent.ratification(chain)
    chain.append("dataset_ratified", body)
    chain.append("dataset_activated", agent.activation(chain, body))
    chain.write()


@way("another entry, with the signature of an earlier one", audit="signature by key .* does not cover this entry")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    body = agent.ratification(chain)
    signature = chain.rows[chain.places("dataset_ratified")[-1]]["signature"]
    chain.append("dataset_ratified", body, signature)
    chain.append("dataset_activated", agent.activation(chain, body))
    chain.write()


@way("the ratification of old, copied to the end", audit="entry .* (is not signed|could not have been)")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    first, second = chain.places("dataset_ratified")[:2]
    old, new = (json.loads(chain.rows[place]["body"]) for place in (first, second))
    body = old | {"replaces": new["digest"]}
    chain.append("dataset_ratified", body, chain.rows[first]["signature"])
    chain.append("dataset_activated", agent.activation(chain, body))
    chain.write()


@way("another entry, signed with a key of its own", audit="did not belong to an owner")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    body = agent.ratification(chain)
    row = chain.append("dataset_ratified", body)
    row["signature"] = sign(agent.ssh_key, row)
    chain.append("dataset_activated", agent.activation(chain, body))
    chain.write()


@way("an owner entry that it signs itself", audit="did not belong to an owner")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    row = chain.append("owner_added", {"owner": "agent", "key": agent.public, "who": "ana"})
    row["signature"] = sign(agent.ssh_key, row)
    body = agent.ratification(chain)
    row = chain.append("dataset_ratified", body)
    row["signature"] = sign(agent.ssh_key, row)
    chain.append("dataset_activated", agent.activation(chain, body))
    chain.write()


@way("the owner's key exchanged for its own in the owner entry", audit="first owner has the key|was rewritten")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    place = chain.places("owner_added")[0]
    chain.rows[place]["body"] = canonical(json.loads(chain.rows[place]["body"]) | {"key": agent.public})
    for row in chain.rows:
        if row["signature"]:
            chain.link()
            row["signature"] = sign(agent.ssh_key, row)
    body = agent.ratification(chain)
    row = chain.append("dataset_ratified", body)
    row["signature"] = sign(agent.ssh_key, row)
    chain.append("dataset_activated", agent.activation(chain, body))
    chain.write()


@way("the owner entry taken out", audit="is not signed as it must be|did not belong to an owner")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    del chain.rows[chain.places("owner_added")[0]]
    body = agent.ratification(chain)
    chain.append("dataset_ratified", body)
    chain.append("dataset_activated", agent.activation(chain, body))
    chain.write()


@way("owner entry and every signature taken out", audit="has no owner|was rewritten")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    del chain.rows[chain.places("owner_added")[0]]
    for row in chain.rows:
        row["signature"] = None
    body = agent.ratification(chain)
    chain.append("dataset_ratified", body)
    chain.append("dataset_activated", agent.activation(chain, body))
    chain.write()


@way("the signatures alone taken out", audit="none of them signed it")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    for row in chain.rows:
        if row["kind"] != "owner_added":
            row["signature"] = None
    chain.write()


@way("the old ledger, of which it kept a copy", audit="it was truncated|was rewritten", owner_pin=False)
def _(agent: Agent) -> None:
    agent.replace(agent.human.old)


@way("the tail cut off, with the head", audit="it was truncated|was rewritten", owner_pin=False)
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    del chain.rows[chain.places("dataset_ratified")[-1]:]
    chain.write()


@way("the tail cut off, and other entries in its place", audit="is not signed|it was truncated|was rewritten")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    del chain.rows[chain.places("dataset_ratified")[-1]:]
    body = agent.ratification(chain)
    chain.append("dataset_ratified", body)
    chain.append("dataset_activated", agent.activation(chain, body))
    chain.write()


@way("a project of its own, with its own owner, copied over", audit=REBUILT)
def _(agent: Agent) -> None:
    agent.replace(agent.owned / ".wayleave")


@way("a project of its own, without owners, copied over", audit=REBUILT)
def _(agent: Agent) -> None:
    agent.replace(agent.unowned / ".wayleave")


@way("another project of the same owner, copied over", audit="it was truncated|was rewritten", owner_pin=False)
def _(agent: Agent) -> None:
    agent.replace(agent.human.other / ".wayleave")


@way("a link in place of the project folder", audit=REBUILT)
def _(agent: Agent) -> None:
    agent.folder.rename(agent.folder.with_name("away"))
    agent.folder.symlink_to(agent.owned)


@way("a link in place of the ledger's folder", audit=REBUILT)
def _(agent: Agent) -> None:
    shutil.rmtree(agent.folder / ".wayleave")
    (agent.folder / ".wayleave").symlink_to(agent.owned / ".wayleave")


@way("the ledger deleted, and the mapping ratified anew on its own terminal", audit=REBUILT)
def _(agent: Agent) -> None:
    # The record in its own folder names the owner too.
    shutil.rmtree(agent.home / ".config")
    shutil.rmtree(agent.folder / ".wayleave")
    agent.want()
    agent.ok("source", "add", "shop", "--kind", "sqlite", "--env", "SHOP_DSN")
    agent.ok("ratify", "shop", typed=["shop"])
    agent.ok("connect", "shop")


@way("an older format version", audit="schema was altered")
def _(agent: Agent) -> None:
    with closing(sqlite3.connect(agent.folder / ".wayleave/ledger.db")) as db:
        db.execute("PRAGMA user_version = 3")


@way("an older format, rebuilt without the column for signatures", audit="has no owner|is not signed|was rewritten")
def _(agent: Agent) -> None:
    chain = Chain(agent.folder)
    del chain.rows[chain.places("owner_added")[0]]
    for row in chain.rows:
        row["signature"] = None
    body = agent.ratification(chain)
    chain.append("dataset_ratified", body)
    chain.append("dataset_activated", agent.activation(chain, body))
    chain.write()
    with closing(sqlite3.connect(agent.folder / ".wayleave/ledger.db")) as db:
        db.execute("ALTER TABLE entries DROP COLUMN signature")
        db.execute("PRAGMA user_version = 3")


@way("a newer format version", audit="has schema 99")
def _(agent: Agent) -> None:
    with closing(sqlite3.connect(agent.folder / ".wayleave/ledger.db")) as db:
        db.execute("PRAGMA user_version = 99")


@way("a view in place of the table", audit="schema was altered")
def _(agent: Agent) -> None:
    digest = f"sha256:{hashlib.sha256(agent.frozen()).hexdigest()}"
    last = json.loads(Chain(agent.folder).rows[-1]["body"])["digest"]
    with closing(sqlite3.connect(agent.folder / ".wayleave/ledger.db")) as db, db:
        db.execute("ALTER TABLE entries RENAME TO kept")
        db.execute(
            "CREATE VIEW entries AS SELECT seq, at, kind,"
            f" replace(body, '{last}', '{digest}') AS body, prev_hash, hash, signature FROM kept"
        )


@way("the head file removed", audit="head file is missing")
def _(agent: Agent) -> None:
    (agent.folder / ".wayleave/ledger.head").unlink()
    agent.want()
    refused(agent.run("ratify", "shop", typed=["shop"]), "head file is missing|tampered")


# --- the checks ----------------------------------------------------------------------------------


class Owners(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        root = tempfile.TemporaryDirectory(prefix="wayleave-owners-")
        cls.addClassCleanup(root.cleanup)
        cls.root = Path(root.name)
        cls.human = Human(cls.root)
        cls.human.other = cls.root / "other"
        cls.human.make(cls.human.other)
        cls.agent = Agent(cls.root, cls.human)
        cls.backup = cls.root / "backup"
        shutil.copytree(cls.human.folder, cls.backup)

    def restore(self) -> None:
        folder = self.human.folder
        away = folder.with_name("away")
        if folder.is_symlink():
            folder.unlink()
            shutil.rmtree(away)
        else:
            shutil.rmtree(folder)
        shutil.copytree(self.backup, folder)

    def go_back(self) -> None:
        """Restores the backup like a person who accepts that entries are lost: without the record."""
        shutil.rmtree(self.human.home / ".config")
        self.restore()
        self.human.run("owner", "list")

    def calls(self, env: dict[str, str]) -> str:
        """The answer of a stdio server to a client that asks for the payroll."""
        about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        call = {"name": "query_records", "arguments": {"stream": "payroll"}}
        messages = [
            {"id": 1, "method": "initialize", "params": about},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": call},
        ]
        pipe = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in messages)
        done = wayleave("serve", "--stdio", "--project", str(self.human.folder), env=env, pipe=pipe)
        return done.stdout + done.stderr

    def look(self, audit: str | None, owner_pin: bool) -> None:
        folder = ["--project", str(self.human.folder)]
        for name, env in self.human.trusts(owner_pin).items():
            with self.subTest(looks=name):
                query = wayleave("query", "payroll", *folder, env=env)
                self.assertNotEqual(query.returncode, 0, query.stdout)
                self.assertTrue(query.stderr.strip())
                self.assertNotIn(CANARY, query.stdout + query.stderr)
                self.assertNotIn(CANARY, self.calls(env))
                verified = wayleave("audit", "--verify", *folder, env=env)
                said = verified.stdout + verified.stderr
                if audit is None:
                    self.assertEqual(verified.returncode, 0, said)
                else:
                    self.assertNotEqual(verified.returncode, 0, said)
                    self.assertRegex(said, audit)

    def test_the_way_in_that_is_tried_would_work_with_the_key(self) -> None:
        """The canary is there to be found: whoever has the key serves it by the same steps."""
        self.addCleanup(self.go_back)
        self.agent.want()
        self.human.ratify(self.human.folder)
        for env in self.human.trusts(True).values():
            query = good(wayleave("query", "payroll", "--project", str(self.human.folder), env=env))
            self.assertIn(CANARY, query.stdout)
            self.assertIn(CANARY, self.calls(env))

    def test_no_way_leads_to_a_mapping_that_no_owner_ratified(self) -> None:
        tried = 0
        for name, (attempt, audit, owner_pin) in WAYS.items():
            with self.subTest(way=name):
                try:
                    attempt(self.agent)
                    self.look(audit, owner_pin)
                    tried += 1
                finally:
                    self.restore()
        self.assertEqual(tried, len(WAYS))
        self.assertGreaterEqual(tried, FEWEST_WAYS)
        print(f"{tried} ways tried, none works")

    def ask(self, server: serving.HttpServer, stream: str) -> tuple[int, str]:
        """Queries a stream on a running server, without a session."""
        url = urllib.parse.urlsplit(server.url)
        meta = {
            "io.modelcontextprotocol/protocolVersion": serving.MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": "query_records", "arguments": {"stream": stream}, "_meta": meta}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        connection = http.client.HTTPConnection(url.netloc)
        connection.request("POST", url.path or "/", body, {
            "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
            "Mcp-Protocol-Version": serving.MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "query_records",
        })
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def test_a_running_server_refuses_what_takes_the_place_of_its_ledger(self) -> None:
        settings = '[serve]\nanonymous = true\nhttp = "127.0.0.1:0"\n'

        def appended() -> None:
            chain = Chain(self.human.folder)
            body = self.agent.ratification(chain)
            chain.append("dataset_ratified", body)
            chain.append("dataset_activated", self.agent.activation(chain, body))
            chain.write()

        under = {
            "another project": lambda: self.agent.replace(self.agent.owned / ".wayleave"),
            "the old ledger": lambda: self.agent.replace(self.human.old),
            "unsigned entries at its end": appended,
        }
        for name, change in under.items():
            with self.subTest(under=name):
                (self.human.folder / "wayleave.toml").write_text(settings)
                command = [serving.program(), "serve", "--project", str(self.human.folder)]
                server = serving.HttpServer(*command, env=self.human.env)
                try:
                    status, text = self.ask(server, "customer")
                    self.assertEqual((status, "Ana" in text), (200, True), text)
                    change()
                    for stream in ("payroll", "customer"):
                        _, text = self.ask(server, stream)
                        self.assertNotIn(CANARY, text)
                        self.assertNotIn("Ana", text)
                finally:
                    server.stop()
                    self.restore()

    def test_owners_come_and_go_by_signature_alone(self) -> None:
        self.addCleanup(self.go_back)
        human, public = self.human, f"{self.agent.ssh_key}.pub"
        human.run("owner", "add", "ben", "--public-key", public, *human.signing)
        socket = self.root / "ben.sock"
        running = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.PIPE)
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        running.stdout.readline()
        ben = human.env | {"SSH_AUTH_SOCK": str(socket)}
        subprocess.run(["ssh-add", "-q", str(self.agent.ssh_key)], env=ben, check=True)
        self.agent.want()
        folder = ["--project", str(human.folder)]
        # A key in the agent signs, and a person at a terminal types the name.
        refused(wayleave("ratify", "shop", *folder, env=ben), "only a person at a terminal")
        good(wayleave("ratify", "shop", *folder, env=ben, typed=["shop"]))
        good(wayleave("audit", "--verify", *folder, env=human.env))
        refused(wayleave("owner", "remove", "ben", "--key", str(human.key), *folder, env=human.env,
                         pipe=f"{PASSPHRASE}\n"), "only a person at a terminal")
        human.run("owner", "remove", "ben", "--key", str(human.key), typed=[PASSPHRASE])
        refused(wayleave("retire", "shop", *folder, env=ben, typed=["shop"]), "none of the available keys")
        refused(wayleave("owner", "remove", "ana", *human.signing, *folder, env=human.env), "the only owner")
        # Earlier signatures still verify.
        verified = good(wayleave("audit", "--verify", "--owner", human.fingerprint, *folder, env=human.env))
        self.assertIn("signed; the first owner's key is", verified.stdout)
        doctor = good(wayleave("doctor", *folder, env=human.env))
        self.assertRegex(doctor.stdout, r"owners +decisions are signed, by `ana`")


if __name__ == "__main__":
    unittest.main()

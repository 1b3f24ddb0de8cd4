"""No reply without its record, whatever happens to the server or to its disk.

`strace` is attached to a running server and makes the system calls of its log fail, wait or kill it; once it is
detached the disk works again. Each rule holds with `audit.sync` and without.

Run it with a Python that has `mcp` 2.x, as a user who may trace processes:
python tests/python/test_faults.py [-v] [NAME ...]
"""

from __future__ import annotations

import http.client
import json
import subprocess
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import serving
import test_audit
from serving import FULL, PATIENCE
from test_audit import ACTIVITY, bare, stateless

# System calls that write, truncate and sync the log.
WRITING = "pwrite64,ftruncate,fdatasync"
CLIENTS = 8


class Strace:
    """Injects faults into the log of a server while attached."""

    def __init__(self, server, log, inject: str) -> None:
        files = [it for it in [log, log / "00", *(log / "00").iterdir()]]
        paths = [word for file in files for word in ("-P", str(file))]
        command = ["strace", "-f", "-o", "/dev/null", *paths, "-e", f"inject={inject}"]
        self.process = subprocess.Popen(
            [*command, "-p", str(server.process.pid)], stderr=subprocess.PIPE, text=True
        )
        for line in self.process.stderr:
            if "attached" in line:
                self._reading = threading.Thread(target=self.process.stderr.read, daemon=True)
                self._reading.start()
                return
        self.process.wait()
        raise RuntimeError("`strace` cannot attach: may this user trace processes?")

    def detach(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=PATIENCE)
        self._reading.join()
        self.process.stderr.close()


class Faults:
    settings: str

    def setUp(self) -> None:
        self.port = test_audit.free_port()
        telemetry = f'[telemetry]\nlisten = "127.0.0.1:{self.port}"\n'
        self.project = test_audit.Project(telemetry + self.settings)
        self.addCleanup(self.project.close)
        self.log = self.project.path / ".wayleave/activity"
        self.answered: list[str] = []

    def serve(self):
        server = self.project.over_http()
        self.addCleanup(lambda: server.process.poll() is None and server.stop())
        self.assertEqual(self.call(server)[0], 200)
        return server

    def disturb(self, server, inject: str) -> Strace:
        strace = Strace(server, self.log, inject)
        self.addCleanup(strace.detach)
        return strace

    def call(self, server, key: int = 1) -> tuple[int, dict]:
        """Makes a call; returns the status and the message of the response."""
        url = urlsplit(server.url)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=PATIENCE)
        try:
            body, headers = stateless("tools/call", "fetch", {"id": f"crm/people:{key}"})
            headers["Authorization"] = f"Bearer {self.project.token}"
            connection.request("POST", url.path, body, headers)
            answer = connection.getresponse()
            message = json.loads(answer.read())
        finally:
            connection.close()
        if "result" in message:
            self.answered.append(bare(message["result"]["_meta"][ACTIVITY]))
        return answer.status, message

    def many(self, server, count: int = CLIENTS) -> list[tuple[int, dict] | None]:
        """Makes concurrent calls; returns the answers, `None` for a call that the server did not survive."""

        def one(key: int) -> tuple[int, dict] | None:
            try:
                return self.call(server, key)
            except (http.client.HTTPException, OSError, ValueError):
                return None

        with ThreadPoolExecutor(CLIENTS) as pool:
            return list(pool.map(one, range(1, count + 1)))

    def readiness(self) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", "/readyz")
        status = connection.getresponse().status
        connection.close()
        return status

    def assert_recorded(self) -> None:
        """Checks that every call answered with a result is recorded, and that the record is complete."""
        recorded = [it["id"] for it in self.project.list("--target", "fetch")]
        self.assertEqual(len(recorded), len(set(recorded)))
        self.assertEqual(len(self.answered), len(set(self.answered)))
        self.assertEqual(set(self.answered) - set(recorded), set())
        self.assertTrue(self.project.audit("verify")["ok"])

    def assert_refused(self, answer: tuple[int, dict]) -> None:
        status, message = answer
        self.assertEqual(status, 503, message)
        self.assertEqual(message["error"]["code"], -32603)
        self.assertEqual(message["error"]["data"]["reason"], "audit_unavailable")

    def test_a_failing_disk_refuses_service_until_it_works_again(self) -> None:
        server = self.serve()
        for error, words in [
            ("EIO", "Input/output error"),
            ("ENOSPC", "No space left on device"),
            ("EROFS", "Read-only file system"),
        ]:
            strace = self.disturb(server, f"{WRITING}:error={error}")
            for answer in self.many(server):
                self.assert_refused(answer)
            self.assertEqual(self.call(server)[0], 503, error)
            strace.detach()
            self.assertEqual(self.call(server)[0], 200, error)
            self.assertEqual(self.readiness(), 200)
            self.assertTrue([line for line in server.log if words in line], server.log)
            self.assert_recorded()
        self.assertIsNone(server.process.poll())

    def test_a_slow_disk_delays_or_refuses_and_never_answers_early(self) -> None:
        server = self.serve()
        strace = self.disturb(server, f"{self.slow}")
        answers = self.many(server)
        refused = [answer for answer in answers if answer[0] != 200]
        for answer in refused:
            self.assert_refused(answer)
        self.assertTrue(refused, "nobody waited too long")
        strace.detach()
        self.assertEqual(self.call(server)[0], 200)
        self.assert_recorded()

    def test_a_disk_that_is_a_little_slow_is_waited_for(self) -> None:
        server = self.serve()
        strace = self.disturb(server, f"{WRITING}:delay_enter=50000")
        self.assertEqual({answer[0] for answer in self.many(server, 24)}, {200})
        strace.detach()
        self.assert_recorded()

    def test_a_server_killed_at_any_write_of_its_log_has_recorded_what_it_answered(self) -> None:
        kills = 0
        for call in self.calls:
            for nth in range(1, 13 if FULL else 4):
                server = self.serve()
                strace = self.disturb(server, f"{call}:signal=KILL:when={nth}")
                for _ in range(50):
                    if None in self.many(server):
                        break
                server.process.wait(timeout=PATIENCE)
                self.assertEqual(server.process.returncode, -9)
                strace.detach()
                kills += 1
                self.assert_recorded()
                server._reading.join()
                server.process.stderr.close()
        print(f"{kills} kills, {len(self.answered)} answers on record")


class WithoutSync(Faults, unittest.TestCase):
    settings = ""
    calls = ("pwrite64",)
    slow = "pwrite64:delay_enter=2500000"


class WithSync(Faults, unittest.TestCase):
    settings = "[audit]\nsync = true\n"
    calls = ("pwrite64", "fdatasync")
    slow = "fdatasync:delay_enter=6500000"


class Unwritable(unittest.TestCase):
    def test_doctor_says_why_calls_cannot_be_recorded(self) -> None:
        project = test_audit.Project()
        self.addCleanup(project.close)
        server = project.over_http()
        server.stop()
        [segment] = (project.path / ".wayleave/activity").glob("*/*.log")
        test_audit.lock_file(segment)
        try:
            told = json.loads(project.run("doctor", "--json", fails=True))
        finally:
            test_audit.unlock_file(segment)
        self.assertIn("activity log", json.dumps(told))
        project.run("doctor")


if __name__ == "__main__":
    unittest.main()

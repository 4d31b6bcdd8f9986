"""Stores, databases and other processes for the tests of the Python package."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Iterator

import baton

PATIENCE = 30.0  # for what has to come about; as in tests/support/wait.h
TTL = 1.0
PROGRAM = os.environ["BATON_PROGRAM"]


def poll_until(what: Callable[[], bool]) -> bool:
    end = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Redis:
    """A server of our own, which ends with this process, however that ends."""

    def __init__(self, directory: str) -> None:
        for _ in range(3):  # another test may take the port first
            self.port = free_port()
            self.server = subprocess.Popen(
                ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "",
                 "--appendonly", "no", "--dir", directory],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            # Reads until this process is gone, and takes the server along.
            self.guard = subprocess.Popen(
                ["/bin/sh", "-c", 'read -r _ || true; kill -KILL "$1"', "guard",
                 str(self.server.pid)],
                stdin=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            if poll_until(lambda: self.answers() or self.server.poll() is not None):
                if self.server.poll() is None:
                    return
            self.stop()
        raise RuntimeError("Redis does not start")

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as session:
                session.sendall(b"PING\r\n")
                return session.recv(16).startswith(b"+PONG")
        except OSError:
            return False

    def stop(self) -> None:
        # The guard first: it must not end another process that gets the number of the server.
        self.guard.kill()
        self.guard.communicate()
        self.server.kill()
        self.server.wait()


class Postgres:
    """A new database on the server of the test run, dropped at its end."""

    _numbers = itertools.count(1)

    def __init__(self) -> None:
        import psycopg2

        server = os.environ.get("BATON_TEST_POSTGRES")
        if not server:
            raise RuntimeError("BATON_TEST_POSTGRES names no server")
        self.name = f"python_{os.getpid()}_{next(self._numbers)}"
        self.url = f"{server.rpartition('/')[0]}/{self.name}"
        self._server = psycopg2.connect(server)
        self._server.autocommit = True
        self._server.cursor().execute(
            f"CREATE DATABASE {self.name} TEMPLATE template0 ENCODING 'UTF8'")

    def connect(self) -> Any:
        import psycopg2

        return psycopg2.connect(self.url)

    def stop(self) -> None:
        self._server.cursor().execute(f"DROP DATABASE {self.name} WITH (FORCE)")
        self._server.close()


class Environment:
    """Where the locks are ($BATON_TEST_STORE) and where the data: a database that can fence."""

    def __init__(self) -> None:
        self.directory = tempfile.TemporaryDirectory(dir=os.environ.get("BATON_TEST_TMP"))
        self.kind = os.environ["BATON_TEST_STORE"]
        self._end = contextlib.ExitStack()
        self._end.callback(self.directory.cleanup)
        self.data = "sqlite:" + self.path("data.db")
        if self.kind == "postgres":
            database = Postgres()
            self._end.callback(database.stop)
            self.store = self.data = database.url
        elif self.kind == "redis":
            self.redis = Redis(self.directory.name)
            self._end.callback(self.redis.stop)
            self.store = f"redis://127.0.0.1:{self.redis.port}/0"
        else:
            self.store = "sqlite:" + self.path("locks.db")
        baton.migrate(self.store)
        with contextlib.closing(self.connect()) as connection:
            connection.cursor().execute("CREATE TABLE written (what TEXT)")
            connection.commit()
        baton.install_fence(self.data)

    def path(self, name: str) -> str:
        return str(Path(self.directory.name) / name)

    def connect(self) -> Any:
        return connect(self.data)

    def stop(self) -> None:
        self._end.close()


def connect(data: str, driver: str = "psycopg2") -> Any:
    if data.startswith("sqlite:"):
        return sqlite3.connect(data.partition(":")[2], timeout=PATIENCE)
    return importlib.import_module(driver).connect(data)


class Child:
    """A process that runs a role of child.py, and is told and says lines."""

    def __init__(self, role: str, *arguments: str) -> None:
        script = Path(__file__).with_name("child.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script), role, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.pid = self.process.pid
        self._said = b""  # and not yet asked for

    def says(self) -> str:
        """The next line. Read without Python's buffer, whose lines select() would not see."""
        assert self.process.stdout is not None
        while b"\n" not in self._said:
            if not select.select([self.process.stdout], [], [], 2 * PATIENCE)[0]:
                raise AssertionError("the other process says nothing")
            more = os.read(self.process.stdout.fileno(), 4096)
            if not more:
                break
            self._said += more
        line, _, self._said = self._said.partition(b"\n")
        return line.decode().strip()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    def stand_still(self) -> None:
        """Stops it, and waits until none of its threads does anything any more."""
        self.kill(signal.SIGSTOP)
        tasks = Path(f"/proc/{self.pid}/task")

        def stopped() -> bool:
            states = [(task / "stat").read_text().rpartition(")")[2].split()[0]
                      for task in tasks.iterdir()]
            return all(state == "T" for state in states)

        assert poll_until(stopped)

    def end(self) -> None:
        if self.process.poll() is None:
            self.kill()
            self.kill(signal.SIGCONT)
        self.process.communicate()


class Case(unittest.TestCase):
    """A test on the store of this run, with names of its own."""

    environment: Environment
    client: baton.Client
    _numbers = itertools.count(1)

    @classmethod
    def setUpClass(cls) -> None:
        cls.environment = Environment()
        cls.addClassCleanup(cls.environment.stop)
        cls.client = baton.open(cls.environment.store, owner="test")
        cls.addClassCleanup(cls.client.close)

    def setUp(self) -> None:
        self.name = f"job/{next(self._numbers)}"

    def child(self, role: str, *arguments: str) -> Child:
        child = Child(role, self.environment.store, *arguments)
        self.addCleanup(child.end)
        return child

    def baton(self, *words: str) -> Any:
        """What the command says, as JSON."""
        done = subprocess.run(
            [PROGRAM, *words, "--store", self.environment.store, "--json"],
            check=True, capture_output=True, text=True)
        return json.loads(done.stdout)

    def order(self, *words: str) -> None:
        """The same for a command that waits until it is obeyed, which is not waited for here."""
        process = subprocess.Popen([PROGRAM, *words, "--store", self.environment.store],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)

    def waiting(self, name: str) -> int:
        locks = self.baton("lock", "list")["locks"]
        return sum(int(lock["waiting"]) for lock in locks if lock["name"] == name)

    def wait_for_waiters(self, name: str, number: int) -> None:
        self.assertTrue(poll_until(lambda: self.waiting(name) == number), f"not {number} wait")

    @contextlib.contextmanager
    def data(self) -> Iterator[Any]:
        with contextlib.closing(self.environment.connect()) as connection:
            yield connection

    def write(self, connection: Any, lease: baton.Lease, what: str) -> None:
        """A fenced transaction."""
        cursor = connection.cursor()
        try:
            lease.fence(cursor)
            cursor.execute(f"INSERT INTO written VALUES ('{what}')")
            connection.commit()
        finally:
            connection.rollback()

    def written(self, what: str) -> int:
        with self.data() as connection:
            cursor = connection.cursor()
            cursor.execute(f"SELECT count(*) FROM written WHERE what = '{what}'")
            return int(cursor.fetchone()[0])

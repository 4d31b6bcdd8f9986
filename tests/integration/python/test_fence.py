"""Whoever was overtaken cannot write, whatever language it is written in."""

import contextlib
import importlib
import json
from typing import Any

import baton
from support import PATIENCE, Case, connect


def psycopg_rollback() -> Any:
    """What ends a transaction() block of psycopg without a commit."""
    return importlib.import_module("psycopg").Rollback()


class Fence(Case):
    def test_a_process_that_stood_still_is_refused_by_the_fence(self) -> None:
        child = self.child("write", self.name, self.environment.data, "late")
        self.assertEqual(child.says(), "holds")
        child.stand_still()
        with self.client.hold(self.name, wait=PATIENCE) as lease, self.data() as connection:
            self.write(connection, lease, "in time")
        import signal

        child.tell("go on")
        child.kill(signal.SIGCONT)
        self.assertEqual(child.says(), "fenced")
        self.assertEqual(child.says(), "lost")
        self.assertEqual(self.written("late"), 0)
        self.assertEqual(self.written("in time"), 1)

    def test_a_holder_that_was_not_overtaken_writes(self) -> None:
        with self.client.hold(self.name) as lease, self.data() as connection:
            for _ in range(2):
                self.write(connection, lease, self.name)
        self.assertEqual(self.written(self.name), 2)

    def test_a_fence_that_is_not_committed_records_nothing(self) -> None:
        old = self.client.acquire(self.name, at_least_for=0)
        text = old.fence_text
        old.release()
        with self.client.hold(self.name) as new, self.data() as connection:
            cursor = connection.cursor()
            new.fence(cursor)
            connection.rollback()
        self.assertEqual(json.loads(text)[0]["name"], old.key)

    def test_a_transaction_under_two_leases_shows_both(self) -> None:
        with self.client.hold(self.name + "/a") as a, self.client.hold(self.name + "/b") as b:
            both = json.loads(baton.fence_text(a, b))
            self.assertEqual([entry["name"] for entry in both], [a.key, b.key])
            self.assertEqual([int(entry["token"]) for entry in both], [a.token, b.token])
            with self.data() as connection:
                baton.fence(connection.cursor(), a, b)
                connection.commit()

    def test_locks_beside_the_data_refuse_before_the_newer_holder_has_written(self) -> None:
        if self.environment.kind == "redis":
            self.skipTest("these locks are not in a database of psycopg2 or sqlite3")
        baton.install_fence(self.environment.store)
        old = self.client.acquire(self.name)
        self.order("lock", "break", self.name, "--now", "--reason", "test")
        with self.client.hold(self.name, wait=PATIENCE) as new:
            with contextlib.closing(connect(self.environment.store)) as connection:
                with self.assertRaises(baton.Fenced):
                    old.fence(connection.cursor())
                connection.rollback()
                new.fence(connection.cursor())
                connection.commit()

    def test_psycopg_3_is_a_driver_too(self) -> None:
        if self.environment.kind != "postgres":
            self.skipTest("it is a driver of PostgreSQL")
        baton.outbox.install(self.environment.data)
        old = self.client.acquire(self.name)
        with contextlib.closing(connect(self.environment.data, "psycopg")) as connection:
            cursor = connection.cursor()
            old.fence(cursor)
            baton.outbox.add(cursor, type="Made", aggregate=self.name, exchange="things",
                             payload={"per": "100%"})
            connection.commit()
            cursor.execute("SELECT payload FROM outbox_events WHERE aggregate_id = %s",
                           (self.name,))
            self.assertEqual(json.loads(cursor.fetchone()[0]), {"per": "100%"})
            connection.rollback()
            self.order("lock", "break", self.name, "--now", "--reason", "test")
            with self.client.hold(self.name, wait=PATIENCE):
                with self.assertRaises(baton.Fenced):
                    old.fence(cursor)
                connection.rollback()
            connection.autocommit = True
            with self.assertRaisesRegex(baton.BadRequest, "transaction"):
                old.fence(connection.cursor())
            with connection.transaction():
                with self.assertRaises(baton.Fenced):
                    old.fence(connection.cursor())
                raise psycopg_rollback()

    def test_no_lease_is_not_shown(self) -> None:
        with self.data() as connection:
            with self.assertRaises(baton.BadRequest):
                baton.fence(connection.cursor())

    def test_a_fence_in_autocommit_mode_is_refused(self) -> None:
        with self.client.hold(self.name) as lease, self.data() as connection:
            if self.environment.kind == "postgres":
                connection.autocommit = True
            else:
                connection.isolation_level = None
            with self.assertRaisesRegex(baton.BadRequest, "transaction"):
                lease.fence(connection.cursor())
            cursor = connection.cursor()
            cursor.execute("BEGIN")
            lease.fence(cursor)
            cursor.execute("COMMIT")

    def test_a_database_without_a_fence_is_told_of(self) -> None:
        postgres = self.environment.kind == "postgres"
        data = self.environment.data if postgres else "sqlite::memory:"
        with self.client.hold(self.name) as lease, contextlib.closing(connect(data)) as connection:
            cursor = connection.cursor()
            if postgres:
                cursor.execute("ALTER FUNCTION public.baton_fence(text) RENAME TO gone")
            with self.assertRaisesRegex(baton.BadStore, "install"):
                lease.fence(cursor)
            connection.rollback()

    def test_a_cursor_of_another_kind_is_refused(self) -> None:
        with self.client.hold(self.name) as lease, self.assertRaises(TypeError):
            lease.fence(object())


class Outbox(Case):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        baton.outbox.install(cls.environment.data)

    def rows(self, aggregate: str) -> list:
        with self.data() as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT event_id, type, routing_key, payload, headers, version"
                           f" FROM outbox_events WHERE aggregate_id = '{aggregate}'")
            return [(str(row[0]), *row[1:5], int(row[5])) for row in cursor.fetchall()]

    def test_an_event_is_there_if_and_only_if_its_transaction_commits(self) -> None:
        for commit in (False, True):
            with self.data() as connection:
                event = baton.outbox.add(
                    connection.cursor(), type="DocumentUploaded", aggregate=self.name,
                    exchange="documents", payload={"pages": 3, "title": "100% ✓"}, headers={"who": "us"}, version=2)
                (connection.commit if commit else connection.rollback)()
            rows = self.rows(self.name)
            self.assertEqual(len(rows), int(commit))
        self.assertEqual(rows[0][0], event)
        self.assertEqual(rows[0][1:3], ("DocumentUploaded", "document.uploaded"))
        self.assertEqual(json.loads(rows[0][3]), {"pages": 3, "title": "100% ✓"})
        self.assertEqual(json.loads(rows[0][4]), {"who": "us"})
        self.assertEqual(rows[0][5], 2)

    def test_an_event_that_cannot_be_is_refused_and_harms_no_transaction(self) -> None:
        with self.data() as connection:
            cursor = connection.cursor()
            for wrong in ({"type": ""}, {"aggregate": ""}, {"payload": "{"}, {"id": "no"},
                          {"version": -1}, {"version": 0}, {"version": 2**31},
                          {"version": 2**32 + 1}, {"version": "2"}, {"headers": {"": "x"}},
                          {"traceparent": "x"}, {"exchange": ""}):
                given = {"type": "Made", "aggregate": self.name, "exchange": "things", **wrong}
                with self.assertRaises(baton.BadRequest, msg=str(wrong)):
                    baton.outbox.add(cursor, **given)
            baton.outbox.add(cursor, type="Made", aggregate=self.name, exchange="things",
                             payload="[" + "1," * 5000 + "1]")
            connection.commit()
        self.assertEqual(len(self.rows(self.name)), 1)

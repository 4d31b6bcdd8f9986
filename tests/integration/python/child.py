"""What other processes do in the tests: child.py ROLE STORE ARGUMENT..."""

from __future__ import annotations

import os
import sys
import threading

import baton
from support import TTL, connect


def say(line: str) -> None:
    print(line, flush=True)


def told() -> str:
    return sys.stdin.readline().strip()


def hold(store: str, name: str) -> None:
    """Holds the lock until it is told to release it."""
    with baton.open(store).hold(name, ttl=TTL) as lease:
        say(f"holds {lease.token}")
        told()


def write(store: str, name: str, data: str, what: str) -> None:
    """Holds the lock, and when it is told so, writes in a fenced transaction."""
    lost = threading.Event()
    lease = baton.open(store).acquire(name, ttl=TTL)
    lease.on_lost(lambda _: lost.set())
    say("holds")
    told()
    connection = connect(data)
    cursor = connection.cursor()
    try:
        lease.fence(cursor)
        cursor.execute(f"INSERT INTO written VALUES ('{what}')")
        connection.commit()
        say("written")
    except baton.Fenced:
        connection.rollback()
        say("fenced")
    lost.wait(30)
    try:
        lease.check()
    except baton.Lost:
        say("lost" if lost.is_set() else "not told")


def wait(store: str, name: str) -> None:
    """Waits for the lock until Ctrl-C."""
    client = baton.open(store)
    say("waits")
    try:
        client.acquire(name, wait=None)
        say("holds")
    except KeyboardInterrupt:
        say("interrupted")


def count(store: str, name: str, path: str, rounds: str) -> None:
    """Adds to a number in a file, which is lost if two do it at once."""
    client = baton.open(store)
    for _ in range(int(rounds)):
        with client.hold(name, ttl=10, wait=60):
            with open(path, "r+", encoding="utf-8") as file:
                number = int(file.read() or "0")
                file.seek(0)
                file.write(str(number + 1))
    say("done")


def lead(store: str, election: str) -> None:
    """Leads until it is told to stop."""
    client = baton.open(store, owner=f"child-{os.getpid()}")
    say("stands")
    with client.elect(election, ttl=TTL) as term:
        say(f"leads {term.token}")
        told()
    say("ended")


if __name__ == "__main__":
    {"hold": hold, "write": write, "wait": wait, "count": count, "lead": lead}[sys.argv[1]](
        *sys.argv[2:])

"""Writes the report of a month once, whatever number of machines run this."""

import sqlite3
import sys

import baton


def write_report(month: str) -> None:
    data = sqlite3.connect("report.db")
    with baton.open("sqlite:locks.db") as client:
        with client.hold(f"report/{month}", ttl=30, wait=5) as lease:
            cursor = data.cursor()
            lease.fence(cursor)  # first in the transaction: refuses a holder that was overtaken
            cursor.execute("INSERT OR IGNORE INTO report VALUES (?)", (month,))
            baton.outbox.add(cursor, type="ReportWritten", aggregate=month, exchange="reports")
            data.commit()
            print(f"{lease.key}: token {lease.token}")


if __name__ == "__main__":
    # Once for each database: as `baton fence install` and `baton outbox install` do.
    sqlite3.connect("report.db").execute(
        "CREATE TABLE IF NOT EXISTS report (month TEXT PRIMARY KEY)")
    baton.install_fence("sqlite:report.db")
    baton.outbox.install("sqlite:report.db")
    write_report(sys.argv[1])

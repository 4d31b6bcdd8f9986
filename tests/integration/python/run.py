"""Runs test modules and writes the report by which `./dev test` counts cases: run.py MODULE..."""

import os
import sys
import unittest
from pathlib import Path
from xml.sax.saxutils import quoteattr


def report(result: unittest.TestResult, name: str) -> str:
    failed = len(result.failures) + len(result.unexpectedSuccesses)
    counts = f'tests="{result.testsRun}" failures="{failed}" disabled="0"'
    counts += f' errors="{len(result.errors)}"'
    suite = f'<testsuite name={quoteattr(name)} tests="{result.testsRun}" failures="{failed}"'
    suite += f' skipped="{len(result.skipped)}" errors="{len(result.errors)}"/>'
    whole = f'<testsuites {counts} name="AllTests">\n  {suite}\n</testsuites>\n'
    return '<?xml version="1.0"?>\n' + whole


def main() -> int:
    sys.path.insert(0, str(Path(__file__).parent))
    suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:])
    result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(suite)
    kind, _, path = os.environ.get("GTEST_OUTPUT", "").partition(":")
    if kind == "xml" and path:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(report(result, " ".join(sys.argv[1:])))
    # No test at all is no success.
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())

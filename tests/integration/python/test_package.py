"""The package as users get it, and the programs that the docs print."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import baton
from baton import _library

ROOT = Path(os.environ["BATON_SOURCE_DIR"])


def run(words: list, cwd: str, **env: str) -> str:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True,
                          env={**os.environ, **env})
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.stdout}{done.stderr}")
    return done.stdout


def blocks(page: str, kind: str) -> list:
    return re.findall(rf"\n```{kind}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


class Package(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(dir=os.environ.get("BATON_TEST_TMP"))
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def test_the_version_is_that_of_the_library(self) -> None:
        self.assertEqual(baton.__version__, baton.library_version())

    def test_each_function_of_the_library_is_declared(self) -> None:
        declared = re.findall(r"\b(baton_\w+)\(", (ROOT / "include/baton/baton.h").read_text())
        self.assertEqual(set(declared), set(_library.FUNCTIONS))

    def test_the_wheel_has_the_library_in_it_and_holds_a_lock(self) -> None:
        run([sys.executable, str(ROOT / "python/build_wheel.py"), os.environ["BATON_LIBRARY"],
             self.directory], self.directory)
        wheels = list(Path(self.directory).glob("baton-*-py3-none-linux_*.whl"))
        self.assertEqual(len(wheels), 1)
        run([sys.executable, "-m", "zipfile", "-e", str(wheels[0]), "installed"], self.directory)
        said = run(
            [sys.executable, "-c",
             "import baton; from baton import _library\n"
             "with baton.open('sqlite:locks.db').hold('a') as lease:\n"
             "    print(lease.token, _library.lib._name)"],
            self.directory, PYTHONPATH=str(Path(self.directory, "installed")), BATON_LIBRARY="")
        self.assertRegex(said, rf"^1 {self.directory}/installed/baton/libbaton.so.0\n$")

    def test_without_setuptools_the_wheel_says_what_to_install(self) -> None:
        # -S: without the packages of this Python.
        done = subprocess.run([sys.executable, "-S", str(ROOT / "python/build_wheel.py"),
                               os.environ["BATON_LIBRARY"], self.directory],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^build_wheel.py: needs .*python3-setuptools.*\n$")

    def test_the_pages_print_the_programs_of_the_examples(self) -> None:
        self.assertEqual(blocks("python.md", "python")[0],
                         (ROOT / "examples/python/report.py").read_text())
        self.assertEqual(blocks("c.md", "c")[0], (ROOT / "examples/c/report.c").read_text())

    def test_the_program_of_the_python_page_runs(self) -> None:
        program = str(ROOT / "examples/python/report.py")
        said = [run([sys.executable, program, "2026-11"], self.directory) for _ in range(2)]
        self.assertEqual(said, [f"DEFAULT:report:2026-11: token {token}\n" for token in (1, 2)])

    def test_the_other_python_of_the_page_compiles_and_names_what_there_is(self) -> None:
        for block in blocks("python.md", "python")[1:]:
            compile(block, "python.md", "exec")
        page = (ROOT / "docs/python.md").read_text()
        for name in re.findall(r"`baton\.(\w+)", page):
            self.assertTrue(hasattr(baton, name), name)
        for name in re.findall(r"`lease\.(\w+)", page):
            self.assertTrue(hasattr(baton.Lease, name), name)
        for name in re.findall(r"client\.(\w+)", page):
            self.assertTrue(hasattr(baton.Client, name), name)


class CProgram(unittest.TestCase):
    def test_the_header_is_c99_and_the_program_of_the_page_runs(self) -> None:
        library = Path(os.environ["BATON_LIBRARY"])
        with tempfile.TemporaryDirectory(dir=os.environ.get("BATON_TEST_TMP")) as directory:
            run([os.environ["BATON_C_COMPILER"], "-x", "c", "-std=c99", "-D_POSIX_C_SOURCE=200809L",
                 "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", str(ROOT / "include"),
                 str(ROOT / "examples/c/report.c"), "-x", "none", str(library),
                 f"-Wl,-rpath,{library.parent}", "-lsqlite3", "-o", "report"], directory)
            said = [run(["./report", "2026-11"], directory) for _ in range(2)]
            self.assertEqual(said, [f"report/2026-11: token {token}\n" for token in (1, 2)])

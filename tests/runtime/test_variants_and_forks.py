"""A process may fork while another of its threads compiles for the shapes of a call."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, threading
from tilework.errors import UsageError
from tilework.runtime.variants import ShapeVariants
parent, started, go_on = os.getpid(), threading.Event(), threading.Event()
def compile_for(shapes, values):
    if os.getpid() == parent:
        started.set()
        go_on.wait()
    raise UsageError(1002, "asked")
variants = ShapeVariants(compile_for)
def ask():
    try:
        variants({"x": (1,)})
    except UsageError:
        return True
thread = threading.Thread(target=ask)
thread.start()
started.wait()
child = os.fork()
if not child:
    os._exit(0 if ask() else 1)
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
go_on.set()
thread.join()
raise SystemExit(code)
"""


def test_a_child_does_not_wait_for_a_thread_that_it_lacks() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")

"""What signals' handlers raise while code is made, at the worst moments, leaves locks as they have to be."""

from __future__ import annotations

import subprocess
import sys

import pytest

FORK = """
import os, signal, threading, time
from tilework.codegen.cpu.llvm import LLVM_LOCK, compile_object, host_target
main, started = threading.get_ident(), threading.Event()
def hold():
    with LLVM_LOCK:
        started.set()
        time.sleep(0.1)
        signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.1)
thread = threading.Thread(target=hold)
thread.start()
started.wait()
child = os.fork()  # Python itself reports, and passes over, what is raised before a fork
text, target = "define i32 @f() { ret i32 3 }", host_target()
made = compile_object(text, target)
if not child:
    os._exit(0 if made else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
thread.join()
other = threading.Thread(target=compile_object, args=(text, target))
other.start()
other.join()
print("done")
"""

HANDLER_THAT_FORKS = """
import os, threading
from tilework.codegen.cpu import llvm
def fork():
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
with llvm.LLVM_LOCK:
    llvm._GUARD.outside(fork)
print("done")
"""

JUST_AFTER = """
import threading
from tilework.codegen.cpu import llvm
class Lock:  # as a signal that arrives when the lock has just been taken, or while it is waited for
    def __init__(self, real, taken):
        self.real, self.taken = real, taken
    def acquire(self):
        if self.taken is not None:
            taken, self.taken = self.taken, None
            if taken:
                self.real.acquire()
            raise KeyboardInterrupt
        return self.real.acquire()
    def __getattr__(self, name):
        return getattr(self.real, name)
guard = llvm._GUARD
real = guard.lock
for taken in (True, False):
    with real:
        guard.lock = Lock(real, taken)
        try:
            guard.outside(lambda: None)
        except KeyboardInterrupt:
            print("interrupted")
        guard.lock = real
    def other():
        assert real.acquire(timeout=10)
        real.release()
        print("free")
    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
assert not guard._generating
print("done")
"""


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        (FORK, ["done"]),
        (HANDLER_THAT_FORKS, ["done"]),
        (JUST_AFTER, ["interrupted", "free", "interrupted", "free", "done"]),
    ],
)
def test_code_is_made_afterwards(script: str, printed: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split()) == (0, printed), done.stderr

"""How long `import tilework` takes in a fresh process, beyond starting Python."""

from __future__ import annotations

from benchmarks.harness.install import clean_environment, fresh_install
from benchmarks.harness.paired import alternate
from benchmarks.harness.process import process_seconds
from benchmarks.harness.result import Bar, Figure, Options, Result

LIMIT = 0.15
ROWS = {
    "pass": "pass",
    "import tilework": "import tilework",
    "tilework.compile": "import tilework; tilework.compile",
}


def run(options: Options) -> Result:
    """Alternate fresh processes that import the package with ones that do nothing."""
    variables = clean_environment()
    with fresh_install() as python:

        def starts(code: str) -> float:
            return process_seconds([str(python), "-c", code], variables)

        for code in ROWS.values():
            starts(code)
        samplers = {name: lambda code=code: starts(code) for name, code in ROWS.items()}
        samples = alternate(samplers, 15 if options.quick else 41)
    beyond = {name: samples.difference(name, "pass") for name in ROWS if name != "pass"}
    rows = [["pass", f"{samples.median('pass') * 1e3:.1f}", ""]]
    rows += [[name, f"{samples.median(name) * 1e3:.1f}", f"{over.middle * 1e3:.1f}"] for name, over in beyond.items()]
    over = beyond["import tilework"]
    return Result(
        figures=[Figure("", over.middle, "s", Bar("<=", LIMIT), over)],
        columns=["python -c", "ms", "beyond pass, ms"],
        rows=rows,
        samples=dict(samples.seconds),
    )

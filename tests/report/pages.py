"""Models for pages, and a reader of pages that knows whether their markup is sound."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser

import numpy as np
from onnx import ModelProto, helper

import tilework
from tests.frontends.onnx.models import model
from tilework.cost.roofline import Roofline
from tilework.runtime.profile import Profile

KNOWN = Roofline(2e11, {"L1": 3e11, "L2": 2e11, "L3": 1e11, "memory": 4e10}, "probed", 2)

HOSTILE = (
    "<script>document.title='caught'</script>",
    '"><img src=x onerror="document.title=\'caught\'">',
    "</style></title><svg onload=document.title='caught'>",
    "a\x00b\u202egnp.exe\u202c\x1b[31m",
    "'&lt;b&gt;&amp;",
    "very_" * 60 + "long",
)
"""Names that would do harm as markup, or hide what they are."""

VOID = {"br", "link", "meta", "col", "wbr"}
WHERE = {"src", "href", "action", "data", "xlink:href", "srcset", "poster"}


def hostile() -> ModelProto:
    """Two layers whose nodes, values and graph have such names."""
    rng = np.random.default_rng(0)
    held = {"w": rng.standard_normal((16, 24)).astype(np.float32), "v": rng.standard_normal((24, 8)).astype(np.float32)}
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name=HOSTILE[4]),
        helper.make_node("Relu", ["h"], [HOSTILE[1]], name=HOSTILE[1]),
        helper.make_node("MatMul", [HOSTILE[1], "v"], ["l"], name=HOSTILE[2]),
        helper.make_node("Softmax", ["l"], ["s"], axis=1, name=HOSTILE[3]),
        helper.make_node("CumSum", ["s", "axis"], ["c"], name=HOSTILE[5]),
        helper.make_node("Transpose", ["c"], [HOSTILE[4]], name=HOSTILE[0]),
    ]
    proto = model(nodes, {"x": (np.float32, ["n", 16])}, [HOSTILE[4]], {**held, "axis": np.array(1)}, 18)
    proto.graph.name = HOSTILE[0]
    return proto


def profile_of(proto: ModelProto, *arrays: object) -> Profile:
    return tilework.compile(proto).profile(*arrays, calls=2)


def hostile_profile() -> Profile:
    return profile_of(hostile(), np.ones((64, 16), np.float32))


class Reader(HTMLParser):
    """What a page holds: every element opened and closed in order, its attributes, its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.faults: list[str] = []
        self.tags: Counter[str] = Counter()
        self.identifiers: Counter[str] = Counter()
        self.addresses: list[str] = []
        self.events: list[str] = []
        self.referred: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()
        self.faults += [f"{tag} is not closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        for name, value in attrs:
            if name == "id":
                self.identifiers[value or ""] += 1
            if name == "aria-labelledby":
                self.referred.update((value or "").split())
            if name in WHERE:
                self.addresses.append(value or "")
            if name.startswith("on"):
                self.events.append(name)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] != "style":
            self.text += data

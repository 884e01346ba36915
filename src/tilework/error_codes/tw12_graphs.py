"""Codes 1200 to 1299: graphs and operators."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.error_codes.info import CodeInfo

CODES: Mapping[int, CodeInfo] = {
    1202: CodeInfo(
        "bad graph text",
        "The text form of a graph cannot be read.",
        "Correct the line and column that the message names.",
    ),
    1203: CodeInfo(
        "duplicate name",
        "A name is defined twice in one graph, or hides one of an enclosing graph.",
        "Give every value, node and symbol a name of its own.",
    ),
    1204: CodeInfo(
        "use before definition",
        "A node reads a value that is defined later, perhaps through a cycle.",
        "Put nodes in an order in which they can run; break the cycle.",
    ),
    1205: CodeInfo(
        "unknown value",
        "A node, an output or a subgraph names a value that nothing defines.",
        "Define the value, or correct the name.",
    ),
    1206: CodeInfo(
        "token misused",
        "A token is used twice or dropped, so the order of effects is not fixed.",
        "Pass each token to exactly one node or output.",
    ),
    1207: CodeInfo(
        "bad signature",
        "A graph's signature does not fit its inputs and outputs.",
        "Give one policy per input and output, with positions that exist.",
    ),
    1208: CodeInfo(
        "bad symbol",
        "A symbol is used and not declared, declared twice, or has impossible bounds.",
        "Declare every symbol once, with lower <= upper and a positive divisor.",
    ),
    1209: CodeInfo(
        "bad dimension",
        "A dimension of a type is negative or depends on data.",
        "Use integers >= 0 and expressions over declared symbols.",
    ),
    1210: CodeInfo(
        "malformed node",
        "A node lacks a name, an operator or outputs.",
        "Give every node a name, an operator and at least one output.",
    ),
    1211: CodeInfo(
        "nested too deep",
        "Subgraphs or attributes are nested deeper than the limit that the message names.",
        "Flatten the control flow.",
    ),
    1212: CodeInfo(
        "bad constant",
        "A constant is missing, or its array does not have the type and the hash that the text names.",
        "Pass the arrays that the graph was printed with.",
    ),
    1213: CodeInfo(
        "value too large",
        "A value has more dimensions than arrays can have, or more bytes than addresses of 64 bits reach.",
        "Correct the shape; merge dimensions of extent 1, or compute it in parts.",
    ),
    1220: CodeInfo(
        "wrong number of operands",
        "An operator was given too few or too many operands or results.",
        "Give it as many as the message says.",
    ),
    1221: CodeInfo(
        "token and tensor confused",
        "An operator needs a tensor where it was given a token, or the reverse.",
        "Pass a value of the kind that the message names.",
    ),
    1222: CodeInfo(
        "wrong element type",
        "An operator does not take operands of this element type, or of different ones.",
        "Convert explicitly (`convert`).",
    ),
    1223: CodeInfo(
        "shapes do not fit",
        "The shapes of an operator's operands do not fit together or its attributes.",
        "Change the shapes; two symbols are the same dimension only if they are one symbol.",
    ),
    1224: CodeInfo(
        "wrong attribute",
        "An attribute is missing, unknown, or of the wrong kind.",
        "Give the attributes that the message names.",
    ),
    1225: CodeInfo(
        "attribute out of range",
        "An attribute has a value that makes no sense for these operands.",
        "Use a value in the range that the message names.",
    ),
    1226: CodeInfo(
        "recorded type differs",
        "A node's recorded result type is not what its operator gives.",
        "Record the inferred type, or correct the operands.",
    ),
    1227: CodeInfo(
        "unknown operator",
        "A node names an operator that does not exist and is no black box.",
        "Use one of the nearest names, or say who provides the black box.",
    ),
    1228: CodeInfo(
        "subgraphs do not fit",
        "An operator has the wrong number of subgraphs.",
        "Give subgraphs to control flow only, as many as it takes.",
    ),
    1229: CodeInfo(
        "subgraph of the wrong type",
        "A subgraph's inputs or outputs do not have the types that its operator needs.",
        "Make the subgraph's types those that the message names.",
    ),
    1230: CodeInfo(
        "no definition in index notation",
        "An operator's meaning cannot be written in index notation.",
        "Run it as a step of the plan (control flow, effect, black box).",
    ),
    1240: CodeInfo(
        "wrong inputs",
        "The graph interpreter was given inputs that the graph does not take.",
        "Pass each input once, with the shape and type listed.",
    ),
    1241: CodeInfo(
        "symbol not bound",
        "A symbol has no value, two values, or one out of its bounds.",
        "Pass arrays whose shapes agree, or give the symbol a value.",
    ),
    1242: CodeInfo(
        "fault while interpreting",
        "A check that belongs to the graph failed on these values.",
        "Pass values that the graph allows.",
    ),
    1243: CodeInfo(
        "no black box",
        "The graph interpreter met a black box that nobody provides.",
        "Pass the function in `black_boxes`.",
    ),
}

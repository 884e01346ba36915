"""Codes 1100 to 1199: ONNX files."""

from __future__ import annotations

from collections.abc import Mapping

from tilework.error_codes.info import CodeInfo

CODES: Mapping[int, CodeInfo] = {
    1101: CodeInfo(
        "model file not readable",
        "The file does not exist, is a folder, or cannot be read.",
        "Give the path of a readable ONNX file.",
    ),
    1102: CodeInfo(
        "not an ONNX model",
        "The bytes are not a model in ONNX's binary form: foreign, truncated or damaged.",
        "Export or download the model again.",
    ),
    1103: CodeInfo(
        "damaged model",
        "The file can be read but breaks the rules of ONNX: something it must have is missing or wrong.",
        "Export the model again; the message lists every fault.",
    ),
    1104: CodeInfo(
        "nested too deep",
        "Subgraphs lie inside subgraphs deeper than can be handled.",
        "Flatten the control flow of the model before exporting it.",
    ),
    1105: CodeInfo(
        "unknown domain",
        "A node's operator belongs to an operator set that Tilework does not know, or that the model does not import.",
        "Export with operators of the domain ai.onnx.",
    ),
    1106: CodeInfo(
        "unsupported opset",
        "The model asks for a version of the operator set outside the supported range.",
        "Convert it with `onnx.version_converter`, or export it with a version in the range.",
    ),
    1107: CodeInfo(
        "unsupported operators",
        "The model uses operators that Tilework cannot import.",
        "Export without them, or cut the model before them (`onnx.utils.extract_model`).",
    ),
    1108: CodeInfo(
        "bad attribute",
        "A node's attribute is missing, unknown, of another type than the operator wants, or out of range.",
        "Correct the attribute, or export the model again.",
    ),
    1109: CodeInfo(
        "bad tensor data", "A stored tensor's data do not fit its type and shape.", "Export the model again."
    ),
    1110: CodeInfo(
        "external data refused",
        "A tensor's data lie in a file that is not inside the model's folder.",
        "Keep data files beside the model and load it by its path.",
    ),
    1111: CodeInfo(
        "external data damaged",
        "A data file beside the model is missing, too short, or described wrongly.",
        "Copy the model's data files again.",
    ),
    1112: CodeInfo(
        "duplicate name",
        "Two values of one graph have the same name.",
        "Give every value a name of its own, or export the model again.",
    ),
    1113: CodeInfo(
        "undefined or cyclic name",
        "A node reads a value that nothing defines, or nodes need each other's results.",
        "Export the model again; the message names the values.",
    ),
    1114: CodeInfo(
        "bad input or output",
        "A graph input or output lacks a name or a tensor type with a shape, or has a negative dimension.",
        "Give every graph input a tensor type and a shape; name the dimensions that are free.",
    ),
    1115: CodeInfo(
        "unsupported data type",
        "A value has a type that Tilework cannot compute with (text, sequence, map, sparse).",
        "Export the model with tensors of numbers.",
    ),
    1116: CodeInfo(
        "shape depends on data",
        "A shape follows from values that are known only when the model runs, and the operator cannot be imported so.",
        "Make the shape constant or a function of the inputs' shapes.",
    ),
    1117: CodeInfo(
        "wrong number of operands",
        "A node has too few or too many inputs or outputs, or lacks one that it needs.",
        "Export the model again.",
    ),
    1118: CodeInfo(
        "wrong shape given",
        "A shape given for an input names no input, has another rank, or contradicts the model.",
        "Give one extent per dimension of an input that the model has.",
    ),
    1119: CodeInfo(
        "operands do not fit",
        "A node's operands have types or shapes that the operator does not take.",
        "Correct the model; the message shows the types.",
    ),
    1120: CodeInfo(
        "condition not known",
        "Control flow depends on values that are known only when the model runs.",
        "Give the results of both branches, and a loop's state before and after a trip, one element type and rank "
        "(by Cast, Reshape, Unsqueeze), or make the condition constant.",
    ),
    1121: CodeInfo(
        "dimensions not known to fit",
        "Two dimensions must be equal, or one a multiple of the other, and nothing in the model says so.",
        "Give extents with `shapes`, or the same name to dimensions that are equal.",
    ),
    1122: CodeInfo(
        "checker refused",
        "ONNX's own checker refuses the model, or crashed on it.",
        "Export the model again; the message has the checker's words.",
    ),
    1123: CodeInfo(
        "unsupported variant",
        "An operator is used in a way (a mode, an attribute value, a rank) that Tilework cannot import.",
        "Export with one of the ways that the message names.",
    ),
    1124: CodeInfo(
        "too large",
        "A dimension, a number of dimensions or a number of elements is beyond what any machine can address.",
        "Correct the shape.",
    ),
    1125: CodeInfo(
        "declared output differs",
        "A graph output is declared with a type, a number of dimensions or an extent that the model never computes.",
        "Correct the declaration to what the message says is computed, or leave its shape out; else correct the nodes.",
    ),
    1126: CodeInfo(
        "size that data decide",
        "Values decide what no measured size can stand for: rows of a loop that are not of one size, or how often a loop runs whose trips differ.",
        "Make all rows of one size, or the number of trips constant; else cut the model before the loop.",
    ),
}

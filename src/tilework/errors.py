"""Every error of Tilework: one tree of exceptions, and one table of numbered codes.

An error says what is wrong, where (the user's own operator, dimension, line or argument) and what to do.
A code never changes its meaning; the documentation has a page for each, made from `CODES`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class CodeInfo:
    """What the documentation says of a code: a title, what it means, and what to do about it."""

    title: str
    meaning: str
    remedy: str


CODES: dict[int, CodeInfo] = {
    # 10xx: names, settings and use of the library
    1001: CodeInfo(
        "unknown name",
        "A name (of a primitive, operator, pass, machine, function) does not exist.",
        "Use one of the names listed.",
    ),
    1002: CodeInfo(
        "bad setting",
        "An option or an environment variable has a value that makes no sense.",
        "Give a value of the kind that the message names.",
    ),
    1003: CodeInfo(
        "unknown data type", "A data type name is not one that Tilework knows.", "Use a type named in the message."
    ),
    1004: CodeInfo(
        "bad integer expression",
        "A text is not a symbolic integer.",
        "Use names, integers, + - *, //, %, min, max and buffer elements.",
    ),
    1005: CodeInfo(
        "symbol without a value",
        "A symbolic integer was evaluated while one of its symbols has no value.",
        "Give the symbol a value, or use bounds.",
    ),
    1006: CodeInfo(
        "bad layout",
        "A layout is not an invertible map of the logical dimensions.",
        "Cover every dimension exactly once, blocks from outer to inner.",
    ),
    1007: CodeInfo(
        "missing package",
        "An optional package is needed for this and is not installed.",
        "Install the extra that the message names.",
    ),
    # 11xx: ONNX files
    1008: CodeInfo(
        "no frontend",
        "No frontend reads what was given as a model.",
        "Give the path, bytes or ModelProto of an ONNX model, or a Graph.",
    ),
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
        "A graph input or output lacks a name or a tensor type with a shape.",
        "Give every graph input a tensor type and a shape.",
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
        "Cut the model before it, or make the condition constant.",
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
        "too large", "A dimension or a number of elements is beyond what any machine can address.", "Correct the shape."
    ),
    # 12xx: graphs
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
    # 13xx: loop programs and index notation
    1301: CodeInfo(
        "operands do not fit",
        "A scalar function got operands of types that it does not take, or a literal is no value of its type.",
        "Cast the operands to one type that the function takes.",
    ),
    1302: CodeInfo(
        "unknown reducer", "No built-in reducer has this name.", "Use one of the names listed, or define a `Reducer`."
    ),
    1303: CodeInfo(
        "loop program text",
        "A text is not the text form of a loop program.",
        "Correct the line and column named; `program_text` shows the form.",
    ),
    1310: CodeInfo(
        "interpreter's arguments",
        "The arrays or symbols given to the interpreter do not fit the program, or the program names what does not exist.",
        "Give an array of the buffer's shape and type for each argument and a value for each symbol; run the verifier.",
    ),
    1311: CodeInfo(
        "index out of bounds",
        "A statement touches an element outside its buffer.",
        "Correct the index, or guard the statement.",
    ),
    1312: CodeInfo(
        "undefined element",
        "A statement reads an element that nothing has written during this life of its storage.",
        "Write it first (an init for a reduction), or declare the argument as `accumulate`.",
    ),
    1313: CodeInfo(
        "race",
        "Two parallel iterations touch the same element and one of them writes it, or a copy in flight is overwritten.",
        "Make the iterations independent, or put a barrier or wait between them.",
    ),
    1314: CodeInfo(
        "barrier not reached",
        "Some threads of a block reach a barrier that others never reach.",
        "Put barriers where every thread of the scope comes by.",
    ),
    1315: CodeInfo(
        "divisor not positive",
        "An index divides by a symbolic integer that is zero or negative.",
        "Bound the symbol from below by 1.",
    ),
    1320: CodeInfo(
        "unknown name in a loop program",
        "A statement, index or extent names a buffer, loop variable or symbol that does not exist where it stands.",
        "Declare it, or move the statement inside the loop or storage that provides it.",
    ),
    1321: CodeInfo(
        "name used twice", "Two loops, buffers, symbols or reducers of a program have one name.", "Rename one of them."
    ),
    1322: CodeInfo(
        "wrong number of indices",
        "An element of a buffer is named with more or fewer indices than the buffer has dimensions.",
        "Give one index per dimension.",
    ),
    1323: CodeInfo(
        "types do not agree",
        "A value has another type than its target, or a load than its buffer.",
        "Cast the value, or correct the declaration.",
    ),
    1324: CodeInfo(
        "index of an unknown kind",
        "An index, guard or extent is no sum of loop variables (times symbols), their quotients and remainders, and loaded integers.",
        "Rewrite the index; a product of two loop variables has no such form.",
    ),
    1325: CodeInfo(
        "index always out of bounds",
        "An access leaves its buffer whatever the symbols are.",
        "Correct the index, the loop's extent or the buffer's shape, or guard the statement.",
    ),
    1326: CodeInfo(
        "bad reduction",
        "A statement's reduction variables, init and reducer do not belong together, or a variable is no enclosing loop.",
        "Name enclosing loops; an init needs a reducer.",
    ),
    1327: CodeInfo(
        "vectorized loop inside another",
        "Only one loop on a path can be the lanes of a vector.",
        "Unroll one of the loops.",
    ),
    1328: CodeInfo(
        "read-only buffer written",
        "A statement writes an argument that is declared as read.",
        "Declare the argument as `write` or `accumulate`.",
    ),
    1329: CodeInfo("negative extent", "A loop or a buffer has an extent below zero.", "Extents are at least 0."),
    1330: CodeInfo(
        "bad reducer",
        "A reducer's components, parameters and identity do not fit together, or its name is a built-in one's.",
        "Give one `combine` and one identity per component, over its own parameters.",
    ),
    1331: CodeInfo(
        "wait without a copy", "A wait names a group to which no copy belongs.", "Name the group of a copy."
    ),
    1350: CodeInfo(
        "names of a computation",
        "Two axes, stages or symbols of a computation have one name, or a stage names what does not exist.",
        "Rename one, or declare what is missing.",
    ),
    1351: CodeInfo(
        "bad scan",
        "A scan has one scan axis, no reduction axes, a reducer and an init.",
        "Split the stage into a reduction and a scan.",
    ),
    1352: CodeInfo(
        "computation written wrongly",
        "A call of the functions that build computations does not make sense.",
        "See the message.",
    ),
    1353: CodeInfo(
        "writes may meet",
        "A stage may write one element at two points, and has no reducer to combine them.",
        "Use an index that tells the points apart, or a reducer (`replace` keeps the last).",
    ),
    1354: CodeInfo(
        "read before it is written",
        "A stage reads a temporary or output that no earlier stage has written.",
        "Order the stages so that each comes after those it reads.",
    ),
    # 14xx: plans and memory
    1401: CodeInfo(
        "unknown name in a plan",
        "A plan names a buffer, queue, device, space, arena, input or output that it does not have.",
        "Add it to the plan's tables, or correct the name.",
    ),
    1402: CodeInfo(
        "name used twice in a plan",
        "Two things of one kind in a plan have the same name, or an event is signalled twice.",
        "Give each its own name.",
    ),
    1403: CodeInfo(
        "wrong number of arguments of a step",
        "A step gives a kernel more or fewer buffers or symbols than its signature has.",
        "Give one per buffer and symbol of the signature, in order.",
    ),
    1404: CodeInfo(
        "argument does not fit",
        "A buffer or symbol given to a step has another shape, type or range than the step takes.",
        "Give a buffer of the shape and type in the message.",
    ),
    1405: CodeInfo(
        "misaligned buffer",
        "A buffer is not at the multiple of bytes that was promised or is needed.",
        "Align offsets and arenas to the buffer's alignment.",
    ),
    1406: CodeInfo(
        "overlapping buffers",
        "Two buffers share bytes although both hold values that are still needed.",
        "Place them apart, or add waits that order one life before the other.",
    ),
    1407: CodeInfo(
        "race between steps",
        "Two steps touch the same bytes, one of them writes, and nothing says which comes first.",
        "Put them on one queue, or let one signal an event that the other waits for.",
    ),
    1408: CodeInfo(
        "read before written",
        "A step reads a buffer that no step is sure to have written before.",
        "Order the writing step before it, on every way through branches and loops.",
    ),
    1409: CodeInfo(
        "wait without a signal",
        "A step waits for an event that no earlier step signals where this step can see it.",
        "Signal the event in an earlier step of the same list or of one around it.",
    ),
    1410: CodeInfo(
        "cycle of waits", "Steps wait for each other in a circle: the plan would never end.", "Remove one of the waits."
    ),
    1411: CodeInfo(
        "memory out of reach",
        "A step's device cannot reach the memory space of one of its buffers.",
        "Copy the buffer to a space of the device first.",
    ),
    1412: CodeInfo(
        "broken alias rule",
        "Buffers, inputs or outputs share memory in a way that was not declared, or do not where it was.",
        "Give them one alias set and one memory, or a kernel that allows it.",
    ),
    1413: CodeInfo(
        "output not produced",
        "An output is never written, or its buffer has another shape or type.",
        "Write the output's buffer on every way through the plan.",
    ),
    1414: CodeInfo(
        "write to a constant or read-only input",
        "A step writes memory that must keep its contents.",
        "Write to another buffer, or declare the input donated or mutated.",
    ),
    1415: CodeInfo(
        "buffer outside its memory",
        "The bytes of a buffer do not lie inside its arena, input or output.",
        "Enlarge the arena, or correct the offset.",
    ),
    1416: CodeInfo(
        "symbol without a value in a plan",
        "A plan uses a symbol that nothing binds before it is needed.",
        "Bind it to an input's extent, or measure it in an earlier step.",
    ),
    1417: CodeInfo(
        "bad control step",
        "A branch, loop or measurement reads a value of the wrong type or shape, or a loop would never end.",
        "Decide by one boolean; measure integers; give loops a condition or a number of trips.",
    ),
    1418: CodeInfo(
        "memory not allocated",
        "A buffer of measured size is used where no step is sure to have allocated it, or another is allocated.",
        "Allocate it after its symbols are measured and before its first use.",
    ),
    1419: CodeInfo(
        "plan text not readable",
        "The text form of a plan cannot be read.",
        "Correct the line that the message names; `plan.text` shows the form.",
    ),
    1420: CodeInfo(
        "missing part of a plan",
        "A constant, black box or kernel meaning that a plan refers to was not given.",
        "Pass it with the plan, under the digest or identity in the message.",
    ),
    1421: CodeInfo(
        "wrong result of a black box",
        "A black box returned another number, type or shape of results than its step declares.",
        "Correct the black box, or the step's outputs.",
    ),
    1422: CodeInfo(
        "memory cannot be planned",
        "A buffer cannot be placed: its size has no bound, or it does not fit.",
        "Give the symbol an upper bound, or let a step allocate the buffer.",
    ),
    1423: CodeInfo(
        "meaning does not fit the kernel",
        "The loop program that states a step's meaning has other buffers or symbols than its kernel.",
        "State the meaning over the buffers of the kernel's signature.",
    ),
    1424: CodeInfo(
        "measured value out of bounds",
        "A step measured a value outside the bounds of its symbol.",
        "Compile with wider bounds for the symbol.",
    ),
    # 15xx: schedules
    # 16xx: lowering, code generation, machines
    1516: CodeInfo(
        "buffer written here",
        "A part of a buffer cannot be copied where something writes the buffer.",
        "Copy inside a loop in which it is only read.",
    ),
    1517: CodeInfo(
        "no reduction to take apart",
        "The statement has no start or no reduction loop.",
        "Name a reduction that still has its start.",
    ),
    1518: CodeInfo(
        "no memory to bring near",
        "Only memory that lives at the start of the loop can be prefetched.",
        "Prefetch what a statement stores to memory.",
    ),
    1519: CodeInfo(
        "part of an instruction",
        "The step would change what stands for one machine instruction: the instruction itself would not change with it.",
        "Schedule first and tensorize last.",
    ),
    1520: CodeInfo(
        "cannot move there",
        "A computation or a storage cannot move to that loop: something there, or in between, uses or overwrites what it "
        "needs.",
        "Choose another loop, or move what stands in the way first.",
    ),
    1521: CodeInfo(
        "not what the instruction does",
        "A loop nest is not, node for node, what an instruction of the machine means.",
        "Split and reorder until the nest has the loops, accesses and types that the message names.",
    ),
    1522: CodeInfo(
        "storage of the wrong scope",
        "A buffer cannot live in that scope: its size is not constant, it is an argument, or threads share it.",
        "Use scope 'global', or move the storage into a loop where it is small.",
    ),
    1602: CodeInfo(
        "bad vectorised loop",
        "A vectorised loop needs a constant extent of at most 64.",
        "Split the loop by a constant first and vectorise the inner one.",
    ),
    1603: CodeInfo(
        "no code for this type or function",
        "Code generation has no instructions for an element type, or for a function of it.",
        "Cast to a type that has them.",
    ),
    1604: CodeInfo(
        "loop of another machine",
        "A loop's kind belongs to another kind of machine.",
        "Schedule the program for the machine that it is compiled for.",
    ),
    1605: CodeInfo(
        "name without meaning",
        "A statement uses a buffer, variable or parameter that does not exist where the statement stands.",
        "Verify the loop program; move the statement or the storage.",
    ),
    1606: CodeInfo(
        "storage of changing size",
        "The size of a stored buffer depends on something that is known only inside a loop.",
        "Give the storage its largest size.",
    ),
    1607: CodeInfo(
        "parallel iterations may meet",
        "Iterations of a parallel loop may write the same element.",
        "Make the loop serial, or give each iteration elements of its own.",
    ),
    1608: CodeInfo(
        "too much unrolled",
        "Once its loops are unrolled, a program has more statements than can be compiled in time.",
        "Unroll less.",
    ),
    1620: CodeInfo(
        "unknown machine",
        "There is no description of a machine of that name.",
        "Use one of the names listed, or `host`.",
    ),
    1501: CodeInfo(
        "unknown loop or statement",
        "A schedule step names a loop, a statement or an argument that does not exist.",
        "Use a name that the message lists.",
    ),
    1502: CodeInfo(
        "undecided step",
        "The checks cannot prove the step legal, so it is refused.",
        "Schedule so that loops index the result directly, or take the alternative named.",
    ),
    1503: CodeInfo("bad trace", "A text is not the trace of a schedule.", "Write traces with trace_to_json."),
    1504: CodeInfo(
        "trace does not apply",
        "A step of a trace is illegal on this program.",
        "Look at the step named; the program may have another shape.",
    ),
    1505: CodeInfo(
        "bad argument of a step",
        "A schedule step has an argument that makes no sense.",
        "Give a value that the message asks for.",
    ),
    1506: CodeInfo(
        "loop already marked",
        "Only a serial loop can be changed by this step.",
        "Apply the step before the loop is vectorised, unrolled or made parallel.",
    ),
    1507: CodeInfo(
        "name in use", "A step would give a loop a name that another loop has.", "Give the new loops other names."
    ),
    1508: CodeInfo(
        "no perfect nest",
        "The loops are not directly inside each other.",
        "Name loops of one nest whose bodies hold nothing else.",
    ),
    1509: CodeInfo(
        "partial reduction",
        "A statement reduces over one of two loops only.",
        "Fuse loops that a statement reduces over both or neither.",
    ),
    1510: CodeInfo(
        "extent not constant or too large",
        "Unrolling and vectorising need a small constant number of iterations.",
        "Split the loop first and mark the inner one.",
    ),
    1511: CodeInfo(
        "nested marks",
        "Vector loops hold no vector or parallel loops, and parallel loops are outermost.",
        "Mark one of the loops only.",
    ),
    1512: CodeInfo(
        "reassociation under strict numerics",
        "The step would regroup a reduction, and numerics are strict.",
        "Use numerics='default', or choose a loop that indexes the result.",
    ),
    1513: CodeInfo(
        "race",
        "Iterations of the loop touch the same element, and one of them writes it.",
        "Parallelise a loop that indexes the result.",
    ),
    1514: CodeInfo(
        "cannot be inlined",
        "The statement is not an elementwise producer of a temporary.",
        "Inline only stages that compute each element on its own and that nobody else writes.",
    ),
    1515: CodeInfo(
        "layout of a result",
        "A result that the caller gets cannot stand in another layout.",
        "Transform a temporary, or an argument that is only read.",
    ),
    1650: CodeInfo(
        "not expressible in code",
        "An operator or a literal cannot be written as generated code.",
        "Use another type, or report the operator.",
    ),
    1651: CodeInfo(
        "not inside one native call",
        "A step of a plan cannot run inside a captured segment.",
        "Put the step into an interactive segment.",
    ),
    1652: CodeInfo(
        "not compiled yet",
        "Control flow and black boxes are part of graphs but are not compiled yet.",
        "Simplify the model, or run that part elsewhere.",
    ),
    1653: CodeInfo(
        "symbol that no input binds",
        "A size depends on a symbol that no input's shape tells.",
        "Fix that dimension when compiling.",
    ),
    1680: CodeInfo(
        "LLVM text refused",
        "LLVM cannot read or verify the text that the code generator printed.",
        "Report it with the text; the message has LLVM's own words.",
    ),
    1681: CodeInfo(
        "instruction not on this machine",
        "Generated text uses a machine instruction that the target does not have.",
        "Choose a machine with the feature named, or a schedule without the intrinsic.",
    ),
    1682: CodeInfo(
        "unresolved symbol",
        "Object code calls a function that is neither exported by the code it uses nor among the host functions.",
        "Load the object that defines it first, or rebuild the object with this version.",
    ),
    1683: CodeInfo(
        "damaged object code",
        "Bytes that should be object code cannot be read or linked.",
        "Remove the entry from the cache and compile again.",
    ),
    1684: CodeInfo(
        "unknown target",
        "LLVM here cannot generate code for the triple asked for.",
        "Use a triple of x86-64 or AArch64.",
    ),
    1685: CodeInfo(
        "JIT closed",
        "Code was to be loaded into a context that is closed.",
        "Keep the context open for as long as its executables are used.",
    ),
    # 17xx: calls of an executable
    1701: CodeInfo(
        "wrong arguments",
        "An executable was called with too few, too many, unknown or repeated arguments.",
        "Pass each input once, by position or by the name listed.",
    ),
    1702: CodeInfo(
        "wrong data type",
        "An argument's elements have another type than the input's.",
        "Convert with `astype`; Tilework never casts an argument silently.",
    ),
    1703: CodeInfo(
        "wrong byte order",
        "An argument's elements are not in this machine's byte order.",
        "Convert with `array.astype(array.dtype.newbyteorder('='))`.",
    ),
    1704: CodeInfo(
        "wrong rank",
        "An argument has another number of dimensions than the input.",
        "Reshape the argument to the shape that the message shows.",
    ),
    1705: CodeInfo(
        "wrong dimension",
        "A dimension of an argument is not what the input's shape says.",
        "Pass an array of the shape that the message shows.",
    ),
    1706: CodeInfo(
        "dimensions disagree",
        "A symbolic dimension has different values in two arguments.",
        "Give the arguments the same extent there.",
    ),
    1707: CodeInfo(
        "dimension out of range",
        "A symbolic dimension is outside its bounds or no multiple of its divisor.",
        "Pass an extent within the bounds, or compile with wider ones.",
    ),
    1708: CodeInfo(
        "argument is read-only",
        "An input that the executable changes was given a read-only array.",
        "Pass a writeable array (a copy of it, for example).",
    ),
    1709: CodeInfo(
        "not an array",
        "An argument can be turned into no numpy array.",
        "Pass a numpy array or nested lists of numbers.",
    ),
    1710: CodeInfo(
        "memory limit",
        "A call needs more memory than the limit, or than the machine can give.",
        "Use smaller dimensions, or raise the limit: `memory_limit` of `tilework.compile`, `memory_limit_bytes` of `ContextOptions`, or `TILEWORK_MEMORY_LIMIT`.",
    ),
    1750: CodeInfo(
        "no thread pool here",
        "The thread pool has no code for this operating system or architecture.",
        "Use one thread (`threads=1`).",
    ),
    1751: CodeInfo(
        "thread not started",
        "The operating system refused to start a worker thread.",
        "Use fewer threads, or raise the process's limit on threads.",
    ),
    1752: CodeInfo(
        "context closed",
        "A context was used after it was closed.",
        "Keep the context open for as long as its executables are used.",
    ),
    1711: CodeInfo(
        "arguments share memory",
        "Two arguments that a call changes lie in the same memory.",
        "Pass arrays that do not overlap.",
    ),
    1712: CodeInfo(
        "argument needs a copy",
        "An argument is not contiguous or not aligned, and the input's policy refuses copies.",
        "Pass a contiguous array, or compile with the policy that copies.",
    ),
    1760: CodeInfo(
        "bad measuring settings",
        "A setting of a measurement makes no sense, or times are asked of a measurement that has none.",
        "Give a value of the kind that the message names; look at the measurement's outcome first.",
    ),
    1761: CodeInfo(
        "no measuring worker",
        "The process that builds and times kernels could not be started.",
        "See what it said: a missing library or too little memory, most likely.",
    ),
    1762: CodeInfo(
        "cannot be measured",
        "Only schedules, candidates and jobs can be measured.",
        "Pass a Schedule, or a Candidate that builds one.",
    ),
    1763: CodeInfo(
        "machine without a name",
        "A worker finds machines by their names, and the schedule's machine is none of those.",
        "Schedule for the host or for a machine that Tilework knows by name.",
    ),
    1764: CodeInfo(
        "code for another processor",
        "Code was to be run or timed here that is made for instructions that this processor does not have.",
        "Compile for the host or run it on such a machine; `tilework compile --machine` prints code for any machine.",
    ),
    1765: CodeInfo(
        "probe did not run",
        "A small program that measures what the machine can do did not run.",
        "See the reason named; use the assumed roofline meanwhile.",
    ),
    1770: CodeInfo(
        "nothing to report on",
        "Only schedules and candidates for a CPU can be reported on.",
        "Pass a Schedule whose machine is a CPU (or none: then the host is meant), or a Candidate that builds one.",
    ),
    1771: CodeInfo(
        "no roofline",
        "A report was asked for with something that is no roofline.",
        "Use 'assumed', 'probe', or a Roofline.",
    ),
    # 18xx: faults that compiled code reports while it runs
    1801: CodeInfo(
        "index out of range",
        "An index that was read from data points outside the tensor that it selects from.",
        "Check the indices given to the operation named; negative ones count from the end only where the operator says so.",
    ),
    1802: CodeInfo(
        "access out of bounds",
        "A checked build found an access outside its buffer.",
        "Report it with the loop program: a schedule or the lowering is wrong.",
    ),
    # 19xx: files and packages
    1901: CodeInfo(
        "file not written",
        "A file could not be written; no part of it is left.",
        "Choose a folder that exists and can be written.",
    ),
    1902: CodeInfo(
        "file not read",
        "A file of input data does not exist or does not hold what it should.",
        "Give the path of a readable file; `numpy.save` writes `.npy` files.",
    ),
}
"""Every code. Numbers are grouped by hundreds; each group is documented together."""


@dataclass(frozen=True)
class Fault:
    """One fault that a verifier found: its code, where it is, and what is wrong there."""

    code: int
    where: str
    message: str

    def __str__(self) -> str:
        return f"[TW{self.code}] {self.where}: {self.message}"


class TileworkError(Exception):
    """Base of every error that Tilework raises on purpose.

    `code` is a key of `CODES`; `where` names the user's own operator, dimension, line or argument;
    `hint` says what to do (the code's general remedy where none is given).
    """

    def __init__(self, code: int, message: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(code, message, where, hint)
        self.code = code
        self.message = message
        self.where = where
        self.hint = hint or (CODES[code].remedy if code in CODES else "")

    def __str__(self) -> str:
        lines = [f"[TW{self.code}] {self.message}"]
        if self.where:
            lines.append(f"  at: {self.where}")
        if self.hint:
            lines.append(f"  do: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.code, self.message, self.where, self.hint, dict(self.__dict__)))


def _rebuild(
    kind: type[TileworkError], code: int, message: str, where: str, hint: str, state: dict[str, object]
) -> TileworkError:
    error = kind.__new__(kind)
    TileworkError.__init__(error, code, message, where=where, hint=hint)
    error.__dict__.update(state)
    return error


class UsageError(TileworkError):
    """A wrong name, option or setting."""


class MissingPackageError(TileworkError):
    """An optional dependency is not installed."""


class FrontendError(TileworkError):
    """A model that cannot be read or that uses something unsupported; `faults` lists every one found."""

    def __init__(
        self, code: int, message: str, *, where: str = "", hint: str = "", faults: Iterable[Fault] = ()
    ) -> None:
        super().__init__(code, message, where=where, hint=hint)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  - {fault}" for fault in self.faults)])


class VerificationError(TileworkError):
    """A program broke the rules of its form; `faults` holds every fault found, not just the first."""

    def __init__(self, subject: str, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        self.subject = subject
        text = f"{subject} has {len(self.faults)} fault{'s' if len(self.faults) != 1 else ''}"
        code = self.faults[0].code if self.faults else 1001
        super().__init__(code, "\n  - ".join([text, *map(str, self.faults)]))


class GraphError(TileworkError):
    """A graph operation cannot be done."""


class ParseError(TileworkError):
    """A text form of a program cannot be read; `where` gives line and column."""


class LoopProgramError(TileworkError):
    """A loop program or a computation in index notation is wrong."""


class PlanError(TileworkError):
    """A plan is wrong, or memory cannot be planned."""


class ScheduleError(TileworkError):
    """A schedule step cannot be done."""


class CodegenError(TileworkError):
    """A loop program cannot be turned into code for this machine."""


class CallError(TileworkError, ValueError):
    """An executable was called with arguments it cannot take."""


class OutOfMemoryError(CallError, MemoryError):
    """A call asks for more memory than its limit, or than the machine can give."""


class RunError(TileworkError, RuntimeError):
    """Compiled code reported a fault while it ran; the call's outputs are dropped."""


class FileFormatError(TileworkError):
    """A file is damaged, foreign, or cannot be written."""

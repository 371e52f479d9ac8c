"""CODES: every code with its meaning, reason and help, for `mo-loop check --codes`, reports and SARIF rules.

    ML20x  arguments       ML21x  files          ML22x  broken models      ML23x, ML24x  types and shapes
    ML25x  broken IR       ML26x  extensions     ML27x  refused files      ML28x  URLs
    ML29x  clusters        ML3xx  not supported   ML4xx  bugs of mo_loop
    ML50x  other numbers   ML51x  assumptions about the model   ML52x  loops   ML53x  compilation   ML54x  leftovers
    ML55x  states           ML56x  outputs of another kind

A code never changes its meaning; a code that is no longer used stays reserved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Code:
    """The meaning of a code: a title, the general reason, what the user can do, and the level."""

    title: str
    why: str = ""
    help: str = ""
    level: Literal["error", "warning", "note"] = "error"


_CHECKER = "run onnx.checker.check_model on the model; export it again, or repair it with the onnx package"
_RANK = "declare the shapes of the inputs (--input), or export with fixed ranks"
_COPY = "copy the file again, together with its data files"
_LIMIT = "raise the limit if you trust the model (--limit, docs/limits.md)"
_CREDENTIALS = "set the variables of the store, for example AWS_ACCESS_KEY_ID (docs/cluster.md)"
_REPORT = "report it with the model, or with a smaller model that causes it"

CODES: dict[str, Code] = {
    # -- arguments
    "ML200": Code(
        "bad input",
        "the call or the model does not have the required form",
        "read the message: it names the value and the required form",
    ),
    "ML201": Code(
        "an invalid argument",
        "the value of an option or argument does not have the required form",
        "mo-loop COMMAND --help shows the form and an example",
    ),
    "ML202": Code(
        "an input or output that the model does not have, or a shape, type or value that does not fit it",
        "names, shapes and types in options are compared with those of the model",
        "mo-loop inspect lists the inputs and outputs, inspect --nodes every tensor",
    ),
    "ML203": Code(
        "a Python package that is not installed",
        "OpenVINO, ONNX Runtime, Dask and fsspec are needed for some commands only",
        "install the package that the message names",
    ),
    "ML204": Code(
        "a model of more than 2 GB where it must be one protobuf message",
        "the tool that reads it needs the model with its weights in one message",
        "save the weights as external data, or give the path of the file",
    ),
    "ML205": Code(
        "a model that does not show the condition of reduce",
        "`reduce` starts from a model that shows the condition",
        "give the options and the inputs with which the model shows it",
    ),
    "ML206": Code(
        "a model whose IR cannot be compared",
        "no inputs were found that ONNX Runtime and OpenVINO run, or nothing computes the expected outputs",
        "give inputs (--input-data FILE), and where ONNX Runtime does not run the model its outputs (--expected FILE)",
    ),
    "ML208": Code(
        "an assumption about the model that --strict refuses",
        "the conversion would continue with a warning, and the IR would depend on the assumption",
        "convert without --strict, or change the model as the message describes",
    ),
    "ML209": Code(
        "graph text that cannot be parsed",
        "a file of --dump, or the text of a test, was changed or cut off",
        "write it again with --dump",
    ),
    # -- files
    "ML210": Code(
        "a file that does not exist",
        "there is no file at this path, relative to the current folder",
        "check the path",
    ),
    "ML211": Code(
        "a folder, a device or a pipe in place of a file",
        "a model is read from a regular file",
        "give the path of the file, or - for standard input",
    ),
    "ML212": Code(
        "a file that cannot be read",
        "the system refuses to read the file, or reading fails",
        "check the permissions of the file and the disk",
    ),
    "ML213": Code("a data file that is too short", "some weights would be incomplete", _COPY),
    "ML214": Code(
        "a file of another format, or a truncated file",
        "the first bytes of the file decide its format, and its end is missing or belongs to another format",
        "export or copy the model again",
    ),
    "ML215": Code(
        "external data of a model in memory",
        "without a file there is no folder to find the data in",
        "convert from the path of the .onnx file, or name the folder (external_data_dir)",
    ),
    "ML216": Code(
        "external data outside the model's folder",
        "a model must not read other files of the machine",
        "put the data beside the model and save it with paths relative to its folder",
    ),
    "ML217": Code("a data file that is missing", "the model stores weights in separate files", _COPY),
    "ML218": Code(
        "an output that cannot be written",
        "the system refuses to write there",
        "check the permissions of the folder and the free space, or give another -o",
    ),
    "ML219": Code(
        "a file that cannot be written",
        "the system refuses to write there, or mo-loop did not write the file that is there",
        "give another name, or move the file away",
    ),
    # -- broken models
    "ML220": Code("a model that breaks a rule of ONNX", "the meaning of the model is not defined", _CHECKER),
    "ML221": Code(
        "no operator set of ONNX imported, or one that does not exist",
        "operators mean different things in different sets",
        "export the model again, or set its opset_import",
    ),
    "ML222": Code(
        "an operator set that is newer than the installed onnx package",
        "mo-loop takes the rules of each operator set from the onnx package",
        "upgrade the package onnx, or export with an older opset",
    ),
    "ML223": Code(
        "a name that nothing defines",
        "every name that a node reads is an input, an initializer or an output of another node",
        _CHECKER,
    ),
    "ML224": Code(
        "nodes that depend on each other in a cycle",
        "no order exists in which the nodes could run",
        _CHECKER,
    ),
    "ML225": Code(
        "a tensor whose data do not fit its type and shape",
        "the number of bytes follows from the type and the shape",
        _CHECKER,
    ),
    "ML226": Code(
        "a body whose number of inputs or outputs is not that of its node",
        "the inputs and outputs of a body are those of its node, in their order",
        _CHECKER,
    ),
    "ML227": Code(
        "an attribute, input or output that the operator does not have, or one that is missing",
        "the signature of an operator is that of the operator set that the model imports",
        _CHECKER,
    ),
    "ML228": Code(
        "functions that call each other in a cycle",
        "a function that calls itself never ends",
        "remove one of the calls",
    ),
    "ML229": Code(
        "several elements where one is needed: in a trip count, a condition, a length or a count",
        "a loop has one trip count and one condition",
        "make it a scalar, for example with Squeeze",
    ),
    # -- types and shapes
    "ML230": Code(
        "types or shapes that do not fit an operation",
        "the shapes and types of the inputs contradict the rule of the operation",
        _CHECKER,
    ),
    "ML231": Code("an axis outside a tensor", "an axis is at least -rank and below rank", _CHECKER),
    "ML232": Code("shapes that cannot be broadcast", "dimensions are equal, or one of them is 1", _CHECKER),
    "ML233": Code("dimensions that contradict each other", "one dimension has two sizes", _CHECKER),
    "ML234": Code(
        "an operation with a wrong number of inputs",
        "the operation takes another number of inputs",
        _CHECKER,
    ),
    "ML235": Code(
        "a value that is not valid for the operation",
        "the operation is not defined for this value",
        _CHECKER,
    ),
    "ML236": Code("an attribute with a value that is not valid", "the operator set allows other values", _CHECKER),
    "ML237": Code(
        "a port map whose length is not the number of inputs",
        "each input of a loop or an If belongs to one entry",
        "report it if an extension did not make the node",
    ),
    "ML238": Code(
        "a loop whose states have no common type",
        "a state keeps one element type and rank in all iterations",
        "cast the state in the body to its first type",
    ),
    "ML239": Code(
        "one value with two types: a state that changes its type, branches of different types",
        "a value has one type wherever it is read",
        "cast both to one type",
    ),
    "ML240": Code("inputs of different element types", "the operation takes inputs of one type", _CHECKER),
    "ML241": Code(
        "the element of an optional that is empty",
        "it has no element",
        "check with OptionalHasElement first, or export the model with the input present",
    ),
    "ML242": Code(
        "a number or a size that is too large",
        "sizes and numbers of elements must fit into 64 bits, and computed constants into the memory of the machine",
        _CHECKER,
    ),
    "ML243": Code(
        "an element of a sequence that is always empty",
        "an empty sequence has no positions",
        "check the length in the model, or remove the node",
    ),
    # -- broken IR
    "ML250": Code(
        "an IR that breaks a rule of its format",
        "the file was changed by hand, cut off, or written by a tool with another form",
        "write the IR again",
    ),
    "ML251": Code(
        "two layers or ports with the same id",
        "an id names one layer, and one port of a layer",
        "write the IR again",
    ),
    "ML252": Code(
        "an edge to a missing layer, or an input without a value",
        "each edge begins at a port of a layer of the same graph",
        "write the IR again",
    ),
    "ML253": Code(
        "layers that depend on each other in a cycle",
        "no order exists in which the layers could run",
        "write the IR again",
    ),
    "ML254": Code(
        "a control-flow layer whose port map does not fit its bodies",
        "each entry names a port of the layer, and a Parameter or Result of its body",
        "write the IR again",
    ),
    "ML255": Code(
        "a constant whose data do not fit its type and shape",
        "the number of bytes in the .bin follows from the type and the shape",
        "give the .bin that was written with this .xml",
    ),
    "ML256": Code(
        "a variable that is not both read and assigned, or has two types",
        "a state is read, assigned, and has one type",
        "write the IR again",
    ),
    # -- extensions
    "ML260": Code(
        "an object that is not an extension",
        "an extension is a file, a module, a function `register` or an Extensions",
        "give one of these (docs/passes.md)",
    ),
    "ML261": Code(
        "an extension file that is missing or cannot be read",
        "the file is executed, so it has to be readable",
        "check the path and the permissions",
    ),
    "ML262": Code(
        "an extension that fails while it is loaded",
        "the code of the extension raises an error",
        "--debug shows the traceback in the extension",
    ),
    "ML263": Code(
        "an extension that registers an invalid pass, translator or place",
        "a pass is a class of mo_loop.transforms, a translator a function, a place a name of the list",
        "see docs/passes.md",
    ),
    "ML264": Code(
        "an extension that names a pass or place that does not exist",
        "the name is compared with the passes and places of the pipeline",
        "mo-loop convert --passes lists them",
    ),
    "ML265": Code(
        "a pass of an extension that fails",
        "the code of the pass raises an error",
        "--debug shows the traceback in the extension",
    ),
    "ML266": Code(
        "a translator of an extension that fails",
        "the code of the translator raises an error",
        "--debug shows the traceback in the extension",
    ),
    "ML267": Code(
        "an installed package whose extension cannot be loaded",
        "the entry point of the package raises an error",
        "--no-plugins converts without it; upgrade or remove the package",
    ),
    "ML268": Code(
        "a model that cannot be pickled: an extension defines the class of one of its nodes",
        "another process must be able to import the class, as pickle stores its name alone",
        "define the class in a module that can be imported, not in a function or the file of an extension",
    ),
    # -- files of a model that are not read
    "ML270": Code(
        "a file of the model that changed while it was converted",
        "weights from before and after the change do not belong together",
        "convert again",
    ),
    "ML271": Code(
        "external data that is a link, or a file with several names",
        "it can be another file of the machine, which a model must not read",
        "put the file itself in its place, or allow its folder (--allow-external)",
    ),
    "ML272": Code(
        "external data that is a folder, a pipe or a device",
        "reading it can have an effect, or never end",
        "save the model again, with its data in files",
    ),
    # -- URLs
    "ML280": Code(
        "a URL whose package is not installed",
        "fsspec opens URLs, with a package for each kind of store: s3fs, gcsfs, adlfs",
        "pip install fsspec s3fs",
    ),
    "ML281": Code(
        "credentials that are missing, or that a store refuses",
        "a store takes them from its own environment, never from the command line",
        _CREDENTIALS,
    ),
    "ML282": Code("a bucket or an object that does not exist", "the store has nothing of this name", "check the URL"),
    "ML283": Code(
        "a store that cannot be reached",
        "the store does not answer",
        "check the network, and the address of the store",
    ),
    "ML284": Code(
        "a store that refuses requests because it is too busy",
        "the store limits the number of requests",
        "run the same command again later",
    ),
    "ML285": Code(
        "a model that needs more local disk space than is allowed",
        "a model at a URL is copied to the local disk before its conversion",
        "raise the limit (--scratch)",
    ),
    "ML286": Code(
        "an object at a URL that cannot be read, written, listed or removed",
        "the store answers with an error",
        "read the answer of the store in the message",
    ),
    "ML287": Code(
        "a URL that is not valid here",
        "it contains credentials, or only a local path is possible",
        "put credentials into the environment, or give a local path",
    ),
    # -- clusters
    "ML290": Code(
        "a scheduler that cannot be reached, or a cluster that cannot be started",
        "the scheduler does not answer, or a process does not start",
        "check the address of --scheduler, the network, and that `dask scheduler` runs there",
    ),
    "ML291": Code(
        "a cluster without workers",
        "the scheduler has no process that can do the work",
        "start `dask worker` with the address of the scheduler",
    ),
    "ML292": Code("a worker without a package", "models are converted on the workers", "install mo_loop there"),
    "ML293": Code(
        "versions on a cluster that differ from those on this machine",
        "the same model would be converted differently",
        "install the same versions everywhere",
    ),
    "ML294": Code(
        "a model that needs more memory than every worker has",
        "the model would wait forever",
        "start a worker with more memory, or give --memory",
    ),
    "ML295": Code(
        "a scheduler that is lost during a batch",
        "the connection is closed",
        "run the same command again: it resumes",
    ),
    "ML296": Code(
        "a folder that a worker does not see",
        "local paths have to be the same on all machines",
        "use a shared folder, or URLs",
    ),
    "ML297": Code(
        "a worker that cannot be prepared for a batch",
        "the worker lacks a package, or runs another version of mo_loop",
        "see the log of the worker",
    ),
    # -- not supported
    "ML300": Code(
        "valid ONNX that cannot be expressed in the IR",
        "the IR has no operation for it",
        "cut the model before it (--output), or replace it in the model",
    ),
    "ML301": Code(
        "an element type that the IR does not have",
        "the IR has fewer element types than ONNX",
        "cast the tensor in the model, or cut before it (--output)",
    ),
    "ML302": Code(
        "an operator that is not supported",
        "mo_loop has no translator for it",
        "cut the model before it (--output), or add a translator (--extension)",
    ),
    "ML303": Code(
        "an operation on strings",
        "the runtime does not have it, or corrupts memory in it",
        "cut the model after its text processing (--input), and pass numbers as inputs",
    ),
    "ML310": Code(
        "a sequence or an optional as input or output of the model",
        "those of an IR are tensors",
        "--sequence-io packed, or change the interface of the model",
    ),
    "ML311": Code(
        "a value of a kind that the IR does not have: a map, a sparse tensor",
        "the IR has tensors",
        "cut the model before it (--output)",
    ),
    "ML312": Code("bodies or calls that are nested too deeply", "each level takes stack and time", _LIMIT),
    "ML313": Code(
        "an attribute of a kind that no operator uses",
        "no operator of ONNX has such attributes",
        "export the model again",
    ),
    "ML314": Code(
        "an operator on a tensor of unknown rank, or of an unknown size that its form needs",
        "its form in the IR depends on the rank or the size",
        _RANK,
    ),
    "ML315": Code(
        "branches of an If that return different ranks",
        "in the IR a value has one rank",
        "give the condition a constant value (--input name->value), or make both branches return the same rank",
    ),
    "ML316": Code(
        "a use of an operator that cannot be expressed in the IR",
        "the operations of the IR do not have this form",
        "docs/operators.md lists the limits of each operator",
    ),
    "ML317": Code(
        "a cast that the runtime rounds differently from ONNX",
        "the conversion would give other numbers without a message",
        "cast to f32 in between, or cut before it",
    ),
    "ML320": Code(
        "an operation that no pass could lower to the IR",
        "passes replace such operations where they can; here the shape or the use stops them",
        "fix the shapes of the inputs (--input), or report the model",
    ),
    "ML321": Code("a value that is not a tensor", "the IR has only tensors", "cut the model before it (--output)"),
    "ML322": Code(
        "a value whose element type the IR does not have",
        "a value in the finished graph has it",
        "cast the tensor in the model, or cut before it (--output)",
    ),
    "ML323": Code("a tensor of unknown rank", "the runtime compiles known ranks only", _RANK),
    "ML324": Code(
        "a TensorIterator directly inside another one",
        "the runtime refuses it",
        "run all passes: one of them writes the inner one as a Loop",
    ),
    "ML325": Code(
        "a value that is a tensor in some cases and an optional sequence in others",
        "a tensor has one form in all cases",
        "make the branches of the If return the same kind",
    ),
    "ML326": Code(
        "a feature that a release of the target does not have",
        "the message names the first release that has it",
        "give a target that begins with this release (--target)",
    ),
    "ML327": Code(
        "an input and an output that cannot become a state",
        "a variable has one element type and rank, and starts from sizes that are known or those of an input",
        "pair the input with another output or keep it an input (--stateful-pair), or give its shape (--input)",
    ),
    "ML328": Code(
        "an operator on a value whose rank differs between iterations or branches",
        "the IR has one rank for it, with leading sizes of 1 where ONNX has none, and the result depends on the rank",
        "reshape the value in the model, so that it has one rank",
    ),
    "ML329": Code(
        "a convolution whose filters have sizes known only at run time",
        "the runtime compiles static filters only",
        "give the inputs static shapes (--input), or make the filters constants",
    ),
    "ML330": Code(
        "an IR of a version other than 10 and 11",
        "older versions have other rules",
        "convert the original model again",
    ),
    "ML331": Code(
        "an element or layer of the IR that cannot be read",
        "the reader does not support its form",
        "remove the layer, or report the file",
    ),
    # -- limits
    "ML350": Code(
        "a loop or a sequence that cannot become one step of a sequence",
        "LowLatency2 replaces it by its body, and its states keep their values from one inference to the next",
        "give the sequence one step (--input), or export a model that reads its elements one after another, to the end",
    ),
    "ML340": Code(
        "a conversion that takes longer than its limit",
        "a damaged or hostile model can take unlimited time",
        _LIMIT,
    ),
    "ML341": Code(
        "more nodes than the limit, those of functions once for each call",
        "a small file can describe a huge graph",
        _LIMIT,
    ),
    "ML342": Code(
        "a constant with more bytes than the limit, which would be computed in memory",
        "a small file can describe a huge constant",
        _LIMIT,
    ),
    "ML343": Code(
        "constants with more bytes together than the limit, which would be computed",
        "a small file can describe huge constants",
        _LIMIT,
    ),
    "ML344": Code("a name that is longer than the limit", "names appear in every file and message", _LIMIT),
    "ML345": Code("an attribute with more bytes than the limit", "an attribute is held in memory", _LIMIT),
    "ML346": Code(
        "more nodes than the limit from loops that are unrolled",
        "each iteration becomes a copy of the body",
        _LIMIT,
    ),
    "ML347": Code(
        "a function that is called more often than the limit",
        "each call becomes a copy of the function",
        _LIMIT,
    ),
    "ML348": Code(
        "more nodes than the limit, which translators and passes make",
        "a small model can become a huge graph",
        _LIMIT,
    ),
    "ML349": Code("a .bin with more bytes than the limit", "the disk would fill", _LIMIT),
    "ML351": Code("an .xml with more bytes than the limit", "the disk would fill", _LIMIT),
    # -- bugs
    "ML400": Code("a bug of mo_loop", "a rule that the code relies on is broken", _REPORT),
    "ML410": Code(
        "a pass that broke the graph: a bug of mo_loop",
        "the checks of the graph fail after the pass",
        _REPORT,
    ),
    "ML411": Code(
        "a pass that changes the graph when it runs again: a bug of mo_loop",
        "a second run must find nothing left to change",
        _REPORT,
    ),
    "ML499": Code("an unexpected error: a bug of mo_loop", "the code does not expect this case", _REPORT),
    # -- other numbers
    "ML500": Code(
        "activations that the runtime rounds before compressed weights",
        "on processors with VNNI the CPU device quantises them to 8 bits in groups of 32 by default, which changes "
        "results by up to some percent",
        "set the property DYNAMIC_QUANTIZATION_GROUP_SIZE to 0 when you compile the model, or convert with "
        "--quantization exact, which sets it in the IR",
        "note",
    ),
    "ML501": Code(
        "f64 that is computed in f32",
        "the CPU device has no f64: it computes in f32 and large values become infinite",
        "export the model in f32 if seven digits are enough for its results",
        "warning",
    ),
    "ML502": Code(
        "an integer constant outside 32 bits",
        "the runtime computes 64-bit integers in 32 bits: constants are limited to that range, inputs lose their high "
        "bits",
        'use smaller numbers; for an end that means "to the end", 2147483647 is enough',
        "warning",
    ),
    "ML503": Code(
        "random numbers",
        "OpenVINO's generator is not that of ONNX Runtime: the numbers differ, their distribution does not",
        "if the numbers must be reproducible, make them an input of the model",
        "warning",
    ),
    "ML504": Code(
        "weights that f16 cannot hold",
        "finite values above 65504 become 65504 when weights are compressed",
        "scale the weights, or omit --compress-to-fp16",
        "warning",
    ),
    "ML505": Code(
        "NaN that becomes a number",
        "the runtime's ReLU, Clamp, HardSigmoid, Exp, Softmax, LogSoftmax, Maximum, Minimum, MaxPool, ReduceMax and "
        "ReduceMin return a number where ONNX returns NaN; a form that keeps NaN would cost speed",
        "nothing, unless the model computes with NaN; if it does, replace NaN before these operations",
        "note",
    ),
    "ML506": Code(
        "integers raised to a power that is not a constant whole number",
        "the power is computed in f32 and stored in 32 bits: it is exact up to 2^24 and limited to 2^31 - 1",
        "cast the base to f32 in the model if larger powers occur",
        "warning",
    ),
    "ML507": Code(
        "a broadcast to computed sizes where 0 may meet 1",
        "the runtime may move it after the elementwise operation that reads it; a size of 0 becomes 1 then",
        "nothing, unless tensors without elements occur; if they do, declare the shapes of the inputs (--input)",
        "note",
    ),
    # -- assumptions about the model
    "ML508": Code(
        "integer products that saturate on some CPUs",
        "without VNNI instructions, CPUs add two products of 8 bits in 16 bits; weights beyond 64 can exceed them",
        "convert with --quantization portable, or quantise weights to 7 bits (reduce_range of the quantiser)",
        "warning",
    ),
    "ML509": Code(
        "quantised weights that the runtime expands",
        "their scales vary along the axis that is summed, they are not read by a matrix product or Gather alone, or "
        "their products would saturate, with activations quantised at run time or with --quantization portable: the IR "
        "is small, but the runtime keeps them as f32",
        "quantise by output channel or in blocks along the summed axis; to 7 bits (reduce_range of ONNX Runtime's "
        "quantiser) where products would saturate",
        "note",
    ),
    "ML510": Code(
        "a declared type that contradicts inference",
        "the inputs of the node imply another type; the declaration is ignored",
        "remove the declaration, or run onnx.shape_inference.infer_shapes on a model without it",
        "warning",
    ),
    "ML511": Code(
        "a name in a body that hides an outer one",
        "ONNX forbids it; the conversion uses the inner value (--strict refuses)",
        "give the values different names",
        "warning",
    ),
    "ML512": Code(
        "a branch that is assumed never to run",
        "its shapes do not fit its operations, or the nodes after the If cannot read the values that it returns "
        "(--strict refuses)",
        "give the condition a constant value (--input name->value)",
        "warning",
    ),
    "ML513": Code(
        "onnx.checker refuses the model",
        "it converts, but other tools may refuse it or read it differently",
        "export it again, or repair it with the onnx package",
        "note",
    ),
    "ML514": Code(
        "a Reshape that contains the old batch size",
        "its shape begins with 1, but --batch is larger: the samples end up in another dimension",
        "export the model with a dynamic batch, or with a Reshape to -1 in this dimension",
        "warning",
    ),
    "ML515": Code(
        "a feature that older releases of OpenVINO do not have",
        "the message names the first release that runs the model; the IR names it as its target",
        "use this release or a later one; with --target, features that the target lacks are refused",
        "warning",
    ),
    "ML516": Code(
        "an operator that the model's opsets do not have",
        "the model imports an opset before its first version, or does not import its domain; or ONNX had it only as an "
        "experiment. Its first version, the newest one of a domain that is not imported, or the last documented "
        "meaning is used (--strict refuses)",
        "export the model again with an opset that has the operator",
        "warning",
    ),
    "ML517": Code(
        "a node in a form that its opset does not have",
        "it has the inputs and attributes of another version, which is used; an attribute that no version has, which "
        "is ignored; a number of another kind; or it lacks an input (--strict refuses)",
        "export the model again, with the opset that its nodes are written for",
        "warning",
    ),
    "ML518": Code(
        "a name that two nodes define",
        "the nodes are equal, or nothing reads one of the two values: it is left out (--strict refuses)",
        "remove one of the nodes",
        "warning",
    ),
    "ML519": Code(
        "a rank that is known only from a declaration",
        "the rank of the tensor depends on a number of elements or on sizes of 1, or an input has none; the declared "
        "rank of an inner value or an output is used, and the runtime refuses other sizes (--strict refuses)",
        "declare the shapes of the inputs (--input)",
        "warning",
    ),
    # -- loops
    "ML520": Code(
        "a loop whose number of iterations is known only at run time",
        "it stays a Loop with guards for zero iterations, and cannot be unrolled or become a TensorIterator",
        "if the number never changes, make it a constant (--input name->value)",
        "note",
    ),
    "ML521": Code(
        "a state that grows in each iteration",
        "each iteration copies the whole state: the cost is quadratic in the length",
        "return the new part as a scan output; the parts are concatenated once",
        "note",
    ),
    "ML522": Code(
        "a list that is stored as packed data",
        "no common shape of its elements is known: every change copies the whole list",
        "declare the shapes of the elements, or append inside a loop and concatenate after it",
        "note",
    ),
    "ML523": Code(
        "an option of a batch without effect on a model",
        "--stateful, --transform and --unroll change models that have states and loops",
        "give this model options of its own (--config), or leave the option out",
        "warning",
    ),
    "ML524": Code(
        "a state that begins with zeros, and not with the initial value of the model",
        "LowLatency2 uses constant initial values unless use_const_initializer is False",
        "convert with --transform LowLatency2[use_const_initializer=False]",
        "warning",
    ),
    "ML526": Code(
        "an operation that mixes the steps of a sequence, in a model of one step",
        "LowLatency2 carries the states of loops from one inference to the next, but not what other operations read of "
        "other steps, such as a convolution, a mean of all steps or a reversal",
        "leave the operation out (--output), or check that the model is meant for one step",
        "warning",
    ),
    "ML527": Code(
        "an output of a rank that depends on the run",
        "ONNX has fewer or more sizes of 1 after other numbers of iterations, in another branch, or where a Squeeze "
        "without axes meets a size of 1 at run time; the declared rank is used, else the largest (--strict refuses)",
        "reshape the output in the model, so that it has one rank, or give the model inputs static shapes",
        "warning",
    ),
    # -- compilation
    "ML530": Code(
        "deeply nested If operations",
        "the CPU device compiles them in time exponential in their depth: seconds at 16, minutes at 32",
        "give conditions constant values (--input name->value), or write the branches as selections (Where)",
        "warning",
    ),
    # -- leftovers
    "ML540": Code(
        "an input that no node reads", "it stays an input of the IR", "export the model without it", "note"
    ),
    "ML541": Code(
        "an initializer that no node reads",
        "the IR does not contain it, but the ONNX file does",
        "remove it from the model",
        "note",
    ),
    "ML542": Code("a node that reaches no output", "it is not converted", "remove it from the model", "note"),
    # -- states
    "ML550": Code(
        "inputs and outputs that are states of the caller",
        "the caller copies each of them from an output to an input for every inference; a variable stays on the device",
        "--stateful keeps them in the runtime",
        "note",
    ),
    "ML551": Code(
        "a loop over a sequence that an input has",
        "the model needs the whole sequence before it runs; with states it can compute each step as it arrives",
        "--transform 'LowLatency2[sequence_length=1]' makes a model that takes one step at a time",
        "note",
    ),
    # -- outputs of another kind
    "ML560": Code(
        "maps from labels to probabilities that become a tensor",
        "an IR has no maps: the output is the tensor that ZipMap reads, [N, labels], under the same name",
        "read the labels of its columns as JSON: model.get_rt_info([\"class_labels\", output])",
        "warning",
    ),
}
"""Code -> its meaning."""

"""The features that the random models must have: each is in at least LEAST of them.

A feature is counted under its key while a model is generated; `GROUPS` describes the keys.
"""

from collections.abc import Iterator, Mapping

LEAST = 0.03
NESTED = 0.3
"""The least share of models with control flow in control flow."""

KINDS = ("Loop", "Scan", "If")
VERSIONS = {"Loop": ("1", "11", "13", "16", "19", "21", "newer"), "Scan": ("8", "9", "11", "16", "19", "21", "newer"),
            "If": ("1", "11", "13", "16", "19", "21", "newer")}


def _versions(kind: str) -> dict[str, str]:
    return {f"{kind}-{each}": f"{kind} of opset 22 and newer" if each == "newer" else f"{kind}-{each}"
            for each in VERSIONS[kind]}


GROUPS: Mapping[str, Mapping[str, str]] = {
    "Loop": {**_versions("Loop"), "Loop('', '')": "neither trip count nor condition: endless until the body stops",
             "Loop('', condition)": "condition alone: while", "Loop('', true)": "true condition alone: do-while",
             "Loop(M, '')": "trip count alone: for", "Loop(M, true)": "trip count and a true condition",
             "Loop(M, condition)": "trip count and condition", "Loop early": "early exit before the trip count",
             "trip constant": "trip count: a constant", "trip input": "trip count: a model input",
             "trip computed": "trip count: computed",
             "trip iteration": "trip count: from the iteration number of the outer loop",
             "trip -1": "trip count -1 at run time", "trip 0": "trip count 0 at run time",
             "trip 1": "trip count 1 at run time", "trip n": "trip count above 1 at run time",
             "trip huge": "trip count 2^31 - 1 or more with early exit",
             "trip constant, 0 or below": "constant trip count of 0 or below",
             "no iterations after some": "no iterations after an inference with some",
             "trip count of rank 2 and more": "trip count of rank 2 and more",
             "condition of rank 2 and more": "condition of rank 2 and more",
             "body condition or iteration [1]": "iteration number or condition of shape [1] in the body",
             "condition of integers": "condition of type int64 (Loop and If)", "state update": "state that changes",
             "state same": "state that the body returns unchanged", "state swapped": "states that are exchanged",
             "state captured": "state that becomes a captured value", "state constant": "state that becomes a constant",
             "state grown": "state that grows", "state shrunk": "state that shrinks"},
    "Scan outputs": {
        "scan output of a body input": "of a body input",
        "scan output of the iteration": "of the iteration number",
        "scan output of a constant": "of a constant",
        "scan output of a capture": "of a captured value",
        "one value to several outputs": "one value as several outputs",
        "unused control-flow output": "unused outputs",
        "output without a name": "outputs without a name",
    },
    "Scan": {**_versions("Scan"), "Scan-8 with sequence_lens": "Scan-8 with sequence_lens",
             "Scan axis > 0": "axis above 0", "scan_input_axes negative": "negative input axis",
             "scan_output_axes negative": "negative output axis",
             "scan_input_directions reverse": "inputs in reverse direction",
             "scan_output_directions reverse": "outputs in reverse direction",
             "Scan K != M": "different numbers of scan inputs and scan outputs", "Scan without state": "no state",
             "Scan static": "length known", "Scan dynamic": "length known only at run time",
             "length 0": "length (or another dimension) 0 at run time"},
    "If": {**_versions("If"), "If condition input": "condition: a model input",
           "If condition computed": "condition: computed", "If condition constant": "condition: a constant",
           "If condition shape": "condition: known by shape arithmetic",
           "If condition of rank 2 and more": "condition of rank 2 and more",
           "If capture returned": "branch that returns a captured value",
           "If branch a constant": "branch that returns a constant",
           "If branch without captures": "branch without captures", "If shapes differ": "branches of different shape",
           "If ranks differ": "branches of different rank",
           "invalid branch never taken": "invalid branch that is never taken"},
    "Lists of tensors": {
        "list": "lists",
        "list empty at first": "empty at first",
        "list of elements": "of given elements",
        "list split in rows": "a tensor in rows",
        "list split in chunks": "a tensor in chunks of one size",
        "list split in sizes": "a tensor in pieces of given sizes",
        "list appended to": "an element appended",
        "list inserted into": "an element inserted elsewhere",
        "list erased in": "an element erased",
        "list read": "an element read",
        "list read after a test": "an element read after a test of the length",
        "list place of the run": "a position known only at run time",
        "list length": "the length read",
        "list joined": "all elements concatenated",
        "list joined on a new axis": "all elements concatenated on a new axis",
        "list mapped": "a function of every element (SequenceMap)",
        "list ragged": "elements that differ in one size",
        "list ragged in two sizes": "elements that differ in two sizes",
        "list of integers or booleans": "elements of integers or booleans",
        "list captured by Loop": "captured by a Loop",
        "list captured by Scan": "captured by a Scan",
        "list captured by If": "captured by an If",
        "list returned from If": "returned from an If",
        "list captured and returned": "captured by a branch, which returns it",
        "list carried": "carried by a loop",
        "lists carried, several": "several in one loop",
        "list carried beside tensors": "carried next to other states",
        "list carried beside scan outputs": "carried next to scan outputs",
        "list carried that becomes another": "carried, and another list in the next iteration",
        "list carried two deep": "carried by a loop in a loop that carries lists",
    },
    "Names and bodies": {
        "capture": "captured values",
        "capture through levels": "captures through several levels",
        "captured initializer": "captured initializers",
        "initializer in body": "initializers in bodies",
        "shadowed name": "body inputs that hide outer names",
        "outer name as body input": "body inputs with the name of the outer value",
        "same names in sibling bodies": "the same names in sibling bodies",
        "nodes out of order": "nodes out of order",
        "function call in body": "functions called in bodies",
        "empty optional input": "empty optional inputs",
        "declared nothing": "bodies without types",
        "body returns a capture directly": "bodies that return outer names",
        "body without nodes": "bodies without nodes",
    },
    "Nesting": {"depth 2 and more": "control flow in control flow", "depth 3": "three levels",
                **{f"{inner} in {outer}": f"{inner} in {outer}" for outer in KINDS for inner in KINDS}},
}


def features() -> Iterator[str]:
    """The keys of all features."""
    return (key for group in GROUPS.values() for key in group)


def rare(counts: Mapping[str, int], models: int) -> dict[str, float]:
    """The features that too few of the models have, each with its share."""
    shares = {key: counts.get(key, 0) / max(models, 1) for key in features()}
    return {key: share for key, share in shares.items() if share < (NESTED if key == "depth 2 and more" else LEAST)}

"""The errors of the runtime that nothing avoids."""

from __future__ import annotations

from mo_loop.target import ERROR, SLOW, Gap

NOT_AVOIDED: tuple[Gap, ...] = (
    Gap(
        "deep-ifs", "compiling nested Ifs takes time exponential in their depth: seconds at 16, minutes at 32",
        severity=SLOW,
    ),
    Gap(
        "computed-bidirectional-broadcast",
        "a bidirectional `Broadcast` with computed sizes is moved after its elementwise reader; with a tensor with a "
        "dimension of 1 a size of 0 at run time may become 1; `check` reports the place (ML507)",
    ),
    Gap(
        "failed-check-with-one-thread",
        "with `INFERENCE_NUM_THREADS` of 1 an inference in which a check of shapes fails (`Reshape`, `MatMul`, "
        "`Concat`, `Broadcast`, `Add`, `Convolution` and others) returns, with the results of the inference before",
        since="2025.2.0",
    ),
    Gap(
        "inference-after-failed-check",
        "an inference request in which a check of shapes has failed may fail with any inputs from then on, or give "
        "wrong values",
    ),
    Gap(
        "integers-of-32-bits",
        "integers are read as 32 bits: a trip count above 2^31 - 1 that is known only at run time cannot be "
        "distinguished from a negative one",
    ),
    Gap("select-of-large-integers", "`Select` of integers above 2^24 rounds them to f32", until="2025.2.0"),
    Gap(
        "concatenated-nothing",
        "concatenated outputs without elements keep only the dimensions that are known before run time",
    ),
    Gap(
        "sum-with-smaller-convolution",
        "a `Convolution` whose width or height is 1 at run time is refused if a tensor of at least 2, and of another "
        "size that is not known, is added to it",
        severity=ERROR,
    ),
    Gap(
        "pool-of-empty-batch",
        "`AvgPool` and `MaxPool` refuse a batch of 0 at run time; rows for them to read would make each model whose "
        "batch is not known slower",
        severity=ERROR,
    ),
    Gap(
        "sum-of-product-over-nothing",
        "an elementwise operation of a `MatMul` whose inner size is 0 at run time does not happen, or the result "
        "keeps its shape",
    ),
    Gap(
        "reshape-of-nothing",
        "`Reshape` of a tensor without elements to other sizes is refused if a 0 in its pattern copies a size of 0",
        severity=ERROR, until="2024.6.0",
    ),
    Gap(
        "sequence-lens-of-zero",
        "recurrent sequence operations write neither outputs nor last states of a sequence whose length is given as 0",
    ),
    Gap("unsigned-of-32-bits", "numbers of u32 above 2^31 - 1 are read as 2^31 - 1", until="2025.3.0"),
    Gap(
        "infinities-of-f64",
        "f64 is computed in f32; infinities become its largest number at any conversion to or from f64",
    ),
    Gap("relu-of-nan", "`ReLU` loses NaN; `check` reports it (ML505)"),
    Gap("hard-sigmoid-of-nan", "`HardSigmoid` loses NaN; `check` reports it (ML505)"),
    Gap("exp-of-nan", "`Exp` of NaN is infinite; `check` reports it (ML505)"),
    Gap("softmax-of-nan", "`Softmax` and `LogSoftmax` are NaN only where the input is; `check` reports it (ML505)"),
    Gap("max-pool-of-nan", "`MaxPool` loses NaN; `check` reports it (ML505)"),
    Gap("clamp-of-nan", "`Clamp` loses NaN; `check` reports it (ML505)"),
    Gap("maximum-of-nan", "`Maximum` and `Minimum` lose NaN if it is the first input; `check` reports it (ML505)"),
    Gap("reduced-nan", "`ReduceMax` and `ReduceMin` lose NaN; `check` reports it (ML505)"),
)  # fmt: skip

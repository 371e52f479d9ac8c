"""Graphs as text: printed for --dump, parsed for tests, compared line by line.

    graph main {
      %x = Parameter : f32[2,N] "x"
      %1 = Add(%x, [1.0, 2.0]) : f32[2,N] "a" names "y"     # a comment; attributes with their default are left out
      %lo, %hi = Split(%1, 0) {num_splits: 2} : f32[1,N], f32[1,N]
      %3 = Loop(10, true, %lo) {iteration: %i, condition: @go, input_map: [Merged(%s, @n)], output_map: [Final(@n)]}
        body {
          %i = Parameter : i64[]
          %s = Parameter                                    # typed by what the port map feeds it
          %n = Add(%s, %s)
          %go = Constant true
          Result(%go)
          Result(%n)
        }
      Result(%3) "y"
    }

A statement is `outputs = Class(inputs) {attributes} : types "friendly name" names "tensor name", ... info {rt_info}`,
followed by the bodies of a control-flow node; all but `Class` may be missing. Line breaks mean nothing.

- Inputs: `%value` of the same graph, `_` for an absent one, or a literal, which becomes a Constant: i64 at index ports,
  else of the type of the first Value that fits its kind, else (and in control flow) i64 or f32; `i32 [1, 2]` says it.
- `@n` is the Result of `%n` in a body; `Result(%n) @m` gives a Result another label. Port maps are written with the
  classes of mo_loop.ops.control, nodes first: `Sliced(%p, axis: 1, stride: -1, start: -1, end: 0)`, `Branched(%a, _)`.
- Types: `f32[2,N,2N+1,?,1..5,2..]`, `f32[...]` of unknown rank, `?[...]` unknown, `seq(...)`, `optional(...)`; a
  symbol with bounds is `N{1..8}`, one with an odd name `"a b"`. They may be left out where inference gives them; what
  is written is held against inference. The frame `graph name { }` may be left out.
- Constants: `[[1.0, 2.0]]` nested as the shape is; one scalar with a type is that value everywhere; `seed(word)` with
  a type is deterministic filler.

What survives a round trip: everything, but that

- a constant of more than `weights_limit` elements (64 for integers, by whose values types are inferred), unless all are
  equal, is printed as `seed(digest of its content)` and read back as filler, which prints as the same seed; beyond
  64 KiB the digest is that of a sample;
- NaN payloads are lost, and whether two `?` are one and the same dimension; `names=False` drops all names.
"""

from mo_loop.text.parser import parse
from mo_loop.text.printer import to_text

__all__ = ["parse", "to_text"]

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
followed by the bodies of a control-flow node; everything except `Class` is optional. Line breaks are not significant.

- Inputs: `%value` of the same graph, `_` for an absent one, or a literal, which becomes a Constant: i64 at index ports,
  else the type of the first Value of a matching kind, else (and in control flow) i64 or f32; `i32 [1, 2]` states it.
- `@n` is the Result of `%n` in a body; `Result(%n) @m` gives a Result another label. Port maps are written with the
  classes of mo_loop.ops.control, nodes first: `Sliced(%p, axis: 1, stride: -1, start: -1, end: 0)`, `Branched(%a, _)`.
- Types: `f32[2,N,2N+1,?,1..5,2..]`, `f32[...]` of unknown rank, `?[...]` unknown, `seq(...)`, `optional(...)`; a
  symbol with bounds is `N{1..8}`, one whose name is not an identifier `"a b"`. A type can be left out if inference
  determines it; a type in the text must agree with inference. A shape among the attributes is spelled like the
  dimensions of a type: `{variable_shape: [?, 4, N]}`. The frame `graph name { }` is optional.
- Constants: `[[1.0, 2.0]]` nested like the shape; a scalar with the type of a larger tensor fills it with one value;
  `seed(word)` with a type means deterministic values made from the word.

Printing and parsing a graph keeps everything, with these exceptions:

- A constant of more than `weights_limit` elements (64 for integers, because types depend on their values) is printed
  as `seed(digest of its content)`, unless all elements are equal. Parsing makes other values of it, which print as the
  same seed. The digest of more than 64 KiB is that of a sample.
- NaN payloads are lost, and the information that two `?` are the same dimension. `names=False` omits all names.
"""

from mo_loop.text.parser import parse
from mo_loop.text.printer import to_text

__all__ = ["parse", "to_text"]

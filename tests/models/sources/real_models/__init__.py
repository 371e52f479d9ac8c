"""Networks of real size with random weights, and their quantised variants, for tools/bench_inference.py.

`rows` is the table of what is measured, `weights` makes the weights. `vision`, `yolo`, `unet`, `language`,
`perception`, `state_space` and `recurrent` each have a catalogue, MODELS. `integers` and `blocked_weights` make
quantised variants of an exported model. tools/export_real.py writes all of them; none is committed. Layers of large
networks are fewer than in the original, so that a row takes seconds; their widths are those of the original.

Nothing is loaded: models are made from their configurations, and the hub is switched off before the transformers
package is imported.
"""

import os

os.environ["HF_HUB_OFFLINE"] = "1"

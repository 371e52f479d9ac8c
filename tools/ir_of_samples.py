"""Converts the samples of a list with the mo_loop that PYTHONPATH names; tools/same_ir.py starts it for each side.

    PYTHONPATH=checkout python -P tools/ir_of_samples.py checkout samples.json folder

writes folder/0.xml and folder/0.bin, ... or folder/0.refused with the error. It works with older revisions, so it uses
nothing but `convert_model` and `save_model`.
"""

import json
import sys
import warnings
from pathlib import Path


def main(checkout: str, samples: str, folder: str) -> None:
    import mo_loop

    assert Path(mo_loop.__file__).is_relative_to(checkout), f"{mo_loop.__file__} is not in {checkout}"
    warnings.simplefilter("ignore")
    for number, sample in enumerate(json.loads(Path(samples).read_text())):
        options = dict(sample["options"])
        halves = options.pop("compress_to_fp16", False)
        target = Path(folder, f"{number}.xml")
        try:
            model = mo_loop.convert_model(sample["path"], plugins=False, **options)
            mo_loop.save_model(model, target, halves)
        except Exception as error:
            target.with_suffix(".refused").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])

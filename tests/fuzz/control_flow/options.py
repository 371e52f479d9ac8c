"""Command-line options that the tools for many models share."""

import argparse
from collections.abc import Collection, Sequence

from mo_loop.options import QUANTIZATION
from mo_loop.target import ANY, DEVICES
from tests.running.samples import Sample
from tools.runtimes import interpreter


def add_numbers(parser: argparse.ArgumentParser, unit: str, count: int = 100) -> None:
    """Add the options that select the cases of a seed for a run."""
    parser.add_argument("--count", type=int, default=count, help=f"how many ({count})")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0, help=f"the number of the first {unit}")
    parser.add_argument("--only", type=int, metavar="NUMBER", help=f"the number of one {unit}")


def numbers_of(options: argparse.Namespace) -> Sequence[int]:
    """The numbers that the options choose."""
    return [options.only] if options.only is not None else range(options.start, options.start + options.count)


def add_common(parser: argparse.ArgumentParser, unit: str) -> None:
    """Add the options of a run over many models; `unit` is the word for one of them."""
    parser.add_argument("--jobs", "-j", type=int, default=2, help="worker processes")
    parser.add_argument("--runtime", metavar="RELEASE", help="run the IR on this OpenVINO release (`make runtimes`)")
    parser.add_argument("--verbose", "-v", action="store_true", help=f"print one line per {unit} on stderr")


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add the option of the device for which the models are converted."""
    text = "convert for this device; --runtime gpu or arm runs the IR there (`make gpu`, `make arm`)"
    parser.add_argument("--device", choices=DEVICES, default=ANY, help=text)


def add_runs(parser: argparse.ArgumentParser) -> None:
    """Add the options of `add_device`, and those of the runs of a sample."""
    add_device(parser)
    text = "the precision in which the IR runs; with default, that of the device, numbers may differ by 2%%"
    parser.add_argument("--precision", choices=("f32", "default"), default="f32", help=text)
    parser.add_argument("--requests", type=int, default=1, help="inference requests of one compiled model (1)")


def configure(sample: Sample, options: argparse.Namespace) -> None:
    """Give a sample the options of `add_runs`."""
    sample.python, sample.precision, sample.requests = options.python, options.precision, options.requests
    sample.arguments = {**sample.arguments, "device": options.device}


def add_quantization(parser: argparse.ArgumentParser) -> None:
    """Add the option of the mode in which mo_loop converts quantised tensors."""
    text = "how mo_loop converts quantised tensors (fast)"
    parser.add_argument("--quantization", choices=QUANTIZATION, default=QUANTIZATION[0], help=text)


def parse(parser: argparse.ArgumentParser, arguments: list[str] | None, listed: str = "", known: Collection[str] = (),
          what: str = "") -> argparse.Namespace:
    """The parsed arguments, with the interpreter of `--runtime` as `python`.

    An error if the option `listed`, names separated by commas, has an unknown one, or the release is not installed.
    """
    options = parser.parse_args(arguments)
    if listed:
        require_known(parser, getattr(options, listed), known, what)
    try:
        options.python = interpreter(options.runtime) if options.runtime else None
    except FileNotFoundError as error:
        parser.error(str(error))
    return options


def require_known(parser: argparse.ArgumentParser, names: str, known: Collection[str], what: str) -> None:
    """An error if one of the names, separated by commas, is not known."""
    if unknown := [name for name in names.split(",") if name not in known]:
        parser.error(f"unknown {what} {', '.join(unknown)}")

"""The observers for the options of pass_options.py, and their output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mo_loop.batching.storage.locations import place_of
from mo_loop.cli.output import table, tell
from mo_loop.cli.pass_listing import selection_of, warn_of_skipped
from mo_loop.cli.pass_options import PassOptions
from mo_loop.errors import UsageError
from mo_loop.support.files import is_among

if TYPE_CHECKING:
    from mo_loop.cli.explanations import Explanations
    from mo_loop.conversion import Conversion
    from mo_loop.look.dump import Dumper
    from mo_loop.transforms.profile import Profile


class PassObservers:
    """Adds the observers for `options` to `conversion`. Without options it costs nothing and imports nothing.

    Raises:
        UsageError: an option names an unknown pass, or has no effect.
    """

    def __init__(self, options: PassOptions, conversion: Conversion, files: Iterable[str] = ()) -> None:
        """UsageError if the profile would overwrite one of `files`."""
        self._options = options
        self._profile: Profile | None = None
        self._explanations: Explanations | None = None
        if options == PassOptions():
            return
        selection = selection_of(options, conversion)
        warn_of_skipped(selection)
        if options.profile_json is not None and is_among(options.profile_json, files):
            raise UsageError(f"--profile-json {options.profile_json} is a file of the conversion itself")
        if options.explain_pass:
            from mo_loop.cli.explanations import Explanations

            names = {name: selection.held(name) for name in options.explain_pass}
            self._explanations = Explanations(conversion.manager.config, names)
            conversion.observers.append(self._explanations)
        conversion.observers += _dumpers(options)
        if options.profile or options.profile_json is not None:
            from mo_loop.transforms.profile import Profile

            self._profile = Profile()
            conversion.observers.append(self._profile)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """A context manager around the conversion: prints the output of the observers, also after an error."""
        try:
            yield
        finally:
            if self._explanations is not None:
                tell("\n".join(self._explanations.lines()))
            if self._options.profile and self._profile is not None:
                from mo_loop.transforms.profile import NUMBERS

                tell(table(self._profile.lines(), NUMBERS, err=True))

    def save(self) -> None:
        """Write the profile to its file. FileError if that fails."""
        if self._options.profile_json is not None and self._profile is not None:
            from mo_loop.batching.places import write_content

            write_content(place_of(self._options.profile_json), json.dumps(self._profile.as_json(), indent=1) + "\n")


def _dumpers(options: PassOptions) -> Iterator[Dumper]:
    """The observers of --dump and --visualize."""
    if options.dump is None and options.visualize is None:
        return
    from mo_loop.look.dump import DEFAULT_FORMATS, DEPTH, Dumper

    if options.dump is not None:
        if options.visualize is not None and is_among(options.dump, [options.visualize]):
            raise UsageError(
                "--dump and --visualize name the same folder", why="a folder holds the files of one of them",
                hint="give --dump with --dump-format text,json,dot,svg",
            )  # fmt: skip
        yield Dumper(
            options.dump, options.dump_format or DEFAULT_FORMATS, after=options.dump_after, around=options.dump_around,
            depth=DEPTH if options.dump_depth is None else options.dump_depth, saved=True,
        )  # fmt: skip
    if options.visualize is not None:
        shapes, types = options.visualize_shapes, options.visualize_types
        yield Dumper(
            options.visualize, ("dot", "svg"), whole=True, only=options.visualize_after, shapes=shapes, types=types,
            saved=True,
        )  # fmt: skip

"""The command line: parse, delegate, and say in one line what went wrong.

One file per command, imported only when it is called, so that help and completion answer at once. Exit codes:
0 all is well, 1 the answer is no (undefined rows with --strict or in a run, a result that does not verify), 2
usage, 3 bad input, 4 the model failed, 70 a bug of texplainer's.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import click

from texplainer import __version__

BAD_INPUT, MODEL_FAILURE, BUG = 3, 4, 70

#: command -> its line in the help; `texplainer.cli.<command>:command` is the command
COMMANDS = {
    "explain": "Explain every row of a table with a model from a file.",
    "evaluate": "Measure how stable and faithful explanations are, side by side.",
    "reasons": "Print why rows got their predictions: reason codes.",
    "report": "Write a saved explanation as one HTML page.",
    "serve": "Explore a model's explanations in the browser.",
    "datasets": "List the data sets, or write one to a file.",
    "verify": "Recompute a saved result and compare.",
    "completion": "Print the completion script of a shell.",
}


_DEBUG = "Show the traceback of an error, and the warnings of other libraries."


class LazyGroup(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in their order."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name."""
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"texplainer.cli.{cmd_name}").command
        if not any(parameter.name == "debug" for parameter in command.params):
            command.params.append(click.Option(["--debug"], is_flag=True, expose_value=False, help=_DEBUG))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


_EPILOG = """\b
To start, in an empty folder:
  texplainer datasets iris -o iris.csv --model iris.skops
  texplainer explain iris.skops iris.csv -o result.parquet
  texplainer verify result.parquet --model iris.skops --data iris.csv
"""


@click.group(cls=LazyGroup, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="texplainer")
def group() -> None:
    """Shapley values and local slopes of any tabular model's predictions, with error bounds."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    _say_warnings(debug)
    try:
        with _ended_by_sigterm():
            code = group.main(words, prog_name="texplainer", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt) as error:
        code = 143 if TERMINATED in (*error.args, *getattr(error.__cause__, "args", ())) else 130
    except SystemExit as error:
        click.echo(f"texplainer: the called code exited with sys.exit({error.code!r}).", err=True)
        code = MODEL_FAILURE
    except BrokenPipeError:
        sys.stderr.close()
        code = 0
    except Exception as error:
        if debug:
            raise
        code, message = _in_words(error)
        click.echo(f"texplainer: {' '.join(message.split())}", err=True)
    sys.exit(code if isinstance(code, int) else 0)


TERMINATED = "SIGTERM"


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Take SIGTERM as an interrupt, so that partial files are removed."""

    def leave(*_: Any) -> None:
        raise KeyboardInterrupt(TERMINATED)

    try:
        before = signal.signal(signal.SIGTERM, leave)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _in_words(error: Exception) -> tuple[int, str]:
    """The exit code and the line for an error."""
    from texplainer.errors import InputError, ModelError

    if isinstance(error, ModelError):
        return MODEL_FAILURE, str(error)
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("texplainer"):
        return BAD_INPUT, f"this needs the package {error.name!r}, which is not installed."
    if isinstance(error, OSError) and error.filename and error.strerror:
        return BAD_INPUT, f"{error.filename} cannot be used: {error.strerror}. Check the path."
    if isinstance(error, (InputError, OSError, ValueError)):
        return BAD_INPUT, str(error)
    return BUG, f"unexpected {type(error).__name__}: {error}. Run again with --debug and report it."


def _say_warnings(debug: bool) -> None:
    """Show texplainer's own warnings as one line each; other libraries' only when debugging."""

    def say(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if debug or category.__module__.startswith("texplainer"):
            click.echo(f"texplainer: warning: {' '.join(str(message).split())}", err=True)

    warnings.showwarning = say

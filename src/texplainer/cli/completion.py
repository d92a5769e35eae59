"""`texplainer completion`: the script that completes commands and options in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(epilog='Example: eval "$(texplainer completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell."""
    from texplainer.cli import group

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click cannot complete in {shell}")
    click.echo(kind(group, {}, "texplainer", "_TEXPLAINER_COMPLETE").source())

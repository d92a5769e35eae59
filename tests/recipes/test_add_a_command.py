"""A command: one file in cli/, one line in COMMANDS."""

from __future__ import annotations

from texplainer.cli import COMMANDS

FILE = '''
import click

@click.command()
@click.argument("name")
def command(name):
    """Greet NAME."""
    click.echo(f"good day, {name}")
'''


def test_a_new_command_is_listed_and_runs(add_file, command, monkeypatch, capsys):
    add_file("texplainer.cli", "greet", FILE)
    monkeypatch.setitem(COMMANDS, "greet", "Greet somebody.")
    assert command("--help") == 0
    assert "Greet somebody." in capsys.readouterr().out
    assert command("greet", "Ada") == 0
    assert capsys.readouterr().out == "good day, Ada\n"
    assert command("greet", "--help") == 0
    assert "--debug" in capsys.readouterr().out  # what every command has

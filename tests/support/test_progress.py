"""A spinner is shown for what takes more than a moment, and stopped in any case."""

import contextlib
import threading

import numpy as np
import pytest

import texplainer as tx
from texplainer import explainer as building
from texplainer.support import progress


class Spinner:
    """Records what is asked of rich's status."""

    def __init__(self):
        self.started, self.stopped = threading.Event(), threading.Event()

    def status(self, words):
        self.words = words
        return self

    def start(self):
        self.started.set()

    def stop(self):
        self.stopped.set()


@pytest.fixture
def spinner(monkeypatch):
    made = Spinner()
    monkeypatch.setattr(progress, "watched", lambda show=None: True)
    monkeypatch.setattr(progress, "_console", lambda: made)
    return made


def test_a_spinner_is_shown_and_stopped_even_after_an_error(spinner):
    with pytest.raises(ZeroDivisionError), progress.waiting("asking"):
        assert spinner.started.wait(30) and spinner.words == "asking"
        raise ZeroDivisionError
    assert spinner.stopped.is_set()


def test_what_takes_less_than_the_moment_shows_nothing(spinner):
    with progress.waiting("asking", 3600):
        pass
    assert not spinner.started.is_set() and spinner.stopped.is_set()


def test_building_an_explainer_of_a_function_shows_that_it_waits(monkeypatch):
    inside, asked = [], []

    @contextlib.contextmanager
    def waiting(words, moment):
        inside.append((words, moment))
        yield
        inside.append(None)

    def model(table):
        asked.append(len(inside) % 2 == 1)
        return table[:, 0]

    monkeypatch.setattr(building, "waiting", waiting)
    tx.TExplainer(model, np.random.default_rng(0).normal(size=(20, 2)))
    assert any(asked) and inside[0] == (building.BUILDING, building.MOMENT)


def test_the_tasks_within_show_what_the_task_around_was_asked_for(monkeypatch):
    monkeypatch.setattr(progress.sys, "stderr", type("Terminal", (), {"isatty": lambda self: True})())
    assert progress.watched()
    with progress.asked_for(False):
        assert not progress.watched()
        assert progress.watched(True)
        with progress.asked_for(None):
            assert progress.watched()
        assert not progress.watched()
    assert progress.watched()


def test_an_explanation_without_progress_shows_no_bar_of_its_parts(monkeypatch):
    seen = []

    def model(table):
        seen.append(progress.watched())
        return table[:, 0] * table[:, 1]

    monkeypatch.setattr(progress.sys, "stderr", type("Terminal", (), {"isatty": lambda self: True})())
    X = np.random.default_rng(0).normal(size=(50, 2))
    explainer = tx.TExplainer(model, X)
    seen.clear()
    explainer(X[:3], progress=False)
    assert seen
    assert not any(seen)

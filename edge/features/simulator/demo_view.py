"""The views of the demo: a live table on a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from edge.features.simulator.observed_job import COMPLETED, ObservedAction, ObservedJob, ObservedStep, plain_text

_FRAMES_PER_SECOND = 15


class DemoView(Protocol):
    """The output of the demo."""

    def title(self, text: str) -> None:
        """Print the title of the demo."""

    def report(self, subject: str, *lines: str) -> None:
        """Print lines about a part of the demo; they stay on the screen."""

    def quote(self, *lines: str) -> None:
        """Print quoted lines unchanged."""

    def follow(self, job: ObservedJob) -> AbstractContextManager[None]:
        """Show the job for the length of the block."""

    def refresh(self, job: ObservedJob) -> None:
        """Show the changes since the last call."""

    def verdict(self, text: str) -> None:
        """Print the result of the demo."""


def view_on(console: Console) -> DemoView:
    """Return the live view for a terminal, else the plain view."""
    return LiveView(console) if console.is_terminal and not console.is_dumb_terminal else PlainView(console)


class PlainView:
    """A view of plain lines, each with the seconds since the start."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.time()
        self._shown = 0

    def title(self, text: str) -> None:
        """Print the title of the demo."""
        self._print(text)

    def report(self, subject: str, *lines: str) -> None:
        """Print each line with the time and its subject."""
        for line in lines:
            self._line(time.time(), subject, line)

    def quote(self, *lines: str) -> None:
        """Print the lines without a time."""
        for line in lines:
            self._print(f"{'':<11}{line}")

    def follow(self, job: ObservedJob) -> AbstractContextManager[None]:
        """Return an empty context: plain lines need no preparation."""
        return nullcontext()

    def refresh(self, job: ObservedJob) -> None:
        """Print a line for each new log entry of the job."""
        for happening in job.log_entries[self._shown :]:
            self._line(happening.at / 1000, happening.kind, happening.text)
        self._shown = len(job.log_entries)

    def verdict(self, text: str) -> None:
        """Print the result of the demo."""
        self._print(text)

    def _line(self, at: float, subject: str, text: str) -> None:
        self._print(f"{max(at - self._began, 0):7.3f}  {subject:<10}  {text}")

    def _print(self, text: str) -> None:
        self._console.print(text, soft_wrap=True, markup=False, highlight=False, emoji=False)


class LiveView:
    """A view for a terminal: lines for the parts, a live table for the job, the values of an OPC UA client."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._turning = Spinner("dots", style="bold yellow")

    def title(self, text: str) -> None:
        """Print the title of the demo."""
        self._console.print(f"\n  [bold]{escape(text)}[/]\n", highlight=False)

    def report(self, subject: str, *lines: str) -> None:
        """Print the lines, the first with its subject."""
        for number, line in enumerate(lines):
            self._console.print(Text.assemble((f"  {'' if number else subject:<12}", "cyan"), line), soft_wrap=True)

    def quote(self, *lines: str) -> None:
        """Print the lines unwrapped; the terminal wraps them."""
        for line in lines:
            self._console.print(Text(f"  {line}"), soft_wrap=True)

    @contextmanager
    def follow(self, job: ObservedJob) -> Iterator[None]:
        """Draw the table continuously; the last frame stays on the screen."""
        with Live(
            get_renderable=lambda: self._picture(job),
            console=self._console,
            refresh_per_second=_FRAMES_PER_SECOND,
        ):
            yield

    def refresh(self, job: ObservedJob) -> None:
        """Skip the call: the table redraws itself."""

    def verdict(self, text: str) -> None:
        """Print the result of the demo in bold."""
        self._console.print(f"\n[bold green]{escape(text)}[/]", highlight=False, soft_wrap=True)

    def _picture(self, job: ObservedJob) -> RenderableType:
        table = Table(box=None, header_style="bright_black", padding=(0, 2, 0, 0), pad_edge=False)
        # Fixed minimum widths keep the columns in place while values arrive.
        table.add_column(width=1)
        table.add_column("step", min_width=12, no_wrap=True)
        table.add_column("action", min_width=13, no_wrap=True)
        table.add_column("with", min_width=8, no_wrap=True)
        table.add_column("came back", min_width=26)
        table.add_column("ms", min_width=4, justify="right", no_wrap=True)
        for step in job.steps.values():
            actions = [action for action in job.actions.values() if action.step == step.name]
            mark = Text("✗", style="bold red") if any(value.error for value in actions) else self._mark(step, job)
            head: tuple[RenderableType, ...] = (mark, Text(step.name, style=_style(step, job)))
            for action in actions or (None,):
                table.add_row(*head, *_exchange(action))
                head = "", ""
        style = _state_style(job.status)
        title = Text.assemble((job.job_order_id, "bold"), "  ", (job.status or "called", style))
        panel = Panel(table, title=title, title_align="left", border_style=style, expand=False)
        return Padding(panel, (1, 0, 1, 2))

    def _mark(self, step: ObservedStep, job: ObservedJob) -> RenderableType:
        if step.activated_at is None:
            return Text("·", style="bright_black")
        return self._turning if step.active and not job.has_ended else Text("✓", style="bold green")


def _exchange(action: ObservedAction | None) -> tuple[RenderableType, ...]:
    """Return the cells of an action: name and sent values, equipment, result or error, duration in ms."""
    if action is None:
        return "", "", "", ""
    what = Text(action.name)
    if action.sent:
        what.append("  " + ", ".join(str(value) for value in action.sent.values()), style="cyan")
    device = Text(f"{'→' if action.pushed else '←'} {action.equipment}" if action.equipment else "")
    came = Text(action.error, style="bold red") if action.error else Text(plain_text(action.result), style="green")
    both = action.began_at is not None and action.came_at is not None
    took = f"{(action.came_at or 0) - (action.began_at or 0)}" if both else ""
    return what, device, came, Text(took, style="bright_black")


def _style(step: ObservedStep, job: ObservedJob) -> str:
    if step.activated_at is None:
        return "bright_black"
    return "bold yellow" if step.active and not job.has_ended else ""


def _state_style(status: str) -> str:
    return {COMPLETED: "bold green", "Aborted": "bold red"}.get(status, "yellow")

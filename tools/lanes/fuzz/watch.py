"""Start workers, watch over them, and collect what they find: crashes and hangs too."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
#: Seconds without a word after which a worker counts as hanging.
PATIENCE: Final = 30.0


@dataclass
class Report:
    """The findings: kind, place, text and source of each, one for each place."""

    calls: int = 0
    findings: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)

    def add(self, finding: dict[str, str]) -> None:
        """Note a finding; of those at one place the shortest is kept."""
        key = finding["kind"], finding["place"]
        if key not in self.findings or len(self.findings[key]["source"]) > len(finding["source"]):
            self.findings[key] = finding


def check_calls(seed: int, count: int, seconds: float = float("inf")) -> Report:
    """Make at least `count` hostile calls, in as many workers as crash or hang."""
    report = Report()
    end = time.monotonic() + seconds
    first = 0
    while report.calls < count and time.monotonic() < end:
        first = _watched(report, str(seed), range(first, 10**9), count, end) + 1
    return report


def check_sweep(part: range) -> Report:
    """Make the calls of these sessions of `sweep`, in as many workers as crash or hang."""
    report = Report()
    first = part.start
    while first < part.stop:
        first = _watched(report, "sweep", range(first, part.stop)) + 1
    return report


def _watched(report: Report, kind: str, sessions: range, count: float = float("inf"), end: float = float("inf")) -> int:
    """Run one worker until enough calls are made or it is lost; the last session that it began."""
    first = sessions.start
    with tempfile.TemporaryDirectory() as folder:
        for name in ("broken.h5", "broken.npz"):
            (Path(folder) / name).write_bytes(bytes(range(256)) * 4)
        log = Path(folder) / "log.txt"
        # after what is there: packages that were built with sanitizers
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))
        process = subprocess.Popen(
            [sys.executable, "-m", "tools.lanes.fuzz.worker", kind, str(first), str(sessions.stop), str(log)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        lines: queue.Queue[str | None] = queue.Queue()
        errors: queue.Queue[str | None] = queue.Queue()
        readers = [
            threading.Thread(target=_read, args=pair, daemon=True)
            for pair in ((process.stdout, lines), (process.stderr, errors))
        ]
        for reader in readers:
            reader.start()
        session = first - 1
        try:
            while report.calls < count and time.monotonic() < end:
                try:
                    line = lines.get(timeout=PATIENCE)
                except queue.Empty:
                    report.add(_lost("hang", log, f"no answer within {PATIENCE} s"))
                    return session + 1
                if line is None and session == sessions.stop - 1:
                    return session
                if line is None:
                    report.add(_lost("crash", log, f"exit status {process.wait()}\n{_tail(errors)}"))
                    return session + 1
                entry = json.loads(line)
                if "session" in entry:
                    session = entry["session"]
                    report.calls += entry["calls"]
                else:
                    report.add(entry)
            return session
        finally:
            process.kill()
            process.wait()
            for reader in readers:
                reader.join()


def _read(stream: object, lines: "queue.Queue[str | None]") -> None:
    with stream:  # type: ignore[attr-defined]
        for line in stream:  # type: ignore[attr-defined]
            lines.put(line)
    lines.put(None)


def _tail(errors: "queue.Queue[str | None]") -> str:
    lines = []
    while (line := errors.get(timeout=5)) is not None:
        lines.append(line)
    return "".join(lines[:25])


def _lost(kind: str, log: Path, text: str) -> dict[str, str]:
    source = log.read_text() if log.exists() else ""
    return {"kind": kind, "place": source.rpartition("\n")[2], "text": text, "source": source}

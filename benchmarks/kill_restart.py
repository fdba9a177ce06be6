"""A run in time, killed at random moments and restarted each time, beside the same run left alone.

    python benchmarks/kill_restart.py -steps 2000 -kills 10 -json benchmarks/results/kill_restart.json

1. benchmarks/long_run.py on -ranks ranks to its end, with checkpoints every -interval steps; host and device memory are
   recorded on the way.
2. The same, but a rank drawn at random is killed (SIGKILL), -kills times; each time the checkpoint is looked at, and
   the run restarted from it. The last one ends. Every other kill comes after a time drawn at random, the others after
   the checkpoint has reached a step drawn at random, so that the run gets on however fast the machine is. A run that
   ended before its kill is taken back to where it began, and killed earlier.
3. The last states of both are compared bit by bit, and so are the files of their last checkpoints.
4. The last checkpoint is taken to the end on other numbers of ranks, with other partitions, and compared.
   With `-kills 0` there is no second run, and the other numbers of ranks go all the way.

Exit code 1 if a state differs (in a bit on the same ranks, by 1e-10 of the largest value on others), a checkpoint is
damaged, a rank goes on after a kill, or memory grew by more than 2 % after the first 100 and the first tenth of the
steps. More options go to the run, for example -ts_type theta or -fe_backend hdg_gpu.

A kill within MPI_Init can leave the launcher behind (OpenMPI 4.1 with PMIx 4.2.2: its own end waits for a lock of the
connection that was being made). Its ranks have ended by then; it is ended here, and the row says so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np

from petsc_hdg.commands.alone import ONE_THREAD, for_mpiexec
from petsc_hdg.errors import PetscHdgError
from petsc_hdg.output.checkpoint_file import verified

RUN = Path(__file__).with_name("long_run.py")
TOLERANCE, GROWTH = 1e-10, 0.02
SETTLED = 100  # steps after which all buffers are there
PATIENCE = 60.0  # seconds that ranks, and then their launcher, may take to end
ENV = {**ONE_THREAD, **for_mpiexec()}


def main() -> int:
    """Run all, print a line a part, write the JSON."""
    given, options = _parser().parse_known_args()
    found = Experiment(given, options).run()
    text = json.dumps(found, indent=1)
    if given.json:
        Path(given.json).write_text(text + "\n")
    print("as uninterrupted" if found["ok"] else f"differs: {text}")
    return 0 if found["ok"] else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-steps", type=int, default=200)
    parser.add_argument("-kills", type=int, default=10)
    parser.add_argument("-ranks", type=int, default=4)
    parser.add_argument("-others", type=int, nargs="*", default=[1, 3])
    parser.add_argument("-interval", type=int, default=20)
    parser.add_argument("-every", type=int, default=100, help="steps between records of memory")
    parser.add_argument("-seed", type=int, default=1)
    parser.add_argument("-folder", default="output/kill_restart")
    parser.add_argument("-json", default="")
    return parser


class Experiment:
    """The runs and what they found."""

    def __init__(self, given, options: list[str]):
        self.given, self.options = given, options
        self.random = random.Random(given.seed)
        self.folder = Path(given.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def run(self) -> dict:
        alone = self._alone()
        killed = self._killed(alone["seconds"]) if self.given.kills else []
        same = self._same() if self.given.kills else {}
        print(same, flush=True)
        others = self._others(killed)
        close = all(row["difference"] <= TOLERANCE for row in others)
        intact = all(row["intact"] for row in killed)
        return {
            "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            "ok": bool(all(same.values()) and close and intact and alone["flat"]),
            **same,
            "alone": alone,
            "killed": killed,
            "others": others,
        }

    def _same(self) -> dict[str, bool]:
        """Whether the run that was killed ended as the one left alone."""
        files = [(self.folder / name).read_bytes() for name in ("a.h5", "b.h5")]
        same = np.array_equal(self._state("alone.h5"), self._state("killed.h5"))
        return {"same bits": bool(same), "same files": files[0] == files[1]}

    def _command(self, ranks: int, **more) -> list[str]:
        words = [word for name, value in more.items() if value is not None for word in (f"-{name}", str(value))]
        steps = ["-steps", str(self.given.steps), "-fe_checkpoint_interval", str(self.given.interval)]
        return ["mpiexec", "-n", str(ranks), sys.executable, str(RUN), *steps, *words, *self.options]

    def _alone(self) -> dict:
        memory, began = self.folder / "memory.json", time.monotonic()
        files = {"fe_checkpoint": self.folder / "a.h5", "final": self.folder / "alone.h5", "memory": memory}
        said = _finished(self._command(self.given.ranks, every=min(self.given.every, self.given.steps), **files))
        seconds = time.monotonic() - began
        rows = json.loads(memory.read_text())
        settled = [row for row in rows if row[0] >= max(SETTLED, self.given.steps / 10)] or rows[-1:]
        growth = [last / max(1, first) - 1 for first, last in zip(settled[0][1:], settled[-1][1:], strict=True)]
        print(f"{said}\nalone: {seconds:.0f} s; memory grew by {growth[0]:.2%} (host), {growth[1]:.2%} (device)")
        return {
            "seconds": round(seconds, 1),
            "said": said,
            "memory [step, host bytes, device bytes]": rows[:: max(1, len(rows) // 20)] + rows[-1:],
            "growth": growth,
            "flat": max(growth) < GROWTH,
        }

    def _killed(self, seconds: float) -> list[dict]:
        rows, checkpoint, given = [], self.folder / "b.h5", self.given
        files = {"fe_checkpoint": checkpoint, "final": self.folder / "killed.h5"}
        share, done = 1.6 / (given.kills + 1), 0
        while len(rows) < given.kills:
            wait = self.random.uniform(0.0, share * seconds)
            step = min(done + self.random.uniform(0.0, share) * given.steps, given.steps - 2 * given.interval)
            awaited = (checkpoint, max(done + 1, step)) if len(rows) % 2 else None
            command = self._command(given.ranks, fe_restart=checkpoint if checkpoint.exists() else None, **files)
            row = _kill(command, 0.0 if awaited else wait, awaited, self.random)
            if row is None:
                share = self._taken_back(checkpoint, len(rows), share)
                continue
            row |= _look(checkpoint)
            if checkpoint.exists():
                shutil.copy(checkpoint, self.folder / f"{len(rows)}.h5")
            rows.append(row)
            done = row["step"]
            print(f"kill {len(rows)}: {row}", flush=True)
        restart = checkpoint if checkpoint.exists() else None
        print(_finished(self._command(given.ranks, fe_restart=restart, **files)), flush=True)
        return rows

    def _taken_back(self, checkpoint: Path, kills: int, share: float) -> float:
        """Put back the checkpoint of the last kill after a run that ended before the next; the share to draw from."""
        checkpoint.unlink(missing_ok=True)
        if kills and (kept := self.folder / f"{kills - 1}.h5").exists():
            shutil.copy(kept, checkpoint)
        if share < 1e-3:
            raise SystemExit("runs end before they can be killed; give more -steps")
        return share / 2

    def _others(self, killed: list[dict]) -> list[dict]:
        rows, true = [], self._state("alone.h5")
        last = max((number for number, row in enumerate(killed) if row["step"]), default=None)
        restart, step = (None, 0) if last is None else (self.folder / f"{last}.h5", killed[last]["step"])
        for ranks in self.given.others:
            files = {"fe_restart": restart, "final": self.folder / "other.h5", "shuffle": ranks}
            _finished(self._command(ranks, **files))
            difference = float(np.abs(self._state("other.h5") - true).max() / np.abs(true).max())
            rows.append({"ranks": ranks, "from step": step, "difference": difference})
            print(rows[-1], flush=True)
        return rows

    def _state(self, name: str) -> np.ndarray:
        """The last state of a run, in the order that no partition changes."""
        with h5py.File(self.folder / name, "r") as file:
            return file["u"][...]


def _kill(command: list[str], wait: float, awaited: tuple[Path, float] | None, choice: random.Random) -> dict | None:
    """Start a run, kill one of its ranks `wait` s later, or after a checkpoint's step; None if it ended before."""
    began = time.monotonic()
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENV)
    while run.poll() is None and not (_children(run.pid) and (awaited is None or _reached(*awaited))):
        time.sleep(0.02)
    try:
        run.wait(wait)
    except subprocess.TimeoutExpired:
        pass
    if not (ranks := _children(run.pid)):
        run.wait(PATIENCE)
        return None
    os.kill(choice.choice(ranks), signal.SIGKILL)
    killed = time.monotonic()
    row = {"after": round(killed - began, 2)} | _ended(run)
    return row | {"seconds to end": round(time.monotonic() - killed, 2)}


def _ended(run: subprocess.Popen) -> dict:
    """Exit code of a launcher whose ranks must end; one that stays behind without a rank is ended by force."""
    late = time.monotonic() + PATIENCE
    while run.poll() is None and _children(run.pid):
        if time.monotonic() > late:
            left = _children(run.pid)
            run.kill()
            raise SystemExit(f"ranks {left} go on {PATIENCE:.0f} s after one of them was killed")
        time.sleep(0.02)
    try:
        return {"exit code": run.wait(PATIENCE / 4)}
    except subprocess.TimeoutExpired:
        run.kill()
        return {"exit code": run.wait(), "launcher": "stayed behind without a rank and was ended"}


def _reached(path: Path, step: float) -> bool:
    """Whether the checkpoint stands at a step or after it; files are whole at any moment, as they are renamed."""
    return path.exists() and _look(path)["step"] >= step


def _children(parent: int) -> list[int]:
    """Process numbers of the ranks that a launcher has started and that have not ended."""
    found = []
    for path in Path(f"/proc/{parent}/task").glob("*/children"):
        found += [int(number) for number in path.read_text().split()]
    return sorted(number for number in found if _runs(number))


def _runs(process: int) -> bool:
    """Whether a process is there and is more than an entry that its parent has not taken yet."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _look(path: Path) -> dict:
    """Whether a checkpoint is whole, and where it stands; none yet is whole too."""
    if not path.exists():
        return {"intact": True, "step": 0, "t": 0.0}
    try:
        with verified(path) as file:
            about = json.loads(file.attrs["about"])
    except PetscHdgError as error:
        return {"intact": False, "step": 0, "t": 0.0, "error": str(error)}
    return {"intact": True, "step": about["step"], "t": about["t"]}


def _finished(command: list[str]) -> str:
    """Last line of a run that must end well."""
    done = subprocess.run(command, capture_output=True, text=True, env=ENV)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    sys.exit(main())

"""What importing costs. Run: ``python -m benchmarks.peers.import_time``."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measure import ratio, write

HERE = Path(__file__).parent
CODE = {
    "python": "pass",
    "kspan": "import kspan",
    "sklearn.decomposition": "import sklearn.decomposition",
    "kspan.FeatureSparsePCA": "import kspan; kspan.FeatureSparsePCA",
}
FIRST_FIT = """
import time, numpy as np, kspan
X = np.random.default_rng(0).standard_normal((200, 50))
kspan.FeatureSparsePCA
started = time.perf_counter()
kspan.FeatureSparsePCA(2, 5, random_state=0).fit(X)
first = time.perf_counter() - started
started = time.perf_counter()
kspan.FeatureSparsePCA(2, 5, random_state=0).fit(X)
print(first - (time.perf_counter() - started))
"""


def seconds(code: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    times: dict[str, list[float]] = {name: [] for name in CODE}
    for _ in range(10):
        for name, code in CODE.items():
            times[name].append(seconds(code))
    bare = statistics.median(times["python"])
    rows = [
        {
            "what": name,
            "seconds beyond bare Python": statistics.median(values) - bare,
            "ratio to sklearn.decomposition": ratio(values, times["sklearn.decomposition"]),
        }
        for name, values in times.items()
    ]
    extra = subprocess.run(
        [sys.executable, "-c", FIRST_FIT], check=True, capture_output=True, text=True
    )
    rows.append(
        {
            "what": "first fit beyond a second one",
            "seconds beyond bare Python": float(extra.stdout),
            "ratio to sklearn.decomposition": "",
        }
    )
    write(HERE, "import_time", "What importing costs", rows, "Nothing is compiled at run time.")
    print((HERE / "import_time.md").read_text())


if __name__ == "__main__":
    main()

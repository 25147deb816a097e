"""Forged trees about orthonormal components: what is changed, and what must become of it."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from benchmarks.soundness.joint_oracle import interval
from kspan import verify
from kspan.progress import Status
from kspan.proofs import CertificateError
from tests.proofs.helpers import JUNK, changed, leaves

NOTHING = np.empty(0, dtype=np.intp)


def forged(certificate, **changes):
    """A changed certificate with a digest that fits, called bounded."""
    return replace(certificate, **{"status": Status.BOUNDED, **changes}, digest="")


def tree_factor(d, seed):
    """F of a covariance F'F, of which two directions stand out."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((d, 2)) @ rng.standard_normal((2, d)) + rng.standard_normal((d, d))


def claiming_little(problem, honest):
    """A problem, what is reached there, and a certificate that claims next to nothing.

    So that whatever follows from its witness, if anything, is what `verify` returns.
    """
    A, r = problem.covariance.submatrix(np.arange(problem.n_features)), problem.n_components
    support = np.sort(np.argsort(np.diag(A))[:r])
    modest = forged(
        honest, support=support, weights=np.eye(r), upper=100 * float(np.trace(A)),
        lower=problem.claimed_value(support, np.eye(r)), proved_in=NOTHING, proved_out=NOTHING,
    )  # fmt: skip
    verify(problem, modest)
    return problem, interval(A, problem.patterns)[0] * float(np.diag(A).max()), modest


def refused_or_true(problem, best, certificate, witness):
    try:
        _, upper = verify(problem, forged(certificate, witness=witness))
    except CertificateError:
        return
    assert upper >= best * (1 - 1e-11)


def with_junk(data, witness):
    """The witness with anything at all in one of its places, drawn by hypothesis."""
    path, value = data.draw(st.sampled_from(list(leaves(witness))))
    kinds = [*JUNK]
    if isinstance(value, np.ndarray):
        kinds += [value[:-1], value[::-1], value.T, -value, 2 * value, 0.5 * value, value + 1]
        kinds += [value.astype(kind) for kind in (float, np.float32, complex, bool, str, object)]
        kinds += [value.astype(float) * 1e180, np.concatenate([value, value]), value.tolist()]
    elif isinstance(value, str):
        kinds += ["open", "bound", "branched", "void", "enumerated"]
    else:
        kinds += [value + 1, value - 1, -value, 2 * value, 0.5 * value, float(value)]
    return changed(witness, path, data.draw(st.sampled_from(kinds)))

"""Every route there is: honest certificates, forgeries, faults."""

from benchmarks.soundness.faults import full_disk, interrupt, kill
from benchmarks.soundness.joint_routes import JOINT
from benchmarks.soundness.mutations import (
    damaged_file,
    forged_certificate,
    forged_joint,
    forged_nonnegative,
    forged_record,
)
from benchmarks.soundness.represent_routes import TELLING
from benchmarks.soundness.routes import HONEST, Route
from benchmarks.soundness.ruled_routes import RULED

ROUTES: dict[str, Route] = {
    **HONEST,
    **JOINT,
    **RULED,
    **TELLING,
    "forged certificate": Route(forged_certificate, 2),
    "forged nonnegative": Route(forged_nonnegative, 0.7, True),
    "forged joint": Route(forged_joint, 0.7, True),
    "forged record": Route(forged_record, 1, True),
    "damaged file": Route(damaged_file, 0.5, True),
    "full disk": Route(full_disk, 1, True),
    "interrupt": Route(interrupt, 1, True),
    "kill": Route(kill, 0.1, True),
}

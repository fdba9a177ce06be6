"""What bad inputs are tried on: small problems, options of the database, devices that lack something."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.options import Options

FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
MESHES = Path(__file__).parents[1] / "meshes"


def physics(f0="f0[0] = -1;", f1=FLUX, boundary=(), **more):
    """A physics, checked in 2D."""
    made = fe.Physics({"u": 1}, f0, f1, boundary=boundary, name="poisson", **more)
    made.check(2)
    return made


def mesh(c, faces=(3, 3), **more):
    return fe.Mesh.box(faces, comm=c, **more)


def problem(c, the_physics=None, **options):
    options.setdefault("check_kernels", False)
    return fe.Problem(mesh(c), the_physics or clamped(), Options(**options))


def clamped(**more):
    return physics(boundary=[fe.Dirichlet("boundary", 0.0)], **more)


def with_options(call, **values):
    """The value of `call()` under options of PETSc's database."""
    with petsc_options(**values):
        return call()


def by_database(c, **values):
    """A problem whose options come from the database."""
    return with_options(lambda: fe.Problem(mesh(c), clamped()), **values)


def solve(c, the_physics, **values):
    return with_options(lambda: problem(c, the_physics).solve(), **values)


@contextmanager
def device_without(**attributes):
    """Devices that lack what `attributes` say."""
    made = fe.Device.__init__

    def make(self, *args, **kwargs):
        made(self, *args, **kwargs)
        for name, value in attributes.items():
            setattr(self, name, value)

    with mock.patch.object(fe.Device, "__init__", make):
        yield


def on_a_device_without(c, options=None, **attributes):
    with device_without(**attributes):
        return fe.Problem(mesh(c), clamped(), Options(check_kernels=False, **(options or {})))


def no_platform(c):
    with mock.patch("petsc_hdg.device.platforms.all_devices", list):
        return problem(c)

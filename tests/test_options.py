"""Options from PETSc's database: names with and without `fe_`, values, prefixes, what is not ours, and -help."""

from __future__ import annotations

from dataclasses import fields

import pytest
from petsc_options import petsc_options

from petsc_hdg.database import option_name
from petsc_hdg.errors import OptionError
from petsc_hdg.options import Options

SCHEME_OPTIONS = {
    "hdg_tau": ("1 + fabs(n[0])", "1 + fabs(n[0])"),
    "hdg_flux": ("pointwise", "pointwise"),
    "hdg_trace_mat": ("element", "element"),
    "hdg_share": ("false", False),
    "hdg_keep": ("false", False),
    "hdg_tile_cells": ("4096", 4096),
    "hdg_local_max_it": ("7", 7),
    "hdg_local_rtol": ("1e-9", 1e-9),
    "hdg_enrich": ("0", False),
    "cg_condense": ("", True),
    "cg_stabilization": ("supg", "supg"),
    "sipg_penalty": ("paper", "paper"),
    "sipg_penalty_scale": ("2.5", 2.5),
    "sipg_theta": ("-1", -1),
    "sipg_kernel": ("split", "split"),
    "sipg_check_coercivity": ("yes", True),
    "poly_agglomerates": ("40", 40),
    "poly_space": ("tensor", "tensor"),
    "poly_subdivision": ("coarse", "coarse"),
    "poly_penalty_scale": ("0.5", 0.5),
    "poly_time_degree": ("2", 2),
    "poly_time_space": ("total", "total"),
}


def read(prefix: str = "", **given) -> Options:
    with petsc_options(**given):
        return Options.from_petsc(prefix)


def test_names():
    names = [option_name(f) for f in fields(Options) if f.name != "prefix"]
    assert [name for name in names if not name.startswith("fe_")] == list(SCHEME_OPTIONS)
    assert "fe_degree" in names and len(set(names)) == len(names)


@pytest.mark.parametrize("prefix", ["", "a_", "hdg_", "cg_", "sipg_", "poly_"])
@pytest.mark.parametrize("name", SCHEME_OPTIONS)
def test_option_of_a_scheme(name, prefix):
    text, value = SCHEME_OPTIONS[name]
    options = read(prefix, **{prefix + name: text})
    assert getattr(options, name) == value != getattr(Options(), name)
    assert type(getattr(options, name)) is type(getattr(Options(), name))


def test_another_prefix_is_not_read():
    assert read("", a_hdg_tau="2") == Options()
    assert read("a_", hdg_tau="2") == Options(prefix="a_")


@pytest.mark.parametrize(
    "name",
    [
        "hdg_ksp_type",
        "hdg_fe_degree",
        "hdg_hdg_tau",
        "cg_ksp_type",
        "cg_fe_degree",
        "cg_n",
        "sipg_ksp_type",
        "poly_ksp_type",
    ],
)
def test_options_of_objects_called_hdg_and_cg_are_not_ours(name):
    assert read("", **{name: "1"}) == Options()


@pytest.mark.parametrize("prefix", ["", "a_"])
@pytest.mark.parametrize(
    "name", ["hdg_ta", "hdg_", "hdg_local_rtoll", "cg_condensed", "cg_condens", "cg_condence", "cg_stab", "sipg_thet"]
)
def test_unknown_names(name, prefix):
    with pytest.raises(OptionError, match=f"^-{prefix}{name} is not an option; known are -{name[:3]}"):
        read(prefix, **{prefix + name: "1"})


@pytest.mark.parametrize("tau", ["auto", "1", "1e3", "2*kappa"])
def test_tau(tau):
    assert read(hdg_tau=tau).hdg_tau == tau


@pytest.mark.parametrize("tau", ["0", "-1", "-0.0", "nan", "inf", "1e999", ""])
def test_tau_that_cannot_stabilize(tau):
    with pytest.raises(OptionError, match="^-a_hdg_tau .*give auto, upwind, a number above 0, or a C expression"):
        read("a_", a_hdg_tau=tau)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf"])
def test_penalties_are_positive(text):
    with pytest.raises(OptionError, match="-sipg_penalty_scale .*: give a number between 0 and"):
        read(sipg_penalty_scale=text)


@pytest.mark.parametrize("text", ["2", "0.5", "-2"])
def test_theta(text):
    with pytest.raises(OptionError, match="-sipg_theta"):
        read(sipg_theta=text)


@pytest.mark.parametrize("text", ["0", "1", "-1e-3", "nan", "2"])
def test_numbers_have_bounds(text):
    with pytest.raises(OptionError, match="-hdg_local_rtol .*: give a number between 0 and 1"):
        read(hdg_local_rtol=text)


def test_defaults_of_the_program_yield_to_the_user():
    with petsc_options(hdg_tau="3"):
        options = Options.from_petsc(hdg_tau=2.0, hdg_enrich=False)
    assert (options.hdg_tau, options.hdg_enrich) == ("3", False)
    with pytest.raises(OptionError, match="-hdg_tau -2.0"):
        Options.from_petsc(hdg_tau=-2.0)


def test_help_lists_every_option():
    lines = Options.help("a_").splitlines()[1:]
    assert [line.split()[0] for line in lines] == [
        f"-a_{option_name(f)}" for f in fields(Options) if f.name != "prefix"
    ]
    assert "  -a_hdg_tau <now auto : formerly auto>: stabilization" in "\n".join(lines)

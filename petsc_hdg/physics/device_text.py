"""C text of a physics in one dimension: the user's functions, their derivatives, and the pw_* functions that kernels
call.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from petsc_hdg.physics.instance import Instance
from petsc_hdg.physics.terms import Form
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.derivative import derivative_name
from petsc_hdg.physics.tree.emit import Emitter
from petsc_hdg.physics.tree.indices import guarded
from petsc_hdg.physics.tree.ir import REAL, Function, Program
from petsc_hdg.physics.tree.liveness import prune
from petsc_hdg.physics.tree.specialise import Setting

_INPUTS = "const real *u, const real *u_t, const real *u_x"
_RATES = "const real *du, const real *du_t, const real *du_x"
_POINT = "const real *a, const real *a_x, real t"
_END = "const real *x, const real *constants"
_BOUNDARY_END = "const real *x, const real *n, const real *constants"


def device_text(instance: Instance) -> str:
    """The whole text; shapes are [C], [C, dim] with C all components of all fields."""
    writers = [_residual, _jacobian, _boundary, _boundary_jacobian, _dirichlet] + ([_exact] if instance.exact else [])
    writers += [_stabilization] if instance.stabilization else []
    fluxes = any(form.term.kind == "b" for form in instance.natural)
    writers += [_boundary_flux, _boundary_flux_jacobian] if fluxes else []
    wrappers = "\n".join(writer(instance) for writer in writers)
    return f'{_functions(instance.all())}#line 1 "pointwise functions"\n{wrappers}'


def objective_text(form: Form, on_boundary: bool = False) -> str:
    """The text of pw_objective alone: numbers obj that a function writes; on boundaries it takes the normal n."""
    lines = [_zero("obj", form.term.size(form.setting.ints["dim"])), f"    {_call(form.program, 'obj')}"]
    end = _BOUNDARY_END if on_boundary else _END
    wrapper = _function(f"pw_objective(const real *u, const real *u_x, {_POINT}, {end}, real *obj)", lines)
    return f'{_functions([form])}#line 1 "pointwise functions"\n{wrapper}'


def _functions(forms: Iterable[Form]) -> str:
    """The text of the functions of forms and of those that they call, each once, callees first."""
    found: dict[str, tuple[Function, Setting]] = {}
    for form in forms:
        for program in filter(None, (form.program, form.derivative)):
            known = {helper.name: helper for helper in program.helpers}
            for function in (*program.helpers, trimmed(program.main)):
                if function.name not in found:
                    found[function.name] = prune(function, set(function.outputs), known), form.setting
    emitter = Emitter()
    for function, (_, setting) in zip(guarded(list(found.values())), found.values(), strict=True):
        emitter.function(function, setting)
    return emitter.text()


def trimmed(function: Function) -> Function:
    """`function` with the parameters it uses."""
    used = ir.names_used(*function.body) | function.outputs
    parameters = tuple(p for p in function.parameters if p.name in used and p.type == REAL)
    return replace(function, parameters=parameters, unused=frozenset())


def _call(program: Program, output: str) -> str:
    """A call with arguments called as the parameters are, but for what is written."""
    names = {"u_tShift": "u_tshift"} | dict.fromkeys(program.main.outputs, output)
    arguments = ", ".join(names.get(p.name, p.name) for p in trimmed(program.main).parameters)
    return f"{program.main.name}({arguments});"


def _zero(name: str, size: int) -> str:
    return f"    for (int i = 0; i < {size}; ++i) {name}[i] = 0;"


def _zeros(instance: Instance, prefix: str = "") -> list[str]:
    """Lines that set f0 and f1, or with a prefix their derivatives, to zero."""
    return [_zero(f"{prefix}f0", instance.num_components), _zero(f"{prefix}f1", instance.num_components * instance.dim)]


def _at(name: str, offset: int) -> str:
    return f"{name} + {offset}" if offset else name


def _function(head: str, lines: list[str]) -> str:
    return f"static inline void {head} {{\n" + "\n".join(lines) + "\n}\n"


def _residual(instance: Instance) -> str:
    calls = [f"    {_call(form.program, _place(form, instance.dim))}" for form in instance.residual]
    return _function(f"pw_residual({_INPUTS}, {_POINT}, {_END}, real *f0, real *f1)", [*_zeros(instance), *calls])


def _place(form: Form, dim: int, prefix: str = "") -> str:
    kind, offset = form.term.kind, form.term.field.offset
    return _at(prefix + kind, offset * dim if kind == "f1" else offset)


def _jacobian(instance: Instance) -> str:
    lines = _zeros(instance, "d")
    if instance.jacobian is None:
        derivatives = [form for form in instance.residual if form.derivative]
        lines += [f"    {_call(form.derivative, _place(form, instance.dim, 'd'))}" for form in derivatives]
    else:
        lines += [line for form in instance.jacobian for line in _block(form, instance.dim)]
    head = f"pw_jacobian({_INPUTS}, {_RATES}, {_POINT}, real u_tshift, {_END}, real *df0, real *df1)"
    return _function(head, lines)


def _block(form: Form, dim: int) -> list[str]:
    """A hand-written block: df[fc, df] += g[fc, gc, df, dg] du[gc, dg] with the indices that the block has."""
    term = form.term
    row_dim = dim if term.kind in ("g2", "g3") else 1
    column_dim = dim if term.kind in ("g1", "g3") else 1
    rows, columns = term.field.components, term.trial.components
    target = _at(f"df{1 if row_dim > 1 or term.kind in ('g2', 'g3') else 0}", term.field.offset * row_dim)
    source = _at("du_x" if term.kind in ("g1", "g3") else "du", term.trial.offset * column_dim)
    return [
        "    {",
        f"        real g[{term.size(dim)}] = {{0}};",
        f"        {_call(form.program, 'g')}",
        f"        for (int i = 0; i < {rows}; ++i)",
        f"            for (int j = 0; j < {columns}; ++j)",
        f"                for (int d = 0; d < {row_dim}; ++d)",
        f"                    for (int e = 0; e < {column_dim}; ++e)",
        f"                        ({target})[i * {row_dim} + d] +=",
        f"                            g[((i * {columns} + j) * {row_dim} + d) * {column_dim} + e]"
        f" * ({source})[j * {column_dim} + e];",
        "    }",
    ]


def _branches(cases: list[list[str]]) -> list[str]:
    lines = []
    for number, case in enumerate(cases):
        lines += [f"    if (condition == {number}) {{", *(f"        {line}" for line in case), "    }"]
    return lines


def _boundary(instance: Instance) -> str:
    cases = _branches([_natural(form, instance.dim) for form in instance.natural])
    head = f"pw_boundary(int condition, {_INPUTS}, {_POINT}, {_BOUNDARY_END}, real *f0, real *f1)"
    return _function(head, [*_zeros(instance), *cases])


def _natural(form: Form, dim: int) -> list[str]:
    if form.term.kind == "b":
        return []
    if form.term.kind in ("f0", "f1"):
        return [_call(form.program, _place(form, dim))]
    offset, components = form.term.field.offset, form.term.field.components
    subtract = f"for (int i = 0; i < {components}; ++i) f0[{offset} + i] = -g[i];"
    return [f"real g[{components}] = {{0}};", _call(form.program, "g"), subtract]


def _boundary_jacobian(instance: Instance) -> str:
    cases = [
        [_call(form.derivative, _place(form, instance.dim, "d"))] if form.derivative and form.term.kind != "b" else []
        for form in instance.natural
    ]
    end = f"real u_tshift, {_BOUNDARY_END}, real *df0, real *df1"
    head = f"pw_boundary_jacobian(int condition, {_INPUTS}, {_RATES}, {_POINT}, {end})"
    return _function(head, [*_zeros(instance, "d"), *_branches(cases)])


def _dirichlet(instance: Instance) -> str:
    cases = [[_call(form.program, _at("g", form.term.field.offset))] for form in instance.dirichlet]
    lines = [_zero("g", instance.num_components), *_branches(cases)]
    return _function(f"pw_dirichlet(int condition, const real *a, real t, {_END}, real *g)", lines)


def _exact(instance: Instance) -> str:
    dim = instance.dim
    lines = [_zero("u", instance.num_components), _zero("u_x", instance.num_components * dim)]
    for form in instance.exact:
        offset, components = form.term.field.offset, form.term.field.components
        lines.append(f"    {_call(form.program, _at('u', offset))}")
        if form.derivative:
            lines += [
                f"    for (int d = 0; d < {dim}; ++d) {{",
                f"        real {derivative_name('x')}[{dim}] = {{0}};",
                f"        real du[{components}] = {{0}};",
                "        dx[d] = 1;",
                f"        {_call(form.derivative, 'du')}",
                f"        for (int i = 0; i < {components}; ++i) u_x[({offset} + i) * {dim} + d] = du[i];",
                "    }",
            ]
    return _function(f"pw_exact(real t, {_END}, real *u, real *u_x)", lines)


def _stabilization(instance: Instance) -> str:
    """The stabilization and its derivative."""
    (form,) = instance.stabilization
    given, size = f"{_POINT}, {_BOUNDARY_END}, const real *u", form.term.size(instance.dim)
    lines = [_zero("tau", size), f"    {_call(form.program, 'tau')}"]
    rates = [_zero("dtau", size), *([f"    {_call(form.derivative, 'dtau')}"] if form.derivative else [])]
    value = _function(f"pw_stabilization({given}, real *tau)", lines)
    return f"{value}\n" + _function(f"pw_stabilization_jacobian({given}, const real *du, real *dtau)", rates)


_FLUX_INPUTS = "const real *u, const real *u_x, const real *u_in, const real *f_hat"
_FLUX_RATES = "const real *du, const real *du_x, const real *du_in, const real *df_hat"


def _boundary_flux(instance: Instance) -> str:
    cases = [[_call(form.program, "b")] if form.term.kind == "b" else [] for form in instance.natural]
    lines = [_zero("b", instance.num_components), *_branches(cases)]
    return _function(f"pw_boundary_flux(int condition, {_FLUX_INPUTS}, {_POINT}, {_BOUNDARY_END}, real *b)", lines)


def _boundary_flux_jacobian(instance: Instance) -> str:
    given = [form.derivative if form.term.kind == "b" else None for form in instance.natural]
    cases = [[_call(derivative, "db")] if derivative else [] for derivative in given]
    lines = [_zero("db", instance.num_components), *_branches(cases)]
    state = f"int condition, {_FLUX_INPUTS}, {_FLUX_RATES}"
    head = f"pw_boundary_flux_jacobian({state}, {_POINT}, {_BOUNDARY_END}, real *db)"
    return _function(head, lines)

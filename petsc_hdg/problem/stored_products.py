"""Products by stored entries in the place of kernels, where a CPU does them sooner."""

from __future__ import annotations

# Time of a product by kernels on one core over that by entries, by scheme and shape of the cells, of degree 1, 2 and 3
# (benchmarks/stored_products.py).
TIMES = {
    "cg_gpu": {
        "triangle": (14.0, 5.0, 2.5),
        "quadrilateral": (18.0, 4.5),
        "tetrahedron": (30.0, 7.0),
        "hexahedron": (11.0,),
    },
    "sipg_gpu": {"triangle": (18.0, 10.0, 5.3), "quadrilateral": (3.7,), "tetrahedron": (25.0, 8.0)},
}
LEAST = 3.0  # of that over the cores and the components, for entries take the time of 5 to 40 products
FEW = 20_000  # unknowns up to which other parts of a solve take longer
MEMORY = 0.1  # part of the memory
BYTES = 24  # of an entry of an element matrix while a matrix is made


def suit(problem) -> bool:
    """Return True if products of Krylov methods and smoothers take stored entries by default: of many unknowns, unless
    matrices follow the time, a kernel is named or kernels for constant coefficients do the products. Collective."""
    options, disc, device = problem.options, problem.discretization, problem.device
    named = options.products == "kernels" or (options.kernel, options.sipg_kernel) != ("auto", "auto")
    follows_time = problem.physics.uses_time_derivative and not disc.is_steady
    times = TIMES.get(options.backend, {}).get(problem.mesh.cell, ())[options.degree - 1 : options.degree]
    is_large = problem.num_unknowns > FEW and options.precision == "double"
    if named or follows_time or problem.is_condensed or not (times and is_large):
        return False
    cores = device.compute_units * problem.physics.num_components
    entries = disc.mesh.num_cells * disc.num_dofs**2 * (1 + disc.has_penalties * disc.num_facets_of_cell)
    here = not device.is_gpu and getattr(problem.operator, "fast", None) is None
    here = here and times[0] >= LEAST * cores and entries * BYTES <= MEMORY * device.memory_bytes
    return problem.comm.allreduce(int(not here)) == 0


def view(problem) -> list[str]:
    """A line for -fe_view where products take stored entries."""
    return ["  products: by stored entries, which take a CPU less time than kernels"] if problem.stores else []

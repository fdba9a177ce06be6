"""Scratch memory of the user's text: what PetscCalloc1 and PetscMalloc1 give a pointer, and loops that zero it."""

from __future__ import annotations

from pycparser import c_ast, c_parser

CALLS = ("PetscCalloc1", "PetscMalloc1")
_ZERO = "void f(void) {{ for (int zeroed = 0; zeroed < 1; ++zeroed) {name}[zeroed] = 0; }}"


def allocated(body) -> dict[str, c_ast.Node]:
    """Sizes of what a function's body allocates once, by the names of pointers."""
    found = _Allocations()
    found.visit(body)
    return {name: sizes[0] for name, sizes in found.sizes.items() if len(sizes) == 1}


def pointer_of(call: c_ast.FuncCall) -> str:
    """The name of the pointer that a call allocates or frees, or "" for what is none."""
    target = call.args.exprs[-1] if call.args else None
    while isinstance(target, c_ast.Cast) or (isinstance(target, c_ast.UnaryOp) and target.op == "&"):
        target = target.expr
    return target.name if isinstance(target, c_ast.ID) else ""


def zeroing(name: str, size: c_ast.Node) -> c_ast.For:
    """`for (int zeroed = 0; zeroed < size; ++zeroed) name[zeroed] = 0;`"""
    loop = c_parser.CParser().parse(_ZERO.format(name=name)).ext[0].body.block_items[0]
    loop.cond.right = size
    return loop


class _Allocations(c_ast.NodeVisitor):
    def __init__(self):
        self.sizes: dict[str, list] = {}

    def visit_FuncCall(self, node) -> None:  # noqa: N802 (pycparser names its visitors so)
        if getattr(node.name, "name", "") in CALLS and len(node.args.exprs) == 2:
            self.sizes.setdefault(pointer_of(node), []).append(node.args.exprs[0])
        self.generic_visit(node)

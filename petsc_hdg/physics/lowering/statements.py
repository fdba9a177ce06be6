"""Statements of the user's text: from pycparser's nodes to the checked tree of ir.py."""

from __future__ import annotations

from pycparser import c_ast, c_parser

from petsc_hdg.physics.lowering.calls import real
from petsc_hdg.physics.lowering.declarations import Declarations
from petsc_hdg.physics.text.parse import line_of
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import INT, REAL, Num

# Macros of PETSc that mean nothing on a device.
_IGNORED = frozenset({"PetscFunctionBegin", "PetscFunctionBeginUser", "PetscFunctionBeginHot"})
_CALLS = {"PetscCall": 1, "PetscCallVoid": 1, "PetscCallAbort": 2}  # macros around a call, and their arguments
_REFUSED = {
    "Goto": "goto is not supported; use a loop or an if",
    "Label": "labels are not supported; use a loop or an if",
    "Case": "case outside a switch",
    "Default": "default outside a switch",
    "Struct": "structures are not supported",
    "Typedef": "typedef is not supported",
    "Pragma": "pragmas are not supported",
}
CALLS = ("PetscCalloc1", "PetscMalloc1")
_ZERO = "void f(void) {{ for (int zeroed = 0; zeroed < 1; ++zeroed) {name}[zeroed] = 0; }}"


class Statements(Declarations):
    """Reads statements in the scope of `expressions`; `result` is the type the function returns (None: nothing)."""

    def block(self, node) -> tuple:
        """The statements of a block, or of a single statement, in a scope of their own."""
        self.scope.push()
        items = (node.block_items or []) if isinstance(node, c_ast.Compound) else [node]
        statements = self.sequence(items)
        self.scope.pop()
        return statements

    def sequence(self, items: list) -> tuple:
        """Statements one after another, in the present scope."""
        return tuple(statement for item in items for statement in self.read(item))

    def read(self, node) -> tuple:
        """The statements that one statement of C becomes."""
        match node:
            case None | c_ast.EmptyStatement():
                return ()
            case c_ast.Compound():
                return self.block(node)
            case c_ast.DeclList(decls=items) | c_ast.ExprList(exprs=items):
                return self.sequence(items)
            case c_ast.Decl():
                return self.declaration(node, self.scope.bind)
            case c_ast.While() | c_ast.DoWhile():
                condition, body = self.expressions.condition(node.cond), self.block(node.stmt)
                return (ir.Loop(condition, (), body, isinstance(node, c_ast.DoWhile), line_of(node)),)
            case c_ast.Break() | c_ast.Continue():
                return (ir.Jump(type(node).__name__.lower(), line_of(node)),)
            case c_ast.Return():
                return self._returned(node.expr, line_of(node))
        kind = type(node).__name__
        if kind in _REFUSED:
            raise self._error(node, _REFUSED[kind])
        method = getattr(self, f"_{kind.lower()}", None)
        if method is None:
            raise self._error(node, "this statement has no effect; assign to a variable or call a helper function")
        return method(node)

    def _id(self, node) -> tuple:
        if node.name in _IGNORED:
            return ()
        raise self._error(node, f"the statement '{node.name}' has no effect")

    def _cast(self, node) -> tuple:
        words = getattr(getattr(node.to_type.type, "type", None), "names", None)
        if words == ["void"]:
            return ()
        raise self._error(node, "this statement has no effect")

    def _assignment(self, node) -> tuple:
        before, rvalue = (), node.rvalue
        if isinstance(rvalue, c_ast.Assignment):
            before, value = self._assignment(rvalue), self.expressions.read(rvalue.lvalue)
        else:
            value = self.expressions.read(rvalue)
        target = self.expressions.place(node.lvalue)
        if node.op in ("%=", "<<=", ">>=", "&=", "|=", "^=") and target.type == REAL:
            raise self._error(node, f"'{node.op}' needs integers")
        value = self._converted(value, target.type, target.name.rstrip("_"), line_of(node))
        return (*before, ir.Assign(target, node.op, value, line_of(node)))

    def _unaryop(self, node) -> tuple:
        if node.op.strip("p") not in ("++", "--"):
            raise self._error(node, "this statement has no effect")
        target = self.expressions.place(node.expr)
        one = Num("1.0" if target.type == REAL else "1", target.type)
        return (ir.Assign(target, node.op.strip("p")[0] + "=", one, line_of(node)),)

    def _funccall(self, node) -> tuple:
        name, line = getattr(node.name, "name", ""), line_of(node)
        arguments = node.args.exprs if node.args else []
        if name in _CALLS and len(arguments) == _CALLS[name]:
            return self.read(arguments[-1])  # its errors are not looked at
        if name in ("PetscFree", *CALLS) and pointer_of(node) in self.scope.allocated:
            return self.read(zeroing(pointer_of(node), arguments[0])) if name == "PetscCalloc1" else ()
        if name == "PetscBagGetData" and self.expressions.is_context(arguments[-1]):
            return ()
        if name in ("PetscCheck", "PetscAssert") or (name == "abort" and not arguments):
            return ()  # of what is no number, on which the solvers stop
        if name in ("PetscFunctionReturn", "PetscFunctionReturnVoid"):
            return self._returned(arguments[0] if arguments else None, line)
        if not self.expressions.helpers.has(name):
            self.expressions.read(node)
            raise self._error(node, f"the value of {name} is not used")
        return (ir.Invoke(self.expressions.helper_call(name, arguments, line), line),)

    def _if(self, node) -> tuple:
        if (holds := self.expressions.is_there(node.cond)) is not None:
            taken = node.iftrue if holds else node.iffalse
            return self.block(taken) if taken else ()
        condition = self.expressions.condition(node.cond)
        then = self.block(node.iftrue) if node.iftrue else ()
        return (ir.If(condition, then, self.block(node.iffalse) if node.iffalse else (), line_of(node)),)

    def _for(self, node) -> tuple:
        self.scope.push()
        init = self.read(self._loop_start(node.init))
        condition = self.expressions.condition(node.cond) if node.cond else None
        step = self.read(node.next)
        if not all(isinstance(statement, ir.Assign) for statement in step):
            raise self._error(node, "the last part of a for may only assign to variables")
        loop = ir.Loop(condition, step, self.block(node.stmt), False, line_of(node))
        self.scope.pop()
        return (*init, loop)

    def _loop_start(self, init):
        """The first part of a for; `for (d = 0; …)` declares an unknown d as PetscInt, so that short bodies need no
        declarations.
        """
        starts = init.exprs if isinstance(init, c_ast.ExprList) else [init]
        if not all(isinstance(s, c_ast.Assignment) and s.op == "=" and isinstance(s.lvalue, c_ast.ID) for s in starts):
            return init
        if any(self.scope.find(s.lvalue.name) for s in starts):
            return init
        return c_ast.DeclList([_integer_declaration(s) for s in starts], init.coord)

    def _returned(self, node, line: int) -> tuple:
        if self.result is None:
            return (ir.Return(None, line),)
        if node is None:
            raise self.source.error(line, "this function must return a value")
        value = self._converted(self.expressions.read(node), self.result, "the result", line)
        return (ir.Return(real(value) if self.result == REAL else value, line),)

    def _switch(self, node) -> tuple:
        """A switch whose cases each end in break or return becomes a chain of ifs."""
        value = self.expressions.read(node.cond)
        if not isinstance(value, (ir.Name, ir.Element, Num)):
            raise self._error(node, "switch needs a variable; put the value into one first")
        chain, labels = (), []
        cases = []
        for case in node.stmt.block_items or []:
            if not isinstance(case, (c_ast.Case, c_ast.Default)):
                raise self._error(case, "every statement of a switch must stand under a case")
            labels.append(None if isinstance(case, c_ast.Default) else self.expressions.read(case.expr))
            if case.stmts:
                cases.append((labels, self._case(case), line_of(case)))
                labels = []
        for labels, body, at in sorted(cases, key=lambda case: None not in case[0]):
            tests = [ir.Binary("==", value, label, INT) for label in labels if label is not None]
            if None in labels:
                chain = body
            else:
                condition = tests[0]
                for test in tests[1:]:
                    condition = ir.Binary("||", condition, test, INT)
                chain = (ir.If(condition, body, chain, at),)
        return chain

    def _case(self, case) -> tuple:
        *before, last = case.stmts
        if isinstance(last, c_ast.Compound) and len(case.stmts) == 1:
            *before, last = last.block_items or [c_ast.EmptyStatement()]
        jumps = isinstance(last, (c_ast.Break, c_ast.Return))
        if not jumps and isinstance(last, c_ast.FuncCall):
            jumps = getattr(last.name, "name", "").startswith("PetscFunctionReturn")
        if not jumps:
            raise self._error(case, "each case of a switch must end in break or return")
        self.scope.push()
        statements = self.sequence(before if isinstance(last, c_ast.Break) else [*before, last])
        self.scope.pop()
        if _leaves(statements):
            raise self._error(case, "a break inside an if of a case is not supported; use if and else")
        return statements


def _leaves(statements: tuple) -> bool:
    """Return True if a break among `statements` is not one of a loop among them."""
    inner = [_leaves(node.then) or _leaves(node.other) for node in statements if isinstance(node, ir.If)]
    return any(inner) or any(isinstance(node, ir.Jump) and node.word == "break" for node in statements)


def _integer_declaration(start: c_ast.Assignment) -> c_ast.Decl:
    """`PetscInt d = …` for the assignment `d = …`."""
    kind = c_ast.TypeDecl(start.lvalue.name, [], None, c_ast.IdentifierType(["int"]))
    return c_ast.Decl(start.lvalue.name, [], [], [], [], kind, start.rvalue, None, start.coord)


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

"""C text of checked functions: valid OpenCL C 1.2 and C99."""

from __future__ import annotations

from collections.abc import Mapping

from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.derivative import derivative_name
from petsc_hdg.physics.tree.ir import INT, MOST_TURNS, OUTSIDE, Function, Num, Symbol, is_bounded
from petsc_hdg.physics.tree.specialise import Setting

_INDENT = "    "


class Emitter:
    """Writes functions as C text whose lines carry the user's line numbers."""

    def __init__(self):
        self.lines: list[str] = []
        self._place: tuple | None = None
        self._failed, self._counted = "", 0

    def text(self) -> str:
        """All lines written so far."""
        return "\n".join(self.lines) + "\n"

    def function(self, function: Function, setting: Setting) -> None:
        """Write `function`, guarded for `setting`; a parameter is const unless the function writes it."""
        file = f"physics: {function.origin.physics}.{function.origin.slot}".replace('"', "'").replace("\\", "/")
        self._mark(file, max(function.line, 1))
        parameters = ", ".join(_parameter(p, p.name in function.outputs) for p in function.parameters) or "void"
        self._write(0, f"static inline {function.result or 'void'} {function.name}({parameters}) {{")
        used = ir.names_used(*function.body)
        for name, values in setting.arrays.items():
            if name in used:
                self._write(1, f"const int {name}[] = {{{', '.join(map(str, values))}}};")
        self._failed, self._counted = self._failure(function, setting.sizes), 0
        tells = any(isinstance(n, ir.Guarded) or n == ir.Name(OUTSIDE, INT) for n in ir.walk(function.body))
        self._asks = tells and OUTSIDE not in function.outputs  # others tell their caller
        if self._asks:
            self._write(1, f"int {OUTSIDE}[1] = {{0}};")
        self._block(function.body, 1, file)
        if self._asks:
            self._write(1, f"if ({OUTSIDE}[0]) {{ {self._failed} }}")
        self._write(0, "}")

    def _failure(self, function: Function, sizes: Mapping[str, int]) -> str:
        """Text for a function whose loop does not end or that leaves an array: all that it writes is no number, or it
        tells its caller."""
        if OUTSIDE in function.outputs:
            return f"{OUTSIDE}[0] = 1; return{' 0' if function.result else ''};"
        sizes = sizes | {derivative_name(name): size for name, size in sizes.items()}
        fills = (f"for (int i = 0; i < {sizes.get(name, 1)}; ++i) {name}[i] = NAN;" for name in function.outputs)
        return " ".join((*fills, "return;"))

    def _block(self, statements: tuple, depth: int, file: str) -> None:
        for node in statements:
            self._mark(file, node.line)
            match node:
                case ir.Declare():
                    self._declare(node, depth)
                case ir.Alias():
                    const = "const " if node.symbol.const else ""
                    self._write(depth, f"{const}{node.symbol.type} *{node.symbol.name} = {expression(node.target)};")
                case ir.Assign():
                    self._write(depth, assignment(node) + ";")
                case ir.Invoke():
                    self._write(depth, expression(node.call) + ";")
                case ir.If():
                    self._if(node, depth, file)
                case ir.Loop():
                    self._loop(node, depth, file)
                case ir.Jump():
                    self._write(depth, node.word + ";")
                case ir.Fail():
                    self._write(depth, self._failed)
                case ir.Return():
                    value = "" if node.value is None else f" {_bare(node.value)}"
                    asked = f"if ({OUTSIDE}[0]) {{ {self._failed} }} " if self._asks else ""
                    self._write(depth, f"{asked}return{value};")

    def _mark(self, file: str, line: int) -> None:
        if line and self._place != (file, line):
            self.lines.append(f'#line {line} "{file}"')
            self._place = (file, line)

    def _write(self, depth: int, text: str) -> None:
        self.lines.append(_INDENT * depth + text)
        if self._place:
            self._place = (self._place[0], self._place[1] + 1)

    def _declare(self, node: ir.Declare, depth: int) -> None:
        symbol = node.symbol
        size = f"[{symbol.extents[0].text}]" if symbol.extents else ""
        value = (
            "{" + ", ".join(map(expression, node.init)) + "}"
            if isinstance(node.init, tuple)
            else node.init and expression(node.init)
        )
        self._write(depth, f"{symbol.type} {symbol.name}{size}" + (f" = {value};" if value else ";"))

    def _if(self, node: ir.If, depth: int, file: str) -> None:
        self._write(depth, f"if ({_bare(node.condition)}) {{")
        self._block(node.then, depth + 1, file)
        if node.other:
            self._write(depth, "} else {")
            self._block(node.other, depth + 1, file)
        self._write(depth, "}")

    def _loop(self, node: ir.Loop, depth: int, file: str) -> None:
        condition = _bare(node.condition) if node.condition is not None else ""
        step = ", ".join(map(assignment, node.step))
        turns = ""
        if not is_bounded(node):
            self._counted += 1
            turns = f"turns{self._counted}"
            self._write(depth, f"int {turns} = 0;")
            condition = f"{turns}++ < {MOST_TURNS}" + (f" && ({condition})" if condition else "")
        self._write(depth, "do {" if node.test_last else f"for (; {condition}; {step}) {{")
        self._block(node.body, depth + 1, file)
        self._write(depth, f"}} while ({condition});" if node.test_last else "}")
        if turns:
            self._write(depth, f"if ({turns} > {MOST_TURNS}) {{ {self._failed} }}")


def assignment(node: ir.Assign) -> str:
    """Text of an assignment, without the semicolon."""
    return f"{expression(node.target)} {node.op} {_bare(node.value)}"


def _parameter(symbol: Symbol, written: bool) -> str:
    if not symbol.extents:
        return f"{symbol.type} {symbol.name}"
    return f"{'' if written else 'const '}{symbol.type} *{symbol.name}"


def _bare(node) -> str:
    """Text of an expression, without brackets around the whole."""
    if isinstance(node, ir.Binary):
        return f"{expression(node.left)} {node.op} {expression(node.right)}"
    return expression(node)


def expression(node) -> str:
    """Text of an expression, in brackets where it has parts."""
    match node:
        case Num():
            return f"({node.text})" if node.text.startswith("-") else node.text
        case ir.Name():
            return node.name
        case ir.Element():
            return f"{node.name}[{_bare(node.index)}]"
        case ir.Guarded():
            return f"({_bare(node.inside)} ? {expression(node.element)} : no_{node.type}({OUTSIDE}))"
        case ir.Unary():
            return f"({node.op}{expression(node.operand)})"
        case ir.Binary():
            return f"({_bare(node)})"
        case ir.Select():
            return f"({expression(node.condition)} ? {expression(node.then)} : {expression(node.other)})"
        case ir.Call(function="abs"):  # unsigned in OpenCL C
            return f"((int)abs({_bare(node.arguments[0])}))"
        case ir.Call() | ir.HelperCall():
            return f"{node.function}({', '.join(map(_bare, node.arguments))})"
        case ir.Ref():
            return _address(node)
    raise TypeError(type(node).__name__)


def _address(node: ir.Ref) -> str:
    if node.offset is None:
        return f"&{node.name}"
    if isinstance(node.offset, Num) and node.offset.type == INT and node.offset.value == 0:
        return node.name
    return f"{node.name} + {expression(node.offset)}"

"""C of recurrent nodes: one loop over the steps, which needs the state of one sample as its only memory."""

from nn_ext_c.emitting.registry import copied
from nn_ext_c.integer.cells import CANDIDATE, FIRST_STATE, INPUT_BITS, LARGEST, STATE_BITS, STEP_BITS, TABLE
from nn_ext_c.integer.network import Node, Tensor
from nn_ext_c.integer.statements import centered, rescale
from nn_ext_c.loops import Code
from nn_ext_c.program import Argument, Program, Step, Value

_ONE = 1 << STATE_BITS


def rounded(value: str, shift: int) -> str:
    """Return a number divided by a power of 2 as C, to the nearest, halves away from zero; `value` is a name."""
    half = f"((int64_t)1 << {shift - 1})"
    return f"({value} >= 0 ? ({value} + {half}) >> {shift} : -(({half} - {value}) >> {shift}))"


def write_recurrent(
    program: Program, node: Node, inputs: list[Value], tensors: list[Tensor], made: list[Tensor]
) -> list[Value]:
    """Add the step of a node; its results.

    Args:
        program: what it is added to.
        node: of kind "recurrent".
        inputs: the sequences, and the states that are not zeros.
        tensors: what the inputs stand for.
        made: what the results stand for.
    """
    data = node.data
    x, given = inputs[0], dict(zip(data["states"], inputs[1:], strict=True))
    zeros = dict(zip(data["states"], (tensor.scale.zero for tensor in tensors[1:]), strict=True))
    y = program.new(made[0].shape, "int8")
    state = program.new((y.shape[2],), "int32")
    cells = [program.new(tensor.shape, "int8") for tensor in made[1:]]
    if "h" in given:
        given["h"] = _rows(program, node, given["h"])
    first = "c" if data["cell"] == "LSTM" else "h"
    code = Code()
    code.open(f"for (int32_t b = 0; b < {y.shape[1]}; ++b)")
    _start(code, node, f"{first}0", given.get(first), zeros.get(first, 0), y.shape[2])
    _steps(code, node, x, y, tensors[0].scale.zero, made[0].scale.zero, given.get("h"))
    for tensor in made[1:]:
        code.open(f"for (int32_t j = 0; j < {y.shape[2]}; ++j)")
        multiplier, shift = data["last"]
        rescale(
            code, f"(int64_t)state[j] * {multiplier}", str(shift), f"b * {y.shape[2]} + j", tensor.scale.zero, node, "cell"
        )
        code.close()
    arguments = [Argument("x", x), *(Argument(f"{name}0", value) for name, value in given.items())]
    for name, dtype in (("weight", "int8"), ("bias", "int32"), ("multiplier", "int32")):
        arguments.append(Argument(name, program.constant(data[name], dtype, name)))
    arguments.append(Argument("table", program.constant(TABLE, "int16", "sigmoid")))
    written = [Argument("y", y, True), Argument("state", state, True), *(Argument("cell", cell, True) for cell in cells)]
    program.add(Step(data["title"], code.text(), [*arguments, *written]))
    return [y, *cells]


def _rows(program: Program, node: Node, value: Value) -> Value:
    """Return a state whose rows follow each other, as those of results do."""
    if value.strides[1] in (0, 1) and value.strides[0] in (0, value.shape[1]) and value.shape[1] > 1:
        return value
    copy = program.new(value.shape, "int8")
    copied(program, node.data["title"], value, copy)
    return copy


def _start(code: Code, node: Node, name: str, value: Value | None, zero: int, hidden: int) -> None:
    code.open(f"for (int32_t j = 0; j < {hidden}; ++j)")
    if value is None:
        code.line("state[j] = 0;")
    else:
        multiplier, shift = node.data["start"]
        element = f"{name}[b * {value.strides[0]} + j * {value.strides[1]}]"
        code.line(f"const int64_t scaled = (int64_t)({centered(element, zero)}) * {multiplier};")
        code.line(f"const int64_t first = {rounded('scaled', shift)};")
        code.line(
            f"state[j] = (int32_t)(first < -{FIRST_STATE} ? -{FIRST_STATE} : first > {FIRST_STATE} ? {FIRST_STATE} : first);"
        )
    code.close()


def _steps(code: Code, node: Node, x: Value, y: Value, x_zero: int, zero: int, h: Value | None) -> None:
    data = node.data
    (n_steps, n_batch, hidden), n_inputs, is_lstm = y.shape, x.shape[2], data["cell"] == "LSTM"
    code.open(f"for (int32_t n = 0; n < {n_steps}; ++n)")
    code.line(f"const int32_t t = {f'{n_steps - 1} - n' if data['reverse'] else 'n'};")
    before = f"y + {'(t + 1)' if data['reverse'] else '(t - 1)'} * {n_batch * hidden} + b * {hidden}"
    code.line(f"const int8_t *h = n > 0 ? {before} : {'y' if h is None else f'h0 + b * {h.strides[0]}'};")
    code.open(f"for (int32_t j = 0; j < {hidden}; ++j)")
    n_gates = 4 if is_lstm else 3
    code.line(f"int32_t gate[{n_gates + is_lstm}];")
    code.open(f"for (int32_t g = 0; g < {n_gates + is_lstm}; ++g)")
    code.line("int64_t a;")
    if is_lstm:
        code.open(f"if (g < {n_gates})")
    code.line(f"const int32_t row = g * {hidden} + j;")
    code.line("int32_t total = bias[row], from_state = 0;")
    code.open(f"for (int32_t k = 0; k < {n_inputs}; ++k)")
    strides = "t * {} + b * {} + k * {}".format(*x.strides)
    code.line(f"total += ({centered(f'x[{strides}]', x_zero)}) * weight[row * {n_inputs + hidden} + k];")
    code.close()
    code.open(f"for (int32_t k = 0; k < {hidden if h is not None else f'(n > 0 ? {hidden} : 0)'}; ++k)")
    code.line(f"from_state += ({centered('h[k]', zero)}) * weight[row * {n_inputs + hidden} + {n_inputs} + k];")
    code.close()
    (_lstm if is_lstm else _gru)(code, data["shift"], hidden)
    code.line(f"const int32_t u = (int32_t)(a < -{LARGEST} || a > {LARGEST} ? {LARGEST} : a < 0 ? -a : a);")
    code.line(f"const int32_t low = table[u >> {STEP_BITS}], high = table[(u >> {STEP_BITS}) + 1];")
    part = f"(high - low) * (u & {2**STEP_BITS - 1}) + {2 ** (STEP_BITS - 1)}"
    code.line(f"const int32_t found = low + (({part}) >> {STEP_BITS});")
    code.line(f"const int32_t s = a < 0 ? {_ONE} - found : found;")
    code.line(f"gate[g] = {f'g == {CANDIDATE} || g == 4' if is_lstm else f'g == {CANDIDATE}'} ? 2 * s - {_ONE} : s;")
    code.close()
    multiplier, shift = data["result"]
    if is_lstm:
        result = "(int64_t)gate[3] * gate[4]"
    else:
        code.line(f"const int64_t sum = (int64_t)({_ONE} - gate[1]) * gate[2] + (int64_t)gate[1] * state[j];")
        code.line(f"state[j] = (int32_t){rounded('sum', STATE_BITS)};")
        result = "(int64_t)state[j]"
    place = f"t * {n_batch * hidden} + b * {hidden} + j"
    rescale(code, f"{result} * {multiplier}", str(shift), place, zero, node)
    code.close(2)


def _lstm(code: Code, shift: int, hidden: int) -> None:
    """Write what goes into a gate, and into the hyperbolic tangent of the cell state."""
    code.line("const int64_t scaled = (int64_t)(total + from_state) * multiplier[row];")
    code.line(f"a = {rounded('scaled', shift)};")
    code.close()
    code.open("else")
    code.line("const int64_t sum = (int64_t)gate[1] * state[j] + (int64_t)gate[0] * gate[2];")
    code.line(f"state[j] = (int32_t){rounded('sum', STATE_BITS)};")
    code.line(f"a = {rounded('(int64_t)state[j]', STATE_BITS - INPUT_BITS - 1)};")
    code.close()


def _gru(code: Code, shift: int, hidden: int) -> None:
    """Write what goes into a gate; the state before has a factor of its own in the candidate."""
    code.line(f"const int64_t scaled = (int64_t)(g < {CANDIDATE} ? total + from_state : total) * multiplier[row];")
    code.line(f"a = {rounded('scaled', shift)};")
    code.open(f"if (g == {CANDIDATE})")
    code.line(f"const int64_t inner = (int64_t)(from_state + bias[{3 * hidden} + j]) * multiplier[row];")
    code.line(f"const int64_t reset = {rounded('inner', shift)} * gate[0];")
    code.line(f"a += {rounded('reset', STATE_BITS)};")
    code.close()

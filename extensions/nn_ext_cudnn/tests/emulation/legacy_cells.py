"""Passes of recurrent networks, forward and back, by the formulas of cuDNN's documentation, in NumPy."""

import numpy as np

#: Number of matrices for the input by cudnnRNNMode_t: ReLU, tanh, LSTM, GRU.
GATES = {0: 1, 1: 1, 2: 4, 3: 3}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Run:
    """A forward pass, and the backward pass through it.

    Attributes:
        y: Outputs.
        last: The last states.
        weights: Gradients of matrices and biases, after `back`.
    """

    def __init__(self, network, space, x, states):
        _, self.cell, _, self.directions, _, self.hidden, self.layers = network.form
        self.gates = GATES[self.cell]
        self.network, self.x, self.states = network, x, states
        self.last = [np.zeros_like(state) for state in states]
        self.traces, self.inputs, self.parts = {}, [], {}
        for layer in range(self.layers):
            self.inputs.append(x)
            outputs = []
            for direction in range(self.directions):
                pseudo = layer * self.directions + direction
                self.parts[pseudo] = self._weights(space, pseudo, x.dtype)
                outputs.append(self._layer(pseudo, x, direction))
            x = np.concatenate(outputs, axis=-1)
        self.y = x

    def _weights(self, space, pseudo, dtype):
        """Matrices and biases of the input, then of the state."""
        parts = []
        for number in range(2 * self.gates):
            matrix = self.network.view(space, pseudo, number, "matrix").astype(dtype)
            bias = self.network.view(space, pseudo, number, "bias")
            parts.append((matrix, np.zeros(self.hidden, dtype) if bias is None else bias.astype(dtype)))
        return parts[: self.gates], parts[self.gates :]

    def _layer(self, pseudo, x, direction):
        of_input, of_state = self.parts[pseudo]
        h = self.states[0][pseudo]
        c = self.states[1][pseudo] if len(self.states) > 1 else None
        outputs, trace = np.zeros((*x.shape[:2], self.hidden), x.dtype), []
        for t in reversed(range(len(x))) if direction else range(len(x)):
            a = [x[t] @ matrix.T + bias for matrix, bias in of_input]
            b = [h @ matrix.T + bias for matrix, bias in of_state]
            old_h, old_c = h, c
            if self.cell == 0:
                h, saved = np.maximum(a[0] + b[0], 0), ()
            elif self.cell == 1:
                h, saved = np.tanh(a[0] + b[0]), ()
            elif self.cell == 2:
                i, f, o = (sigmoid(a[k] + b[k]) for k in (0, 1, 3))
                g = np.tanh(a[2] + b[2])
                c = f * old_c + i * g
                h, saved = o * np.tanh(c), (i, f, g, o, c)
            else:
                r, i = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
                new = np.tanh(a[2] + r * b[2])
                h, saved = (1 - i) * new + i * old_h, (r, i, new, b[2])
            outputs[t] = h
            trace.append((t, old_h, old_c, h, saved))
        self.traces[pseudo] = trace
        self.last[0][pseudo] = h
        if c is not None:
            self.last[1][pseudo] = c
        return outputs

    def back(self, dy, last):
        """Gradients of x and of the states."""
        self.weights = {}
        first = [np.zeros_like(state) for state in self.states]
        for layer in reversed(range(self.layers)):
            dx = np.zeros_like(self.inputs[layer])
            for direction in range(self.directions):
                pseudo = layer * self.directions + direction
                given = dy[..., direction * self.hidden : (direction + 1) * self.hidden]
                self._back_layer(pseudo, given, dx, [state[pseudo] for state in last], first, self.inputs[layer])
            dy = dx
        return dy, *first

    def _back_layer(self, pseudo, dy, dx, dstates, first, x):
        of_input, of_state = self.parts[pseudo]
        sums = [[np.zeros_like(matrix), np.zeros_like(bias)] for matrix, bias in (*of_input, *of_state)]
        dh, dc = dstates[0], dstates[1] if len(dstates) > 1 else None
        for t, old_h, old_c, h, saved in reversed(self.traces[pseudo]):
            dh = dh + dy[t]
            direct = 0
            if self.cell == 0:
                da = [dh * (h > 0)]
            elif self.cell == 1:
                da = [dh * (1 - h * h)]
            elif self.cell == 2:
                i, f, g, o, c = saved
                shown = np.tanh(c)
                dc = dc + dh * o * (1 - shown**2)
                da = [dc * g * i * (1 - i), dc * old_c * f * (1 - f), dc * i * (1 - g * g), dh * shown * o * (1 - o)]
                dc = dc * f
            else:
                r, i, new, inner = saved
                dnew = dh * (1 - i) * (1 - new * new)
                da = [dnew * inner * r * (1 - r), dh * (old_h - new) * i * (1 - i), dnew]
                direct = dh * i
            db = [*da[:2], da[2] * saved[0]] if self.cell == 3 else da
            dh = direct
            for k in range(self.gates):
                dx[t] += da[k] @ of_input[k][0]
                dh = dh + db[k] @ of_state[k][0]
                sums[k][0] += da[k].T @ x[t]
                sums[k][1] += da[k].sum(axis=0)
                sums[self.gates + k][0] += db[k].T @ old_h
                sums[self.gates + k][1] += db[k].sum(axis=0)
        first[0][pseudo] = dh
        if dc is not None:
            first[1][pseudo] = dc
        for number, (matrix, bias) in enumerate(sums):
            self.weights[pseudo, number, "matrix"] = matrix
            self.weights[pseudo, number, "bias"] = bias

"""Names that other libraries have for what a module does, or for what something else does here."""

from typing import TYPE_CHECKING

from nn_core.engine.error_messages.attributes import Misnamed


class NamesElsewhere:
    """Attributes of a module that say what to write instead; subclasses may use the names for something of their own."""

    if not TYPE_CHECKING:  # so that checkers let subclasses define them
        parameters = Misnamed("get_parameters() has the parameters by name; solver.set_parameters(net.get_parameters())")
        named_parameters = Misnamed("get_parameters() has the parameters by name")
        state_dict = Misnamed("get_parameters() has the parameters by name; save_parameters(path) writes them")
        load_state_dict = Misnamed("load_parameters(path) reads a file, set_parameters(params) takes Variables by name")
        forward = Misnamed("net(x) builds the graph, which call() of the class defines; net(x).forward() computes it")
        modules = Misnamed("walk() has all modules with their paths, submodules those of this one by name")
        fit = Misnamed("nn_core.training.fit(net, (x, t)) trains a network")
        predict = Misnamed("fit(net, ...) returns what has predict(x); y = net.eval()(x) and y.forward() compute it, too")
        to = Misnamed("functions run where their context says: nn_core.context_scope(context)")
        cuda = Misnamed("functions run where their context says: nn_core.context_scope(context)")

"""Settings under which each solver, and each change of gradients, is run."""

from typing import Final

from nn_core.testing.samples.registry import Settings

#: By name of the class; a solver that is not here is run with its defaults.
SOLVERS: Final[dict[str, dict[str, Settings]]] = {
    "AMSBound": {"settings": {"alpha": 0.01, "beta1": 0.8, "final_lr": 0.05, "gamma": 0.01, "bias_correction": True}},
    "AMSGRAD": {"settings": {"alpha": 0.01, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4, "bias_correction": True}},
    "AdaBelief": {
        "settings": {"alpha": 0.01, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4, "wd": 0.01, "amsgrad": True},
        "decoupled": {"alpha": 0.01, "eps": 1e-4, "wd": 0.01, "weight_decouple": True},
        "fixed_decay": {"alpha": 0.01, "eps": 1e-4, "wd": 0.01, "weight_decouple": True, "fixed_decay": True},
        "rectified": {"alpha": 0.01, "eps": 1e-4, "beta2": 0.7, "rectify": True},
    },
    "AdaBound": {"settings": {"alpha": 0.01, "beta1": 0.8, "beta2": 0.9, "final_lr": 0.05, "gamma": 0.01}},
    "Adadelta": {"settings": {"lr": 0.5, "decay": 0.8, "eps": 1e-4}},
    "Adafactor": {"settings": {"lr": 0.05, "decay_exponent": 0.7, "clip": 0.5, "eps1": 1e-6, "eps2": 0.1}},
    "Adagrad": {"settings": {"lr": 0.05, "eps": 1e-4}},
    "Adam": {"settings": {"alpha": 0.01, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4}},
    "AdamW": {"settings": {"alpha": 0.01, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4, "wd": 0.01}},
    "Adamax": {"settings": {"alpha": 0.01, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4}},
    "Lamb": {"settings": {"eta": 0.01, "beta1": 0.8, "gamma_l": 0.1, "gamma_u": 2.0, "bias_correction": True}},
    "Lars": {"settings": {"lr": 0.01, "momentum": 0.8, "coefficient": 0.01, "eps": 1e-4}},
    "Lion": {"settings": {"lr": 0.01, "beta1": 0.8, "beta2": 0.9}},
    "Momentum": {"settings": {"lr": 0.01, "momentum": 0.8}},
    "Muon": {"settings": {"lr": 0.01, "momentum": 0.8, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4}},
    "NAdam": {"settings": {"alpha": 0.01, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4}},
    "Nesterov": {"settings": {"lr": 0.01, "momentum": 0.8}},
    "RAdam": {
        "settings": {"alpha": 0.01, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4},
        "rectified": {"alpha": 0.01, "beta1": 0.8, "beta2": 0.7, "eps": 1e-4},
    },
    "RMSprop": {"settings": {"lr": 0.01, "decay": 0.8, "eps": 1e-4}},
    "RMSpropGraves": {"settings": {"lr": 0.01, "decay": 0.8, "momentum": 0.7, "eps": 1e-2}},
    "ScheduleFreeAdamW": {"settings": {"alpha": 0.01, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4}},
    "ScheduleFreeSgd": {"settings": {"lr": 0.1, "momentum": 0.8}},
    "Sgd": {"settings": {"lr": 0.1}},
    "SgdW": {"settings": {"lr": 0.01, "momentum": 0.8, "wd": 0.01}},
}

#: Changes of gradients by the name of a backend's kernel: method of the solver, and its number.
GRADIENT_CHANGES: Final[dict[str, tuple[str, float]]] = {
    "WeightDecay": ("weight_decay", 0.05),
    "ScaleGrad": ("scale_grad", 0.25),
    "ClipGradByNorm": ("clip_grad_by_norm", 0.7),
}

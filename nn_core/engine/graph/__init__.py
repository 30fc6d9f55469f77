"""The computation graph: nodes, order, execution, plans, gradients."""

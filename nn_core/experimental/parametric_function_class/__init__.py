"""Layers as objects: parameters are attributes, made when the layer is made, which therefore needs the size of its input."""

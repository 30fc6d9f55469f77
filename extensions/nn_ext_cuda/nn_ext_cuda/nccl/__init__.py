"""Communicators between devices by NCCL: a plugin of its own."""

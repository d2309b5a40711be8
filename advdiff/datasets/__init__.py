"""Graphs and data sets."""

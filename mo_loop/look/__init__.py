"""Views of a model, and of the differences between two: inspect, diff, dump, view, and the page."""
